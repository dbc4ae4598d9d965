//! Controls on the base frame.

use laneway_core::ids::PipelineSlot::Zero;
use laneway_core::mailbox::{Frame, Words};
use laneway_core::wire::control::{ControlCommand, ControlRequest, CopySpan};
use laneway_core::wire::frame as at;
use laneway_core::wire::{CallConfig, Digest, FrameState};
use laneway_sim::Kernel;

use super::Desk;
use super::desk::{FIRST, digest};
use crate::case::Case;
use crate::device::VectorAdd;
use crate::expect::{Verdict, equal, holds, mentions};
use crate::numbers::HostBuffer;

const KERNELS: &[Kernel] = &[Kernel::Add, Kernel::Wait];
const ADD: &[Kernel] = &[Kernel::Add];
const DONE: i32 = FrameState::TaskDone.raw();
const CONTROL_DONE: i32 = FrameState::ControlDone.raw();

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::one_frame(
            "control/device_memory_is_reached_through_controls",
            &["C-16", "L-20", "W-3"],
            "MALLOC, COPY_TO, COPY_FROM, the memory query and FREE do on the base frame what the device does.",
            memory,
        )
        .with_memory(),
        Case::one_frame(
            "control/a_failed_control_leaves_the_frame_usable",
            &["L-23", "C-16"],
            "A control that fails is answered with an error and a text, and the next one works.",
            failed,
        )
        .with_memory(),
        Case::one_frame(
            "control/an_unknown_command_is_answered",
            &["L-23", "W-7"],
            "A sub-command that does not exist gets a failed CONTROL_DONE that names it.",
            unknown,
        ),
        Case::one_frame(
            "control/commands_of_a_later_version_are_unsupported",
            &["L-23"],
            "Communication domains and regions are answered with \"unsupported\".",
            later,
        ),
        Case::one_frame(
            "control/prepare_knows_what_is_installed",
            &["R-10", "L-21"],
            "PREPARE of an installed digest succeeds, and of any other fails with its name.",
            prepare,
        )
        .kernels(ADD),
        Case::one_frame(
            "control/unregister_takes_a_callable_away",
            &["R-7", "R-10"],
            "After UNREGISTER the digest is unknown to tasks and held nowhere on the device; to remove it again succeeds.",
            unregister,
        )
        .kernels(ADD),
        Case::one_frame(
            "control/a_control_waits_for_the_task_of_a_one_frame_child",
            &["L-21"],
            "In a one-frame child a control is answered after the running task has ended.",
            waits,
        )
        .kernels(KERNELS),
        Case::two_frames(
            "control/a_control_is_served_beside_a_task_in_a_two_frame_child",
            &["L-21"],
            "In a two-frame child memory controls are answered while a task runs.",
            beside,
        )
        .kernels(KERNELS)
        .with_memory(),
        Case::two_frames(
            "control/the_registry_changes_only_when_nothing_is_staged_or_active",
            &["L-21", "C-8"],
            "UNREGISTER waits until no frame of the child is staged or active.",
            registry,
        )
        .kernels(KERNELS),
        Case::one_frame(
            "control/neither_tasks_nor_controls_starve",
            &["L-34"],
            "After a task a pending control comes first; after a control a ready task does.",
            turns,
        )
        .kernels(ADD),
    ]
}

fn memory(desk: &mut Desk<'_>) -> Verdict {
    let before = desk.controls(&ControlRequest::CommittedDeviceMemory)?;
    let data = HostBuffer::of_f32(&[1.5; 16]);
    let back = HostBuffer::of_f32(&[0.0; 16]);
    let address = desk.controls(&ControlRequest::Malloc { bytes: 64 })?;
    let committed = desk.controls(&ControlRequest::CommittedDeviceMemory)?;
    holds("64 bytes more are committed", committed >= before + 64, || format!("{before} → {committed}"))?;
    let span = |dst, src| CopySpan::Addresses { dst, src, nbytes: 64 };
    desk.controls(&ControlRequest::CopyTo(span(address, data.address().0)))?;
    desk.controls(&ControlRequest::CopyFrom(span(back.address().0, address)))?;
    equal("what came back", back.f32s(), [1.5; 16])?;
    desk.controls(&ControlRequest::Free { address })?;
    equal("committed bytes at the end", desk.controls(&ControlRequest::CommittedDeviceMemory)?, before)
}

fn failed(desk: &mut Desk<'_>) -> Verdict {
    for _ in 0..2 {
        desk.request(&ControlRequest::Free { address: 0x1234 });
        let (ending, _) = desk.answer()?;
        holds("the free of a wild pointer is an error", ending.error != 0, || "error 0")?;
        mentions("its text", &ending.message, &["0x1234"])?;
        desk.controls(&ControlRequest::CommittedDeviceMemory)?;
    }
    Ok(())
}

