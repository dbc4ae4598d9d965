//! A device behind the runner of a chip child: digests, the replay filter, controls, and what a failure means.

use laneway_core::chip::{DeviceRuntime, Phase};
use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::model::TaskArgs;
use laneway_core::serve::{ChipRunner, Failure, Launch, Poll, PrepareError, Report, Runner, RunnerError, Task};
use laneway_core::wire::control::{ControlRequest, CopySpan};
use laneway_core::wire::{Digest, DispatchIdentity, Dtype};
use laneway_sim::{Action, Config, FaultPlan, Kernel, Point, Profile, Simulator, callable};

use crate::support::{HostBuffer, PLAIN, device, device_of};

const HBG: Profile = Profile::A2a3HostBuildGraph;

fn digest(number: u8) -> Digest {
    Digest([number; 32])
}

fn identity(slot: PipelineSlot, generation: u64, dispatch: u64) -> DispatchIdentity {
    let generation = Generation::new(generation).unwrap();
    DispatchIdentity { run: RunId::FIRST, slot, generation, dispatch: DispatchId::new(dispatch).unwrap() }
}

/// Runs `with` on a task that adds two vectors into `out`.
fn with_add<T>(identity: DispatchIdentity, out: &HostBuffer, with: impl FnOnce(&Task<'_>) -> T) -> T {
    let one = HostBuffer::of_f32(&[1.0; 4]);
    let mut args = TaskArgs::new();
    let tensor = |buffer: &HostBuffer| buffer.tensor(Dtype::F32, &[4]);
    args.input(tensor(&one)).input(tensor(&one)).output(tensor(out));
    with(&Task { identity, digest: &digest(1), config: &PLAIN, args: args.view(), described: Default::default() })
}

/// A whole task, as the child runs it.
fn run(runner: &mut ChipRunner<'_>, identity: DispatchIdentity) -> Result<(), (Failure, String)> {
    let (out, mut report) = (HostBuffer::of_f32(&[0.0; 4]), Report::default());
    let ended = with_add(identity, &out, |task| {
        let token = runner.prepare(task, &mut report).map_err(|error| match error {
            PrepareError::Failed(failure) => failure,
            PrepareError::Incompatible => Failure { code: -3, leave: false },
        })?;
        let launched = runner.launch(token, task, &mut report).and_then(|launch| {
            assert_eq!(launch, Launch::Running);
            assert!(runner.accepted(token));
            while runner.poll(token, &mut report)? == Poll::NotReady {}
            Ok(())
        });
        launched.and(runner.finalize(token, &mut report))
    });
    ended.map_err(|failure| (failure, report.as_str().to_owned()))?;
    assert_eq!(out.f32s(), [2.0; 4]);
    Ok(())
}

fn add_runner(device: &mut Simulator) -> ChipRunner<'_> {
    let mut runner = ChipRunner::new(device);
    runner.register(digest(1), &callable(Kernel::Add)).unwrap();
    runner
}

/// C-5: older generations of a slot are replays; the same one again is not, and each slot counts by itself.
#[test]
fn a_replayed_lease_is_refused_by_the_child() {
    let mut device = device(HBG);
    let mut runner = add_runner(&mut device);
    run(&mut runner, identity(PipelineSlot::Zero, 5, 1)).unwrap();
    run(&mut runner, identity(PipelineSlot::Zero, 5, 2)).unwrap();
    let (failure, report) = run(&mut runner, identity(PipelineSlot::Zero, 4, 3)).unwrap_err();
    assert!(!failure.leave);
    assert!(report.contains("generation 4") && report.contains("5 has been seen"), "{report:?}");
    run(&mut runner, identity(PipelineSlot::One, 4, 4)).unwrap();
    run(&mut runner, identity(PipelineSlot::Zero, 6, 5)).unwrap();
}

/// T-28, L-16: a prepare that was refused has not moved the filter, whatever the reason.
#[test]
fn a_refused_prepare_comes_again_with_the_generation_it_had() {
    for action in [Action::Incompatible, Action::Error(-9)] {
        let plan = FaultPlan::none().with(Point::Prepare, 1, action);
        let mut device = device_of(Config::new(HBG).with_faults(plan));
        let mut runner = add_runner(&mut device);
        let leased = identity(PipelineSlot::One, 7, 1);
        let out = HostBuffer::of_f32(&[0.0; 4]);
        let refused = with_add(leased, &out, |task| runner.prepare(task, &mut Report::default()));
        match action {
            Action::Incompatible => assert_eq!(refused, Err(PrepareError::Incompatible)),
            _ => assert_eq!(refused, Err(PrepareError::Failed(Failure { code: -9, leave: false }))),
        }
        // An older one would still pass, since nothing of generation 7 has been admitted.
        run(&mut runner, identity(PipelineSlot::One, 6, 2)).unwrap();
        run(&mut runner, leased).unwrap();
    }
}

