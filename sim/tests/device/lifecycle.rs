//! Phases, slots, strategies, streams and code (C-6 … C-9, §6).

use std::time::Duration;

use laneway_core::chip::{Call, ChipError, DeviceRuntime, Phase, Progress, RunDescriptor};
use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::model::GenerationFilter;
use laneway_core::wire::{DispatchIdentity, Dtype};
use laneway_sim::{Config, Cost, Kernel, Profile, Simulator, StreamCounters, VirtualClock, callable};

use crate::support::{
    HostBuffer, ONE, PLAIN, VectorAdd, ZERO, device, device_of, diagnostic, host_memory, register, slot, storage,
};

/// C-6: every phase refuses the calls that are not for it, and a run goes through all of them.
#[test]
fn a_run_goes_through_its_phases_and_no_call_is_taken_in_the_wrong_one() {
    for profile in Profile::ALL {
        let mut device = device(profile);
        let add = register(&mut device, Kernel::Add);
        let work = VectorAdd::new();
        let wrong = |call, phase| Err(ChipError::WrongPhase { call, slot: PipelineSlot::Zero, phase });
        let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
        assert_eq!(device.prepare(add, &work.args, &PLAIN, ZERO).map(|_| ()), wrong(Call::Prepare, Phase::Prepared));
        assert_eq!(device.poll(run).map(|_| ()), wrong(Call::Poll, Phase::Prepared));
        assert_eq!(device.wait(run), wrong(Call::Wait, Phase::Prepared));
        assert!(!device.accepted(run));
        device.launch(run).unwrap();
        assert!(device.accepted(run), "L-17");
        assert_eq!(device.launch(run), wrong(Call::Launch, Phase::Launched));
        assert_eq!(device.poll(run), Ok(Progress::Complete));
        assert_eq!(device.poll(run).map(|_| ()), wrong(Call::Poll, Phase::Reaped));
        assert_eq!(device.wait(run), wrong(Call::Wait, Phase::Reaped));
        assert!(work.is_untouched(), "T-24: results are there once finalize has returned, not before");
        device.finalize(run).unwrap();
        assert!(work.is_done());
        assert!(matches!(device.finalize(run), Err(ChipError::StaleToken { current: None, .. })));
        assert!(!device.accepted(run));
    }
}

/// C-6: finalize is legal from PREPARED and LAUNCHED too. T-31: a run that was never launched leaves nothing.
#[test]
fn finalize_abandons_a_prepared_run_and_waits_for_a_launched_one() {
    for profile in Profile::ALL {
        let mut device = device(profile);
        let add = register(&mut device, Kernel::Add);
        let work = VectorAdd::new();
        device.run(add, &work.args, &PLAIN, ZERO).unwrap();
        let settled = device.committed_memory();
        for _ in 0..3 {
            let abandoned = VectorAdd::new();
            let run = device.prepare(add, &abandoned.args, &PLAIN, ZERO).unwrap();
            device.finalize(run).unwrap();
            assert!(abandoned.is_untouched());
            assert_eq!(device.committed_memory(), settled);
        }
        let work = VectorAdd::new();
        let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
        device.launch(run).unwrap();
        device.finalize(run).unwrap();
        assert!(work.is_done());
        assert_eq!((device.counters().abandoned, device.counters().completions), (3, 2));
    }
}

/// C-8
#[test]
fn callables_stay_while_a_run_is_prepared_or_launched() {
    let mut device = device(Profile::A2a3HostBuildGraph);
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
    for phase in [Phase::Prepared, Phase::Launched, Phase::Reaped] {
        let refused = |call| Err(ChipError::RunInFlight { call, epoch: run.epoch(), phase });
        assert_eq!(device.register(slot(9), &callable(Kernel::Noop)), refused(Call::Register));
        assert_eq!(device.unregister(add), refused(Call::Unregister));
        match phase {
            Phase::Prepared => device.launch(run).unwrap(),
            Phase::Launched => device.wait(run).unwrap(),
            _ => device.finalize(run).unwrap(),
        }
    }
    device.unregister(add).unwrap();
    assert_eq!(device.unregister(add), Err(ChipError::CallableUnknown { slot: add }));
    let prepared = device.prepare(add, &work.args, &PLAIN, ZERO);
    assert_eq!(prepared, Err(ChipError::CallableUnknown { slot: add }));
    assert_eq!(device.phase(PipelineSlot::Zero), Phase::Empty);
}

