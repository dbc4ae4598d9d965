//! Callables that are registered and unregistered, before and after the children exist.

#[path = "register/handles.rs"]
mod handles;
mod harness;
#[path = "register/late.rs"]
mod late;
#[path = "register/racing.rs"]
mod racing;

use handles::*;
use late::*;
use racing::*;

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            a_function_with_captured_bytes_reaches_children_that_run,
            the_same_before_the_forks,
            an_orchestration_reaches_nested_workers_that_run,
            a_symbol_that_is_not_there_fails_with_the_loaders_words,
            a_function_outside_every_image_is_refused,
            a_closure_is_for_before_the_forks_alone,
            handles_are_counted_and_the_last_one_takes_the_callable_away,
            a_dead_or_foreign_handle_is_refused_everywhere,
            one_name_version_and_capture_is_given_to_one_function,
            a_callable_that_no_child_runs_is_refused,
            the_staged_bytes_are_given_back_whatever_happens,
            unregister_waits_for_tasks_and_its_digest_is_a_tombstone_meanwhile,
            threads_register_the_same_callable_at_once,
            a_registration_that_races_close_ends,
            a_callable_registered_inside_a_callback_is_used_there,
        ],
        harness::cases![
            a_library_symbol_is_called_with_arguments_and_its_captured_bytes,
            a_child_that_dies_while_it_is_asked_fails_the_registration_and_the_others_forget,
        ],
    )
}
