//! A process by descriptor: it can be signalled and awaited without fear that its number means another one by now (T-34).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use super::exit::Exit;
use super::inventory::Descriptor;
use crate::Error;

/// A descriptor that becomes readable when the process has ended.
#[derive(Debug)]
pub struct Pidfd(Descriptor);

impl Pidfd {
    /// Opens a process that cannot be reaped meanwhile: an own child, or this very process.
    ///
    /// # Errors
    /// [`Error::System`]; ESRCH means that it is gone, ENOSYS or EPERM that pidfds are missing or forbidden (P-32).
    pub fn open(pid: Pid) -> Result<Self, Error> {
        Descriptor::open(|| rustix::process::pidfd_open(pid, PidfdFlags::empty()))
            .map(Self)
            .map_err(|errno| Error::system("pidfd_open", format!("watching process {pid}"), errno))
    }

    /// Opens this process: what its children watch. Opened by the parent before the fork, since one that the child opens
    /// may already name somebody else (L-32).
    ///
    /// # Errors
    /// [`Error::System`] where pidfds are missing or forbidden (P-32).
    pub fn of_this_process() -> Result<Self, Error> {
        Self::open(rustix::process::getpid())
    }

    /// Sends a signal; `false` if the process was gone.
    pub fn signal(&self, signal: Signal) -> bool {
        // Besides ESRCH only a filter or another user's process could refuse, and neither is one of our children.
        rustix::process::pidfd_send_signal(&self.0, signal).is_ok()
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Pidfd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// What a look at a child found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// It runs, or is stopped.
    Alive,
    /// It ended.
    Ended(Exit),
}

/// Looks for the end of a child and leaves it a zombie, so that its number stays its own (P-16).
#[must_use]
pub fn look(child: WaitId<'_>) -> Seen {
    wait(child, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
}

/// Reaps a child if it has ended.
#[must_use]
pub fn reap(child: WaitId<'_>) -> Seen {
    wait(child, WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
}

fn wait(child: WaitId<'_>, options: WaitIdOptions) -> Seen {
    loop {
        return match rustix::process::waitid(child.clone(), options) {
            Ok(Some(status)) => Seen::Ended(Exit::of(&status)),
            Ok(None) => Seen::Alive,
            Err(Errno::INTR) => continue,
            // Not our child, or reaped already: counts as dead (L-25).
            Err(Errno::CHILD) => Seen::Ended(Exit::Unknown),
            // Says nothing about the child (L-25).
            Err(_) => Seen::Alive,
        };
    }
}
