//! What the processes of a case tell each other.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::pipe;

use crate::expect::{Must, Verdict, Violation, holds};

/// How long anybody waits for another.
const LIMIT: Duration = Duration::from_secs(20);

/// A pipe that every process of the tree inherits: one side sends a byte, another waits for it.
#[derive(Debug)]
pub(crate) struct Signal {
    read: OwnedFd,
    write: OwnedFd,
}

impl Signal {
    /// Made before the worker's init.
    pub(crate) fn new() -> Result<Self, Violation> {
        let (read, write) = pipe().must("a pipe")?;
        Ok(Self { read, write })
    }

    /// Lets one waiter go on.
    pub(crate) fn send(&self) -> std::io::Result<()> {
        rustix::io::write(&self.write, &[1])?;
        Ok(())
    }

    /// Waits for one `send`.
    pub(crate) fn wait(&self) -> std::io::Result<()> {
        let limit = Timespec::try_from(LIMIT).unwrap_or_default();
        loop {
            match poll(&mut [PollFd::from_borrowed_fd(self.read.as_fd(), PollFlags::IN)], Some(&limit)) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) => return Err(std::io::ErrorKind::TimedOut.into()),
                answer => {
                    answer?;
                    rustix::io::read(&self.read, &mut [0])?;
                    return Ok(());
                }
            }
        }
    }
}

/// Spins until `true`.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Verdict {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        holds(what, Instant::now() < end, || "it never happened")?;
        std::thread::yield_now();
    }
    Ok(())
}
