//! A page that the parent writes and its children can only read.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::fs::SealFlags;
use rustix::mm::{Advice, ProtFlags};

use super::inventory;
use super::region::{Mapping, seal, sized_memfd};
use super::words::MappedWords;
use crate::Error;

/// Two mappings of one page: a writable one that no fork copies, and one that children inherit and nobody can ever make
/// writable, because the memfd was sealed against future writes before it was mapped.
#[derive(Debug)]
pub struct ReadOnlyPage {
    writable: Mapping,
    readable: Mapping,
}

impl ReadOnlyPage {
    /// Maps a zeroed page.
    ///
    /// # Errors
    /// [`Error::System`] or [`Error::MemoryLimit`].
    pub fn new(name: &str) -> Result<Self, Error> {
        let (fd, len) = sized_memfd(name, 1)?;
        // Under the lock: a fork sees both mappings as they shall be, or neither.
        let mut inventory = inventory::lock();
        let writable = Mapping::of(fd.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE, name)?;
        match Self::seal_and_map(&fd, writable, name) {
            Ok(readable) => {
                inventory.add_mapping(readable.start(), len);
                Ok(Self { writable, readable })
            }
            Err(error) => {
                // SAFETY: nobody has seen the mapping yet.
                unsafe { writable.unmap() };
                Err(error)
            }
        }
    }

    fn seal_and_map(fd: &OwnedFd, writable: Mapping, name: &str) -> Result<Mapping, Error> {
        // SAFETY: the range is the mapping that was just made, and only children are affected.
        unsafe { rustix::mm::madvise(writable.base.as_ptr().cast(), writable.len, Advice::LinuxDontFork) }
            .map_err(|errno| Error::system("madvise(MADV_DONTFORK)", format!("making {name}"), errno))?;
        seal(fd, SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL, name)?;
        Mapping::of(fd.as_fd(), writable.len, ProtFlags::READ, name)
    }

    /// The words of the page for the process that made it.
    ///
    /// # Safety
    /// The page stays mapped for as long as the words or a copy of them are used, and they are used in the process that
    /// made the page alone: children do not inherit these addresses.
    #[must_use]
    pub unsafe fn writer(&self) -> MappedWords {
        // SAFETY: mapped, page-aligned, and reached by atomics alone; the caller keeps it mapped.
        unsafe { MappedWords::from_raw(self.writable.base, self.writable.len) }
    }

    /// The words of the page for everybody else.
    ///
    /// # Safety
    /// The page stays mapped for as long as the words or a copy of them are used. A child is given the page, or it
    /// unmaps it at entry.
    #[must_use]
    pub unsafe fn reader(&self) -> ReadOnlyWords {
        ReadOnlyWords { base: self.readable.base, len: self.readable.len }
    }

    /// The address that children know the page by, for the list of what a child is given.
    #[must_use]
    pub fn start(&self) -> usize {
        self.readable.start()
    }
}

impl Drop for ReadOnlyPage {
    fn drop(&mut self) {
        let mut inventory = inventory::lock();
        inventory.remove_mapping(self.readable.start());
        // SAFETY: this value owned the mapping; users of its words promised to be done with them.
        unsafe { self.readable.unmap() };
        // SAFETY: as above.
        unsafe { self.writable.unmap() };
    }
}

// SAFETY: the page owns its mappings, which are tied to no thread.
unsafe impl Send for ReadOnlyPage {}
// SAFETY: nothing that takes `&self` touches the bytes.
unsafe impl Sync for ReadOnlyPage {}

/// Word access to memory that this process cannot write.
#[derive(Clone, Copy, Debug)]
pub struct ReadOnlyWords {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: all access is atomic; the mapping is tied to no thread.
unsafe impl Send for ReadOnlyWords {}
// SAFETY: as above.
unsafe impl Sync for ReadOnlyWords {}

impl ReadOnlyWords {
    /// Reads a word with acquire order.
    ///
    /// # Panics
    /// If the offset is misaligned or outside the page.
    #[inline]
    #[must_use]
    pub fn load(&self, at: usize) -> i32 {
        let word = self.at(at, 4);
        // SAFETY: four mapped, aligned bytes that are read atomically alone; a plain load of that size is one instruction.
        unsafe { AtomicI32::from_ptr(word.cast()) }.load(Ordering::Acquire)
    }

    /// Reads a word with relaxed order.
    ///
    /// # Panics
    /// If the offset is misaligned or outside the page.
    #[inline]
    #[must_use]
    pub fn load_relaxed(&self, at: usize) -> i32 {
        let word = self.at(at, 4);
        // SAFETY: as in `load`.
        unsafe { AtomicI32::from_ptr(word.cast()) }.load(Ordering::Relaxed)
    }

    /// Reads a whole word of 8 bytes with relaxed order.
    ///
    /// # Panics
    /// If the offset is misaligned or outside the page.
    #[inline]
    #[must_use]
    pub fn read(&self, at: usize) -> u64 {
        let word = self.at(at, 8);
        // SAFETY: as in `load`, for eight bytes.
        unsafe { AtomicU64::from_ptr(word.cast()) }.load(Ordering::Relaxed)
    }

    #[inline]
    fn at(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(at.is_multiple_of(bytes) && at <= self.len - bytes, "no word of {bytes} bytes at offset {at}");
        // SAFETY: the offset was just compared with the length of the mapping.
        unsafe { self.base.as_ptr().add(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laneway_core::mailbox::Words;
    use rustix::mm::MprotectFlags;

    #[test]
    fn what_the_writer_stores_the_reader_sees() {
        let page = ReadOnlyPage::new("bell").unwrap();
        // SAFETY: the page outlives the words.
        let writer = unsafe { page.writer() };
        // SAFETY: as above.
        let reader = unsafe { page.reader() };
        writer.store(128, 3);
        writer.write(8, u64::MAX);
        assert_eq!((reader.load(128), reader.load_relaxed(132), reader.read(8)), (3, 0, u64::MAX));
    }

    #[test]
    fn the_inherited_mapping_cannot_be_made_writable() {
        let page = ReadOnlyPage::new("bell").unwrap();
        let (base, len) = (page.readable.base.as_ptr().cast(), page.readable.len);
        // SAFETY: the page is this test's own; the call is expected to change nothing.
        let answer = unsafe { rustix::mm::mprotect(base, len, MprotectFlags::READ | MprotectFlags::WRITE) };
        assert_eq!(answer, Err(rustix::io::Errno::ACCESS));
    }
}
