//! The error of this crate.

use std::fmt;
use std::io;

/// An error number of the kernel; prints as the kernel's own words for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Errno(i32);

impl Errno {
    /// The number, as in `errno.h`.
    #[must_use]
    pub const fn raw(self) -> i32 {
        self.0
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self(errno.raw_os_error())
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

/// What can go wrong between this library and its user, its children and the operating system.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed for a reason that no other variant words better.
    #[error("{what}: {call} failed: {errno}{}{remedy}", if remedy.is_empty() { "" } else { "; " })]
    System {
        /// The call, as its manual page is named.
        call: &'static str,
        /// What was being done, for whom.
        what: String,
        /// The kernel's answer.
        errno: Errno,
        /// What to change; empty where nothing general can be said.
        remedy: &'static str,
    },
    /// A region of shared memory is larger than a limit of this process allows.
    #[error("{what} needs {needed} bytes, but {setting} allows {limit} bytes: raise it or configure a smaller size")]
    MemoryLimit {
        /// The region.
        what: String,
        /// Its size in bytes.
        needed: u64,
        /// The limit that is in the way.
        setting: &'static str,
        /// Its value in bytes.
        limit: u64,
    },
    /// A range that does not lie inside its region.
    #[error("bytes {start}..{end} do not lie inside {what}, which has {len} bytes")]
    OutOfRegion {
        /// The region.
        what: String,
        /// First byte asked for.
        start: usize,
        /// One past the last byte asked for.
        end: usize,
        /// Size of the region in bytes.
        len: usize,
    },
    /// Not enough descriptors can be opened (P-32).
    #[error(
        "{needed} descriptors are needed, but {open} are open and RLIMIT_NOFILE is {limit}: raise the limit (ulimit -n) or \
         configure fewer children"
    )]
    Descriptors {
        /// How many this worker is going to open.
        needed: u64,
        /// How many this process has open.
        open: u64,
        /// The soft limit.
        limit: u64,
    },
    /// The kernel is too old (P-32).
    #[error("Linux {found} is too old: version {} or newer is needed", crate::sys::limits::OLDEST_KERNEL)]
    Kernel {
        /// The release that the running kernel names.
        found: String,
    },
    /// A fork of a process in which other threads may hold locks (P-2).
    #[error(
        "this process has {count} other thread{}: a fork would copy whatever locks they hold; initialise before starting \
         threads, or allow it explicitly if they are known to hold none", if *count == 1 { "" } else { "s" }
    )]
    ForeignThreads {
        /// Threads that are neither the caller nor this library's.
        count: usize,
    },
    /// CPUs that this process may not use (P-21).
    #[error("CPUs {asked:?} cannot be used: this process may run on {allowed:?}")]
    Cpus {
        /// What was asked for.
        asked: Vec<usize>,
        /// What the affinity mask allows.
        allowed: Vec<usize>,
    },
}

impl Error {
    /// A failed system call with nothing general to advise.
    pub(crate) fn system(call: &'static str, what: impl Into<String>, errno: rustix::io::Errno) -> Self {
        Self::System { call, what: what.into(), errno: errno.into(), remedy: "" }
    }

    /// A failed system call and what to do about it.
    pub(crate) fn advised(
        call: &'static str,
        what: impl Into<String>,
        errno: rustix::io::Errno,
        remedy: &'static str,
    ) -> Self {
        Self::System { call, what: what.into(), errno: errno.into(), remedy }
    }
}
