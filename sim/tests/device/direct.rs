//! Direct runs (C-17, C-18).

use laneway_core::chip::{
    Call, ChipError, DeviceRuntime, DirectLane, DirectTicket, Phase, RunDescriptor, RunToken, Submitted,
};
use laneway_core::ids::{DispatchId, PipelineSlot, RunId};
use laneway_core::model::{GenerationFilter, SlotPool};
use laneway_core::wire::DispatchIdentity;
use laneway_sim::{Action, Config, FaultPlan, Kernel, Point, Profile, Simulator};

use crate::support::{PLAIN, VectorAdd, ZERO, device, device_of, diagnostic, register};

fn accepted(answer: Result<Submitted, ChipError>) -> DirectTicket {
    match answer {
        Ok(Submitted::Accepted(ticket)) => ticket,
        other => panic!("{other:?}"),
    }
}

/// C-18: two on their way, a third waits for capacity, and waiting on the second drives the first.
#[test]
fn waiting_on_the_second_run_drives_the_first_and_a_third_waits_for_capacity() {
    let mut device = device(Profile::A2a3HostBuildGraph);
    let add = register(&mut device, Kernel::Add);
    let mut lane = DirectLane::new();
    let work = [VectorAdd::new(), VectorAdd::new(), VectorAdd::new()];
    let first = accepted(lane.submit(&mut device, add, &work[0].args, &PLAIN));
    let second = accepted(lane.submit(&mut device, add, &work[1].args, &PLAIN));
    assert_eq!(lane.submit(&mut device, add, &work[2].args, &PLAIN), Ok(Submitted::Full));
    assert_eq!((device.phase(PipelineSlot::Zero), device.phase(PipelineSlot::One)), (Phase::Launched, Phase::Prepared));
    assert_eq!(lane.wait(&mut device, second), Some(Ok(())));
    assert!(work[0].is_done() && work[1].is_done());
    assert_eq!(lane.in_flight(), 0);
    let third = accepted(lane.submit(&mut device, add, &work[2].args, &PLAIN));
    assert_eq!(lane.wait(&mut device, third), Some(Ok(())));
    assert_eq!(lane.wait(&mut device, first), Some(Ok(())), "its result was kept");
    assert_eq!(lane.wait(&mut device, first), None, "and is taken once");
}

/// L-12: no second run beside one that it cannot stand beside.
#[test]
fn a_run_that_cannot_be_prepared_beside_another_waits() {
    let cases = [
        (Profile::A2a3TensormapAndRingbuffer, PLAIN, PLAIN),
        (Profile::A5HostBuildGraph, PLAIN, PLAIN),
        (Profile::A2a3HostBuildGraph, PLAIN, diagnostic()),
        (Profile::A2a3HostBuildGraph, diagnostic(), PLAIN),
    ];
    for (profile, before, config) in cases {
        let mut device = device(profile);
        let add = register(&mut device, Kernel::Add);
        let mut lane = DirectLane::new();
        let (first, second) = (VectorAdd::new(), VectorAdd::new());
        let one = accepted(lane.submit(&mut device, add, &first.args, &before));
        assert_eq!(lane.submit(&mut device, add, &second.args, &config), Ok(Submitted::Full));
        assert!(lane.step(&mut device));
        let two = accepted(lane.submit(&mut device, add, &second.args, &config));
        assert!(lane.is_in_flight(two) && !lane.is_in_flight(one));
        assert!(lane.step(&mut device) && !lane.step(&mut device));
        assert_eq!((lane.take(one), lane.take(two)), (Some(Ok(())), Some(Ok(()))));
        assert!(first.is_done() && second.is_done());
    }
}

