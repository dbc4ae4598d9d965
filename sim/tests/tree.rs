//! Workers with simulated chips as child processes, and the example as a user runs it.

#[path = "tree/dying.rs"]
mod dying;
#[path = "tree/example.rs"]
mod example;
#[path = "tree/graphs.rs"]
mod graphs;
#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;
#[path = "tree/idling.rs"]
mod idling;
#[path = "tree/starting.rs"]
mod starting;
#[path = "tree/support.rs"]
mod support;

use dying::*;
use example::*;
use graphs::*;
use idling::*;
use starting::*;

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            every_profile_computes_through_the_whole_stack,
            two_chips_and_a_sub_child_share_one_graph,
            runs_overlap_on_two_frames_and_keep_their_results_apart,
            an_error_of_the_device_arrives_with_its_text,
            a_chip_that_cannot_open_fails_init_with_its_text,
            a_chip_that_panics_in_its_start_fails_init_with_the_text,
            a_callable_that_the_chip_refuses_fails_init,
            an_unknown_chip_and_a_callable_of_the_wrong_kind_are_refused,
            a_long_kernel_costs_no_cpu_in_any_process,
            an_idle_tree_with_chips_uses_no_cpu,
        ],
        harness::cases![
            a_chip_that_exits_in_its_start_fails_init_with_its_status,
            a_chip_killed_in_its_start_fails_init_with_the_signal,
            a_chip_that_is_late_fails_init_at_the_deadline,
            close_from_another_thread_cancels_init,
            a_chip_killed_in_a_task_is_reported_and_the_other_goes_on,
            the_example_computes_and_exits_with_success,
            the_example_names_the_element_that_is_wrong,
            the_example_refuses_nonsense_with_a_sentence,
            a_killed_parent_takes_a_chip_in_the_middle_of_a_kernel,
            an_orphaned_chip_closes_its_device_and_leaves_even_if_that_hangs,
        ],
    )
}
