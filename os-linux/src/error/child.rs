//! What an error says of a child: how its start failed, where it lives, what it shares and what it leaves behind.

use std::fmt;
use std::time::Duration;

use laneway_core::lane::{ExitCause, Label};

/// What a child did instead of becoming ready.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StartCause {
    /// It reported an error, in its own words.
    Failed(String),
    /// It ended.
    Died(ExitCause),
    /// It was not ready when the time was over.
    Late {
        /// The time.
        after: Duration,
    },
    /// It published a pipeline depth that does not exist.
    Depth {
        /// What it published.
        depth: u64,
    },
    /// It published a state that a starting child cannot be in.
    Illegal {
        /// The state word.
        found: i32,
    },
}

impl fmt::Display for StartCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) => f.write_str(text),
            Self::Died(cause) => cause.fmt(f),
            Self::Late { after } => {
                write!(f, "it was not ready after {after:?}; raise init_timeout if it needs longer")
            }
            Self::Depth { depth } => write!(f, "it published pipeline depth {depth}, legal are 1 and 2"),
            Self::Illegal { found } => write!(f, "it published state {found}, which a starting child cannot be in"),
        }
    }
}

/// Where a child lives, as messages show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the process with this id.
    Process(i32),
    /// In a thread of the process that is its parent (P-27).
    Thread,
}

impl Place {
    /// The process id, of a child that has a process of its own.
    #[must_use]
    pub const fn pid(self) -> Option<i32> {
        match self {
            Self::Process(pid) => Some(pid),
            Self::Thread => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(pid) => write!(f, "pid {pid}"),
            Self::Thread => f.write_str("a thread of this process"),
        }
    }
}

/// Two children that were given some CPUs both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuOverlap {
    /// One of them.
    pub one: Label,
    /// The other.
    pub other: Label,
    /// What both may run on, lowest first.
    pub cpus: Vec<usize>,
}

/// Device memory that nobody freed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leftover {
    /// Allocations.
    pub allocations: usize,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.allocations == 1 { "" } else { "s" };
        write!(f, "{} allocation{s} of {} bytes", self.allocations, self.bytes)
    }
}
