//! A mailbox of two task frames: staging, activation, and what the states say.

use laneway_core::ids::PipelineSlot::{One, Zero};
use laneway_core::lane::EXIT_PROTOCOL;
use laneway_core::wire::frame as at;
use laneway_core::wire::{FrameState, Preparation};
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::Desk;
use super::desk::{FIRST, SECOND, raw};
use crate::case::Case;
use crate::device::VectorAdd;
use crate::expect::{Must, Verdict, equal, holds, mentions};

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::two_frames(
            "two_frames/an_active_task_is_staged_launched_and_done",
            &["L-5", "L-7", "L-13"],
            "An active task goes through FRAME_STAGED and TASK_LAUNCHED to TASK_DONE, each once; with no claim before it, it \
             is staged as validated only.",
            active,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/preparation_is_written_before_the_state",
            &["L-6"],
            "The preparation word is written, with 1 or 2, before FRAME_STAGED.",
            preparation_first,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/acceptance_comes_with_the_launch",
            &["L-17"],
            "Neither staging nor activation writes the acceptance word; the launch does, once, before TASK_LAUNCHED or the end.",
            acceptance,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/a_successor_waits_for_its_activation",
            &["L-7", "L-8", "L-13"],
            "A task that was published for staging is staged, and runs only after ACTIVATE.",
            waits,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/a_failed_task_ends_in_task_failed",
            &["L-5", "L-15"],
            "In a two-frame mailbox a failure ends in TASK_FAILED, with the device's code and text; the next task works.",
            failed,
        )
        .kernels(ADD)
        .faults(FaultPlan::none().with(Point::Prepare, 1, Action::Error(-5))),
        Case::two_frames(
            "two_frames/a_refused_task_is_never_staged",
            &["L-5", "L-7"],
            "A frame that is refused goes to TASK_FAILED without FRAME_STAGED, whether it was active or a successor.",
            refused,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/the_slot_is_the_index_of_the_frame",
            &["L-5", "W-2"],
            "A task of pipeline slot 0 in task frame 1, or the other way round, is refused.",
            wrong_frame,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/a_withdrawn_successor_fails_and_the_child_goes_on",
            &["L-38", "L-11", "L-15"],
            "ACTIVATE with dispatch id 0 fails the staged task at once; the child goes on serving.",
            withdrawn,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/an_identity_that_changed_is_never_launched",
            &["L-1", "L-11"],
            "ACTIVATE of a frame whose identity changed fails it with a text that names both, and the child leaves.",
            changed,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/the_earlier_dispatch_runs_first",
            &["L-10", "L-14"],
            "Of two active frames the one with the smaller dispatch id runs first, whichever frame it is in.",
            by_dispatch,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/a_state_out_of_place_ends_the_child",
            &["L-3"],
            "A value in the state word that is no state, or none that belongs there, is a violation: the child leaves.",
            out_of_place,
        )
        .kernels(ADD),
        Case::two_frames(
            "two_frames/a_successor_that_is_activated_before_it_is_staged_runs_once",
            &["L-8", "L-15"],
            "A task that the parent publishes as active while the other frame is idle runs once, from either frame.",
            either_frame,
        )
        .kernels(ADD),
    ]
}

const STAGED: i32 = FrameState::FrameStaged.raw();

fn active(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    work.is_done()?;
    let expected = raw([FrameState::FrameStaged, FrameState::TaskLaunched, FrameState::TaskDone]);
    equal("the states that the child wrote", desk.states(FIRST), expected)?;
    equal("the preparation", desk.written(FIRST, at::PREPARATION), [1])
}

fn preparation_first(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    let preparation = desk.deeds.iter().position(|deed| deed.at == FIRST.at(at::PREPARATION));
    let preparation = preparation.must("a write to the preparation word")?;
    let legal = [Preparation::Validated.raw(), Preparation::Prepared.raw()].map(i64::from);
    holds("1 or 2", legal.contains(&(desk.deeds[preparation].value as i64)), || desk.deeds[preparation].value)?;
    let staged = desk.when(FIRST, at::STATE, STAGED)?;
    holds("before FRAME_STAGED", preparation < staged, || format!("word {preparation} against word {staged}"))
}

fn acceptance(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(One, Kernel::Add, &work.tensors, &[])?;
    desk.publish(SECOND, &sheet, FrameState::PrepareReady);
    desk.reaches(SECOND, FrameState::FrameStaged)?;
    equal("acceptance of a staged task", desk.ending(SECOND).accepted, 0)?;
    SECOND.activate(desk.words()).map_err(|state| format!("state {state}")).must("activation")?;
    equal("acceptance of an activated task", desk.ending(SECOND).accepted, 0)?;
    desk.ends(SECOND)?;
    equal("writes to the acceptance word", desk.written(SECOND, at::ACCEPTED), [1])?;
    let accepted = desk.when(SECOND, at::ACCEPTED, 1)?;
    let (staged, done) = (desk.when(SECOND, at::STATE, STAGED)?, desk.when(SECOND, at::STATE, 2)?);
    holds("between FRAME_STAGED and TASK_DONE", staged < accepted && accepted < done, || {
        format!("words {staged}, {accepted}, {done}")
    })
}

fn waits(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(One, Kernel::Add, &work.tensors, &[])?;
    desk.publish(SECOND, &sheet, FrameState::PrepareReady);
    desk.reaches(SECOND, FrameState::FrameStaged)?;
    desk.stays("a successor that was not activated", SECOND, FrameState::FrameStaged)?;
    work.is_untouched()?;
    SECOND.activate(desk.words()).map_err(|state| format!("state {state}")).must("activation")?;
    equal("how it ends", desk.ends(SECOND)?.error, 0)?;
    work.is_done()?;
    let expected = raw([FrameState::FrameStaged, FrameState::TaskLaunched, FrameState::TaskDone]);
    equal("the states that the child wrote", desk.states(SECOND), expected)
}

