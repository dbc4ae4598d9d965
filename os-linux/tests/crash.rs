//! Lanes across real processes: children and parents killed at every place, controls beside tasks, stop in every state.

#[path = "crash/child.rs"]
mod child;
mod harness;
#[path = "crash/level.rs"]
mod level;
#[path = "crash/parents.rs"]
mod parents;
#[path = "crash/points.rs"]
mod points;
#[path = "crash/seat.rs"]
mod seat;
#[path = "crash/tripwire.rs"]
mod tripwire;
#[path = "crash/wire.rs"]
mod wire;

use parents::*;
use points::*;

fn main() -> std::process::ExitCode {
    harness::main(harness::cases![
        a_chip_child_that_stages_dies_at_every_place,
        a_chip_child_that_prepares_alone_dies_at_every_place,
        a_chip_child_with_one_frame_dies_at_every_place,
        a_sub_child_dies_at_every_place,
        a_parent_dies_at_every_place_and_nobody_outlives_it,
    ])
}
