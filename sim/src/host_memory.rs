//! The host side of copies: the only module of this crate with unsafe code.
//!
//! Tensors in HOST space arrive as addresses that are valid in the process that drives the device. Their bytes lie in
//! memory that other processes map too and may write at any moment, so no reference into it is ever made: every byte
//! goes through a relaxed atomic access, into memory of our own.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use laneway_core::chip::{Call, ChipError, HostAddress};

/// The bytes of a word copy.
const WORD: usize = size_of::<u64>();

/// The memory of the calling process that a device may touch.
#[derive(Clone, Debug)]
pub struct HostMemory {
    /// Ranges that do not touch each other, ascending.
    allowed: Vec<Range<u64>>,
}

impl HostMemory {
    /// No host memory: only DEVICE tensors work.
    #[must_use]
    pub const fn none() -> Self {
        Self { allowed: Vec::new() }
    }

    /// The given ranges of addresses, and nothing else.
    ///
    /// # Safety
    /// As long as this value or a clone of it lives, and whenever the bytes of a HOST tensor or of a copy lie in one of
    /// these ranges, those bytes must be mapped readable and writable, and no Rust reference to them may exist except
    /// to atomics, unless it is a shared reference to bytes that the device only reads.
    #[must_use]
    pub unsafe fn ranges(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut sorted: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_by_key(|range| range.start);
        let mut allowed: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
        for range in sorted {
            match allowed.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => allowed.push(range),
            }
        }
        Self { allowed }
    }

    /// Every address that a user-space process can have.
    ///
    /// # Safety
    /// As [`ranges`](Self::ranges): the bytes of every HOST tensor and of every copy must be mapped readable and
    /// writable while a run or a copy names them, and no Rust reference to them may exist except to atomics, unless it
    /// is a shared reference to bytes that the device only reads.
    #[must_use]
    pub unsafe fn whole_process() -> Self {
        // The first page is never mapped, and user space ends at 2^52 on the widest machine.
        Self { allowed: std::iter::once(4096..1 << 52).collect() }
    }

    /// Refuses a range that is not wholly inside what is allowed.
    pub(crate) fn check(&self, call: Call, address: HostAddress, bytes: u64) -> Result<(), ChipError> {
        let end = address.0.checked_add(bytes);
        let inside = |range: &Range<u64>| address.0 >= range.start && end.is_some_and(|end| end <= range.end);
        let candidate = self.allowed.partition_point(|range| range.start <= address.0);
        if bytes == 0 || candidate.checked_sub(1).is_some_and(|index| inside(&self.allowed[index])) {
            Ok(())
        } else {
            Err(ChipError::NotHostMemory { call, address, bytes })
        }
    }

    /// Copies host memory into `into`.
    pub(crate) fn read(&self, call: Call, from: HostAddress, into: &mut [u8]) -> Result<(), ChipError> {
        self.check(call, from, into.len() as u64)?;
        let head = words_from(from).min(into.len());
        let (first, rest) = into.split_at_mut(head);
        for (at, byte) in first.iter_mut().enumerate() {
            *byte = byte_at(from.0 as usize + at).load(Ordering::Relaxed);
        }
        let start = from.0 as usize + head;
        let (words, tail) = rest.as_chunks_mut::<WORD>();
        for (at, word) in words.iter_mut().enumerate() {
            *word = word_at(start + at * WORD).load(Ordering::Relaxed).to_ne_bytes();
        }
        let start = start + words.len() * WORD;
        for (at, byte) in tail.iter_mut().enumerate() {
            *byte = byte_at(start + at).load(Ordering::Relaxed);
        }
        Ok(())
    }

    /// Copies `from` into host memory, and touches no byte beside it.
    pub(crate) fn write(&self, call: Call, to: HostAddress, from: &[u8]) -> Result<(), ChipError> {
        self.check(call, to, from.len() as u64)?;
        let (first, rest) = from.split_at(words_from(to).min(from.len()));
        for (at, &byte) in first.iter().enumerate() {
            byte_at(to.0 as usize + at).store(byte, Ordering::Relaxed);
        }
        let start = to.0 as usize + first.len();
        let (words, tail) = rest.as_chunks::<WORD>();
        for (at, &word) in words.iter().enumerate() {
            word_at(start + at * WORD).store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        let start = start + words.len() * WORD;
        for (at, &byte) in tail.iter().enumerate() {
            byte_at(start + at).store(byte, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Bytes up to the next word boundary.
fn words_from(address: HostAddress) -> usize {
    (address.0.next_multiple_of(WORD as u64) - address.0) as usize
}

/// The byte at an address that [`HostMemory::check`] has let through.
fn byte_at<'a>(address: usize) -> &'a AtomicU8 {
    // SAFETY: the address passed `check`, so it lies in a range for which the maker of the `HostMemory` promised
    // readable and writable memory and no conflicting reference; a byte is always aligned. The reference is used for one
    // access and does not outlive the copy.
    unsafe { AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
}

/// The word at an address that [`HostMemory::check`] has let through.
fn word_at<'a>(address: usize) -> &'a AtomicU64 {
    // SAFETY: as `byte_at` for all of its eight bytes; both callers start at a multiple of eight and go in steps of
    // eight.
    unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> HostMemory {
        // SAFETY: the tests below hand over addresses of live local memory only, and read it back only afterwards.
        unsafe { HostMemory::whole_process() }
    }

    #[test]
    fn copies_of_every_alignment_and_length_touch_their_bytes_alone() {
        let memory = everything();
        for offset in 0..9 {
            for length in 0..40 {
                let mut host = [0xaa_u8; 64];
                let address = HostAddress((&raw mut host).expose_provenance() as u64 + offset);
                let data: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
                memory.write(Call::CopyFrom, address, &data).unwrap();
                let mut back = vec![0; length];
                memory.read(Call::CopyTo, address, &mut back).unwrap();
                assert_eq!(back, data);
                let at = offset as usize;
                assert!(host[..at].iter().chain(&host[at + length..]).all(|&byte| byte == 0xaa));
                assert_eq!(host[at..at + length], data);
            }
        }
    }

    #[test]
    fn only_the_given_ranges_are_touched() {
        // SAFETY: nothing is read or written, only checked.
        let memory = unsafe { HostMemory::ranges([0x3000..0x4000, 0x1000..0x2000, 0x2000..0x2800]) };
        let check = |address, bytes| memory.check(Call::Prepare, HostAddress(address), bytes).is_ok();
        assert!(check(0x1000, 0x1800) && check(0x3fff, 1) && check(0x9000, 0));
        for (address, bytes) in [(0xfff, 1), (0x27ff, 2), (0x2fff, 1), (0x3000, 0x1001), (0x3000, u64::MAX), (0, 1)] {
            assert!(!check(address, bytes), "{address:#x} {bytes:#x}");
        }
        assert!(HostMemory::none().check(Call::Prepare, HostAddress(0x1000), 1).is_err());
    }

    #[test]
    fn a_device_address_is_no_host_memory() {
        let address = HostAddress(crate::DEVICE_BASE.0);
        let refused = ChipError::NotHostMemory { call: Call::Prepare, address, bytes: 4 };
        assert_eq!(everything().check(Call::Prepare, address, 4), Err(refused));
    }
}
