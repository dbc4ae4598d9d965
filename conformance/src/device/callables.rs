//! Registering what a device can run (C-8, C-14).

use laneway_core::chip::{Call, CallableSlot, ChipError, Phase};
use laneway_sim::Kernel;

use super::bench::{fails_with, slot};
use super::{Bench, PLAIN, VectorAdd, ZERO};
use crate::case::Case;
use crate::expect::{Must, Verdict, equal, refused};

const ADD: &[Kernel] = &[Kernel::Add];

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::device(
            "callables/callables_stay_while_a_run_needs_them",
            &["C-8"],
            "Register and unregister are refused while a run is prepared, launched or not yet finalized.",
            stay,
        )
        .kernels(&[Kernel::Add, Kernel::Noop]),
        Case::device(
            "callables/a_slot_holds_one_callable",
            &["C-8"],
            "A taken slot takes no second callable, an empty one gives none back, and a freed one can be used again.",
            one_each,
        )
        .kernels(&[Kernel::Add, Kernel::Mul]),
        Case::device(
            "callables/every_one_of_64_slots_works",
            &["C-8", "R-8"],
            "All 64 callable slots can be filled, run and emptied, and then hold nothing on the device.",
            all_slots,
        )
        .kernels(ADD),
        Case::device(
            "callables/a_callable_that_is_none_is_refused",
            &["C-8", "C-14"],
            "Bytes that are no callable are refused, keep nothing on the device, and leave the slot free.",
            refused_bytes,
        )
        .kernels(ADD),
        Case::device(
            "callables/two_slots_hold_one_payload_independently",
            &["C-8", "T-31"],
            "One payload in two slots can be removed from one of them, and goes on running in the other.",
            twice,
        )
        .kernels(ADD),
    ]
}

fn stay(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(63, Kernel::Add)?;
    let noop = device.callable(Kernel::Noop)?;
    let work = VectorAdd::new();
    let run = device.prepared(add, &work)?;
    for phase in [Phase::Prepared, Phase::Launched, Phase::Reaped] {
        let busy = |call| ChipError::RunInFlight { call, epoch: run.epoch(), phase };
        fails_with("register during a run", device.register(slot(0)?, &noop), busy(Call::Register))?;
        fails_with("unregister during a run", device.unregister(add), busy(Call::Unregister))?;
        match phase {
            Phase::Prepared => device.launch(run).must("launch")?,
            Phase::Launched => device.wait(run).must("wait")?,
            _ => device.finalize(run).must("finalize")?,
        }
    }
    work.is_done()?;
    device.register(slot(0)?, &noop).must("register after the run")?;
    device.unregister(add).must("unregister after the run")
}

fn one_each(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(5, Kernel::Add)?;
    let mul = device.callable(Kernel::Mul)?;
    fails_with("register in a taken slot", device.register(add, &mul), ChipError::CallableTaken { slot: add })?;
    device.adds(add)?;
    device.unregister(add).must("unregister")?;
    let unknown = ChipError::CallableUnknown { slot: add };
    fails_with("a second unregister", device.unregister(add), unknown.clone())?;
    let work = VectorAdd::new();
    fails_with("a run of what was removed", device.prepare(add, &work.args, &PLAIN, ZERO), unknown)?;
    device.register(add, &mul).must("register in the freed slot")?;
    device.run(add, &work.args, &PLAIN, ZERO).must("a run of the new callable")?;
    equal("the product", work.out.f32s(), [10.0, 40.0, 90.0, 160.0])
}

fn all_slots(device: &mut Bench<'_>) -> Verdict {
    let before = device.committed_memory();
    for index in 0..CallableSlot::COUNT {
        device.install(index, Kernel::Add)?;
    }
    for index in [0, 31, CallableSlot::COUNT - 1] {
        device.adds(slot(index)?)?;
    }
    let running = device.committed_memory();
    for index in 0..CallableSlot::COUNT {
        device.unregister(slot(index)?).must(format_args!("unregister of slot {index}"))?;
    }
    let empty = device.committed_memory();
    device.install(0, Kernel::Add)?;
    device.unregister(slot(0)?).must("unregister")?;
    device.still_commits("after one more callable came and went", empty)?;
    // Whatever runs left for the next run stays; the code does not.
    equal("code is given back", empty < running || running == before, true)
}

fn refused_bytes(device: &mut Bench<'_>) -> Verdict {
    let good = device.callable(Kernel::Add)?;
    let before = device.committed_memory();
    let mut negative_count = good.clone();
    negative_count[9_292..9_296].copy_from_slice(&(-1i32).to_le_bytes());
    let bad = [&good[..100], &good[..good.len() - 1], &[], &negative_count];
    for bytes in bad {
        let result = device.register(slot(0)?, bytes);
        refused(
            format_args!("{} bytes of {} that are no callable", bytes.len(), good.len()),
            result,
            "an error",
            |_| true,
        )?;
        device.still_commits("after a refused callable", before)?;
    }
    device.register(slot(0)?, &good).must("register of a good one in the same slot")?;
    device.adds(slot(0)?)
}

fn twice(device: &mut Bench<'_>) -> Verdict {
    let (one, two) = (device.install(1, Kernel::Add)?, device.install(2, Kernel::Add)?);
    device.adds(one)?;
    device.unregister(one).must("unregister of one")?;
    device.adds(two)?;
    let with_one = device.committed_memory();
    let again = device.install(1, Kernel::Add)?;
    device.adds(again)?;
    device.unregister(again).must("unregister of the other")?;
    device.still_commits("with one of two again", with_one)?;
    device.adds(two)
}
