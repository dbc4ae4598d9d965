//! Callables, prepare, and what may stand beside what.

use laneway_core::chip::{Call, ChipError, Phase, RunDescriptor};
use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::wire::{CallConfig, DispatchIdentity};
use laneway_sim::{Kernel, Profile};

use super::{Bench, Case, ONE, PLAIN, VectorAdd, ZERO, diagnostic, on_every_profile, register, slot};

pub(super) fn cases() -> impl Iterator<Item = Case> {
    let beside = |profile, run| Case {
        kernels: &[Kernel::Add],
        ..Case::new("a_prepare_beside_another_run_is_incompatible", &["C-9", "L-12", "L-16", "T-28"], profile, run)
    };
    on_every_profile("callables_stay_while_a_run_needs_them", &["C-8"], &[Kernel::Add, Kernel::Noop], callables_stay)
        .chain(on_every_profile(
            "a_callable_that_is_none_is_refused",
            &["C-8", "C-14"],
            &[Kernel::Add],
            refused_callables,
        ))
        .chain(on_every_profile(
            "a_run_slot_beyond_the_depth_is_unsupported",
            &["C-1", "C-9"],
            &[Kernel::Add],
            beyond_the_depth,
        ))
        .chain(on_every_profile("every_prepare_has_an_epoch_of_its_own", &["C-7"], &[Kernel::Add], epochs))
        .chain([
            beside(Profile::A2a3TensormapAndRingbuffer, incompatible_plain),
            beside(Profile::A5TensormapAndRingbuffer, incompatible_plain),
            beside(Profile::A2a3HostBuildGraph, incompatible_diagnostic),
        ])
}

fn callables_stay(device: &mut Bench<'_>) {
    let add = register(device, 63, Kernel::Add);
    let noop = device.callable(Kernel::Noop);
    let work = VectorAdd::new();
    let run = device.prepare(add, &work.args, &PLAIN, ZERO).expect("prepare");
    for phase in [Phase::Prepared, Phase::Launched, Phase::Reaped] {
        let refused = |call| Err(ChipError::RunInFlight { call, epoch: run.epoch(), phase });
        assert_eq!(device.register(slot(0), &noop), refused(Call::Register));
        assert_eq!(device.unregister(add), refused(Call::Unregister));
        match phase {
            Phase::Prepared => device.launch(run).expect("launch"),
            Phase::Launched => device.wait(run).expect("wait"),
            _ => device.finalize(run).expect("finalize"),
        }
    }
    assert_eq!(device.register(add, &noop), Err(ChipError::CallableTaken { slot: add }));
    device.unregister(add).expect("unregister");
    assert_eq!(device.unregister(add), Err(ChipError::CallableUnknown { slot: add }));
    let unknown = Err(ChipError::CallableUnknown { slot: add });
    assert_eq!(device.prepare(add, &work.args, &PLAIN, ZERO), unknown);
}

fn refused_callables(device: &mut Bench<'_>) {
    let good = device.callable(Kernel::Add);
    let before = device.committed_memory();
    let mut negative_count = good.clone();
    negative_count[9_292..9_296].copy_from_slice(&(-1i32).to_le_bytes());
    for bad in [&good[..100], &good[..good.len() - 1], &[], &negative_count] {
        assert!(device.register(slot(0), bad).is_err(), "{} bytes", bad.len());
    }
    assert_eq!(device.committed_memory(), before);
    device.register(slot(0), &good).expect("register");
}

fn beyond_the_depth(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let work = VectorAdd::new();
    if device.contract().depth() == 1 {
        let error = device.prepare(add, &work.args, &PLAIN, ONE).expect_err("there is one run slot");
        assert!(matches!(error, ChipError::Unsupported { call: Call::Prepare, .. }), "{error}");
    } else {
        device.run(add, &work.args, &PLAIN, ONE).expect("there are two run slots");
        assert!(work.is_done());
    }
}

fn epochs(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let work = VectorAdd::new();
    let leased = RunDescriptor::Leased(DispatchIdentity {
        run: RunId::FIRST,
        slot: PipelineSlot::Zero,
        generation: Generation::FIRST,
        dispatch: DispatchId::FIRST,
    });
    let first = device.prepare(add, &work.args, &PLAIN, leased).expect("prepare");
    device.finalize(first).expect("finalize");
    let second = device.prepare(add, &work.args, &PLAIN, leased).expect("prepare under the same lease");
    assert!(second.epoch() > first.epoch());
    let stale = Err(ChipError::StaleToken { call: Call::Launch, epoch: first.epoch(), current: Some(second.epoch()) });
    assert_eq!(device.launch(first), stale);
    device.launch(second).expect("launch");
    device.finalize(second).expect("finalize");
    assert!(work.is_done());
}

fn incompatible_plain(device: &mut Bench<'_>) {
    assert!(!device.supports_concurrent_prepare());
    incompatible(device, [PLAIN, PLAIN]);
}

fn incompatible_diagnostic(device: &mut Bench<'_>) {
    assert!(device.supports_concurrent_prepare());
    incompatible(device, [PLAIN, diagnostic()]);
    incompatible(device, [diagnostic(), PLAIN]);
}

fn incompatible(device: &mut Bench<'_>, configs: [CallConfig; 2]) {
    let add = register(device, 0, Kernel::Add);
    let (first, second) = (VectorAdd::new(), VectorAdd::new());
    let run = device.prepare(add, &first.args, &configs[0], ZERO).expect("prepare");
    let refused = device.prepare(add, &second.args, &configs[1], ONE);
    assert_eq!(refused, Err(ChipError::Incompatible { call: Call::Prepare }));
    device.launch(run).expect("launch");
    device.finalize(run).expect("finalize");
    device.run(add, &second.args, &configs[1], ONE).expect("alone it is compatible");
    assert!(first.is_done() && second.is_done());
    device.unregister(add).expect("unregister");
}
