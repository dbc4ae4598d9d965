//! What this library made in this process that its children must not keep: descriptors and private mappings.
//!
//! A child closes exactly these descriptors (P-24) and unmaps exactly these mappings (P-31), those it was given aside.
//! Keeping one list for the whole process, rather than one per worker, is what makes that exact when a process has two
//! workers, or when a child becomes a parent itself. A fork holds the list's lock, so that a child finds it consistent.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io;

static INVENTORY: Mutex<Inventory> = Mutex::new(Inventory { descriptors: BTreeSet::new(), mappings: BTreeMap::new() });

/// The list behind the lock.
pub(super) struct Inventory {
    descriptors: BTreeSet<RawFd>,
    /// Start address → length.
    mappings: BTreeMap<usize, usize>,
}

/// Takes the lock. Nothing under it can panic half-way through a change, so a poisoned lock is as good as a clean one.
pub(super) fn lock() -> MutexGuard<'static, Inventory> {
    INVENTORY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inventory {
    pub(super) fn add_mapping(&mut self, start: usize, len: usize) {
        self.mappings.insert(start, len);
    }

    /// Lists a descriptor that was opened under this lock.
    pub(super) fn adopt(&mut self, fd: OwnedFd) -> Descriptor {
        let fd = above_the_streams(fd);
        self.descriptors.insert(fd.as_raw_fd());
        Descriptor(Some(fd))
    }

    pub(super) fn remove_mapping(&mut self, start: usize) {
        self.mappings.remove(&start);
    }
}

/// Moves a descriptor away from the numbers of the standard streams, which are free in a program that closed those: what is
/// printed would go into a mailbox or a tensor. Where no other number is free it stays.
fn above_the_streams(fd: OwnedFd) -> OwnedFd {
    const FIRST: RawFd = 3;
    match fd.as_raw_fd() {
        ..FIRST => io::fcntl_dupfd_cloexec(&fd, FIRST).unwrap_or(fd),
        _ => fd,
    }
}

/// An open descriptor that this library made. Close-on-exec; in a child it is closed unless the child was given it.
#[derive(Debug)]
pub struct Descriptor(Option<OwnedFd>);

impl Descriptor {
    /// Runs `open` and lists what it opened, in one step as seen by a fork.
    pub(super) fn open(open: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<Self> {
        let mut inventory = lock();
        Ok(inventory.adopt(open()?))
    }

    /// As [`Descriptor::open`] for calls that open two at once.
    pub(super) fn open_pair(open: impl FnOnce() -> io::Result<(OwnedFd, OwnedFd)>) -> io::Result<(Self, Self)> {
        let mut inventory = lock();
        let (one, two) = open()?;
        Ok((inventory.adopt(one), inventory.adopt(two)))
    }

    /// Leaves the descriptor open for the rest of this process and of all its descendants, whoever forks them.
    pub(super) fn keep_for_life(mut self) -> RawFd {
        let fd = self.as_raw_fd();
        // It stays open: nobody owns it from here on.
        self.0.take().map(IntoRawFd::into_raw_fd);
        lock().descriptors.remove(&fd);
        fd
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // `None` only inside `keep_for_life` and `drop`, which own the value.
        self.0.as_ref().expect("a descriptor is open until it is dropped").as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if let Some(fd) = self.0.take() {
            // Closed under the lock: the number may be handed out again, and listed again, the moment it is closed.
            let mut inventory = lock();
            inventory.descriptors.remove(&fd.as_raw_fd());
            drop(fd);
        }
    }
}

/// Forgets, in a child, everything but what it was given, and returns what is to be closed and what is to be unmapped, as
/// `(start, length)`.
pub(crate) fn disown(keep_descriptors: &[RawFd], keep_mappings: &[usize]) -> (Vec<RawFd>, Vec<(usize, usize)>) {
    let mut inventory = lock();
    let (keep, close) = inventory.descriptors.iter().partition::<BTreeSet<_>, _>(|fd| keep_descriptors.contains(fd));
    inventory.descriptors = keep;
    let (keep, unmap) =
        inventory.mappings.iter().partition::<BTreeMap<_, _>, _>(|(start, _)| keep_mappings.contains(start));
    inventory.mappings = keep;
    (close.into_iter().collect(), unmap.into_iter().collect())
}

/// How many descriptors of this library are open in this process.
#[must_use]
pub fn open_descriptors() -> usize {
    lock().descriptors.len()
}
