//! The format of the log: records of one size, in chunks that each belong to one writer.
//!
//! Everything here is only ever for people to look at. A process of the tree can write what it likes into the log, so
//! whoever reads it takes no byte of it for granted.

use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Bytes of a record and of a chunk's header: one cache line.
pub(super) const RECORD_BYTES: usize = 64;

/// Bytes of a chunk: one page.
pub(super) const CHUNK_BYTES: usize = 4096;

/// Bytes of a name; longer ones are cut.
pub(super) const NAME_BYTES: usize = 40;

/// What a record tells. The fields that each uses are those of [`Record`]; all others are 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub(crate) enum Kind {
    /// A task was submitted: run, slot, serial, digest; `time` is when the submit began, `value` how long it took in
    /// nanoseconds, `extra` how many members it has.
    Submitted = 1,
    /// A dispatch was published: run, dispatch, slot, serial, digest, `extra` is the member; `detail` 1: staged.
    Dispatched,
    /// The child holds a validated copy: run, dispatch.
    Staged,
    /// A staged dispatch may run: run, dispatch.
    Activated,
    /// The device accepted the launch: run, dispatch.
    Accepted,
    /// A dispatch is over: run, dispatch; `detail` is an [`Ending`].
    Completed,
    /// A control was published; `value` is the command.
    ControlSent,
    /// A control is over; `detail` 1: with success.
    ControlEnded,
    /// A run was begun.
    RunBegun,
    /// Tasks of the run are handed out from now on.
    RunExecuting,
    /// The graph of the run is complete; `detail` 1: because its callback failed.
    RunClosed,
    /// The run is terminal; `detail` 1: it failed.
    RunEnded,
    /// A child was forked; `value` is its process.
    ChildStarted,
    /// A child is ready.
    ChildReady,
    /// A child ended; `detail` is a [`Leaving`], `value` the status or the signal.
    ChildExited,
    /// A child is given no work any more.
    ChildPoisoned,
    /// What a digest is called: the name takes the place of everything behind the digest.
    Name,
    /// In a child: work on a task began: run, dispatch, digest. On a chip it is being prepared.
    TaskBegun,
    /// The run is prepared.
    Prepared,
    /// The launch began.
    LaunchBegun,
    /// The device has the run.
    Launched,
    /// The device accepted it.
    LaunchAccepted,
    /// The device is done with it; `detail` is an [`Ending`].
    ExecutionEnded,
    /// The run is being ended.
    FinaliseBegun,
    /// The task is over in the child; `detail` is an [`Ending`].
    TaskEnded,
    /// In a child: a control came; `value` is the command.
    ControlBegun,
    /// It was served; `detail` 1: with success.
    ControlServed,
    /// The child serves its mailbox from now on.
    Serving,
}

impl Kind {
    const ALL: [Self; 28] = [
        Self::Submitted,
        Self::Dispatched,
        Self::Staged,
        Self::Activated,
        Self::Accepted,
        Self::Completed,
        Self::ControlSent,
        Self::ControlEnded,
        Self::RunBegun,
        Self::RunExecuting,
        Self::RunClosed,
        Self::RunEnded,
        Self::ChildStarted,
        Self::ChildReady,
        Self::ChildExited,
        Self::ChildPoisoned,
        Self::Name,
        Self::TaskBegun,
        Self::Prepared,
        Self::LaunchBegun,
        Self::Launched,
        Self::LaunchAccepted,
        Self::ExecutionEnded,
        Self::FinaliseBegun,
        Self::TaskEnded,
        Self::ControlBegun,
        Self::ControlServed,
        Self::Serving,
    ];

    fn of(raw: u32) -> Option<Self> {
        Self::ALL.get((raw as usize).checked_sub(1)?).copied()
    }
}

/// How a task or a dispatch ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Ending {
    Success,
    TaskFailure,
    EndpointFailure,
    Skipped,
    /// A preparation that must be made again later.
    Deferred,
}

impl Ending {
    pub(crate) fn of(raw: u8) -> &'static str {
        match raw {
            0 => "completed",
            1 => "failed",
            2 => "endpoint failed",
            3 => "skipped",
            4 => "deferred",
            _ => "unknown",
        }
    }
}