/// L-12, L-14, and the arena banks of C-1: HBG on A2/A3 prepares a second run beside a launched one, in the other bank.
#[test]
fn a_second_run_is_prepared_beside_a_launched_one_and_launches_after_it() {
    let mut device = device(Profile::A2a3HostBuildGraph);
    let add = register(&mut device, Kernel::Add);
    let mul = register(&mut device, Kernel::Mul);
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let one = device.prepare(add, &first.args, &PLAIN, ZERO).unwrap();
    device.launch(one).unwrap();
    let two = device.prepare(mul, &second.args, &PLAIN, ONE).unwrap();
    assert_ne!(device.arena_bank(0), device.arena_bank(1));
    let refused = |phase| Err(ChipError::LaunchOrder { epoch: two.epoch(), before: one.epoch(), phase });
    assert_eq!(device.launch(two), refused(Phase::Launched));
    device.wait(one).unwrap();
    assert_eq!(device.launch(two), refused(Phase::Reaped));
    device.finalize(one).unwrap();
    assert!(first.is_done());
    device.launch(two).unwrap();
    device.finalize(two).unwrap();
    assert_eq!(second.out.f32s(), [10.0, 40.0, 90.0, 160.0]);
}

/// C-9, L-12, L-16: TMR never prepares beside another run, HBG not if either of the two is diagnostic.
#[test]
fn a_prepare_that_cannot_be_beside_another_is_incompatible_and_leaves_nothing() {
    let cases = [
        (Profile::A2a3TensormapAndRingbuffer, PLAIN, PLAIN),
        (Profile::A5TensormapAndRingbuffer, PLAIN, PLAIN),
        (Profile::A2a3HostBuildGraph, PLAIN, diagnostic()),
        (Profile::A2a3HostBuildGraph, diagnostic(), PLAIN),
    ];
    for (profile, before, config) in cases {
        let mut device = device(profile);
        let add = register(&mut device, Kernel::Add);
        let (first, second) = (VectorAdd::new(), VectorAdd::new());
        let one = device.prepare(add, &first.args, &before, ZERO).unwrap();
        let committed = device.committed_memory();
        let incompatible = ChipError::Incompatible { call: Call::Prepare };
        assert_eq!(device.prepare(add, &second.args, &config, ONE), Err(incompatible.clone()));
        assert_eq!(incompatible.code(), -3);
        assert_eq!(device.committed_memory(), committed);
        device.launch(one).unwrap();
        device.finalize(one).unwrap();
        device.run(add, &second.args, &config, ONE).unwrap();
        assert!(first.is_done() && second.is_done());
    }
}

/// T-28: the generation is admitted when the prepare has succeeded, so the retry after an incompatible one passes.
#[test]
fn an_incompatible_prepare_is_retried_after_its_predecessor_with_the_same_generation() {
    let mut device = device(Profile::A2a3TensormapAndRingbuffer);
    let add = register(&mut device, Kernel::Add);
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let mut filter = GenerationFilter::new();
    let leased = DispatchIdentity {
        run: RunId::FIRST,
        slot: PipelineSlot::One,
        generation: Generation::FIRST,
        dispatch: DispatchId::FIRST,
    };
    let one = device.prepare(add, &first.args, &PLAIN, ZERO).unwrap();
    filter.check(leased.slot, leased.generation).unwrap();
    assert!(device.prepare(add, &second.args, &PLAIN, RunDescriptor::Leased(leased)).is_err());
    device.launch(one).unwrap();
    device.finalize(one).unwrap();
    filter.check(leased.slot, leased.generation).unwrap();
    let two = device.prepare(add, &second.args, &PLAIN, RunDescriptor::Leased(leased)).unwrap();
    filter.admit(leased.slot, leased.generation).unwrap();
    assert_eq!(two.slot(), PipelineSlot::One);
    device.launch(two).unwrap();
    device.finalize(two).unwrap();
    assert!(second.is_done());
}

