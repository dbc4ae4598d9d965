//! The values that several vectors hold.

use std::num::NonZeroU64;

use laneway_core::ids::WorkerId;
use laneway_core::wire::*;

pub(crate) fn config() -> CallConfig {
    let mut config = CallConfig {
        aicpu_thread_num: 4,
        enable_chip_swimlane: 2,
        enable_dump_args: 1,
        enable_pmu: 7,
        enable_dep_gen: 1,
        enable_scope_stats: 1,
        ring_task_window: [16, 0, 1024, 0],
        ring_heap: [1024, 0, 0, 1 << 30],
        ring_dep_pool: [0, 100, 0, 0x7fff_ffff],
        ..CallConfig::ZERO
    };
    config.set_output_prefix(b"/tmp/out/run-1").expect("a short path");
    config
}

pub(crate) fn contiguous() -> ChipTensor {
    ChipTensor::contiguous(0x7f00_0000_1000, 4096, Dtype::F32, &[4, 8], AddressSpace::Host).expect("fits")
}

pub(crate) fn five() -> ChipTensor {
    let whole = ChipTensor::contiguous(0x10_0000, 7680, Dtype::Bf16, &[2, 4, 4, 5, 3], AddressSpace::Device);
    whole
        .and_then(|tensor| tensor.with_row_major(&[2, 4, 4, 5, 3], 480))
        .expect("fits")
        .with_owner_task(Some(77))
        .with_version(-3)
        .with_manual_dep(true)
}

pub(crate) fn buffer(space: AddressSpace, access: Access, id: u64, nbytes: u64) -> (BufferIdentity, BufferRange) {
    let identity = BufferIdentity { owner: *b"OWNER--1", buffer_id: id, generation: 9 };
    (identity, BufferRange { space, access, nbytes, owner_path: 0x0102 })
}

pub(crate) fn at_address(
    backend: Backend,
    space: AddressSpace,
    access: Access,
    id: u64,
    nbytes: u64,
    addr: u64,
) -> BufferDescriptor {
    let (identity, range) = buffer(space, access, id, nbytes);
    BufferDescriptor::at_address(backend, identity, range, addr).expect("legal")
}

pub(crate) fn by_name(id: u64, nbytes: u64, name: &str) -> BufferDescriptor {
    let (identity, range) = buffer(AddressSpace::Host, Access::ReadWrite, id, nbytes);
    BufferDescriptor::posix(identity, range, name).expect("legal")
}

pub(crate) fn nth(i: u64) -> ChipTensor {
    ChipTensor::contiguous(0x20_0000 + 64 * i, 64, Dtype::F32, &[16], AddressSpace::Host).expect("fits")
}

pub(crate) fn nth_described(i: u64) -> Tensor {
    let addr = 0x30_0000 + 64 * i;
    let buffer = at_address(Backend::ForkShm, AddressSpace::Host, Access::ReadWrite, 1000 + i, 64, addr);
    Tensor::contiguous(buffer, 0, Dtype::F32, &[4, 4]).expect("fits")
}

pub(crate) fn scalars(count: usize) -> Vec<u64> {
    (0..count as u64).map(|i| 0x1111_1111_1111_1111 * (i % 16)).collect()
}

pub(crate) fn worker(id: i32) -> WorkerId {
    WorkerId::new(id).expect("not negative")
}

pub(crate) fn nonzero(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).expect("not 0")
}
