//! What the device does when its plan tells it to misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use laneway_core::chip::{Call, ChipError, DeviceRuntime, Phase, Progress};
use laneway_core::ids::PipelineSlot;
use laneway_sim::{Action, Clock, Config, FaultPlan, Kernel, Point, Profile, Simulator, VirtualClock, callable};

use crate::support::{PLAIN, VectorAdd, ZERO, device_of, host_memory, register, slot};

fn faulty(at: Point, occurrence: u64, action: Action) -> Simulator {
    let plan = FaultPlan::none().with(at, occurrence, action);
    device_of(Config::new(Profile::A2a3HostBuildGraph).with_faults(plan))
}

/// C-9: an error after the launch proves nothing. Nothing is copied back (T-24), nothing is freed under the device
/// (T-30), and the device takes no more work.
#[test]
fn an_error_after_the_launch_loses_the_device() {
    for (at, call) in [(Point::Poll, Call::Poll), (Point::Wait, Call::Wait)] {
        let mut device = faulty(at, 1, Action::Error(-9));
        let add = register(&mut device, Kernel::Add);
        let work = VectorAdd::new();
        let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
        let committed = device.committed_memory();
        device.launch(run).unwrap();
        let error = if at == Point::Poll { device.poll(run).map(|_| ()) } else { device.wait(run) }.unwrap_err();
        assert!(matches!(&error, ChipError::Unproven { call: found, code: -9, .. } if *found == call), "{error}");
        assert!(error.is_unproven());
        device.finalize(run).unwrap();
        assert!(work.is_untouched());
        assert_eq!(device.committed_memory(), committed, "what the device may write to stays taken");
        assert_eq!(device.counters().streams.aicore_lost, 1);
        let gone = Err(ChipError::DeviceGone { call: Call::Prepare });
        assert_eq!(device.prepare(add, &work.args, &PLAIN, ZERO), gone);
        assert_eq!(device.malloc(8), Err(ChipError::DeviceGone { call: Call::Malloc }));
        device.shutdown().unwrap();
        assert_eq!(device.committed_memory(), 0);
    }
}

/// T-30
#[test]
fn a_launch_that_failed_half_way_is_not_clean() {
    let mut device = faulty(Point::Launch, 1, Action::HalfLaunch);
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
    let committed = device.committed_memory();
    assert!(device.launch(run).unwrap_err().is_unproven());
    assert_eq!(device.phase(PipelineSlot::Zero), Phase::Reaped);
    assert!(!device.accepted(run), "L-17: both kernels, or none");
    device.finalize(run).unwrap();
    assert_eq!(device.committed_memory(), committed);
}

/// An error before anything was enqueued leaves the run as it was.
#[test]
fn a_launch_that_failed_cleanly_can_be_tried_again() {
    let mut device = faulty(Point::Launch, 1, Action::Error(-4));
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
    assert_eq!(device.launch(run).unwrap_err().code(), -4);
    assert_eq!(device.phase(PipelineSlot::Zero), Phase::Prepared);
    device.launch(run).unwrap();
    device.finalize(run).unwrap();
    assert!(work.is_done());
}

/// Every other call fails once and works afterwards, and the failure leaves nothing.
#[test]
fn a_call_that_failed_before_a_launch_leaves_no_trace() {
    let mut device = device_of(
        Config::new(Profile::A2a3HostBuildGraph).with_faults(
            [Point::Register, Point::Prepare, Point::Malloc, Point::Unregister]
                .into_iter()
                .fold(FaultPlan::none(), |plan, at| plan.with(at, 1, Action::Error(-5))),
        ),
    );
    assert_eq!(device.register(slot(0), &callable(Kernel::Add)).unwrap_err().code(), -5);
    assert_eq!(device.committed_memory(), 0);
    device.register(slot(0), &callable(Kernel::Add)).unwrap();
    let work = VectorAdd::new();
    let committed = device.committed_memory();
    assert_eq!(device.prepare(slot(0), &work.args, &PLAIN, ZERO).unwrap_err().code(), -5);
    assert_eq!(device.malloc(8).unwrap_err().code(), -5);
    assert_eq!(device.committed_memory(), committed);
    device.run(slot(0), &work.args, &PLAIN, ZERO).unwrap();
    assert!(work.is_done());
    assert_eq!(device.unregister(slot(0)).unwrap_err().code(), -5);
    device.unregister(slot(0)).unwrap();
    assert!(
        Simulator::new(
            Config::new(Profile::A5HostBuildGraph).with_faults(FaultPlan::none().with(
                Point::Init,
                1,
                Action::Error(-1)
            )),
            host_memory()
        )
        .is_err()
    );
}

