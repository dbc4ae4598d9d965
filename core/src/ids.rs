//! New types for every number that names something, so that no signature takes a bare integer.

use core::fmt;
use core::num::NonZeroU64;

macro_rules! nonzero_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(NonZeroU64);

        impl $name {
            /// The first value ever handed out.
            pub const FIRST: Self = Self(NonZeroU64::MIN);

            /// `None` for 0, which the wire uses for "no such thing".
            #[must_use]
            pub const fn new(raw: u64) -> Option<Self> {
                match NonZeroU64::new(raw) {
                    Some(raw) => Some(Self(raw)),
                    None => None,
                }
            }

            /// The number as it stands on the wire.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0.get()
            }

            /// The next value, or `None` at the end of the number space: ids never wrap.
            #[must_use]
            pub const fn next(self) -> Option<Self> {
                match self.0.checked_add(1) {
                    Some(raw) => Some(Self(raw)),
                    None => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

macro_rules! index_id {
    ($(#[$doc:meta])* $name:ident($raw:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub $raw);

        impl $name {
            /// The number as an index into a table.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

nonzero_id! {
    /// A run: one whole graph, from `begin_run` to its terminal state. Monotonic from 1 and never reused (E-1).
    RunId
}
nonzero_id! {
    /// One hand-over of one task to one endpoint, counted per endpoint from 1 (L-1).
    DispatchId
}
nonzero_id! {
    /// How often a pipeline slot has been leased (C-4).
    Generation
}

index_id! {
    /// A task record in the engine's window. Never leaves the engine and the lanes.
    TaskSlot(u32)
}
index_id! {
    /// The position of a member in its group; 0 for a task that is no group (E-24).
    GroupIndex(u16)
}
index_id! {
    /// The position of an endpoint in the driver's table; names a lane, not a worker.
    EndpointIndex(u16)
}
index_id! {
    /// A SUB child, 0..n−1; a number space of its own (E-39).
    SubId(u32)
}

/// A NEXT_LEVEL worker: chips, nested workers and remotes share one stable space (E-39). Never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkerId(i32);

impl WorkerId {
    /// `None` for a negative number.
    #[must_use]
    pub const fn new(raw: i32) -> Option<Self> {
        if raw < 0 { None } else { Some(Self(raw)) }
    }

    /// The number that users see.
    #[must_use]
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One of the at most two pipeline slots that a run's lease can name (C-4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PipelineSlot {
    /// Slot 0, task frame 0 of a two-frame endpoint.
    Zero,
    /// Slot 1, task frame 1 of a two-frame endpoint.
    One,
}

impl PipelineSlot {
    /// Both slots, lowest first.
    pub const ALL: [Self; 2] = [Self::Zero, Self::One];

    /// `None` for anything but 0 and 1.
    #[must_use]
    pub const fn new(raw: u64) -> Option<Self> {
        match raw {
            0 => Some(Self::Zero),
            1 => Some(Self::One),
            _ => None,
        }
    }

    /// The slot as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Zero => 0,
            Self::One => 1,
        }
    }
}
