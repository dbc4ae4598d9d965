//! Two runs on one device.

use laneway_core::chip::{Call, ChipError, DirectLane, Phase, Submitted};
use laneway_core::wire::CallConfig;
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::bench::{fails_with, slot};
use super::{Bench, ONE, PLAIN, VectorAdd, ZERO, diagnostic, storage};
use crate::case::Case;
use crate::expect::{Must, Verdict, equal, holds};
use crate::numbers::HostBuffer;

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::device(
            "order/a_second_run_launches_after_the_first_was_finalized",
            &["L-12", "L-14"],
            "Of two prepared runs the second is launched only once the first has completed and was finalized.",
            order,
        )
        .kernels(&[Kernel::Add, Kernel::Mul])
        .depth(2)
        .concurrent(true),
        Case::device(
            "order/a_prepared_run_is_given_up_beside_one_that_executes",
            &["L-11", "L-15"],
            "A run that was prepared beside another can be given up; the other ends as if it had been alone.",
            give_up_beside,
        )
        .kernels(ADD)
        .depth(2)
        .concurrent(true),
        Case::device(
            "order/banks_of_two_runs_are_apart",
            &["C-1", "L-12"],
            "What is prepared in one run slot changes nothing of the run in the other, whichever was prepared first.",
            banks,
        )
        .kernels(&[Kernel::Add, Kernel::Mul])
        .depth(2)
        .concurrent(true),
        Case::device(
            "order/a_prepare_beside_another_run_is_incompatible",
            &["C-9", "L-12", "L-16", "T-28"],
            "A runtime that prepares one run at a time answers a second prepare with −3, and takes it once the first is over.",
            incompatible_plain,
        )
        .kernels(ADD)
        .depth(2)
        .concurrent(false),
        Case::device(
            "order/a_diagnostic_run_is_prepared_alone",
            &["L-12", "L-16"],
            "Neither is a diagnostic run prepared beside another, nor another beside it.",
            incompatible_diagnostic,
        )
        .kernels(ADD)
        .depth(2)
        .concurrent(true),
        Case::device(
            "order/a_diagnostic_run_computes_the_same",
            &["L-12"],
            "Diagnostics change no result.",
            diagnostic_runs,
        )
        .kernels(ADD),
        Case::device(
            "order/direct_runs_wait_for_room_and_drive_each_other",
            &["C-18", "L-14"],
            "Of runs without a lease two at most are on their way; a third finds no room, and waiting for the second drives \
             the first.",
            direct,
        )
        .kernels(ADD),
        Case::device(
            "order/a_refused_launch_leaves_the_run_prepared",
            &["C-6", "C-9"],
            "A launch that fails before anything was handed over leaves a run that can be launched again or given up.",
            launch_again,
        )
        .kernels(ADD)
        .faults(FaultPlan::none().with(Point::Launch, 1, Action::Error(-4))),
    ]
}

fn order(device: &mut Bench<'_>) -> Verdict {
    let (add, mul) = (device.install(0, Kernel::Add)?, device.install(1, Kernel::Mul)?);
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let one = device.launched(add, &first)?;
    let two = device.prepare(mul, &second.args, &PLAIN, ONE).must("prepare beside it")?;
    let refused = |phase| ChipError::LaunchOrder { epoch: two.epoch(), before: one.epoch(), phase };
    fails_with("a launch beside a launched run", device.launch(two), refused(Phase::Launched))?;
    device.wait(one).must("wait")?;
    fails_with("a launch before the finalize of the first", device.launch(two), refused(Phase::Reaped))?;
    device.finalize(one).must("finalize")?;
    first.is_done()?;
    second.is_untouched()?;
    equal("acceptance of the second before its launch", device.accepted(two), false)?;
    device.launch(two).must("launch")?;
    device.finalize(two).must("finalize")?;
    equal("the product", second.out.f32s(), [10.0, 40.0, 90.0, 160.0])
}

fn give_up_beside(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let one = device.launched(add, &first)?;
    let two = device.prepare(add, &second.args, &PLAIN, ONE).must("prepare beside it")?;
    device.finalize(two).must("finalize of the prepared run")?;
    second.is_untouched()?;
    let two = device.prepare(add, &second.args, &PLAIN, ONE).must("prepare in the slot that is free again")?;
    device.finalize(one).must("finalize")?;
    first.is_done()?;
    device.launch(two).must("launch")?;
    device.finalize(two).must("finalize")?;
    second.is_done()
}

