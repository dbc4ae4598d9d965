//! The layout of a status board. Everything is 64-bit words, little-endian; texts are padded with zeros.

use std::mem::offset_of;
use std::sync::atomic::{Ordering, fence};

use laneway_core::lane::{ExitCause, Frames};
use laneway_core::mailbox::{Text, Words};

use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::{Facts, Sight, label_word};
use crate::supervisor::Child;
use crate::sys::words::MappedWords;
use crate::worker::WorkerState;

/// What the memfd is called, and so how it is found under `/proc/<pid>/fd`.
pub(super) const NAME: &str = "laneway-status";

/// The first word of a board whose header and records are written.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"lanewayS");

/// Raised whenever a word changes its meaning.
pub(super) const VERSION: u64 = 1;

/// Bytes of the text that says why a child accepts nothing any more.
pub(super) const REASON_BYTES: usize = 384;

/// Names of callables that are kept; past that the oldest make room.
pub(super) const NAMES: usize = 128;

/// Bytes of a name that are kept.
pub(super) const NAME_BYTES: usize = 64;

/// Bytes of what kind of child it is.
const KIND_BYTES: usize = 32;

/// About the worker.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: u64,
    pub(super) version: u64,
    pub(super) pid: u64,
    pub(super) level: u64,
    pub(super) children: u64,
    /// When it became ready, nanoseconds of the monotonic clock, as every time here.
    pub(super) started: u64,
    pub(super) window: u64,
    pub(super) wake: u64,
    /// Changes: a [`WorkerState`].
    pub(super) state: u64,
    /// Changes: nanoseconds that drivers spun.
    pub(super) spun: u64,
    /// Changes: how many names were written; of the last [`NAMES`] of them each may be found behind the records.
    pub(super) named: u64,
    unused: [u64; 5],
}

/// About one child.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Record {
    pub(super) label: u64,
    pub(super) pid: u64,
    /// The parent's descriptor of the child's mailbox.
    pub(super) mailbox: u64,
    pub(super) frames: u64,
    pub(super) kind: [u8; KIND_BYTES],
    /// Changes: when something was last published to it.
    pub(super) sent: u64,
    /// Changes: a [`Standing`], and its value.
    standing: u64,
    value: u64,
    /// Changes: bytes of memory that a child which was killed could use; 0 where that explains nothing.
    memory_limit: u64,
    unused: [u64; 4],
    /// Why it accepts nothing any more.
    pub(super) reason: [u8; REASON_BYTES],
}

/// What a callable is called. The digest is zero while the name changes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Name {
    pub(super) digest: [u8; 32],
    pub(super) name: [u8; NAME_BYTES],
}

const_assert_eq!(size_of::<Header>(), 128);
const_assert_eq!(size_of::<Name>(), 96);
const_assert_eq!(size_of::<Record>(), 512);

/// Byte offsets.
pub(super) struct Place;

impl Place {
    pub(super) const HEADER: usize = 0;
    pub(super) const MAGIC: usize = offset_of!(Header, magic);
    pub(super) const VERSION: usize = offset_of!(Header, version);
    pub(super) const CHILDREN: usize = offset_of!(Header, children);
    pub(super) const STATE: usize = offset_of!(Header, state);
    pub(super) const SPUN: usize = offset_of!(Header, spun);
    pub(super) const NAMED: usize = offset_of!(Header, named);
    /// In a name.
    pub(super) const NAME: usize = offset_of!(Name, name);
    /// In a record.
    pub(super) const REASON: usize = offset_of!(Record, reason);
    const STANDING: usize = offset_of!(Record, standing);
    const VALUE: usize = offset_of!(Record, value);
    const MEMORY_LIMIT: usize = offset_of!(Record, memory_limit);
    const PID: usize = offset_of!(Record, pid);

    pub(super) const fn record(child: usize) -> usize {
        size_of::<Header>() + child * size_of::<Record>()
    }

    /// A name on the board of so many children.
    pub(super) const fn name(children: usize, slot: usize) -> usize {
        Self::record(children) + slot * size_of::<Name>()
    }

    pub(super) const fn sent(child: usize) -> usize {
        Self::record(child) + offset_of!(Record, sent)
    }
}

/// Bytes of a board.
pub(super) const fn bytes(children: usize) -> usize {
    Place::name(children, NAMES)
}

/// How many records fit into so many bytes.
pub(super) const fn capacity(bytes: usize) -> usize {
    bytes.saturating_sub(size_of::<Header>()) / size_of::<Record>()
}

