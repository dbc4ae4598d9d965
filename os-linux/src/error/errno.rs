//! What the kernel answers.

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