/// A finalize that fails has copied nothing back, but the token is dead and the memory free.
#[test]
fn a_finalize_that_failed_still_ends_the_run() {
    let mut device = faulty(Point::Finalize, 1, Action::Error(-6));
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    assert_eq!(device.run(add, &work.args, &PLAIN, ZERO).unwrap_err().code(), -6);
    assert!(work.is_untouched());
    assert_eq!(device.phase(PipelineSlot::Zero), Phase::Empty);
    device.run(add, &work.args, &PLAIN, ZERO).unwrap();
    assert!(work.is_done());
}

#[test]
fn a_run_that_hangs_completes_once_it_is_told_to() {
    let mut device = faulty(Point::Launch, 1, Action::Hang);
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
    device.launch(run).unwrap();
    for _ in 0..1000 {
        assert_eq!(device.poll(run), Ok(Progress::NotReady));
    }
    device.hang_switch().release();
    assert_eq!(device.poll(run), Ok(Progress::Complete));
    device.finalize(run).unwrap();
    assert!(work.is_done());
}

/// A blocking call that hangs is let go from another thread.
#[test]
fn a_wait_that_hangs_is_released_from_another_thread() {
    let mut device = faulty(Point::Wait, 1, Action::Hang);
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let switch = device.hang_switch();
    let other = std::thread::spawn(move || switch.release());
    device.run(add, &work.args, &PLAIN, ZERO).unwrap();
    other.join().unwrap();
    assert!(work.is_done());
}

#[test]
fn a_delay_passes_in_the_device_after_a_launch_and_in_the_call_before_it() {
    let plan = FaultPlan::none().with(Point::Prepare, 1, Action::Delay(5)).with(Point::Launch, 1, Action::Delay(70));
    let clock = VirtualClock::new();
    let config = Config::new(Profile::A2a3HostBuildGraph).with_faults(plan);
    let mut device = Simulator::with_clock(config, host_memory(), Box::new(clock.clone())).unwrap();
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
    assert_eq!(clock.now().as_nanos(), 5);
    device.launch(run).unwrap();
    assert_eq!(clock.now().as_nanos(), 5);
    assert_eq!(device.poll(run), Ok(Progress::NotReady));
    clock.advance(Duration::from_nanos(70));
    assert_eq!(device.poll(run), Ok(Progress::Complete));
}

/// L-17, L-18: completion without the word.
#[test]
fn an_acceptance_that_is_skipped_stays_unsignalled() {
    let mut device = faulty(Point::Launch, 1, Action::SkipAcceptance);
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
    device.launch(run).unwrap();
    assert!(!device.accepted(run));
    device.wait(run).unwrap();
    assert!(!device.accepted(run));
    device.finalize(run).unwrap();
    assert!(work.is_done());
}

#[test]
fn a_completion_that_is_reported_twice_is_executed_once() {
    let mut device = faulty(Point::Poll, 1, Action::CompleteTwice);
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
    device.launch(run).unwrap();
    assert_eq!(device.poll(run), Ok(Progress::Complete));
    assert_eq!(device.poll(run), Ok(Progress::Complete));
    assert_eq!(device.phase(PipelineSlot::Zero), Phase::Reaped);
    device.finalize(run).unwrap();
    assert!(work.is_done());
    assert_eq!(device.counters().completions, 1);
}

#[test]
fn scribbling_is_done_by_the_hook_of_the_embedding_program() {
    let mut device = faulty(Point::Poll, 2, Action::Scribble);
    let scribbles = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&scribbles);
    device.set_scribble(Box::new(move || {
        seen.fetch_add(1, Ordering::Relaxed);
    }));
    let add = register(&mut device, Kernel::Add);
    for expected in [0, 1, 1] {
        let work = VectorAdd::new();
        let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
        device.launch(run).unwrap();
        assert_eq!(device.poll(run), Ok(Progress::Complete));
        device.finalize(run).unwrap();
        assert_eq!(scribbles.load(Ordering::Relaxed), expected);
    }
}

/// L-16 provoked without a second run.
#[test]
fn a_plan_can_call_a_prepare_incompatible() {
    let mut device = faulty(Point::Prepare, 2, Action::Incompatible);
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    device.run(add, &work.args, &PLAIN, ZERO).unwrap();
    let incompatible = Err(ChipError::Incompatible { call: Call::Prepare });
    assert_eq!(device.prepare(add, &work.args, &PLAIN, ZERO), incompatible);
    device.run(add, &work.args, &PLAIN, ZERO).unwrap();
}
