//! Memory of the host program as an argument of tasks.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use laneway_linux::{AddressSpace, ChipTensor, Dtype, Error, TaskArgs};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::support::Bench;

const BYTES: usize = 4096;
const ELEMENTS: usize = BYTES / 4;

/// A shared mapping of this program's own; never unmapped.
fn own_mapping() -> &'static [AtomicI32; ELEMENTS] {
    let file = memfd_create("host", MemfdFlags::CLOEXEC).expect("a memfd");
    ftruncate(&file, BYTES as u64).expect("a page");
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping of a page at a place that the kernel chooses.
    let start = unsafe { mmap(ptr::null_mut(), BYTES, protection, flags, &file, 0) }.expect("a mapping");
    let start: *mut c_void = start;
    // SAFETY: mapped for good, aligned, initialised with zeros, and accessed as atomics alone.
    unsafe { &*start.cast() }
}

fn range<T>(memory: &T) -> std::ops::Range<u64> {
    let start = ptr::from_ref(memory) as u64;
    start..start + size_of::<T>() as u64
}

fn whole<T>(memory: &T) -> ChipTensor {
    let (start, bytes) = (ptr::from_ref(memory) as u64, size_of::<T>() as u64);
    ChipTensor::contiguous(start, bytes, Dtype::I32, &[bytes as u32 / 4], AddressSpace::Host).expect("a valid tensor")
}

/// E-38
pub(crate) fn a_mapping_of_the_program_itself_can_be_lent_to_its_tasks() {
    let memory = own_mapping();
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    // SAFETY: mapped for good, shared, accessed as atomics.
    unsafe { worker.share_range(range(memory)).unwrap() };
    let bench = Bench::of(worker);
    memory[ELEMENTS - 1].store(40, Ordering::Relaxed);
    bench
        .worker
        .run(|orch| {
            for by in [1, 1] {
                orch.submit_sub(&bench.add, TaskArgs::new().inout(whole(memory)).scalar(by))?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!((memory[0].load(Ordering::Relaxed), memory[ELEMENTS - 1].load(Ordering::Relaxed)), (2, 42));
    // SAFETY: never used.
    let late = unsafe { bench.worker.share_range(range(memory)) };
    assert_eq!(late, Err(Error::WrongState { call: "share_range", state: "READY" }));
}

/// E-38
pub(crate) fn a_snapshot_can_be_read_by_tasks_and_is_never_written() {
    let memory: &'static [i32; 3] = Box::leak(Box::new([7, 8, 9]));
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    // SAFETY: never freed, never written.
    unsafe { worker.share_snapshot(range(memory)).unwrap() };
    let bench = Bench::of(worker);
    let to = bench.tensor(3);
    bench
        .worker
        .run(|orch| {
            orch.submit_sub(&bench.copy, TaskArgs::new().input(whole(memory)).output(&to))?;
            let refused = orch.submit_sub(&bench.add, TaskArgs::new().inout(whole(memory)).scalar(1));
            let refused = refused.expect_err("a snapshot").to_string();
            assert!(refused.contains("snapshot"), "{refused}");
            Ok(())
        })
        .unwrap();
    assert_eq!(to.to_vec().unwrap(), [7, 8, 9]);
}

/// E-38: what lies in no range, or in two, is refused.
pub(crate) fn ranges_that_overlap_are_refused_by_init_and_nothing_is_left() {
    let memory = own_mapping();
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let all = range(memory);
    for part in [all.clone(), all.start + 64..all.end] {
        // SAFETY: mapped for good, shared, never accessed.
        unsafe { worker.share_range(part).unwrap() };
    }
    let error = worker.init().unwrap_err();
    assert!(error.to_string().contains("overlaps"), "{error}");
    worker.close().unwrap();
}
