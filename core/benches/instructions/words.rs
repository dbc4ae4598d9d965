//! A mailbox of atomics, as mapped memory is one: what a compiler can make of a plain array would flatter the figures.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering, fence};

use laneway_core::mailbox::{Words, atomics};
use laneway_core::wire::frame::REGION_BYTES;

/// Two arrays, one for each access width: every byte of a region has one of them (W-8). As long as a mailbox is, which the compiler
/// knows of mapped memory too.
pub(crate) struct AtomicWords {
    halves: [AtomicI32; REGION_BYTES / 4],
    wholes: [AtomicU64; REGION_BYTES / 8],
}

impl AtomicWords {
    pub(crate) fn new() -> Self {
        Self {
            halves: [const { AtomicI32::new(0) }; REGION_BYTES / 4],
            wholes: [const { AtomicU64::new(0) }; REGION_BYTES / 8],
        }
    }

    #[inline(always)]
    fn run(&self, at: usize, bytes: usize) -> &[AtomicU64] {
        &self.wholes[at / 8..][..bytes / 8]
    }
}

impl Words for AtomicWords {
    #[inline]
    fn load(&self, at: usize) -> i32 {
        self.halves[at / 4].load(Ordering::Acquire)
    }

    #[inline]
    fn load_relaxed(&self, at: usize) -> i32 {
        self.halves[at / 4].load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, at: usize, value: i32) {
        self.halves[at / 4].store(value, Ordering::Release);
    }

    #[inline]
    fn store_relaxed(&self, at: usize, value: i32) {
        self.halves[at / 4].store(value, Ordering::Relaxed);
    }

    #[inline]
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.halves[at / 4].compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn read(&self, at: usize) -> u64 {
        self.wholes[at / 8].load(Ordering::Relaxed)
    }

    #[inline]
    fn write(&self, at: usize, value: u64) {
        self.wholes[at / 8].store(value, Ordering::Relaxed);
    }

    #[inline]
    fn copy_in(&self, at: usize, from: &[u8]) {
        atomics::copy_in(self.run(at, from.len()), from);
    }

    #[inline(always)]
    fn copy_in_changed(&self, at: usize, from: &[u8]) {
        atomics::copy_in_changed(self.run(at, from.len()), from);
    }

    #[inline(always)]
    fn holds(&self, at: usize, bytes: &[u8]) -> bool {
        atomics::holds(self.run(at, bytes.len()), bytes)
    }

    #[inline]
    fn copy_out(&self, at: usize, into: &mut [u8]) {
        atomics::copy_out(self.run(at, into.len()), into);
    }
}