/// How a child left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Leaving {
    Exited,
    Signalled,
    Vanished,
    Thread,
}

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Record {
    /// The number of a [`Kind`]. Stored last: a record whose kind is 0 is not there yet.
    pub(crate) raw_kind: u32,
    pub(crate) endpoint: u16,
    pub(crate) frame: u8,
    pub(crate) detail: u8,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub(crate) time: u64,
    /// The first bytes of a callable's digest.
    pub(crate) digest: u64,
    pub(crate) run: u64,
    pub(crate) dispatch: u64,
    pub(crate) slot: u32,
    pub(crate) serial: u32,
    pub(crate) value: u64,
    pub(crate) extra: u64,
}

const_assert_eq!(size_of::<Record>(), RECORD_BYTES);
const_assert_eq!(std::mem::offset_of!(Record, run), RECORD_BYTES - NAME_BYTES);

impl Record {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { raw_kind: kind as u32, ..Self::new_zeroed() }
    }

    /// The record that tells what a digest is called.
    pub(crate) fn name(digest: u64, name: &str) -> Self {
        let mut record = Self { digest, ..Self::new(Kind::Name) };
        let text = cut(name, NAME_BYTES);
        record.as_mut_bytes()[RECORD_BYTES - NAME_BYTES..][..text.len()].copy_from_slice(text.as_bytes());
        record
    }

    /// What it tells; `None` for a number that stands for nothing.
    pub(crate) fn kind(&self) -> Option<Kind> {
        Kind::of(self.raw_kind)
    }

    /// The name in a record of that kind.
    pub(crate) fn text(&self) -> String {
        text(&self.as_bytes()[RECORD_BYTES - NAME_BYTES..])
    }
}

/// Which half of a mailbox a writer is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Side {
    /// Drives children.
    Parent,
    /// Serves a mailbox.
    Child,
}

/// Who writes: the first line of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Source {
    /// 1 while somebody owns the chunk.
    pub(super) claimed: u32,
    pub(crate) pid: i32,
    /// The process that drives this child; of a parent itself.
    pub(crate) parent: i32,
    pub(crate) level: u32,
    /// Of a child: which one of its parent.
    pub(crate) endpoint: u16,
    side: u8,
    padding: u8,
    /// The worker that drives, by its number in its process: workers may share one.
    pub(super) worker: u32,
    name: [u8; NAME_BYTES],
}

const_assert_eq!(size_of::<Source>(), RECORD_BYTES);

impl Source {
    /// The driving half of the worker number `worker` of its process, at `level`.
    pub(crate) fn parent(pid: i32, worker: u32, level: u32) -> Self {
        Self { claimed: 1, pid, parent: pid, worker, level, side: 0, ..Self::new_zeroed() }
    }

    /// A child of `parent` in the process `pid`.
    pub(crate) fn child(pid: i32, parent: &Self, endpoint: u16, name: &str) -> Self {
        let mut source = Self { pid, endpoint, side: 1, ..*parent };
        let text = cut(name, NAME_BYTES);
        source.name[..text.len()].copy_from_slice(text.as_bytes());
        source
    }

    pub(crate) fn side(&self) -> Side {
        if self.side == 0 { Side::Parent } else { Side::Child }
    }

    /// What users call the child.
    pub(crate) fn name(&self) -> String {
        text(&self.name)
    }
}

/// `text`, cut to at most `most` bytes between two characters.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Text up to its first NUL, whatever the bytes are.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The part of a digest that fits into a record.
pub(crate) fn prefix(digest: &laneway_core::wire::Digest) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = digest.0;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_what_its_number_says() {
        for kind in Kind::ALL {
            assert_eq!(Record::new(kind).kind(), Some(kind));
        }
        let last = Kind::ALL.len() as u32;
        assert_eq!([0, last + 1, u32::MAX].map(Kind::of), [None; 3]);
    }

    #[test]
    fn names_are_cut_between_characters() {
        let long = "é".repeat(40);
        assert_eq!(Record::name(1, &long).text(), "é".repeat(20));
        assert_eq!(Record::name(1, &format!("x{long}")).text(), format!("x{}", "é".repeat(19)));
        assert_eq!(Source::child(2, &Source::parent(1, 0, 3), 0, "chip 0").name(), "chip 0");
    }
}
