//! Workers as children of workers, with real processes at every level.

#[path = "nested/ending.rs"]
mod ending;
mod harness;
#[path = "nested/namespace.rs"]
mod namespace;
#[path = "nested/passing.rs"]
mod passing;
#[path = "nested/running.rs"]
mod running;
#[path = "nested/support.rs"]
mod support;

use ending::*;
use namespace::*;
use passing::*;
use running::*;

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            a_level_4_sends_a_task_to_a_level_3_whose_sub_child_verifies,
            three_levels_above_a_sub_child_compute,
            several_nested_workers_run_a_group,
            an_error_names_every_level_that_it_came_through,
            a_panic_below_fails_its_task_and_the_tree_lives_on,
            memory_of_every_level_above_is_valid_below,
            a_nested_run_has_its_own_orchestrator_arguments_and_config,
            a_nested_worker_belongs_to_its_parent,
            a_callable_for_another_kind_of_child_is_refused,
            a_callable_that_no_child_runs_fails_init,
            an_orchestration_registers_functions_on_its_own_worker_while_that_runs,
            one_name_is_given_to_one_function,
            closures_of_a_loop_differ_and_one_function_registered_twice_does_not,
            a_stop_reaches_a_running_orchestration,
            a_stop_is_passed_on_within_ten_milliseconds_a_level,
            a_stop_is_passed_on_past_callbacks_that_call_nothing,
        ],
        harness::cases![
            children_of_two_processes_have_different_identities,
            close_of_a_deep_tree_leaves_nothing_behind,
            a_nested_worker_killed_in_a_task_takes_what_is_below_it,
            a_child_that_dies_below_fails_the_task_with_the_whole_path,
            a_killed_root_takes_three_levels_with_it,
            a_death_is_passed_on_within_ten_milliseconds_a_level,
            a_stopped_grandchild_does_not_hold_up_close_for_ever,
            a_killed_parent_that_is_pid_1_takes_three_levels_with_it,
            a_killed_parent_below_a_pid_1_takes_three_levels_with_it,
            a_parent_that_is_pid_1_reaps_the_orphans_of_its_children,
            a_tree_below_pid_1_works_and_closes,
            a_process_of_another_run_of_this_case_is_none_of_its_own,
        ],
    )
}
