//! Phases, acceptance, and what is left behind.

use laneway_core::chip::{Call, ChipError, Phase, Progress};
use laneway_core::ids::PipelineSlot;
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::bench::{fails_with, slot};
use super::{Bench, ONE, PLAIN, VectorAdd, ZERO};
use crate::case::Case;
use crate::expect::{Must, Verdict, equal, holds};

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    let at_launch = |action| FaultPlan::none().with(Point::Launch, 1, action);
    vec![
        Case::device(
            "launch/no_call_is_taken_in_the_wrong_phase",
            &["C-6", "T-24"],
            "A call in the wrong phase is an error that names call and phase, and changes nothing.",
            phases,
        )
        .kernels(ADD),
        Case::device(
            "launch/a_token_is_good_until_its_finalize",
            &["C-6", "L-15"],
            "A token that was finalized is stale for every call, and the answer says which run has its slot.",
            stale,
        )
        .kernels(ADD),
        Case::device(
            "launch/a_run_that_was_never_launched_leaves_nothing",
            &["C-6", "L-15", "T-31"],
            "A prepared run can be given up: nothing is computed, copied or kept.",
            abandon,
        )
        .kernels(ADD),
        Case::device(
            "launch/finalize_waits_for_a_launched_run",
            &["C-6"],
            "Finalize of a launched run waits for its end first, and then copies its results back.",
            finalize_waits,
        )
        .kernels(ADD),
        Case::device(
            "launch/shutdown_ends_what_runs",
            &["C-12", "T-31"],
            "Shutdown finalizes what is launched or prepared and gives all memory back; then the device is gone for good.",
            shutdown,
        )
        .kernels(ADD),
        Case::device(
            "launch/acceptance_comes_with_the_launch_and_goes_with_the_run",
            &["L-17"],
            "Only a launch sets the acceptance; it stays until the run is finalized.",
            acceptance,
        )
        .kernels(ADD),
        Case::device(
            "launch/a_run_that_hangs_is_never_ready",
            &["C-15"],
            "A device that never completes answers each poll with not ready, at once.",
            hang,
        )
        .kernels(ADD)
        .faults(at_launch(Action::Hang)),
        Case::device(
            "launch/an_acceptance_that_never_came_stays_away",
            &["L-17", "L-18"],
            "Completion does not make up for an acceptance that the device never gave.",
            no_acceptance,
        )
        .kernels(ADD)
        .faults(at_launch(Action::SkipAcceptance)),
        Case::device(
            "launch/a_run_is_ready_no_sooner_than_the_device_is",
            &["C-9", "L-14"],
            "A poll says complete only when the device has done its work, and until then nothing is copied back.",
            not_before,
        )
        .kernels(&[Kernel::Add, Kernel::Wait])
        .faults(at_launch(Action::Delay(20_000_000))),
    ]
}

fn phases(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let wrong = |call, phase| ChipError::WrongPhase { call, slot: PipelineSlot::Zero, phase };
    let run = device.prepared(add, &work)?;
    let again = device.prepare(add, &work.args, &PLAIN, ZERO);
    fails_with("a prepare in a slot that is taken", again, wrong(Call::Prepare, Phase::Prepared))?;
    fails_with("a poll before the launch", device.poll(run), wrong(Call::Poll, Phase::Prepared))?;
    fails_with("a wait before the launch", device.wait(run), wrong(Call::Wait, Phase::Prepared))?;
    device.launch(run).must("launch")?;
    fails_with("a second launch", device.launch(run), wrong(Call::Launch, Phase::Launched))?;
    while device.poll(run).must("poll")? == Progress::NotReady {
        std::hint::spin_loop();
    }
    fails_with("a poll after completion", device.poll(run), wrong(Call::Poll, Phase::Reaped))?;
    fails_with("a wait after completion", device.wait(run), wrong(Call::Wait, Phase::Reaped))?;
    fails_with("a launch after completion", device.launch(run), wrong(Call::Launch, Phase::Reaped))?;
    device.finalize(run).must("finalize")?;
    work.is_done()
}

