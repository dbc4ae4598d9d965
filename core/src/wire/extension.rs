//! The extension block (W-6): words of this project in the base frame, which a peer of another make leaves zero.
//!
//! Offsets are bytes from the start of the region. Words of the parent and of the child never share a 128-byte line,
//! and each word has one writer, except [`PARKED`]. A side may sleep without polling only if it saw the other side's
//! magic.

use static_assertions::{const_assert, const_assert_eq};

use super::frame::{EXTENSION, EXTENSION_BYTES};

/// u64: [`PARENT_MAGIC`], written by the parent before the fork.
pub const PARENT: usize = 61_440;
/// u32: CPU that the parent last ran on, plus 1; 0 = unknown. A hint, never believed.
pub const PARENT_CPU: usize = 61_448;
/// u32: 1 = the parent and its children at work are more than the CPUs. A hint, never believed.
pub const PARENT_CROWDED: usize = 61_452;

/// u64: [`CHILD_MAGIC`], written by the child before INIT_READY.
pub const CHILD: usize = 61_568;
/// u32: 1 = the child is about to sleep and wants a bell. The one word with two writers: child 0 → 1, parent 1 → 0 by
/// swap.
pub const PARKED: usize = 61_576;
/// u32: CPU that the child last ran on, plus 1; 0 = unknown. A hint, never believed.
pub const CHILD_CPU: usize = 61_580;

/// u64: what the child is doing, a [`ChildActivity`]. The status words are the child's and are only looked at; they
/// lie in a line of their own, so that counting a task does not take the parked word out of the parent's cache.
pub const STATUS_ACTIVITY: usize = 61_696;
/// u64: run of the task that it is at; 0 = none.
pub const STATUS_RUN: usize = 61_704;
/// u64: dispatch that it is at; 0 = none.
pub const STATUS_DISPATCH: usize = 61_712;
/// u64: tasks finished since it started, failed ones included.
pub const STATUS_TASKS: usize = 61_720;
/// u64: nanoseconds spent in tasks.
pub const STATUS_BUSY_NANOS: usize = 61_728;
/// u64: nanoseconds spent spinning for work.
pub const STATUS_SPIN_NANOS: usize = 61_736;
/// u64: when the activity began, nanoseconds of the monotonic clock.
pub const STATUS_SINCE_NANOS: usize = 61_744;

/// Words of the block that are accessed as 32 bits.
pub const NARROW_WORDS: [usize; 4] = [PARENT_CPU, PARENT_CROWDED, PARKED, CHILD_CPU];

/// What a parent of this make writes.
pub const PARENT_MAGIC: u64 = u64::from_le_bytes(*b"lanewayP");
/// What a child of this make writes.
pub const CHILD_MAGIC: u64 = u64::from_le_bytes(*b"lanewayC");

/// Bytes that two writers must not share.
const LINE: usize = 128;

const_assert_eq!(PARENT, EXTENSION);
const_assert_eq!(EXTENSION % LINE, 0);
const_assert_eq!(CHILD, EXTENSION + LINE);
const_assert_eq!(PARENT / LINE, (PARENT_CROWDED + 3) / LINE);
const_assert!(CHILD / LINE > PARENT_CROWDED / LINE);
const_assert_eq!(CHILD / LINE, (CHILD_CPU + 3) / LINE);
const_assert_eq!(PARKED % 8, 0);
const_assert!(STATUS_ACTIVITY / LINE > CHILD_CPU / LINE);
const_assert_eq!(STATUS_ACTIVITY / LINE, (STATUS_SINCE_NANOS + 7) / LINE);
const_assert!(STATUS_SINCE_NANOS + 8 <= EXTENSION + EXTENSION_BYTES);
const_assert!(PARENT_MAGIC != CHILD_MAGIC);

/// What a child says it is doing, for a person to look at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u64)]
pub enum ChildActivity {
    /// It has not said yet, or is of another make.
    Unknown = 0,
    /// Starting up.
    Starting = 1,
    /// Waiting for work, awake.
    Waiting = 2,
    /// Asleep in the kernel.
    Parked = 3,
    /// Validating or preparing a frame.
    Staging = 4,
    /// Running a task.
    Task = 5,
    /// Answering a control.
    Control = 6,
    /// Closing down.
    Stopping = 7,
}

impl ChildActivity {
    /// The activity that `raw` stands for; `Unknown` for anything else.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        match raw {
            1 => Self::Starting,
            2 => Self::Waiting,
            3 => Self::Parked,
            4 => Self::Staging,
            5 => Self::Task,
            6 => Self::Control,
            7 => Self::Stopping,
            _ => Self::Unknown,
        }
    }

    /// The value of the word.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn raw(self) -> u64 {
        self as u64
    }
}
