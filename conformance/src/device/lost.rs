//! Errors after a launch: the completion is unproven (C-9).

use laneway_core::chip::{Call, ChipError};
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::bench::fails_with;
use super::{Bench, PLAIN, VectorAdd, ZERO};
use crate::case::Case;
use crate::expect::{Must, Verdict, refused};

pub(super) fn cases() -> Vec<Case> {
    let case = |name, at, action, says, run| {
        Case::device(name, &["C-9", "T-24", "T-30"], says, run)
            .kernels(&[Kernel::Add])
            .faults(FaultPlan::none().with(at, 1, action))
    };
    vec![
        case(
            "lost/a_poll_that_fails_proves_nothing",
            Point::Poll,
            Action::Error(-7),
            "After a failed poll the completion is unproven: nothing is copied back or freed, nothing new begins.",
            poll_fails,
        ),
        case(
            "lost/a_wait_that_fails_proves_nothing",
            Point::Wait,
            Action::Error(-8),
            "After a failed wait the completion is unproven: nothing is copied back or freed, nothing new begins.",
            wait_fails,
        ),
        case(
            "lost/a_launch_that_fails_half_way_proves_nothing",
            Point::Launch,
            Action::HalfLaunch,
            "A launch that handed over a part is unproven: nothing is copied back or freed, nothing new begins.",
            launch_fails,
        ),
    ]
}

fn poll_fails(device: &mut Bench<'_>) -> Verdict {
    lost(device, Call::Poll, -7)
}

fn wait_fails(device: &mut Bench<'_>) -> Verdict {
    lost(device, Call::Wait, -8)
}

fn launch_fails(device: &mut Bench<'_>) -> Verdict {
    lost(device, Call::Launch, -1)
}

fn lost(device: &mut Bench<'_>, at: Call, number: i32) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let run = device.prepared(add, &work)?;
    let committed = device.committed_memory();
    let launched = device.launch(run);
    let ended = match at {
        Call::Launch => launched,
        Call::Poll => launched.and_then(|()| device.poll(run).map(|_| ())),
        _ => launched.and_then(|()| device.wait(run)),
    };
    refused(at, ended, "an unproven completion of this run, with the code", |error| {
        matches!(error, ChipError::Unproven { call, epoch, code, .. }
            if (*call, *epoch, *code) == (at, run.epoch(), number))
    })?;
    device.finalize(run).must("finalize of a run that is unproven")?;
    work.is_untouched()?;
    device.still_commits("after the loss: what the device can reach is not freed", committed)?;
    let gone = |call| ChipError::DeviceGone { call };
    fails_with("prepare", device.prepare(add, &work.args, &PLAIN, ZERO), gone(Call::Prepare))?;
    fails_with("malloc", device.malloc(8), gone(Call::Malloc))?;
    device.shutdown().must("shutdown of a lost device")?;
    device.still_commits("after the shutdown", 0)
}
