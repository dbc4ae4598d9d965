//! Device memory by worker id (C-16).

use laneway_core::chip::{Call, ChipError, DeviceAddress};
use laneway_linux::{AddressSpace, ChipTensor, Dtype, Error, TaskArgs, WorkerId};
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::Grove;
use crate::backend::Setup;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};

const COPY: &[Kernel] = &[Kernel::Copy];

pub(super) fn cases() -> Vec<Case> {
    let cases = vec![
        Case::tree(
            "memory/bytes_come_back_from_a_chip",
            &["C-16", "L-20", "L-21"],
            "What the parent copies to a chip comes back, and committed bytes rise and fall with it.",
            round_trip,
        )
        .kernels(COPY),
        Case::tree(
            "memory/device_memory_belongs_to_the_worker_it_came_from",
            &["C-16", "T-46"],
            "Every device pointer is judged in the parent: inside, past the end, dead, or of another worker.",
            owners,
        )
        .kernels(COPY),
        Case::tree(
            "memory/device_memory_that_a_task_names_is_in_use",
            &["C-16", "L-21"],
            "A copy into what an unfinished task names is refused; a free of it waits for the task.",
            in_use,
        )
        .kernels(COPY)
        .faults(FaultPlan::none().with(Point::Launch, 1, Action::Delay(100_000_000))),
        Case::tree(
            "memory/what_is_left_at_close_is_released",
            &["C-16", "P-14"],
            "Close says what device memory was never freed, on which chip, and closes all the same.",
            left,
        )
        .kernels(COPY),
    ];
    cases.into_iter().map(Case::with_memory).collect()
}

/// Sixteen f32 in the memory of a chip.
fn on_device(base: DeviceAddress) -> Result<ChipTensor, Violation> {
    ChipTensor::contiguous(base.0, 64, Dtype::F32, &[16], AddressSpace::Device).must("a legal tensor")
}

fn round_trip(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.chips(&[Setup::default()])?;
    let (worker, chip) = (&chips.worker, chips.ids[0]);
    let before = worker.committed_device_memory(chip).must("the memory query")?;
    let base = worker.malloc(chip, 64).must("malloc")?;
    let committed = worker.committed_device_memory(chip).must("the memory query")?;
    holds("64 bytes more", committed >= before + 64, || format!("{before} → {committed}"))?;
    let host = chips.vector(1.5)?;
    worker.copy_to(chip, base, &host).must("copy_to")?;
    host.fill_with(|_| 0.0).must("fill")?;
    worker.copy_from(chip, &host, base).must("copy_from")?;
    equal("what came back", host.to_vec().must("the tensor")?, [1.5; 16])?;
    worker.free(chip, base).must("free")?;
    equal("committed bytes", worker.committed_device_memory(chip), Ok(before))?;
    chips.close(false)
}

fn owners(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.chips(&[Setup::default(), Setup::default()])?;
    let (worker, [one, two]) = (&chips.worker, [chips.ids[0], chips.ids[1]]);
    let mine = worker.malloc(one, 64).must("malloc on the first")?;
    let theirs = worker.malloc(two, 64).must("malloc on the second")?;
    let host = chips.vector(1.5)?;
    worker.copy_to(two, theirs, &host).must("copy_to")?;
    let inside = DeviceAddress(mine.0 + 16);
    let error = ChipError::NotABase { address: inside, base: mine };
    equal("a free inside", worker.free(one, inside), Err(error.into()))?;
    refused("a copy past the end", worker.copy_from(one, &host, inside), "OutOfBounds", |error| {
        matches!(error, Error::Chip(ChipError::OutOfBounds { .. }))
    })?;
    worker.free(one, mine).must("free")?;
    let dead = |call| Err(Error::Chip(ChipError::NotDeviceMemory { call, address: mine }));
    equal("a second free", worker.free(one, mine), dead(Call::Free))?;
    equal("a copy to it", worker.copy_to(one, mine, &host), dead(Call::CopyTo))?;
    // Live on the second, dead or another's on the first.
    let copy = chips.kernel(Kernel::Copy)?;
    let out = chips.vector(0.0)?;
    let submit = |chip, tensor| {
        let mut args = TaskArgs::new();
        args.input(tensor).output(&out);
        worker.run(|orch| Ok(orch.submit_next_level(copy, chip, args).map(drop)?))
    };
    let error = refused("a tensor of another chip", submit(one, on_device(theirs)?), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["no live device memory"])?;
    submit(two, on_device(theirs)?).must("a tensor of this chip")?;
    equal("what it held", out.to_vec().must("the tensor")?, [1.5; 16])?;
    equal("live memory of the second", worker.live_device_memory(two), Ok(vec![(theirs, 64)]))?;
    let nobody = WorkerId::new(9).must("an id")?;
    refused("malloc on a worker that does not exist", worker.malloc(nobody, 1), "an error", |_| true)?;
    let error = refused("malloc of 2^60 bytes", worker.malloc(one, 1 << 60), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &[&(1_u64 << 60).to_string()])?;
    worker.free(two, theirs).must("free")?;
    chips.close(false)
}

fn in_use(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(0)?;
    let (worker, chip) = (&chips.worker, chips.ids[0]);
    let (base, host) = (worker.malloc(chip, 64).must("malloc")?, chips.vector(4.0)?);
    worker.copy_to(chip, base, &host).must("copy_to")?;
    let (out, tensor, copy) = (chips.vector(0.0)?, on_device(base)?, chips.kernel(Kernel::Copy)?);
    let run = worker.submit(|orch| {
        let mut args = TaskArgs::new();
        args.input(tensor).output(&out);
        Ok(orch.submit_next_level(copy, chip, args).map(drop)?)
    });
    let run = run.must("submit")?;
    run.wait_accepted().must("wait_accepted")?;
    let busy = Error::InUse { start: base.0, end: base.0 + 64 };
    equal("a copy into it while the task runs", worker.copy_to(chip, base, &host), Err(busy))?;
    worker.free(chip, base).must("a free that waits")?;
    refused("a second free", worker.free(chip, base), "an error", |_| true)?;
    run.wait().must("the run")?;
    equal("what the task read", out.to_vec().must("the tensor")?, [4.0; 16])?;
    // The free is sent when the task has ended; a control after it is answered after it.
    super::signal::until("the memory is given back", || {
        worker.committed_device_memory(chip).is_ok() && worker.live_device_memory(chip) == Ok(Vec::new())
    })?;
    chips.close(false)
}

fn left(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.chips(&[Setup::default(), Setup::default()])?;
    for id in &chips.ids {
        for bytes in [1, 4096, 100_000] {
            chips.worker.malloc(*id, bytes).must("malloc")?;
        }
        equal("live allocations", chips.worker.live_device_memory(*id).map(|live| live.len()), Ok(3))?;
    }
    let left = refused("close", chips.worker.close(), "DeviceMemoryLeft", |error| {
        matches!(error, Error::DeviceMemoryLeft { .. })
    })?;
    mentions("the error", &left.to_string(), &["worker 0: 3 allocations of 104097 bytes", "worker 1: 3"])?;
    chips.worker.close().must("a second close")?;
    equal("children after close", super::grove::children(), Vec::<i32>::new())
}
