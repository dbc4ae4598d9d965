//! Every interleaving of every access to a protocol word, by both halves of a mailbox, in small worlds: up to two
//! dispatches, one control, a stop, a death.
//!
//! The halves are the ones that run in production. A side is cut at each access: it is re-executed from the start of its
//! step with the answers that it has had so far, makes one new access, and is set aside at the next. Payload counts as one
//! token, the dispatch id in the trailer; what never changes in a world is no access. The order of memory is that of one
//! thread here; what weaker orders allow is for the loom models.

mod device;
mod parent;
mod search;
mod state;
mod words;
mod world;

use search::explore;
use world::{ONE_TASK, QUIET, SAME_FRAME, STAGED_FIRST, TWO, World};

/// L-3, L-17, L-18, L-28 … L-31, L-33
#[test]
fn one_frame_with_a_control_a_stop_and_a_death() {
    let total = explore("one frame, control", &World { control: true, ..QUIET })
        + explore("one frame, control, stop", &World { control: true, stop: true, tasks: ONE_TASK, ..QUIET })
        + explore("one frame, two tasks, stop, death", &World { stop: true, death: true, ..QUIET })
        + explore("one frame, registry control, death", &World { control: true, registry: true, death: true, ..QUIET });
    println!("one frame: {total} states in all");
}

/// L-8 … L-16
#[test]
fn two_frames_with_a_successor() {
    let total = explore("two frames, prepared successor", &TWO)
        + explore("two frames, validated successor", &World { concurrent: false, ..TWO })
        + explore("two frames, one run", &World { tasks: SAME_FRAME, ..TWO })
        + explore("two frames, successor first", &World { tasks: STAGED_FIRST, ..TWO });
    println!("two frames: {total} states in all");
}

/// L-20, L-21, L-38
#[test]
fn two_frames_with_withdrawal_and_controls() {
    let total = explore("two frames, withdrawal", &World { withdraw: true, ..TWO })
        + explore("two frames, control", &World { control: true, tasks: ONE_TASK, ..TWO })
        + explore("two frames, registry control", &World { control: true, registry: true, ..TWO });
    println!("two frames: {total} states in all");
}

/// L-25 … L-31
#[test]
fn two_frames_with_a_stop_and_a_death() {
    let total = explore("two frames, stop", &World { stop: true, ..TWO })
        + explore("two frames, death", &World { death: true, ..TWO });
    println!("two frames: {total} states in all");
}

/// L-31, L-32: wherever its parent dies, the child can leave in order, with every run finalised and the device closed.
#[test]
fn a_child_outlives_its_parent_in_order() {
    let total = explore("one frame, parent dies", &World { control: true, parent_death: true, ..QUIET })
        + explore("two frames, parent dies", &World { parent_death: true, ..TWO });
    println!("parent dies: {total} states in all");
}

/// L-8: the check itself. An activation that never reaches the word is found.
#[test]
#[should_panic(expected = "a living child was poisoned")]
fn a_lost_activation_would_be_found() {
    explore("exchange that writes nothing", &World { exchanges_nothing: true, ..TWO });
}

/// Everything at once.
#[test]
fn two_frames_with_everything() {
    let all = World { control: true, stop: true, death: true, withdraw: true, ..TWO };
    explore("two frames, everything", &all);
}