/// C-1: a depth of one has one run slot.
#[test]
fn a_slot_beyond_the_depth_is_unsupported() {
    let mut device = device(Profile::A5HostBuildGraph);
    let add = register(&mut device, Kernel::Add);
    let error = device.prepare(add, &VectorAdd::new().args, &PLAIN, ONE).unwrap_err();
    assert!(matches!(error, ChipError::Unsupported { call: Call::Prepare, .. }), "{error}");
    assert_eq!(error.code(), -2);
}

/// T-32, and code that is uploaded once per content.
#[test]
fn streams_live_on_and_new_code_replaces_the_aicore_stream_once() {
    let mut device = device(Profile::A2a3TensormapAndRingbuffer);
    let noop = register(&mut device, Kernel::Noop);
    let nothing = storage(&[], &[]);
    for _ in 0..3 {
        device.run(noop, &nothing, &PLAIN, ZERO).unwrap();
    }
    let first = StreamCounters { aicpu_created: 1, aicore_created: 1, ..StreamCounters::default() };
    assert_eq!(device.counters().streams, first);
    device.register(slot(40), &callable(Kernel::Noop)).unwrap();
    device.run(noop, &nothing, &PLAIN, ZERO).unwrap();
    assert_eq!(device.counters().streams, first, "the same content brings no new code");
    register(&mut device, Kernel::Add);
    for _ in 0..3 {
        device.run(noop, &nothing, &PLAIN, ZERO).unwrap();
    }
    assert_eq!(device.counters().streams, StreamCounters { aicore_created: 2, aicore_replaced: 1, ..first });
    let code = device.counters().code;
    assert_eq!((code.uploads, code.reuses, code.frees), (2, 1, 0));
    let with_both = device.committed_memory();
    device.unregister(noop).unwrap();
    assert_eq!(device.committed_memory(), with_both, "the other slot still holds the code");
    device.unregister(slot(40)).unwrap();
    assert!(device.committed_memory() < with_both);
    assert_eq!(device.counters().code.frees, 1);
    device.run(slot(0), &nothing, &PLAIN, ZERO).unwrap_err();
}

/// The retained buffer of a slot grows only when a run needs more, and goes at shutdown.
#[test]
fn the_retained_buffer_grows_by_need_and_is_released_at_shutdown() {
    let mut device = device(Profile::A2a3TensormapAndRingbuffer);
    let copy = register(&mut device, Kernel::Copy);
    let run = |device: &mut Simulator, elements: u32| {
        let (from, to) =
            (HostBuffer::of(&vec![7; elements as usize * 4]), HostBuffer::of(&vec![0; elements as usize * 4]));
        let tensors = [&from, &to].map(|buffer| buffer.tensor(Dtype::I32, &[elements]));
        device.run(copy, &storage(&tensors, &[]), &PLAIN, ZERO).unwrap();
        assert_eq!(to.bytes(), from.bytes());
        (device.retained_temp(PipelineSlot::Zero), device.counters().temp_grows, device.committed_memory())
    };
    let first = run(&mut device, 1000);
    assert_eq!(first.1, 1);
    assert_eq!(run(&mut device, 1000), first);
    assert_eq!(run(&mut device, 10), first);
    assert_eq!(run(&mut device, 5000).1, 2);
    assert_eq!(device.retained_temp(PipelineSlot::One), None);
    device.shutdown().unwrap();
    assert_eq!(device.committed_memory(), 0);
}

/// A grow that fails fails the run before any argument was staged, and the next run that fits works.
#[test]
fn a_grow_that_fails_leaves_the_device_usable() {
    let mut device = device_of(Config::new(Profile::A2a3TensormapAndRingbuffer).with_memory(256 << 10));
    let copy = register(&mut device, Kernel::Copy);
    let args = |from: &HostBuffer, to: &HostBuffer, elements| {
        storage(&[from, to].map(|buffer| buffer.tensor(Dtype::I32, &[elements])), &[])
    };
    let (from, to) = (HostBuffer::of(&[7; 400_000]), HostBuffer::of(&[0; 400_000]));
    device.run(copy, &args(&from, &to, 1000), &PLAIN, ZERO).unwrap();
    let error = device.run(copy, &args(&from, &to, 100_000), &PLAIN, ZERO).unwrap_err();
    assert!(matches!(error, ChipError::OutOfMemory { .. }), "{error}");
    assert_eq!(device.retained_temp(PipelineSlot::Zero), None, "freed before the new one was asked for");
    assert_eq!(device.phase(PipelineSlot::Zero), Phase::Empty);
    device.run(copy, &args(&from, &to, 1000), &PLAIN, ZERO).unwrap();
    assert_eq!(to.bytes()[..4000], from.bytes()[..4000]);
}