/// C-18, T-27: a direct run consumes no generation and moves no filter, so a lease from before is still good.
#[test]
fn direct_runs_leave_leases_and_the_filter_alone() {
    let mut device = device(Profile::A2a3HostBuildGraph);
    let add = register(&mut device, Kernel::Add);
    let mut pool = SlotPool::new(2).unwrap();
    let lease = pool.try_acquire().unwrap().unwrap();
    let (slot, generation) = (PipelineSlot::Zero, laneway_core::ids::Generation::new(lease.generation).unwrap());
    let mut filter = GenerationFilter::new();
    filter.admit(slot, generation).unwrap();
    let (before_pool, before_filter) = (pool.clone(), filter);
    let mut lane = DirectLane::new();
    for _ in 0..3 {
        let work = VectorAdd::new();
        let ticket = accepted(lane.submit(&mut device, add, &work.args, &PLAIN));
        assert_eq!(lane.wait(&mut device, ticket), Some(Ok(())));
        device.run(add, &work.args, &PLAIN, ZERO).unwrap();
    }
    assert_eq!((&pool, filter), (&before_pool, before_filter));
    assert!(pool.owns(&lease));
    filter.admit(slot, generation).unwrap();
    let leased = DispatchIdentity { run: RunId::FIRST, slot, generation, dispatch: DispatchId::FIRST };
    let work = VectorAdd::new();
    let run: RunToken = device.prepare(add, &work.args, &PLAIN, RunDescriptor::Leased(leased)).unwrap();
    device.launch(run).unwrap();
    device.finalize(run).unwrap();
    assert!(work.is_done());
}

fn faulty(at: Point, occurrence: u64, action: Action) -> Simulator {
    let plan = FaultPlan::none().with(at, occurrence, action);
    device_of(Config::new(Profile::A2a3HostBuildGraph).with_faults(plan))
}

/// C-9, L-15: the prepared run is finalized too, and both say why.
#[test]
fn a_lost_device_ends_both_runs() {
    let mut device = faulty(Point::Poll, 1, Action::Error(-3));
    let add = register(&mut device, Kernel::Add);
    let mut lane = DirectLane::new();
    let work = [VectorAdd::new(), VectorAdd::new()];
    let first = accepted(lane.submit(&mut device, add, &work[0].args, &PLAIN));
    let second = accepted(lane.submit(&mut device, add, &work[1].args, &PLAIN));
    assert!(lane.step(&mut device));
    assert!(lane.take(first).unwrap().unwrap_err().is_unproven());
    assert_eq!(lane.take(second), Some(Err(ChipError::DeviceGone { call: Call::Launch })));
    assert_eq!(PipelineSlot::ALL.map(|slot| device.phase(slot)), [Phase::Empty; 2]);
    assert!(work[0].is_untouched() && work[1].is_untouched());
}

/// L-15: a launch that fails cleanly is reported, the run is finalized, and the lane goes on.
#[test]
fn a_launch_that_fails_is_the_result_of_its_run_alone() {
    let mut device = faulty(Point::Launch, 2, Action::Error(-4));
    let add = register(&mut device, Kernel::Add);
    let mut lane = DirectLane::new();
    let work = [VectorAdd::new(), VectorAdd::new(), VectorAdd::new()];
    let first = accepted(lane.submit(&mut device, add, &work[0].args, &PLAIN));
    let second = accepted(lane.submit(&mut device, add, &work[1].args, &PLAIN));
    assert_eq!(lane.wait(&mut device, first), Some(Ok(())));
    assert_eq!(lane.take(second).unwrap().unwrap_err().code(), -4);
    let third = accepted(lane.submit(&mut device, add, &work[2].args, &PLAIN));
    assert_eq!(lane.wait(&mut device, third), Some(Ok(())));
    assert!(work[0].is_done() && work[1].is_untouched() && work[2].is_done());
}

/// T-31
#[test]
fn stop_ends_what_executes_and_abandons_what_is_prepared() {
    let mut device = device(Profile::A2a3HostBuildGraph);
    let add = register(&mut device, Kernel::Add);
    let mut lane = DirectLane::new();
    let work = [VectorAdd::new(), VectorAdd::new()];
    let first = accepted(lane.submit(&mut device, add, &work[0].args, &PLAIN));
    let second = accepted(lane.submit(&mut device, add, &work[1].args, &PLAIN));
    lane.stop(&mut device);
    assert_eq!(lane.take(first), Some(Ok(())));
    assert_eq!(lane.take(second), Some(Err(ChipError::DeviceGone { call: Call::Launch })));
    assert!(work[0].is_done() && work[1].is_untouched());
    device.shutdown().unwrap();
    assert_eq!(device.committed_memory(), 0);
}