fn stale(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let old = device.launched(add, &first)?;
    device.finalize(old).must("finalize")?;
    let over = |call, current| ChipError::StaleToken { call, epoch: old.epoch(), current };
    fails_with("a second finalize", device.finalize(old), over(Call::Finalize, None))?;
    fails_with("a poll of what is over", device.poll(old), over(Call::Poll, None))?;
    let run = device.prepared(add, &second)?;
    let current = Some(run.epoch());
    fails_with("a launch of what is over", device.launch(old), over(Call::Launch, current))?;
    fails_with("a finalize of what is over", device.finalize(old), over(Call::Finalize, current))?;
    device.launch(run).must("launch")?;
    fails_with("a wait for what is over", device.wait(old), over(Call::Wait, current))?;
    device.finalize(run).must("finalize")?;
    first.is_done()?;
    second.is_done()
}

fn abandon(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    device.adds(add)?;
    let settled = device.committed_memory();
    for _ in 0..3 {
        let work = VectorAdd::new();
        let run = device.prepared(add, &work)?;
        device.finalize(run).must("finalize of a prepared run")?;
        work.is_untouched()?;
        device.still_commits("after a run was given up", settled)?;
    }
    device.adds(add)
}

fn finalize_waits(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let run = device.launched(add, &work)?;
    device.finalize(run).must("finalize of a launched run")?;
    work.is_done()
}

fn shutdown(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    if device.memory {
        device.malloc(64).must("malloc")?;
    }
    device.launched(add, &first)?;
    if device.supports_concurrent_prepare() {
        device.prepare(add, &second.args, &PLAIN, ONE).must("prepare beside it")?;
    }
    device.shutdown().must("shutdown")?;
    first.is_done()?;
    second.is_untouched()?;
    device.still_commits("after the shutdown", 0)?;
    device.shutdown().must("a second shutdown")?;
    let gone = |call| ChipError::DeviceGone { call };
    fails_with("prepare", device.prepare(add, &first.args, &PLAIN, ZERO), gone(Call::Prepare))?;
    let blob = device.callable(Kernel::Add)?;
    fails_with("register", device.register(slot(1)?, &blob), gone(Call::Register))?;
    fails_with("malloc", device.malloc(1), gone(Call::Malloc))
}

fn acceptance(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    for _ in 0..2 {
        let work = VectorAdd::new();
        let run = device.prepared(add, &work)?;
        equal("acceptance of a prepared run", device.accepted(run), false)?;
        device.launch(run).must("launch")?;
        equal("acceptance of a launched run", device.accepted(run), true)?;
        device.wait(run).must("wait")?;
        equal("acceptance of a completed run", device.accepted(run), true)?;
        device.finalize(run).must("finalize")?;
        equal("acceptance of a finalized run", device.accepted(run), false)?;
    }
    Ok(())
}

fn hang(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let run = device.launched(add, &work)?;
    for _ in 0..1000 {
        equal("a poll", device.poll(run), Ok(Progress::NotReady))?;
    }
    equal("acceptance of a run that hangs", device.accepted(run), true)?;
    work.is_untouched()
}

fn no_acceptance(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let run = device.launched(add, &work)?;
    equal("acceptance after the launch", device.accepted(run), false)?;
    device.wait(run).must("wait")?;
    equal("acceptance after completion", device.accepted(run), false)?;
    device.finalize(run).must("finalize")?;
    work.is_done()?;
    let again = VectorAdd::new();
    let run = device.prepared(add, &again)?;
    equal("acceptance of the next run, prepared", device.accepted(run), false)?;
    device.launch(run).must("launch")?;
    equal("acceptance of the next run, launched", device.accepted(run), true)?;
    device.finalize(run).must("finalize")?;
    again.is_done()
}

fn not_before(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let start = std::time::Instant::now();
    let run = device.launched(add, &work)?;
    equal("the first poll of a run that takes 20 ms", device.poll(run), Ok(Progress::NotReady))?;
    work.is_untouched()?;
    while device.poll(run).must("poll")? == Progress::NotReady {
        std::hint::spin_loop();
    }
    let took = start.elapsed();
    holds("a run of 20 ms takes 20 ms at least", took.as_millis() >= 20, || format!("{took:?}"))?;
    work.is_untouched()?;
    device.finalize(run).must("finalize")?;
    work.is_done()
}