fn unknown(desk: &mut Desk<'_>) -> Verdict {
    for command in [15, 99, u64::MAX] {
        desk.request(&ControlRequest::CommittedDeviceMemory);
        desk.words().write(Frame::BASE.at(at::SUBCOMMAND), command);
        let (ending, _) = desk.answer()?;
        holds(format_args!("command {command} is an error"), ending.error != 0, || "error 0")?;
        mentions("its text", &ending.message, &[&command.to_string()])?;
    }
    desk.controls(&ControlRequest::CommittedDeviceMemory).map(drop)
}

fn later(desk: &mut Desk<'_>) -> Verdict {
    use ControlCommand::{AllocDomain, CommInit, RegionAllocate, RegionRelease, ReleaseDomain};
    for command in [AllocDomain, ReleaseDomain, CommInit, RegionAllocate, RegionRelease] {
        desk.request(&ControlRequest::Unsupported(command));
        let (ending, _) = desk.answer()?;
        holds(format_args!("{command:?} is an error"), ending.error != 0, || "error 0")?;
        mentions("its text", &ending.message, &["unsupported"])?;
    }
    Ok(())
}

fn prepare(desk: &mut Desk<'_>) -> Verdict {
    desk.controls(&ControlRequest::Prepare { digest: digest(Kernel::Add) })?;
    desk.request(&ControlRequest::Prepare { digest: Digest([0xaa; 32]) });
    let (ending, _) = desk.answer()?;
    holds("an unknown digest is an error", ending.error != 0, || "error 0")?;
    mentions("its text", &ending.message, &["sha256:aaaaaaaa"])
}

fn unregister(desk: &mut Desk<'_>) -> Verdict {
    let before = desk.controls(&ControlRequest::CommittedDeviceMemory)?;
    desk.controls(&ControlRequest::Unregister { digest: digest(Kernel::Add) })?;
    let after = desk.controls(&ControlRequest::CommittedDeviceMemory)?;
    holds("its code is given back", after < before || before == 0, || format!("{before} → {after}"))?;
    desk.controls(&ControlRequest::Unregister { digest: digest(Kernel::Add) })?;
    let sheet = desk.sheet(Zero, Kernel::Add, &[], &[])?;
    desk.publish(FIRST, &sheet, FrameState::TaskReady);
    let ending = desk.ends(FIRST)?;
    holds("a task of it is refused", ending.error != 0, || "error 0")
}

fn waits(desk: &mut Desk<'_>) -> Verdict {
    desk.occupy(FIRST, &CallConfig::ZERO)?;
    desk.controls(&ControlRequest::CommittedDeviceMemory)?;
    let (task, control) = (desk.when(FIRST, at::STATE, DONE)?, desk.when(Frame::BASE, at::STATE, CONTROL_DONE)?);
    holds("the task ends before the control", task < control, || format!("words {task}, {control}"))
}

fn beside(desk: &mut Desk<'_>) -> Verdict {
    desk.occupy(FIRST, &CallConfig::ZERO)?;
    let address = desk.controls(&ControlRequest::Malloc { bytes: 64 })?;
    desk.controls(&ControlRequest::Free { address })?;
    equal("the error of the task", desk.ends(FIRST)?.error, 0)?;
    let (task, control) = (desk.when(FIRST, at::STATE, DONE)?, desk.when(Frame::BASE, at::STATE, CONTROL_DONE)?);
    holds("the control is answered before the task ends", control < task, || format!("words {control}, {task}"))
}

fn registry(desk: &mut Desk<'_>) -> Verdict {
    desk.occupy(FIRST, &CallConfig::ZERO)?;
    desk.controls(&ControlRequest::Unregister { digest: digest(Kernel::Add) })?;
    let (task, control) = (desk.when(FIRST, at::STATE, DONE)?, desk.when(Frame::BASE, at::STATE, CONTROL_DONE)?);
    holds("the task ends before the registry changes", task < control, || format!("words {task}, {control}"))
}

fn turns(desk: &mut Desk<'_>) -> Verdict {
    let mut order = Vec::new();
    for round in 0..2 {
        let works = [VectorAdd::new(), VectorAdd::new()];
        if round == 0 {
            // So that a task is what was served last.
            let sheet = desk.sheet(Zero, Kernel::Add, &works[0].tensors, &[])?;
            desk.succeeds(FIRST, &sheet)?;
        } else {
            desk.controls(&ControlRequest::CommittedDeviceMemory)?;
        }
        desk.deeds.clear();
        desk.request(&ControlRequest::CommittedDeviceMemory);
        let sheet = desk.sheet(Zero, Kernel::Add, &works[1].tensors, &[])?;
        desk.publish(FIRST, &sheet, FrameState::TaskReady);
        desk.ends(FIRST)?;
        desk.answer()?;
        let (task, control) = (desk.when(FIRST, at::STATE, DONE)?, desk.when(Frame::BASE, at::STATE, CONTROL_DONE)?);
        order.push(if task < control { "task" } else { "control" });
        works[1].is_done()?;
    }
    equal("what comes first after a task, and after a control", order, ["control", "task"])
}
