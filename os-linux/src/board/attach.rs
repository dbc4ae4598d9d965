//! Looking at the workers of another process, without its help.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use laneway_core::wire::frame::REGION_BYTES;
use rustix::fs::{Dir, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

use super::layout::{self, Place};
use super::{Sight, look};
use crate::Error;
use crate::health::Health;
use crate::sys::clock;

/// Descriptors of the other process that are looked at, at most.
const MOST_DESCRIPTORS: usize = 1 << 17;

/// Boards of one process that are read, at most.
const MOST_BOARDS: usize = 1 << 10;

/// Children that all boards of one process tell of, at most: some more than a worker can have.
const MOST_CHILDREN: usize = 1 << 14;

/// Bytes of a board, at most.
const MOST_BYTES: usize = layout::bytes(MOST_CHILDREN);

/// What the workers in process `pid` and their children are doing: what [`Worker::health`](crate::Worker::health) says there. It
/// stops nothing, asks nothing of that process, and takes no word of it on trust. A process below it that is a nested worker has
/// workers of its own: pass its pid on.
///
/// The bytes that are committed are counted for the whole process.
///
/// # Errors
/// [`Error::Observe`] if there is no such process, or none that this one may look into (the same user, or root);
/// [`Error::ObserveVersion`] if its workers are of a version that this one does not know; no worker there is no error.
pub fn observe(pid: i32) -> Result<Vec<Health>, Error> {
    let refused = |why: Errno| Error::Observe { pid, why: std::io::Error::from(why).to_string() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // Of that very process: if it ends, every further look fails, whoever gets its number.
    let folder = rustix::fs::open(format!("/proc/{pid}/fd"), flags, Mode::empty()).map_err(refused)?;
    let mut boards = Vec::new();
    let mut committed = 0;
    // One memory may have several descriptors: a copy, or in this very process the one that a look has opened.
    let mut seen = HashSet::new();
    for entry in Dir::read_from(&folder).map_err(refused)?.take(MOST_DESCRIPTORS).flatten() {
        let Ok(link) = readlinkat(&folder, entry.file_name(), Vec::new()) else { continue };
        let Some(name) = link.to_bytes().strip_prefix(b"/memfd:").and_then(|name| name.strip_suffix(b" (deleted)"))
        else {
            continue;
        };
        let is_board = name == layout::NAME.as_bytes();
        if !is_board && !name.starts_with(b"laneway ring") && name != b"laneway buffers" {
            continue;
        }
        let Some(fd) = open(&folder, entry.file_name()) else { continue };
        let Ok(stat) = rustix::fs::fstat(&fd) else { continue };
        if !seen.insert((stat.st_dev, stat.st_ino)) {
            continue;
        }
        if !is_board {
            committed += stat.st_blocks.unsigned_abs() * 512;
        } else if boards.len() < MOST_BOARDS {
            boards.extend(Remote::of(fd));
        }
    }
    let (mut children_left, mut other_version) = (MOST_CHILDREN, None);
    let workers = boards.iter().filter_map(|board| {
        if board.whole(Place::MAGIC) != layout::MAGIC {
            return None;
        }
        let version = board.whole(Place::VERSION);
        if version != layout::VERSION {
            other_version = Some(version);
            return None;
        }
        let children = (board.whole(Place::CHILDREN) as usize).min(layout::capacity(board.bytes)).min(children_left);
        children_left -= children;
        let mailbox = |_, fd: u64| {
            let name = i32::try_from(fd).ok()?.to_string();
            Remote::of(open(&folder, name)?).filter(|mailbox| mailbox.bytes >= REGION_BYTES)
        };
        Some(Health { committed_bytes: committed, ..look(board, children, clock::now(), mailbox) })
    });
    let workers: Vec<_> = workers.collect();
    match other_version {
        Some(found) if workers.is_empty() => Err(Error::ObserveVersion { pid, found, known: layout::VERSION }),
        _ => Ok(workers),
    }
}

/// Shared memory of the other process. It is read through the kernel rather than mapped: whatever that process does with it, a word
/// that cannot be read is 0.
struct Remote {
    fd: OwnedFd,
    bytes: usize,
}

impl Remote {
    /// Only a memfd has seals; nothing else is read.
    fn of(fd: OwnedFd) -> Option<Self> {
        rustix::fs::fcntl_get_seals(&fd).ok()?;
        let bytes = usize::try_from(rustix::fs::fstat(&fd).ok()?.st_size).ok()?;
        Some(Self { fd, bytes: bytes.min(MOST_BYTES) })
    }

    fn read<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut word = [0; N];
        match rustix::io::pread(&self.fd, &mut word, at as u64) {
            Ok(read) if read == N => word,
            _ => [0; N],
        }
    }
}

impl Sight for Remote {
    fn half(&self, at: usize) -> i32 {
        i32::from_le_bytes(self.read(at))
    }

    fn whole(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.read(at))
    }
}

/// Opens what a descriptor of the other process refers to, without waiting for anybody.
fn open(folder: &OwnedFd, name: impl rustix::path::Arg) -> Option<OwnedFd> {
    openat(folder, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty()).ok()
}