fn banks(device: &mut Bench<'_>) -> Verdict {
    let (add, mul) = (device.install(0, Kernel::Add)?, device.install(1, Kernel::Mul)?);
    for [early, late] in [[ZERO, ONE], [ONE, ZERO]] {
        let (first, second) = (VectorAdd::new(), VectorAdd::new());
        let one = device.prepare(add, &first.args, &PLAIN, early).must("prepare")?;
        let two = device.prepare(mul, &second.args, &PLAIN, late).must("prepare beside it")?;
        holds("two runs have two epochs", one.epoch() != two.epoch(), || one.epoch())?;
        device.launch(one).must("launch")?;
        device.finalize(one).must("finalize")?;
        first.is_done()?;
        device.launch(two).must("launch")?;
        device.finalize(two).must("finalize")?;
        equal("the product", second.out.f32s(), [10.0, 40.0, 90.0, 160.0])?;
    }
    Ok(())
}

fn incompatible_plain(device: &mut Bench<'_>) -> Verdict {
    incompatible(device, [PLAIN, PLAIN])
}

fn incompatible_diagnostic(device: &mut Bench<'_>) -> Verdict {
    incompatible(device, [PLAIN, diagnostic()?])?;
    incompatible(device, [diagnostic()?, PLAIN])
}

fn incompatible(device: &mut Bench<'_>, configs: [CallConfig; 2]) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let run = device.prepare(add, &first.args, &configs[0], ZERO).must("prepare")?;
    let beside = device.prepare(add, &second.args, &configs[1], ONE);
    fails_with("a prepare beside a prepared run", beside, ChipError::Incompatible { call: Call::Prepare })?;
    device.launch(run).must("launch")?;
    let beside = device.prepare(add, &second.args, &configs[1], ONE);
    fails_with("a prepare beside a launched run", beside, ChipError::Incompatible { call: Call::Prepare })?;
    device.finalize(run).must("finalize")?;
    device.run(add, &second.args, &configs[1], ONE).must("the same run, alone")?;
    first.is_done()?;
    second.is_done()?;
    device.unregister(add).must("unregister")
}

fn diagnostic_runs(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    device.run(add, &work.args, &diagnostic()?, ZERO).must("a diagnostic run")?;
    work.is_done()
}

fn direct(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let works = [VectorAdd::new(), VectorAdd::new(), VectorAdd::new()];
    let room = if device.supports_concurrent_prepare() && device.contract().depth() == 2 { 2 } else { 1 };
    let mut lane = DirectLane::new();
    let mut tickets = Vec::new();
    for work in &works[..room] {
        let submitted = lane.submit(device.device(), add, &work.args, &PLAIN).must("submit")?;
        match submitted {
            Submitted::Accepted(ticket) => tickets.push(ticket),
            Submitted::Full => holds(format_args!("there is room for {room}"), false, || "none")?,
        }
    }
    let full = lane.submit(device.device(), add, &works[2].args, &PLAIN);
    equal(format_args!("a submit after {room}"), full, Ok(Submitted::Full))?;
    for (work, ticket) in works.iter().zip(&tickets).rev() {
        equal("the result of a direct run", lane.wait(device.device(), *ticket), Some(Ok(())))?;
        work.is_done()?;
    }
    works[2].is_untouched()?;
    let submitted = lane.submit(device.device(), add, &works[2].args, &PLAIN).must("submit")?;
    holds("there is room again", matches!(submitted, Submitted::Accepted(_)), || format!("{submitted:?}"))?;
    lane.stop(device.device());
    works[2].is_done()
}

fn launch_again(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let out = HostBuffer::of_f32(&[0.0; 4]);
    let ones = HostBuffer::of_f32(&[1.0; 4]);
    let args = storage(&[ones.dense_f32(&[4]), ones.dense_f32(&[4]), out.dense_f32(&[4])], &[]);
    let run = device.prepare(add, &args, &PLAIN, ZERO).must("prepare")?;
    let refused = device.launch(run);
    holds("the launch fails with code −4", refused.as_ref().is_err_and(|error| error.code() == -4), || {
        format!("{refused:?}")
    })?;
    equal("acceptance after a refused launch", device.accepted(run), false)?;
    let busy = ChipError::RunInFlight { call: Call::Unregister, epoch: run.epoch(), phase: Phase::Prepared };
    fails_with("unregister after a refused launch", device.unregister(slot(0)?), busy)?;
    device.launch(run).must("a second launch")?;
    device.finalize(run).must("finalize")?;
    equal("the sum", out.f32s(), [2.0; 4])
}
