//! The command against real trees: what it shows, and that nobody notices.

#[path = "top/asked.rs"]
mod asked;
#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;
#[path = "top/hostile.rs"]
mod hostile;
#[path = "top/shown.rs"]
mod shown;
#[allow(dead_code, reason = "shared with the cases of the worker")]
#[path = "../../os-linux/tests/worker/support.rs"]
mod support;
#[allow(dead_code, reason = "shared with the cases of nested workers")]
#[path = "../../os-linux/tests/nested/support.rs"]
mod tower;

use hostile::*;
use shown::*;

fn main() -> std::process::ExitCode {
    harness::main(harness::cases![
        the_numbers_are_those_of_health,
        every_level_of_a_nested_tree_is_shown,
        a_busy_child_shows_its_callable_and_an_age_that_grows,
        a_callable_that_came_late_is_called_by_its_name,
        a_dead_child_is_shown_with_its_cause,
        children_that_are_threads_are_shown_once,
        an_idle_tree_stays_idle_while_it_is_watched,
        a_stopped_tree_is_shown_as_stopped,
        a_tree_that_is_killed_ends_the_watch,
        a_process_without_a_worker_is_told_from_none,
        another_user_is_told_who_may_look,
        a_wrong_command_line_is_told_from_the_rest,
        a_reader_that_goes_is_no_error,
        a_board_of_another_version_is_named,
        a_forged_board_harms_nobody,
    ])
}
