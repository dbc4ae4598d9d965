//! A mailbox of one task frame.

use laneway_core::ids::PipelineSlot::{One, Zero};
use laneway_core::lane::EXIT_DEVICE;
use laneway_core::mailbox::extension;
use laneway_core::serve::Served;
use laneway_core::wire::frame::{self as at, FRAME_BYTES, MESSAGE, MESSAGE_BYTES};
use laneway_core::wire::{FrameState, extension as ext};
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::Desk;
use super::desk::{FIRST, raw};
use crate::case::Case;
use crate::device::VectorAdd;
use crate::expect::{Verdict, equal, holds, mentions};

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    let fault = |at, action| FaultPlan::none().with(at, 1, action);
    vec![
        Case::one_frame(
            "one_frame/a_task_goes_from_ready_to_done",
            &["W-1", "W-2", "L-3"],
            "The child of a one-frame mailbox writes one state into a task frame, TASK_DONE, and error 0 with it.",
            done,
        )
        .kernels(ADD),
        Case::one_frame(
            "one_frame/acceptance_comes_before_the_end",
            &["L-17", "L-18"],
            "The acceptance word is written once, with 1, after the launch and before the terminal state.",
            accepted_first,
        )
        .kernels(&[Kernel::Add, Kernel::Wait]),
        Case::one_frame(
            "one_frame/a_skipped_acceptance_leaves_the_word_zero",
            &["L-17", "L-18"],
            "Where the device gives no acceptance the word stays 0, and the task succeeds.",
            not_accepted,
        )
        .kernels(ADD)
        .faults(fault(Point::Launch, Action::SkipAcceptance)),
        Case::one_frame(
            "one_frame/a_failed_task_is_done_with_an_error",
            &["L-34", "L-15", "W-9"],
            "A failure ends in TASK_DONE too, with the device's code and text; the next task works.",
            failed,
        )
        .kernels(ADD)
        .faults(fault(Point::Prepare, Action::Error(-5))),
        Case::one_frame(
            "one_frame/a_failed_task_was_never_accepted",
            &["L-17", "L-18"],
            "The acceptance word of a task that failed before its launch stays 0.",
            failed_unaccepted,
        )
        .kernels(ADD)
        .faults(fault(Point::Launch, Action::Error(-4))),
        Case::one_frame(
            "one_frame/the_error_is_written_before_the_state",
            &["L-3", "L-4", "W-9"],
            "Error, message and the length of the long form come before the terminal state, and nothing comes after it.",
            text_first,
        )
        .kernels(ADD),
        Case::one_frame(
            "one_frame/the_child_writes_its_own_words_alone",
            &["W-3", "W-6", "W-8"],
            "In a task frame the child writes state, error, acceptance, preparation, message and long form, and nothing else.",
            own_words,
        )
        .kernels(ADD),
        Case::one_frame(
            "one_frame/a_lost_device_is_reported_and_then_left",
            &["C-9", "L-31"],
            "After an unproven completion the child reports the failure, then leaves with the status for a lost device.",
            lost,
        )
        .kernels(ADD)
        .faults(fault(Point::Poll, Action::Error(-9))),
        Case::one_frame(
            "one_frame/a_stranger_is_served_without_the_extension",
            &["W-6", "W-9"],
            "A parent that shows no extension block is served all the same, and finds no long form in its frame.",
            stranger,
        )
        .kernels(ADD)
        .stranger(),
        Case::one_frame(
            "one_frame/the_child_shows_its_magic_before_it_is_ready",
            &["W-6", "P-4"],
            "The extension block of the child stands in the mailbox when INIT_READY does.",
            magic,
        ),
        Case::one_frame(
            "one_frame/a_frame_serves_many_tasks",
            &["L-3", "L-15", "T-31"],
            "A frame is used again and again; every task in it ends with its own result.",
            many,
        )
        .kernels(ADD),
        Case::one_frame(
            "one_frame/both_pipeline_slots_come_through_one_frame",
            &["L-34", "W-2", "C-5"],
            "Every pipeline slot below the depth is served in the one frame, each with generations of its own.",
            both_slots,
        )
        .kernels(ADD)
        .depth(2),
    ]
}

fn done(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    work.is_done()?;
    equal("the states that the child wrote", desk.states(FIRST), raw([FrameState::TaskDone]))
}

fn accepted_first(desk: &mut Desk<'_>) -> Verdict {
    for kernel in [Kernel::Add, Kernel::Wait] {
        let work = VectorAdd::new();
        let sheet = match kernel {
            Kernel::Wait => desk.sheet(Zero, kernel, &[], &[2_000_000])?,
            _ => desk.sheet(Zero, kernel, &work.tensors, &[])?,
        };
        desk.deeds.clear();
        desk.succeeds(FIRST, &sheet)?;
        equal(format_args!("writes to the acceptance word of {kernel}"), desk.written(FIRST, at::ACCEPTED), [1])?;
        let accepted = desk.when(FIRST, at::ACCEPTED, 1)?;
        let done = desk.when(FIRST, at::STATE, FrameState::TaskDone.raw())?;
        holds("acceptance before TASK_DONE", accepted < done, || format!("word {accepted} against word {done}"))?;
    }
    Ok(())
}

fn not_accepted(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    work.is_done()?;
    equal("writes to the acceptance word", desk.written(FIRST, at::ACCEPTED), [0; 0])
}

