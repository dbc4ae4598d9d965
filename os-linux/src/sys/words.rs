//! [`Words`] over mapped memory.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering, fence};

use laneway_core::mailbox::{Words, atomics};
use laneway_core::wire::frame::REGION_BYTES;

use super::region::Region;

/// Word access to a mapped region: a pointer and a length, copied freely.
///
/// Every access is an atomic one, so nothing that another process writes can make it undefined, and every offset is
/// compared with the region: one that is misaligned or outside is a bug of this process and panics. Where the offset is
/// a constant the comparison is one predicted branch.
#[derive(Clone, Copy, Debug)]
pub struct MappedWords<L = usize> {
    base: NonNull<u8>,
    len: L,
}

/// The words of a mailbox. Their number is known to the compiler, which then has nothing left to compare.
pub type MailboxWords = MappedWords<OfMailbox>;

mod sealed {
    pub trait Sealed {}
    impl Sealed for usize {}
    impl Sealed for super::OfMailbox {}
}

/// How long a region is. Unsafe code relies on it, so nobody else can say it.
pub trait Length: Copy + sealed::Sealed {
    /// In bytes.
    fn bytes(self) -> usize;
}

impl Length for usize {
    #[inline(always)]
    fn bytes(self) -> usize {
        self
    }
}

/// The length of a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfMailbox;

impl Length for OfMailbox {
    #[inline(always)]
    fn bytes(self) -> usize {
        REGION_BYTES
    }
}

// SAFETY: all access is atomic; the mapping is tied to no thread.
unsafe impl<L: Length> Send for MappedWords<L> {}
// SAFETY: as above.
unsafe impl<L: Length> Sync for MappedWords<L> {}

impl MappedWords {
    /// The words of a whole region.
    ///
    /// # Safety
    /// The region stays mapped for as long as this value or a copy of it is used.
    #[must_use]
    pub unsafe fn new(region: &Region) -> Self {
        Self { base: region.base(), len: region.len() }
    }

    /// The words of `len` bytes from `base` on.
    ///
    /// # Safety
    /// The bytes are mapped readable and writable for as long as this value or a copy of it is used, `base` is aligned to
    /// 8, and nothing but atomics touches them while it is.
    #[must_use]
    pub unsafe fn from_raw(base: NonNull<u8>, len: usize) -> Self {
        Self { base, len }
    }

    /// The same words as those of a mailbox; `None` if there are too few.
    #[must_use]
    pub fn of_mailbox(self) -> Option<MailboxWords> {
        (self.len >= REGION_BYTES).then_some(MappedWords { base: self.base, len: OfMailbox })
    }
}

impl<L: Length> MappedWords<L> {
    /// Bytes that can be reached.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.bytes()
    }

    /// Whether no byte can be reached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn at(&self, at: usize, bytes: usize, align: usize) -> *mut u8 {
        let len = self.len.bytes();
        if at > len || bytes > len - at || !at.is_multiple_of(align) {
            refuse(at, bytes, len);
        }
        // SAFETY: `at` was just compared with the length of the mapping.
        unsafe { self.base.as_ptr().add(at) }
    }

    #[inline]
    fn half(&self, at: usize) -> &AtomicI32 {
        let word = self.at(at, 4, 4);
        // SAFETY: four mapped, aligned bytes, reached by atomics alone; whoever made `self` promised that they stay mapped.
        unsafe { AtomicI32::from_ptr(word.cast()) }
    }

    #[inline]
    fn whole(&self, at: usize) -> &AtomicU64 {
        let word = self.at(at, 8, 8);
        // SAFETY: eight mapped, aligned bytes, reached by atomics alone; whoever made `self` promised that they stay mapped.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }

    /// The words from `at` on, for one copy: checked once. Inlined as what copies and compares is, so that both see how long
    /// the run is.
    #[inline(always)]
    fn run(&self, at: usize, bytes: usize) -> &[AtomicU64] {
        let first = self.at(at, bytes, 8);
        // SAFETY: `bytes` mapped bytes, aligned, reached by atomics alone; an atomic may be changed behind a shared slice.
        unsafe { std::slice::from_raw_parts(first.cast(), bytes / 8) }
    }
}

#[cold]
#[inline(never)]
fn refuse(at: usize, bytes: usize, len: usize) -> ! {
    panic!("no aligned word of {bytes} bytes at offset {at} in a region of {len} bytes")
}

