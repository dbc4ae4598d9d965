//! Shared memory: one named memfd per region, sized once, sealed, mapped before the forks.
#![allow(unsafe_code)]

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use super::inventory::{self, Descriptor};
use crate::Error;

/// Which processes of the tree keep a region mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// Every process, at the same address: tensors (P-11).
    Tree,
    /// The process that made it and the children that are given it; any other child unmaps it before user code (P-31).
    Given,
    /// As `Given`; the process that made it also keeps the descriptor, by which other processes of the user can look at it.
    Shown,
}

/// A piece of shared memory. Unmapped on drop; gives its pages back when the last process has unmapped it.
///
/// It has no name that another process could open: only a fork shares it.
#[derive(Debug)]
pub struct Region {
    name: String,
    mapping: Mapping,
    sharing: Sharing,
    /// Unless it is only given: to ask how much of it is committed, or for whoever looks at it.
    fd: Option<Descriptor>,
}

impl Region {
    /// Maps `bytes` zero bytes, rounded up to whole pages, readable and writable. Pages are committed by first touch.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] where RLIMIT_FSIZE or RLIMIT_AS is in the way, [`Error::System`] for everything else.
    pub fn new(name: &str, bytes: usize, sharing: Sharing) -> Result<Self, Error> {
        let (fd, len) = sized_memfd(name, bytes)?;
        seal(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL, name)?;
        // Under the lock: a fork sees a private mapping together with its entry.
        let mut inventory = inventory::lock();
        let mapping = Mapping::of(fd.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE, name)?;
        if sharing != Sharing::Tree {
            inventory.add_mapping(mapping.start(), len);
        }
        let fd = (sharing != Sharing::Given).then(|| inventory.adopt(fd));
        Ok(Self { name: name.to_owned(), mapping, sharing, fd })
    }

    /// The name that messages and `/proc/<pid>/maps` show.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first byte; aligned to a page.
    #[must_use]
    pub const fn base(&self) -> NonNull<u8> {
        self.mapping.base
    }

    /// The address of the first byte, the same in every process of the tree.
    #[must_use]
    pub fn start(&self) -> usize {
        self.mapping.start()
    }

    /// Bytes mapped: what was asked for, rounded up to whole pages.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.mapping.len
    }

    /// Always false: an empty region is refused.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The descriptor, where one is kept, in the process that made the region.
    #[must_use]
    pub fn descriptor(&self) -> Option<RawFd> {
        self.fd.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Gives the whole pages inside `range` back to the kernel, in every process at once; they read as zero afterwards.
    ///
    /// # Errors
    /// [`Error::OutOfRegion`] if the range leaves the region.
    pub fn punch(&self, range: Range<usize>) -> Result<(), Error> {
        self.check(&range)?;
        let page = rustix::param::page_size();
        let (start, end) = (range.start.next_multiple_of(page), range.end - range.end % page);
        if start >= end {
            return Ok(());
        }
        // SAFETY: `start` is at most the length of the mapping, which `check` compared.
        let from = unsafe { self.mapping.base.add(start) };
        // SAFETY: the pages lie inside this mapping of a memfd, and every access to them goes through atomics or raw
        // pointers that expect other processes to change the bytes at any time.
        unsafe { rustix::mm::madvise(from.as_ptr().cast(), end - start, Advice::LinuxRemove) }.map_err(|errno| {
            Error::system("madvise(MADV_REMOVE)", format!("giving pages of {} back", self.name), errno)
        })
    }

    /// Commits the pages of `range` now, so that a lack of memory is an error here and not a signal later (P-33).
    ///
    /// # Errors
    /// [`Error::OutOfRegion`], or [`Error::System`] where the memory is not there.
    pub fn populate(&self, range: Range<usize>) -> Result<(), Error> {
        self.check(&range)?;
        let page = rustix::param::page_size();
        let start = range.start - range.start % page;
        let len = (range.end - start).next_multiple_of(page);
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: `start` is at most the length of the mapping, which `check` compared.
        let from = unsafe { self.mapping.base.add(start) };
        // SAFETY: the pages lie inside this mapping; populating changes no byte of them.
        match unsafe { rustix::mm::madvise(from.as_ptr().cast(), len, Advice::LinuxPopulateWrite) } {
            Ok(()) => Ok(()),
            // Kernels before 5.14 do not know the advice.
            Err(Errno::INVAL) => {
                (0..len).step_by(page).for_each(|at| self.touch(start + at));
                Ok(())
            }
            Err(errno) => Err(Error::advised(
                "madvise(MADV_POPULATE_WRITE)",
                format!("committing {len} bytes of {}", self.name),
                errno,
                "configure smaller regions or raise the memory limit of the control group",
            )),
        }
    }

    /// Bytes of this region that are backed by memory now. A region that is not the whole tree's is small and counts whole.
    ///
    /// Asked in the process that made the region; a child has closed the descriptor that tells.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel refuses to say.
    pub fn committed_bytes(&self) -> Result<u64, Error> {
        let Some(fd) = &self.fd else { return Ok(self.mapping.len as u64) };
        let stat =
            rustix::fs::fstat(fd).map_err(|errno| Error::system("fstat", format!("measuring {}", self.name), errno))?;
        // The unit is 512 bytes, whatever the size of a block.
        Ok(stat.st_blocks.unsigned_abs() * 512)
    }

    fn check(&self, range: &Range<usize>) -> Result<(), Error> {
        if range.start <= range.end && range.end <= self.mapping.len {
            return Ok(());
        }
        Err(Error::OutOfRegion { what: self.name.clone(), start: range.start, end: range.end, len: self.mapping.len })
    }

    /// Writes a page without changing it.
    fn touch(&self, at: usize) {
        // SAFETY: callers pass offsets that `check` found inside the mapping.
        let byte = unsafe { self.mapping.base.add(at) };
        // SAFETY: the byte is mapped, and all access to shared memory while it is mapped is atomic or raw.
        let byte = unsafe { AtomicU8::from_ptr(byte.as_ptr()) };
        // Not an addition of zero: the compiler may turn that into a read. A byte that is not zero was written before.
        let _ = byte.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let mut inventory = inventory::lock();
        if self.sharing != Sharing::Tree {
            inventory.remove_mapping(self.mapping.start());
        }
        // SAFETY: this value owned the mapping, and whoever took addresses out of it promised to be done with them.
        unsafe { self.mapping.unmap() };
    }
}