/// A kernel's time passes in the device, on its clock, and nothing in the lane sleeps for it.
#[test]
fn a_run_is_not_ready_before_its_virtual_time_has_passed() {
    let clock = VirtualClock::new();
    let config = Config::new(Profile::A2a3HostBuildGraph).with_cost(Cost { kernel_nanos: 500, element_picos: 1000 });
    let mut device = Simulator::with_clock(config, host_memory(), Box::new(clock.clone())).unwrap();
    let add = register(&mut device, Kernel::Add);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).unwrap();
    device.launch(run).unwrap();
    assert!(device.accepted(run));
    clock.advance(Duration::from_nanos(503));
    assert_eq!(device.poll(run), Ok(Progress::NotReady));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(device.poll(run), Ok(Progress::Complete));
    device.finalize(run).unwrap();
    let wait = register(&mut device, Kernel::Wait);
    let before = laneway_sim::Clock::now(&clock);
    device.run(wait, &storage(&[], &[7_000_000_000]), &PLAIN, ZERO).unwrap();
    assert_eq!(laneway_sim::Clock::now(&clock).since(before), Duration::from_nanos(7_000_000_500));
}

/// T-31: whatever is prepared or launched at shutdown is finalized; nothing stays on the device.
#[test]
fn shutdown_finalizes_what_runs_and_leaves_nothing_committed() {
    for profile in Profile::ALL {
        let mut device = device(profile);
        let add = register(&mut device, Kernel::Add);
        let (first, second) = (VectorAdd::new(), VectorAdd::new());
        let one = device.prepare(add, &first.args, &PLAIN, ZERO).unwrap();
        device.launch(one).unwrap();
        if device.supports_concurrent_prepare() {
            device.prepare(add, &second.args, &PLAIN, ONE).unwrap();
        }
        device.shutdown().unwrap();
        assert!(first.is_done() && second.is_untouched());
        assert_eq!(device.committed_memory(), 0);
        let counters = device.counters();
        assert_eq!((counters.kernel_images_registered, counters.kernel_images_released), (1, 1));
        assert_eq!(counters.leaked_allocations, 0);
        device.shutdown().unwrap();
        let gone = |call| ChipError::DeviceGone { call };
        assert_eq!(device.prepare(add, &first.args, &PLAIN, ZERO), Err(gone(Call::Prepare)));
        assert_eq!(device.register(add, &callable(Kernel::Add)), Err(gone(Call::Register)));
        assert_eq!(device.malloc(1), Err(gone(Call::Malloc)));
    }
}

/// Arguments that do not fit are refused in prepare, by name, whatever the strategy.
#[test]
fn arguments_that_do_not_fit_the_callable_are_refused_in_prepare() {
    for profile in Profile::ALL {
        let mut device = device(profile);
        let add = register(&mut device, Kernel::Add);
        let buffer = HostBuffer::of(&[0; 64]);
        let settled = device.committed_memory();
        let four = buffer.tensor(Dtype::F32, &[4]);
        let cases = [
            storage(&[four, four], &[]),
            storage(&[four, four, four], &[1]),
            storage(&[four, buffer.tensor(Dtype::F32, &[5]), four], &[]),
            storage(&[four, buffer.tensor(Dtype::I32, &[4]), four], &[]),
            storage(&[buffer.tensor(Dtype::U8, &[4]); 3], &[]),
        ];
        for args in cases {
            let error = device.prepare(add, &args, &PLAIN, ZERO).unwrap_err();
            assert!(matches!(error, ChipError::ArgumentRefused { .. }), "{error}");
        }
        assert_eq!(device.committed_memory(), settled);
        assert_eq!(device.phase(PipelineSlot::Zero), Phase::Empty);
    }
}
