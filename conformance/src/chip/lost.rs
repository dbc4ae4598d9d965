//! Errors after a launch: the completion is unproven (C-9).

use laneway_core::chip::{Call, ChipError};
use laneway_sim::{Action, Config, FaultPlan, Kernel, Point, Profile};

use super::{Bench, Case, PLAIN, VectorAdd, ZERO, register};

pub(super) fn cases() -> impl Iterator<Item = Case> {
    Profile::ALL.into_iter().flat_map(|profile| {
        let with = |name, at, action, run| Case {
            device: Config::new(profile).with_faults(FaultPlan::none().with(at, 1, action)),
            kernels: &[Kernel::Add],
            ..Case::new(name, &["C-9", "T-24", "T-30"], profile, run)
        };
        [
            with("a_poll_that_fails_proves_nothing", Point::Poll, Action::Error(-7), poll_fails),
            with("a_wait_that_fails_proves_nothing", Point::Wait, Action::Error(-8), wait_fails),
            with("a_launch_that_fails_half_way_proves_nothing", Point::Launch, Action::HalfLaunch, launch_fails),
        ]
    })
}

fn poll_fails(device: &mut Bench<'_>) {
    lost(device, Call::Poll, -7);
}

fn wait_fails(device: &mut Bench<'_>) {
    lost(device, Call::Wait, -8);
}

fn launch_fails(device: &mut Bench<'_>) {
    lost(device, Call::Launch, -1);
}

fn lost(device: &mut Bench<'_>, at: Call, number: i32) {
    let add = register(device, 0, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).expect("prepare");
    let committed = device.committed_memory();
    let launched = device.launch(run);
    let error = match at {
        Call::Launch => launched,
        Call::Poll => launched.and_then(|()| device.poll(run).map(|_| ())),
        _ => launched.and_then(|()| device.wait(run)),
    }
    .expect_err("the plan says so");
    assert!(
        matches!(&error, ChipError::Unproven { call, epoch, code, .. }
            if (*call, *epoch, *code) == (at, run.epoch(), number)),
        "{error}"
    );
    assert!(error.is_unproven());
    device.finalize(run).expect("the token ends all the same");
    assert!(work.is_untouched(), "nothing is copied back");
    assert_eq!(device.committed_memory(), committed, "nothing that the device can reach is freed");
    let gone = |call| ChipError::DeviceGone { call };
    assert_eq!(device.prepare(add, &work.args, &PLAIN, ZERO), Err(gone(Call::Prepare)));
    assert_eq!(device.malloc(8), Err(gone(Call::Malloc)));
    device.shutdown().expect("a lost device can be closed");
}