// SAFETY: the region owns its mapping, which is tied to no thread.
unsafe impl Send for Region {}
// SAFETY: the methods that take `&self` touch the bytes only through atomics and the kernel.
unsafe impl Sync for Region {}

/// An address range of this process that holds a memfd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mapping {
    pub(super) base: NonNull<u8>,
    pub(super) len: usize,
}

impl Mapping {
    /// Maps the whole memfd, shared.
    pub(super) fn of(fd: BorrowedFd<'_>, len: usize, access: ProtFlags, name: &str) -> Result<Self, Error> {
        // SAFETY: without MAP_FIXED the kernel picks addresses that nothing uses.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, access, MapFlags::SHARED, fd, 0) };
        match base.map(|base| NonNull::new(base.cast::<u8>())) {
            Ok(Some(base)) => Ok(Self { base, len }),
            Ok(None) => Err(Error::system("mmap", format!("mapping {name}: address 0"), Errno::FAULT)),
            Err(Errno::NOMEM) if getrlimit(Resource::As).current.is_some() => Err(Error::MemoryLimit {
                what: name.to_owned(),
                needed: len as u64,
                setting: "RLIMIT_AS (ulimit -v), the address space of the whole process,",
                limit: getrlimit(Resource::As).current.unwrap_or(u64::MAX),
            }),
            Err(errno) => Err(Error::system("mmap", format!("mapping {name}, {len} bytes"), errno)),
        }
    }

    pub(super) fn start(&self) -> usize {
        self.base.as_ptr().addr()
    }

    /// # Safety
    /// Nothing uses an address of the mapping from here on.
    pub(super) unsafe fn unmap(self) {
        // SAFETY: the range is a mapping of its own, and the caller promises that nobody uses it any more.
        let done = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        // It fails only for a range that is no mapping, or where splitting one needs a mapping too many; never here.
        debug_assert_eq!(done, Ok(()), "unmapping a whole mapping");
    }
}

