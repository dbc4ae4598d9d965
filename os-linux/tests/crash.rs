//! Lanes across real processes: children and parents killed at every place, controls beside tasks, stop in every state.

#[path = "crash/child.rs"]
mod child;
#[path = "crash/controls.rs"]
mod controls;
mod harness;
#[path = "../../core/tests/device/kind.rs"]
mod kind;
#[path = "crash/level.rs"]
mod level;
#[path = "crash/parents.rs"]
mod parents;
#[path = "crash/points.rs"]
mod points;
#[path = "../../core/tests/device/runs.rs"]
mod runs;
#[path = "crash/seat.rs"]
mod seat;
#[path = "crash/stopping.rs"]
mod stopping;
#[path = "crash/tripwire.rs"]
mod tripwire;
#[path = "crash/wire.rs"]
mod wire;

use controls::*;
use parents::*;
use points::*;
use stopping::*;

fn main() -> std::process::ExitCode {
    harness::main(harness::cases![
        a_chip_child_that_stages_dies_at_every_place,
        a_chip_child_that_prepares_alone_dies_at_every_place,
        a_chip_child_with_one_frame_dies_at_every_place,
        a_sub_child_dies_at_every_place,
        a_parent_dies_at_every_place_and_nobody_outlives_it,
        ordinary_controls_run_beside_a_task_and_registry_controls_wait,
        in_a_one_frame_child_every_control_waits_for_the_task,
        a_late_control_poisons_its_endpoint_and_no_other,
        a_slow_control_delays_nothing_on_another_child,
        a_control_of_a_dead_child_fails_at_once_with_the_cause,
        a_stop_in_every_state_again_and_again_from_another_thread_loses_nothing,
        an_exit_status_is_reported_as_it_was,
    ])
}