fn failed(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.publish(FIRST, &sheet, FrameState::TaskReady);
    let ending = desk.ends(FIRST)?;
    equal("state and error", (ending.state, ending.error), (FrameState::TaskFailed.raw(), -5))?;
    mentions("the message", &ending.message, &["prepare", "-5"])?;
    work.is_untouched()?;
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    work.is_done()
}

fn refused(desk: &mut Desk<'_>) -> Verdict {
    for state in [FrameState::TaskReady, FrameState::PrepareReady] {
        let mut sheet = desk.sheet(Zero, Kernel::Add, &[], &[])?;
        sheet.digest.0 = [0xaa; 32];
        desk.deeds.clear();
        desk.publish(FIRST, &sheet, state);
        let ending = desk.ends(FIRST)?;
        mentions("the message", &ending.message, &["sha256:aaaaaaaa"])?;
        equal(format_args!("the states after {state:?}"), desk.states(FIRST), raw([FrameState::TaskFailed]))?;
    }
    Ok(())
}

fn wrong_frame(desk: &mut Desk<'_>) -> Verdict {
    for (slot, frame) in [(Zero, SECOND), (One, FIRST)] {
        let work = VectorAdd::new();
        let sheet = desk.sheet(slot, Kernel::Add, &work.tensors, &[])?;
        desk.publish(frame, &sheet, FrameState::TaskReady);
        let ending = desk.ends(frame)?;
        equal("the state", ending.state, FrameState::TaskFailed.raw())?;
        mentions("the message", &ending.message, &["slot"])?;
        work.is_untouched()?;
    }
    Ok(())
}

fn withdrawn(desk: &mut Desk<'_>) -> Verdict {
    let (gone, next) = (VectorAdd::new(), VectorAdd::new());
    let sheet = desk.sheet(One, Kernel::Add, &gone.tensors, &[])?;
    desk.publish(SECOND, &sheet, FrameState::PrepareReady);
    desk.reaches(SECOND, FrameState::FrameStaged)?;
    SECOND.clear_dispatch(desk.words());
    SECOND.activate(desk.words()).map_err(|state| format!("state {state}")).must("activation")?;
    equal("how it ends", desk.ends(SECOND)?.state, FrameState::TaskFailed.raw())?;
    gone.is_untouched()?;
    equal("acceptance of what was withdrawn", desk.written(SECOND, at::ACCEPTED), [0; 0])?;
    let sheet = desk.sheet(One, Kernel::Add, &next.tensors, &[])?;
    desk.succeeds(SECOND, &sheet)?;
    next.is_done()
}

fn changed(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let mut sheet = desk.sheet(One, Kernel::Add, &work.tensors, &[])?;
    sheet.trailer.run = 41;
    desk.publish(SECOND, &sheet, FrameState::PrepareReady);
    desk.reaches(SECOND, FrameState::FrameStaged)?;
    laneway_core::mailbox::Words::write(desk.words(), SECOND.at(at::TRAILER + 8), 42);
    SECOND.activate(desk.words()).map_err(|state| format!("state {state}")).must("activation")?;
    equal("the exit status", desk.leaves()?, EXIT_PROTOCOL)?;
    let ending = desk.ending(SECOND);
    equal("the state", ending.state, FrameState::TaskFailed.raw())?;
    mentions("the message", &ending.message, &["run 41", "run 42"])?;
    work.is_untouched()
}

fn by_dispatch(desk: &mut Desk<'_>) -> Verdict {
    let (early, late) = (VectorAdd::new(), VectorAdd::new());
    let first = desk.sheet(One, Kernel::Add, &early.tensors, &[])?;
    let second = desk.sheet(Zero, Kernel::Add, &late.tensors, &[])?;
    desk.publish(FIRST, &second, FrameState::TaskReady);
    desk.publish(SECOND, &first, FrameState::TaskReady);
    desk.ends(FIRST)?;
    desk.ends(SECOND)?;
    early.is_done()?;
    late.is_done()?;
    let (end, launch) = (desk.when(SECOND, at::STATE, 2)?, desk.when(FIRST, at::STATE, 9)?);
    holds("the end of dispatch 1 before the launch of dispatch 2", end < launch, || format!("words {end}, {launch}"))
}

fn out_of_place(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.publish(FIRST, &sheet, FrameState::PrepareReady);
    desk.reaches(FIRST, FrameState::FrameStaged)?;
    laneway_core::mailbox::Words::store(desk.words(), SECOND.at(at::STATE), 77);
    equal("the exit status", desk.leaves()?, EXIT_PROTOCOL)?;
    equal("the task that was staged", desk.ending(FIRST).state, FrameState::TaskFailed.raw())?;
    mentions("its message", &desk.ending(FIRST).message, &["77"])?;
    work.is_untouched()
}

fn either_frame(desk: &mut Desk<'_>) -> Verdict {
    for (slot, frame) in [(One, SECOND), (Zero, FIRST), (One, SECOND)] {
        let work = VectorAdd::new();
        let sheet = desk.sheet(slot, Kernel::Add, &work.tensors, &[])?;
        desk.deeds.clear();
        desk.succeeds(frame, &sheet)?;
        work.is_done()?;
        equal("how often it ended", desk.states(frame).iter().filter(|state| **state == 2).count(), 1)?;
    }
    Ok(())
}
