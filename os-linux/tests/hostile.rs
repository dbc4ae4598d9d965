//! One honest half of a mailbox, and on the other side a real process that writes whatever it likes.

#[path = "hostile/attacks.rs"]
mod attacks;
#[path = "crash/child.rs"]
mod child;
#[path = "../../core/tests/noise/dice.rs"]
mod dice;
mod harness;
#[path = "../../core/tests/device/kind.rs"]
mod kind;
#[path = "../../core/tests/noise/ledger.rs"]
mod ledger;
#[path = "../../core/tests/device/runs.rs"]
mod runs;
#[path = "hostile/scribbler.rs"]
mod scribbler;
#[path = "crash/seat.rs"]
mod seat;
#[path = "../../core/tests/noise/width.rs"]
mod width;
#[path = "crash/wire.rs"]
mod wire;
#[path = "../../core/tests/noise/writes.rs"]
mod writes;

use attacks::*;

fn main() -> std::process::ExitCode {
    harness::main(harness::cases![
        a_hostile_child_process_cannot_confuse_its_parent,
        a_hostile_parent_process_cannot_break_its_child,
    ])
}