impl Header {
    /// Without its magic, which is written last.
    pub(super) fn new(facts: Facts, children: usize, started: u64, state: WorkerState) -> Self {
        Self {
            magic: 0,
            version: VERSION,
            pid: std::process::id().into(),
            level: facts.level.into(),
            children: children as u64,
            started,
            window: facts.window,
            wake: facts.wake,
            state: state as u64,
            spun: 0,
            named: 0,
            unused: [0; 5],
        }
    }
}

impl Record {
    pub(super) fn new(child: &Child, frames: Frames) -> Self {
        Self {
            label: label_word(child.label),
            pid: child.host.place().pid().map_or_else(std::process::id, i32::unsigned_abs).into(),
            mailbox: child.link.mailbox.descriptor().map_or(u64::MAX, |fd| fd as u64),
            frames: frames.count() as u64,
            kind: text(child.kind),
            sent: 0,
            standing: 0,
            value: 0,
            memory_limit: 0,
            unused: [0; 4],
            reason: [0; REASON_BYTES],
        }
    }
}

/// Copies a value out, word by word; its words are not of one moment.
pub(super) fn read<T: FromBytes + IntoBytes + FromZeros>(sight: &impl Sight, at: usize) -> T {
    let mut value = T::new_zeroed();
    for (i, word) in value.as_mut_bytes().chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&sight.whole(at + 8 * i).to_le_bytes());
    }
    value
}

/// A text, cut on a character boundary with an ellipsis for the rest, and padded.
pub(super) fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut fitting = Text::<N>::new();
    fitting.push_str(text);
    let (mut bytes, text) = ([0; N], fitting.as_str().as_bytes());
    bytes[..text.len()].copy_from_slice(text);
    bytes
}

/// The text in padded bytes that anybody may have written.
pub(super) fn string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Where a child stands, as its parent knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    Serving,
    /// The text says why.
    Poisoned,
    Ended(ExitCause),
}

const EXITED: u64 = 2;
const SIGNALLED: u64 = 3;
const VANISHED: u64 = 4;
const THREAD_ENDED: u64 = 5;
const LET_GO: u64 = 6;

/// In the value of a signal: nobody here sent it.
const UNEXPECTED: u64 = 1 << 32;

impl Standing {
    /// After whatever it says more was written.
    pub(super) fn write(self, words: &MappedWords, record: usize) {
        let (standing, value) = match self {
            Self::Serving => (0, 0),
            Self::Poisoned => (1, 0),
            Self::Ended(ExitCause::Exited { status, .. }) => (EXITED, u64::from(status as u32)),
            Self::Ended(ExitCause::Signalled { signal, unexpected, memory_limit, .. }) => {
                words.write(record + Place::MEMORY_LIMIT, memory_limit.unwrap_or(0));
                (SIGNALLED, u64::from(signal as u32) | if unexpected { UNEXPECTED } else { 0 })
            }
            Self::Ended(ExitCause::ThreadEnded { status }) => (THREAD_ENDED, u64::from(status as u32)),
            Self::Ended(ExitCause::LetGo { .. }) => (LET_GO, 0),
            Self::Ended(_) => (VANISHED, 0),
        };
        words.write(record + Place::VALUE, value);
        words.fence();
        words.write(record + Place::STANDING, standing);
    }

    pub(super) fn read(sight: &impl Sight, record: usize) -> Self {
        let standing = sight.whole(record + Place::STANDING);
        fence(Ordering::Acquire);
        let value = sight.whole(record + Place::VALUE);
        let (pid, low) = (sight.whole(record + Place::PID) as i32, value as u32 as i32);
        match standing {
            0 => Self::Serving,
            1 => Self::Poisoned,
            EXITED => Self::Ended(ExitCause::Exited { pid, status: low }),
            SIGNALLED => {
                let (unexpected, limit) = (value & UNEXPECTED != 0, sight.whole(record + Place::MEMORY_LIMIT));
                let memory_limit = (limit > 0).then_some(limit);
                Self::Ended(ExitCause::Signalled { pid, signal: low, unexpected, memory_limit })
            }
            THREAD_ENDED => Self::Ended(ExitCause::ThreadEnded { status: low }),
            LET_GO => Self::Ended(ExitCause::LetGo { pid }),
            _ => Self::Ended(ExitCause::Vanished { pid }),
        }
    }
}