fn failed(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.publish(FIRST, &sheet, FrameState::TaskReady);
    let ending = desk.ends(FIRST)?;
    equal("state and error", (ending.state, ending.error), (FrameState::TaskDone.raw(), -5))?;
    mentions("the message", &ending.message, &["prepare", "-5"])?;
    work.is_untouched()?;
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    work.is_done()
}

fn failed_unaccepted(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.publish(FIRST, &sheet, FrameState::TaskReady);
    let ending = desk.ends(FIRST)?;
    equal("error and acceptance", (ending.error, ending.accepted), (-4, 0))?;
    work.is_untouched()?;
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    equal("the acceptance of the next task", desk.ending(FIRST).accepted, 1)
}

fn text_first(desk: &mut Desk<'_>) -> Verdict {
    let mut sheet = desk.sheet(Zero, Kernel::Add, &[], &[])?;
    sheet.digest.0[0] ^= 0xff;
    desk.publish(FIRST, &sheet, FrameState::TaskReady);
    let ending = desk.ends(FIRST)?;
    for _ in 0..10 {
        desk.step();
    }
    let end = desk.when(FIRST, at::STATE, ending.state)?;
    let error = desk.when(FIRST, at::ERROR, ending.error)?;
    let places = |from: usize, bytes: usize| FIRST.at(from)..FIRST.at(from + bytes);
    for (what, range) in [("the message", places(MESSAGE, MESSAGE_BYTES)), ("the long form", places(at::DETAIL, 8))] {
        let last = desk.deeds.iter().rposition(|deed| range.contains(&deed.at));
        holds(format_args!("{what} is written before the state"), last.is_some_and(|last| last < end), || {
            format!("word {last:?} against word {end}")
        })?;
    }
    holds("the error is written before the state", error < end, || format!("word {error} against word {end}"))?;
    let late = desk.deeds[end + 1..].iter().find(|deed| (FIRST.at(0)..FIRST.at(FRAME_BYTES)).contains(&deed.at));
    equal("a word that was written after the terminal state", late, None)
}

fn own_words(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let good = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &good)?;
    let mut bad = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    bad.digest.0[0] ^= 0xff;
    desk.publish(FIRST, &bad, FrameState::TaskReady);
    desk.ends(FIRST)?;
    let is_own = |at: usize| match at.checked_sub(FIRST.at(0)) {
        // The child's line of the base frame.
        None => (ext::CHILD..ext::CHILD + 256).contains(&at),
        Some(field) => {
            field == at::STATE
                || field == at::ERROR
                || (at::ACCEPTED..FRAME_BYTES).contains(&field)
                || (at::DETAIL..at::DETAIL + at::DETAIL_BYTES).contains(&field)
        }
    };
    let foreign = desk.deeds.iter().find(|deed| !is_own(deed.at));
    equal("a word that was written and is not the child's", foreign, None)
}

fn lost(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.publish(FIRST, &sheet, FrameState::TaskReady);
    let status = desk.leaves()?;
    let ending = desk.ending(FIRST);
    equal("state and error", (ending.state, ending.error), (FrameState::TaskDone.raw(), -9))?;
    mentions("the message", &ending.message, &["unproven"])?;
    equal("the exit status", status, EXIT_DEVICE)?;
    equal("terminal states written", desk.states(FIRST).len(), 1)?;
    work.is_untouched()
}

fn stranger(desk: &mut Desk<'_>) -> Verdict {
    let work = VectorAdd::new();
    let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    desk.succeeds(FIRST, &sheet)?;
    work.is_done()?;
    let mut bad = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
    bad.digest.0[0] ^= 0xff;
    desk.publish(FIRST, &bad, FrameState::TaskReady);
    let ending = desk.ends(FIRST)?;
    holds("a failure has a text", ending.error != 0 && !ending.message.is_empty(), || format!("{ending:?}"))?;
    let detail = FIRST.at(at::DETAIL)..FIRST.at(at::DETAIL + at::DETAIL_BYTES);
    equal("a word in the detail area", desk.deeds.iter().find(|deed| detail.contains(&deed.at)), None)
}

fn magic(desk: &mut Desk<'_>) -> Verdict {
    equal("what the child shows", extension::child(desk.words()), laneway_core::mailbox::Peer::Known)?;
    equal("an idle child", desk.step(), Served::Idle)
}

fn many(desk: &mut Desk<'_>) -> Verdict {
    for _ in 0..50 {
        let work = VectorAdd::new();
        let sheet = desk.sheet(Zero, Kernel::Add, &work.tensors, &[])?;
        desk.succeeds(FIRST, &sheet)?;
        work.is_done()?;
    }
    equal("terminal states written", desk.states(FIRST), vec![raw([FrameState::TaskDone])[0]; 50])
}

fn both_slots(desk: &mut Desk<'_>) -> Verdict {
    for (slot, generation) in [(Zero, 7), (One, 2), (Zero, 8), (One, 2)] {
        let work = VectorAdd::new();
        let mut sheet = desk.sheet(slot, Kernel::Add, &work.tensors, &[])?;
        (sheet.trailer.generation, sheet.lease.generation) = (generation, generation);
        desk.succeeds(FIRST, &sheet)?;
        work.is_done()?;
    }
    Ok(())
}