impl<L: Length> Words for MappedWords<L> {
    #[inline]
    fn load(&self, at: usize) -> i32 {
        self.half(at).load(Ordering::Acquire)
    }

    #[inline]
    fn load_relaxed(&self, at: usize) -> i32 {
        self.half(at).load(Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, at: usize, value: i32) {
        self.half(at).store(value, Ordering::Release);
    }

    #[inline]
    fn store_relaxed(&self, at: usize, value: i32) {
        self.half(at).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.half(at).compare_exchange(expected, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn read(&self, at: usize) -> u64 {
        self.whole(at).load(Ordering::Relaxed)
    }

    #[inline]
    fn write(&self, at: usize, value: u64) {
        self.whole(at).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn copy_in(&self, at: usize, from: &[u8]) {
        assert_whole(from.len());
        atomics::copy_in(self.run(at, from.len()), from);
    }

    #[inline(always)]
    fn copy_in_changed(&self, at: usize, from: &[u8]) {
        assert_whole(from.len());
        atomics::copy_in_changed(self.run(at, from.len()), from);
    }

    #[inline(always)]
    fn holds(&self, at: usize, bytes: &[u8]) -> bool {
        assert_whole(bytes.len());
        atomics::holds(self.run(at, bytes.len()), bytes)
    }

    #[inline]
    fn copy_out(&self, at: usize, into: &mut [u8]) {
        assert_whole(into.len());
        atomics::copy_out(self.run(at, into.len()), into);
    }
}

#[inline]
fn assert_whole(bytes: usize) {
    assert!(bytes.is_multiple_of(8), "payload is copied in whole words of 8 bytes, not {bytes} bytes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::region::Sharing;
    use std::panic::catch_unwind;

    fn with_words(test: impl FnOnce(MappedWords)) {
        let region = Region::new("words", 4096, Sharing::Given).unwrap();
        // SAFETY: `test` is done with the words before the region is dropped.
        test(unsafe { MappedWords::new(&region) });
    }

    /// W-8
    #[test]
    fn halves_and_wholes_lie_where_the_bytes_say() {
        with_words(|words| {
            words.store(64, -2);
            words.store_relaxed(68, 7);
            assert_eq!(words.read(64).to_le_bytes(), [0xfe, 0xff, 0xff, 0xff, 7, 0, 0, 0]);
            assert_eq!(words.compare_exchange(68, 8, 1), Err(7));
            assert_eq!(words.compare_exchange(68, 7, 1), Ok(()));
            assert_eq!((words.load(68), words.load_relaxed(64)), (1, -2));
        });
    }

    /// W-8
    #[test]
    fn copies_round_trip_up_to_the_last_byte() {
        with_words(|words| {
            let bytes: Vec<u8> = (0..64).collect();
            words.copy_in(4096 - 64, &bytes);
            let mut back = [0; 64];
            words.copy_out(4096 - 64, &mut back);
            assert_eq!(&back[..], bytes);
        });
    }

    /// W-8
    #[test]
    fn a_mailbox_is_never_taken_for_longer_than_its_region() {
        with_words(|words| assert!(words.of_mailbox().is_none()));
        let region = Region::new("mailbox", REGION_BYTES, Sharing::Given).unwrap();
        // SAFETY: the region outlives the words.
        let words = unsafe { MappedWords::new(&region) }.of_mailbox().unwrap();
        words.write(REGION_BYTES - 8, 7);
        assert_eq!((words.read(REGION_BYTES - 8), words.len()), (7, REGION_BYTES));
        assert!(catch_unwind(|| words.read(REGION_BYTES)).is_err());
    }

    /// W-8
    #[test]
    fn an_offset_outside_or_misaligned_never_reaches_memory() {
        with_words(|words| {
            for at in [1, 4094, 4096, usize::MAX - 3, usize::MAX] {
                assert!(catch_unwind(|| words.load(at)).is_err(), "{at}");
                assert!(catch_unwind(|| words.store(at, 1)).is_err(), "{at}");
            }
            for at in [4, 4092, 4096, usize::MAX - 7] {
                assert!(catch_unwind(|| words.read(at)).is_err(), "{at}");
                assert!(catch_unwind(|| words.copy_in(at, &[0; 8])).is_err(), "{at}");
            }
            assert!(catch_unwind(|| words.copy_out(4088, &mut [0; 16])).is_err());
        });
    }
}