/// Opens a memfd of `bytes` bytes, rounded up to whole pages; returns it and that size.
pub(super) fn sized_memfd(name: &str, bytes: usize) -> Result<(OwnedFd, usize), Error> {
    let page = rustix::param::page_size();
    let rounded = bytes.checked_next_multiple_of(page).filter(|&len| 0 < len && len <= isize::MAX as usize);
    let Some(len) = rounded else {
        return Err(Error::system("memfd_create", format!("{name} cannot have {bytes} bytes"), Errno::INVAL));
    };
    // Growing a file past this limit raises SIGXFSZ, so look first.
    if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|&limit| (len as u64) > limit) {
        return Err(Error::MemoryLimit {
            what: name.to_owned(),
            needed: len as u64,
            setting: "RLIMIT_FSIZE (ulimit -f)",
            limit,
        });
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let shown = shown_name(name);
    let fd = match rustix::fs::memfd_create(&*shown, flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the flag.
        Err(Errno::INVAL) => rustix::fs::memfd_create(&*shown, flags),
        other => other,
    };
    let fd = fd.map_err(|errno| Error::system("memfd_create", format!("making {name}"), errno))?;
    rustix::fs::ftruncate(&fd, len as u64)
        .map_err(|errno| Error::system("ftruncate", format!("sizing {name} to {len} bytes"), errno))?;
    Ok((fd, len))
}

/// As much of a name as the kernel takes of a file: users name their own kinds of children as they like.
pub(super) fn shown_name(name: &str) -> String {
    const MOST: usize = 200;
    let end = name.floor_char_boundary(MOST);
    name[..end].replace('\0', "?")
}

pub(super) fn seal(fd: &OwnedFd, seals: SealFlags, name: &str) -> Result<(), Error> {
    rustix::fs::fcntl_add_seals(fd, seals)
        .map_err(|errno| Error::system("fcntl(F_ADD_SEALS)", format!("sealing {name}"), errno))
}

/// Unmaps what a child was not given.
///
/// # Safety
/// The range is a whole mapping that [`inventory`] listed, and this process will not use it.
pub(crate) unsafe fn unmap_foreign(start: usize, len: usize) {
    let base = ptr::without_provenance_mut::<libc::c_void>(start);
    // SAFETY: as promised by the caller.
    let done = unsafe { rustix::mm::munmap(base, len) };
    debug_assert_eq!(done, Ok(()), "unmapping a whole mapping");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::words::MappedWords;
    use laneway_core::mailbox::Words;

    fn region(pages: usize) -> Region {
        Region::new("test", pages * rustix::param::page_size(), Sharing::Tree).unwrap()
    }

    /// P-33
    #[test]
    fn pages_are_committed_by_touch_or_populate_and_given_back_by_punch() {
        let page = rustix::param::page_size();
        let region = region(8);
        assert_eq!(region.committed_bytes(), Ok(0));
        region.touch(3 * page);
        assert_eq!(region.committed_bytes(), Ok(page as u64));
        region.populate(page..5 * page).unwrap();
        assert_eq!(region.committed_bytes(), Ok(4 * page as u64));
        // Only whole pages inside the range go.
        region.punch(page + 1..5 * page).unwrap();
        assert_eq!(region.committed_bytes(), Ok(page as u64));
    }

    #[test]
    fn punched_bytes_read_as_zero() {
        let page = rustix::param::page_size();
        let region = region(2);
        // SAFETY: the region outlives the words.
        let words = unsafe { MappedWords::new(&region) };
        words.write(page, 7);
        words.write(0, 9);
        region.punch(page..2 * page).unwrap();
        assert_eq!((words.read(0), words.read(page)), (9, 0));
    }

    #[test]
    fn a_range_outside_the_region_is_refused_with_both_sizes() {
        let region = region(1);
        let len = region.len();
        let error = region.punch(0..len + 1).unwrap_err();
        assert_eq!(error.to_string(), format!("bytes 0..{} do not lie inside test, which has {len} bytes", len + 1));
        assert!(region.populate(Range { start: 50, end: 49 }).is_err());
    }

    #[test]
    fn sizes_that_no_address_space_holds_are_errors() {
        for bytes in [0, usize::MAX, isize::MAX as usize, 1 << 60] {
            let error = Region::new("huge", bytes, Sharing::Tree).unwrap_err();
            assert!(error.to_string().contains("huge"), "{error}");
        }
    }

    /// P-18
    #[test]
    fn a_private_region_is_a_named_memfd_and_keeps_no_descriptor() {
        let region = Region::new("laneway-test-name", 1, Sharing::Given).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.starts_with(&format!("{:x}-", region.start()))).unwrap();
        assert!(line.contains("rw-s") && line.contains("/memfd:laneway-test-name (deleted)"), "{line}");
        for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
            let target = std::fs::read_link(entry.unwrap().path()).unwrap_or_default();
            assert!(!target.to_string_lossy().contains("laneway-test-name"), "{target:?}");
        }
    }
}
