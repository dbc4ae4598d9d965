//! Who drives, who sleeps, and what can be seen of it from outside.

mod harness;
#[path = "progress/idle.rs"]
mod idle;
#[path = "progress/observed.rs"]
mod observed;
#[path = "progress/side_by_side.rs"]
mod side_by_side;
#[path = "progress/slices.rs"]
mod slices;
#[allow(dead_code, reason = "shared with the cases of the worker")]
#[path = "worker/support.rs"]
mod support;
#[allow(dead_code, reason = "shared with the cases of nested workers")]
#[path = "nested/support.rs"]
mod tower;

use idle::*;
use observed::*;
use side_by_side::*;
use slices::*;

fn main() -> std::process::ExitCode {
    harness::main(harness::cases![
        threads_submit_wait_register_cancel_and_drop_and_nothing_hangs,
        a_slow_control_on_one_child_delays_nothing_on_another,
        a_steady_run_sleeps_in_no_poll,
        the_background_thread_runs_when_init_returns,
        an_idle_tree_of_three_levels_never_wakes,
        waiting_for_one_long_task_uses_no_cpu,
        starting_with_much_memory_resident_costs_little_more_than_the_forks,
        a_child_that_computes_for_long_asks_for_long_slices,
        a_child_that_spins_for_long_between_tasks_keeps_its_slices,
        a_nested_worker_that_submits_for_long_keeps_its_slices,
        a_tree_is_observed_from_outside,
        a_process_that_dies_while_it_is_observed_harms_nobody,
        a_hostile_board_harms_nobody,
    ])
}
