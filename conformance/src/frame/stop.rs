//! Leaving in order.

use laneway_core::ids::PipelineSlot::{One, Zero};
use laneway_core::mailbox::{Frame, Words};
use laneway_core::wire::frame as at;
use laneway_core::wire::{CallConfig, FrameState};
use laneway_sim::Kernel;

use super::Desk;
use super::desk::{FIRST, SECOND};
use crate::case::Case;
use crate::device::VectorAdd;
use crate::expect::{Verdict, equal, holds};

const KERNELS: &[Kernel] = &[Kernel::Add, Kernel::Wait];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::one_frame(
            "stop/an_idle_child_leaves_when_it_is_asked",
            &["L-30", "L-31"],
            "The sticky shutdown word alone makes a child leave, with status 0.",
            idle,
        ),
        Case::one_frame(
            "stop/a_one_frame_child_ends_its_task_first",
            &["L-33"],
            "In a one-frame child shutdown waits for the running task, which ends as usual.",
            ends_first,
        )
        .kernels(KERNELS),
        Case::one_frame(
            "stop/what_was_not_begun_is_failed_with_a_message",
            &["L-33", "L-17"],
            "A task that was published but not begun gets a failed terminal state with a text, and is not run.",
            not_begun,
        )
        .kernels(KERNELS),
        Case::two_frames(
            "stop/every_published_frame_gets_its_terminal_state",
            &["L-15", "L-31", "L-33"],
            "A two-frame child that is asked to leave ends what runs and what is staged, each with one terminal state.",
            all_frames,
        )
        .kernels(KERNELS),
        Case::two_frames(
            "stop/the_erasable_signal_works_too",
            &["L-30", "L-31"],
            "SHUTDOWN in the state word of the base frame makes a child leave as well.",
            erasable,
        )
        .kernels(KERNELS),
    ]
}

fn ask(desk: &Desk<'_>) {
    desk.words().store(Frame::BASE.at(at::SHUTDOWN), 1);
}

fn idle(desk: &mut Desk<'_>) -> Verdict {
    desk.step();
    ask(desk);
    equal("the exit status", desk.leaves()?, 0)
}

fn ends_first(desk: &mut Desk<'_>) -> Verdict {
    desk.occupy(FIRST, &CallConfig::ZERO)?;
    ask(desk);
    equal("the exit status", desk.leaves()?, 0)?;
    let ending = desk.ending(FIRST);
    equal("state and error", (ending.state, ending.error), (FrameState::TaskDone.raw(), 0))
}

fn not_begun(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.publish(FIRST, &sheet, FrameState::TaskReady);
    ask(desk);
    equal("the exit status", desk.leaves()?, 0)?;
    let ending = desk.ending(FIRST);
    equal("the state", ending.state, FrameState::TaskDone.raw())?;
    holds("an error with a text", ending.error != 0 && !ending.message.is_empty(), || format!("{ending:?}"))?;
    equal("the acceptance", ending.accepted, 0)?;
    work.is_untouched()
}

fn all_frames(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    desk.occupy(FIRST, &CallConfig::ZERO)?;
    let sheet = desk.sheet(One, Kernel::Add, &work.tensors, &[])?;
    desk.publish(SECOND, &sheet, FrameState::PrepareReady);
    desk.reaches(SECOND, FrameState::FrameStaged)?;
    ask(desk);
    equal("the exit status", desk.leaves()?, 0)?;
    for frame in [FIRST, SECOND] {
        let ends = desk.states(frame).iter().filter(|state| [2, 10].contains(*state)).count();
        equal("terminal states of one frame", ends, 1)?;
    }
    equal("the state of the successor", desk.ending(SECOND).state, FrameState::TaskFailed.raw())?;
    work.is_untouched()
}

fn erasable(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    work.is_done()?;
    Frame::BASE.publish_state(desk.words(), FrameState::Shutdown);
    equal("the exit status", desk.leaves()?, 0)
}
