//! Copies between host and device, byte by byte or in words where both sides allow it. Every access is a relaxed atomic one,
//! since other processes may have the same bytes.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use laneway_core::chip::HostAddress;

/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// Memory of this process that a copy may touch.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    first: *mut u8,
    len: usize,
    memory: PhantomData<&'a ()>,
}

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:p}", self.len, self.first)
    }
}

impl Bytes<'_> {
    /// # Safety
    /// The bytes are mapped readable for `'a`, and writable if they are written. No Rust reference to them exists but to atomics,
    /// unless it is a shared one to bytes that are only read, or one that nobody uses for that long.
    pub(super) unsafe fn at(address: u64, len: usize) -> Self {
        Self { first: std::ptr::with_exposed_provenance_mut(address as usize), len, memory: PhantomData }
    }

    /// Where they begin, for a device that reads them by itself.
    #[must_use]
    pub fn address(&self) -> HostAddress {
        HostAddress(self.first.addr() as u64)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies them into `into`, as far as both reach.
    pub fn read(&self, into: &mut [u8]) {
        for (at, byte) in into.iter_mut().take(self.len).enumerate() {
            *byte = self.byte(at).load(Ordering::Relaxed);
        }
    }

    /// Overwrites them with `from`, as far as both reach.
    pub fn write(&self, from: &[u8]) {
        for (at, &byte) in from.iter().take(self.len).enumerate() {
            self.byte(at).store(byte, Ordering::Relaxed);
        }
    }

    /// Overwrites them with `from`, as far as both reach. The two may overlap only if they are the same.
    pub fn copy_from(&self, from: Bytes<'_>) {
        let len = self.len.min(from.len);
        let (head, words) = if self.first.addr() % WORD == from.first.addr() % WORD {
            let head = self.first.align_offset(WORD).min(len);
            (head, (len - head) / WORD)
        } else {
            (len, 0)
        };
        for at in 0..head {
            self.byte(at).store(from.byte(at).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for at in (0..words).map(|word| head + word * WORD) {
            self.word(at).store(from.word(at).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for at in head + words * WORD..len {
            self.byte(at).store(from.byte(at).load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// The byte at `at`, below the length.
    fn byte(&self, at: usize) -> &AtomicU8 {
        // SAFETY: inside what the maker of `self` promised; a byte is always aligned.
        unsafe { AtomicU8::from_ptr(self.first.wrapping_add(at)) }
    }

    /// The word from `at` on, which is aligned and ends below the length.
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: as `byte`, for all eight bytes; `copy_from` begins at a multiple of eight and goes in steps of eight. Whoever copies
        // bytes that a task is at, in pieces of another size, gets bytes of either time: the processors promise no more and no
        // less for a relaxed access.
        unsafe { AtomicU64::from_ptr(self.first.wrapping_add(at).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(bytes: &mut [u8]) -> Bytes<'_> {
        // SAFETY: the tests below look at the array only when they are done with this.
        unsafe { Bytes::at(bytes.as_mut_ptr().expose_provenance() as u64, bytes.len()) }
    }

    /// C-13: whatever the two alignments and the length are.
    #[test]
    fn a_copy_touches_its_bytes_alone() {
        for (to, from, len) in
            (0..9).flat_map(|to| (0..9).flat_map(move |from| (0..33).map(move |len| (to, from, len))))
        {
            let mut source: [u8; 48] = std::array::from_fn(|i| i as u8);
            let mut target = [0xaa_u8; 48];
            over(&mut target[to..to + len]).copy_from(over(&mut source[from..from + len]));
            assert_eq!(target[to..to + len], source[from..from + len]);
            assert!(target[..to].iter().chain(&target[to + len..]).all(|&byte| byte == 0xaa), "{to} {from} {len}");
        }
    }

    #[test]
    fn reading_and_writing_end_with_the_shorter_side() {
        let (mut memory, mut short, mut long) = ([1, 2, 3, 4], [0; 2], [9; 6]);
        let bytes = over(&mut memory);
        bytes.read(&mut short);
        bytes.read(&mut long);
        bytes.write(&[7]);
        assert_eq!((short, long, memory), ([1, 2], [1, 2, 3, 4, 9, 9], [7, 2, 3, 4]));
    }
}
