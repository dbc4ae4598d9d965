//! What prepare takes, and what it refuses.

use laneway_core::chip::{Call, ChipError, RunDescriptor};
use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::wire::DispatchIdentity;
use laneway_sim::Kernel;

use super::bench::{fails_with, slot};
use super::{Bench, ONE, PLAIN, VectorAdd, ZERO, storage};
use crate::case::Case;
use crate::expect::{Must, Verdict, equal, holds, refused};
use crate::numbers::HostBuffer;

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::device(
            "prepare/a_contract_is_within_its_bounds",
            &["C-1", "C-2", "C-3"],
            "The pipeline depth is 1 or 2, there is a run slot for each, and no arena bank beyond them.",
            contract,
        ),
        Case::device(
            "prepare/a_run_slot_beyond_the_depth_is_unsupported",
            &["C-1", "C-9"],
            "Every run slot below the depth works, and one beyond it is answered with −2.",
            beyond_the_depth,
        )
        .kernels(ADD),
        Case::device(
            "prepare/every_prepare_has_an_epoch_of_its_own",
            &["C-7"],
            "A lease may bring several runs; each has a later epoch, and the token of the one before is stale.",
            epochs,
        )
        .kernels(ADD),
        Case::device(
            "prepare/an_empty_callable_slot_is_refused",
            &["C-8"],
            "A run of a callable that is not registered fails in prepare and takes no run slot.",
            unknown,
        )
        .kernels(ADD),
        Case::device(
            "prepare/arguments_that_do_not_fit_are_refused",
            &["C-13"],
            "Too few tensors, a scalar too many or a shape that does not fit: prepare fails, keeps nothing, and the slot is free.",
            misfits,
        )
        .kernels(ADD),
        Case::device(
            "prepare/arguments_are_copied",
            &["C-6"],
            "What happens to the argument list and the config after prepare changes nothing of the run.",
            copied,
        )
        .kernels(ADD),
        Case::device(
            "prepare/nothing_runs_before_the_launch",
            &["L-12", "C-6"],
            "A prepared run has touched nothing of the host's, however long it waits.",
            early,
        )
        .kernels(ADD),
    ]
}

fn contract(device: &mut Bench<'_>) -> Verdict {
    let contract = device.contract();
    holds("a depth of 1 or 2", (1..=2).contains(&contract.depth()), || contract.depth())?;
    for slot in PipelineSlot::ALL {
        let index = slot.index();
        equal(format_args!("a run slot {index}"), contract.has_slot(slot), index < contract.depth())?;
        let bank = contract.arena_bank(slot);
        holds(format_args!("the bank of run slot {index}"), bank as usize <= index, || bank)?;
    }
    holds(
        "a second run beside a first takes depth 2",
        !device.supports_concurrent_prepare() || contract.depth() == 2,
        || "concurrent preparation at depth 1",
    )
}

fn beyond_the_depth(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    if device.contract().depth() == 1 {
        let error = device.prepare(add, &work.args, &PLAIN, ONE);
        refused("prepare in run slot 1 of a runtime of depth 1", error, "unsupported", |error| {
            matches!(error, ChipError::Unsupported { call: Call::Prepare, .. })
        })?;
        return device.adds(add);
    }
    device.run(add, &work.args, &PLAIN, ONE).must("a run in slot 1")?;
    work.is_done()
}

fn epochs(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let leased = RunDescriptor::Leased(DispatchIdentity {
        run: RunId::FIRST,
        slot: PipelineSlot::Zero,
        generation: Generation::FIRST,
        dispatch: DispatchId::FIRST,
    });
    let first = device.prepare(add, &work.args, &PLAIN, leased).must("prepare under a lease")?;
    device.finalize(first).must("finalize")?;
    let second = device.prepare(add, &work.args, &PLAIN, leased).must("prepare under the same lease")?;
    holds("the epoch is a later one", second.epoch() > first.epoch(), || {
        format!("{} after {}", second.epoch(), first.epoch())
    })?;
    let stale = ChipError::StaleToken { call: Call::Launch, epoch: first.epoch(), current: Some(second.epoch()) };
    fails_with("a launch with the token before", device.launch(first), stale)?;
    device.launch(second).must("launch")?;
    device.finalize(second).must("finalize")?;
    work.is_done()
}

fn unknown(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let (work, empty) = (VectorAdd::new(), slot(7)?);
    let unknown = ChipError::CallableUnknown { slot: empty };
    fails_with("prepare of an empty slot", device.prepare(empty, &work.args, &PLAIN, ZERO), unknown)?;
    device.adds(add)
}

fn misfits(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    device.adds(add)?;
    let buffer = HostBuffer::of_f32(&[0.0; 16]);
    let four = buffer.dense_f32(&[4]);
    let lists = [
        ("two tensors instead of three", storage(&[four, four], &[])),
        ("a scalar too many", storage(&[four, four, four], &[1])),
        ("another shape", storage(&[four, buffer.dense_f32(&[5]), four], &[])),
    ];
    let settled = device.committed_memory();
    for (what, args) in lists {
        refused(what, device.prepare(add, &args, &PLAIN, ZERO), "a refusal of the arguments", |error| {
            matches!(error, ChipError::ArgumentRefused { .. } | ChipError::Failed { .. })
        })?;
        device.still_commits("after a refusal", settled)?;
    }
    device.adds(add)
}

fn copied(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let (mut work, mut other) = (VectorAdd::new(), VectorAdd::new());
    let run = device.prepared(add, &work)?;
    std::mem::swap(&mut work.args, &mut other.args);
    other.args = storage(&[], &[]);
    device.launch(run).must("launch")?;
    work.args = storage(&[], &[]);
    device.finalize(run).must("finalize")?;
    work.is_done()?;
    other.is_untouched()
}

fn early(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let run = device.prepared(add, &work)?;
    let start = std::time::Instant::now();
    while start.elapsed().as_micros() < 500 {
        work.is_untouched()?;
        equal("acceptance", device.accepted(run), false)?;
    }
    device.launch(run).must("launch")?;
    device.finalize(run).must("finalize")?;
    work.is_done()
}
