//! Devices of a user's own that misbehave, with nothing but the public interface: in processes, and once more in threads.

#[path = "devices/calling_back.rs"]
mod calling_back;
#[path = "devices/freeing.rs"]
mod freeing;
mod harness;
#[path = "devices/panicking.rs"]
mod panicking;
#[path = "devices/support.rs"]
mod support;
#[path = "devices/telling.rs"]
mod telling;

use calling_back::*;
use freeing::*;
use panicking::*;
use telling::*;

fn main() -> std::process::ExitCode {
    harness::main_in_both_modes(
        harness::cases![
            a_free_that_panics_names_its_allocation_and_close_reports_it_once,
            memory_whose_free_panicked_can_be_handed_out_again,
            a_device_that_calls_its_own_worker_is_refused_wherever_it_does,
            a_long_error_of_a_device_is_cut_where_one_sees_it,
            a_chip_worker_reports_an_allocation_whose_free_panicked_and_frees_it_once,
        ],
        harness::cases![
            a_chip_child_that_panics_closes_its_device_before_it_leaves,
            a_chip_child_that_panicked_and_waits_for_its_device_dies_with_its_parent,
            an_orphaned_chip_child_that_panics_has_a_moment_to_close_its_device,
        ],
    )
}