/// C-9: the child must leave, and only then.
#[test]
fn only_an_unproven_completion_makes_the_child_leave() {
    for (at, leaves) in [(Point::Poll, true), (Point::Prepare, false), (Point::Launch, false), (Point::Finalize, false)]
    {
        let plan = FaultPlan::none().with(at, 1, Action::Error(-2));
        let mut device = device_of(Config::new(HBG).with_faults(plan));
        let mut runner = add_runner(&mut device);
        let (failure, report) = run(&mut runner, identity(PipelineSlot::Zero, 1, 1)).unwrap_err();
        assert_eq!(failure, Failure { code: -2, leave: leaves }, "{at:?}");
        assert_eq!(report.contains("unproven"), leaves, "{report:?}");
        assert_eq!(run(&mut runner, identity(PipelineSlot::Zero, 1, 2)).is_ok(), !leaves);
        assert_eq!(device.phase(PipelineSlot::Zero), Phase::Empty, "L-15");
    }
}

///
#[test]
fn a_device_holds_64_callables_and_the_smallest_free_slot_is_used_again() {
    let mut device = device(HBG);
    let mut runner = ChipRunner::new(&mut device);
    for number in 0..64 {
        runner.register(digest(number), &callable(Kernel::Noop)).unwrap();
    }
    let full = RunnerError::SlotsExhausted { slots: 64 };
    assert_eq!(runner.register(digest(64), &callable(Kernel::Noop)), Err(full));
    runner.register(digest(3), &callable(Kernel::Noop)).expect("known: nothing is uploaded");
    runner.unregister(&digest(7)).unwrap();
    runner.unregister(&digest(7)).expect("unknown is no error");
    assert!(!runner.knows(&digest(7)) && runner.knows(&digest(8)));
    runner.register(digest(64), &callable(Kernel::Noop)).unwrap();
    assert_eq!(device.counters().code.uploads, 1);
}

/// A register that the device refuses leaves the slot free (T-42).
#[test]
fn sixty_four_refused_callables_leave_room_for_a_good_one() {
    let plan = (1..=64).fold(FaultPlan::none(), |plan, n| plan.with(Point::Register, n, Action::Error(-1)));
    let mut device = device_of(Config::new(HBG).with_faults(plan));
    let mut runner = ChipRunner::new(&mut device);
    for number in 0..64 {
        assert!(runner.register(digest(number), &callable(Kernel::Noop)).is_err());
    }
    runner.register(digest(1), &callable(Kernel::Add)).unwrap();
    run(&mut runner, identity(PipelineSlot::Zero, 1, 1)).unwrap();
}

/// C-16 as far as the child goes: what the device refuses comes back as text, and the child goes on serving.
#[test]
fn controls_reach_the_device_and_its_refusals_come_back() {
    let mut device = device(HBG);
    let mut runner = add_runner(&mut device);
    let mut control = |request| {
        let mut report = Report::default();
        runner.control(&request, &mut report).map_err(|failure| (failure.leave, report.as_str().to_owned()))
    };
    let before = control(ControlRequest::CommittedDeviceMemory).unwrap();
    let base = control(ControlRequest::Malloc { bytes: 100 }).unwrap();
    let (from, to) = (HostBuffer::of(&[7; 100]), HostBuffer::of(&[0; 100]));
    let span = |dst, src, nbytes| CopySpan::Addresses { dst, src, nbytes };
    assert_eq!(control(ControlRequest::CopyTo(span(base, from.address().0, 100))), Ok(0));
    assert_eq!(control(ControlRequest::CopyFrom(span(to.address().0, base, 100))), Ok(0));
    assert_eq!(to.bytes(), [7; 100]);
    let (leave, text) = control(ControlRequest::Free { address: base + 16 }).unwrap_err();
    assert!(!leave && text.contains("free its base"), "{text}");
    let (_, text) = control(ControlRequest::CopyTo(span(base, from.address().0, 101))).unwrap_err();
    assert!(text.contains("leave the allocation"), "{text}");
    let (_, text) = control(ControlRequest::Malloc { bytes: u64::MAX }).unwrap_err();
    assert!(text.contains("out of device memory"), "{text}");
    assert_eq!(control(ControlRequest::Free { address: base }), Ok(0));
    assert_eq!(control(ControlRequest::CommittedDeviceMemory), Ok(before));
    assert_eq!(control(ControlRequest::Prepare { digest: digest(1) }), Ok(0));
    let (_, text) = control(ControlRequest::Prepare { digest: digest(2) }).unwrap_err();
    assert!(text.contains("not registered"), "{text}");
    runner.shutdown();
    assert_eq!(device.committed_memory(), 0);
}
