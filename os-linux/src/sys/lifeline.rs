//! The lifeline: a pipe that hangs up when the parent is gone, whatever the child is doing (L-32).
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use libc::c_int;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::time::Timespec;

use super::inventory::Descriptor;
use super::{alarm, signals};
use crate::Error;

/// What an orphan may take to close its device: a child is gone within 100 ms of its parent (L-32).
const LAST_CALL: Duration = Duration::from_millis(50);

/// Not in libc; the same on every architecture but SPARC, MIPS and PA-RISC.
const F_SETSIG: c_int = 10;

/// What the end of the parent does to a child that cannot look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtHangUp {
    /// SIGKILL ends it at once: SUB children and nested workers. No foreign code can block or handle it, and one that is
    /// stopped goes too.
    Die,
    /// The child looks between polls and leaves in order, so that it can close its device; the signal is blocked but for
    /// calls that may block for long ([`Lifeline::mortal`]): chip children.
    Look,
}

impl AtHangUp {
    /// What a child of this manner keeps blocked.
    pub(crate) fn blocked(self) -> Option<c_int> {
        match self {
            Self::Die => None,
            Self::Look => Some(self.signal()),
        }
    }

    /// The signal that the kernel sends when the pipe hangs up. The default action of either ends the process.
    fn signal(self) -> c_int {
        match self {
            Self::Die => libc::SIGKILL,
            // A real-time signal that neither libc, nor a container's init, nor valgrind uses.
            Self::Look => libc::SIGRTMAX() - 5,
        }
    }
}

/// Both ends, before the fork.
#[derive(Debug)]
pub struct LifelinePipe {
    read: Descriptor,
    write: Descriptor,
}

impl LifelinePipe {
    /// A pipe for one child.
    ///
    /// # Errors
    /// [`Error::System`] where no descriptor is free.
    pub fn new() -> Result<Self, Error> {
        Descriptor::open_pair(|| rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK))
            .map(|(read, write)| Self { read, write })
            .map_err(|errno| Error::system("pipe2", "making a lifeline", errno))
    }

    /// What the parent keeps. Closes its copy of the other end.
    #[must_use]
    pub fn into_parent(self) -> LifelineHold {
        LifelineHold { write: self.write }
    }

    /// What the child keeps. Closes its copy of the other end: while it held that, the pipe could never hang up.
    #[must_use]
    pub fn into_child(self) -> Lifeline {
        Lifeline { read: self.read, at_hang_up: None }
    }

    /// Both, for a child that is a thread of this process (P-27). It looks; there is nothing to arm.
    #[must_use]
    pub fn split(self) -> (LifelineHold, Lifeline) {
        (LifelineHold { write: self.write }, Lifeline { read: self.read, at_hang_up: None })
    }

    /// The descriptor that the child is given.
    #[must_use]
    pub fn child_fd(&self) -> RawFd {
        self.read.as_raw_fd()
    }
}

/// The parent's end. Dropping it is what tells the child that its parent is gone.
///
/// It works the other way too: once the child is gone, it is ready with an error (the pipe has no reader), which is how a
/// death is noticed where pidfds are missing or forbidden (P-32). A process that the child forked by itself delays that.
/// A child lets go of the pipe a moment before it can be reaped, so look again, soon, if [`ChildProcess::poll`] says that
/// it lives.
///
/// [`ChildProcess::poll`]: super::child::ChildProcess::poll
#[derive(Debug)]
pub struct LifelineHold {
    write: Descriptor,
}

impl AsFd for LifelineHold {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.write.as_fd()
    }
}

/// The child's end.
#[derive(Debug)]
pub struct Lifeline {
    read: Descriptor,
    at_hang_up: Option<AtHangUp>,
}

impl Lifeline {
    /// From here on the kernel signals this process when the parent is gone. Says whether it is gone already: the signal
    /// tells of the moment of the hang-up only, so look once, here.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel refuses, which no kernel that is new enough does.
    pub fn arm(&mut self, at_hang_up: AtHangUp) -> Result<bool, Error> {
        if at_hang_up == AtHangUp::Look {
            signals::block(at_hang_up.signal());
        }
        let own = rustix::process::getpid().as_raw_nonzero().get();
        self.set("fcntl(F_SETSIG)", F_SETSIG, at_hang_up.signal())?;
        // The process, not a thread: it is the one that exists for as long as the child.
        self.set("fcntl(F_SETOWN)", libc::F_SETOWN, own)?;
        self.set("fcntl(F_SETFL)", libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK)?;
        self.at_hang_up = Some(at_hang_up);
        Ok(self.is_cut())
    }

    /// Whether the kernel signals this process when the parent is gone: a thread child's cannot be armed.
    pub(super) const fn is_armed(&self) -> bool {
        self.at_hang_up.is_some()
    }

    /// Whether the parent is gone. One system call that never blocks.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let mut look = [PollFd::new(&self.read, PollFlags::IN)];
        loop {
            match rustix::event::poll(&mut look, Some(&Timespec::default())) {
                Err(Errno::INTR) => {}
                // Nothing is ever written, so anything to see is the hang-up.
                answer => return answer.is_ok_and(|ready| ready > 0),
            }
        }
    }

    /// Runs a call that may block for long; if the parent goes meanwhile, or has gone, this process ends there.
    pub fn mortal<T>(&self, call: impl FnOnce() -> T) -> T {
        match self.at_hang_up {
            Some(look @ AtHangUp::Look) => {
                signals::unblock(look.signal());
                let done = call();
                signals::block(look.signal());
                done
            }
            Some(AtHangUp::Die) | None => call(),
        }
    }

    /// Runs the last call of this child. If its parent has gone, it has 50 ms left to close what it holds in order.
    pub fn last_call<T>(&self, call: impl FnOnce() -> T) -> T {
        // A thread child has no process of its own that could be ended.
        if self.at_hang_up.is_none() || !self.is_cut() {
            return self.mortal(call);
        }
        alarm::end_within(LAST_CALL);
        call()
    }

    fn set(&self, call: &'static str, command: c_int, value: c_int) -> Result<(), Error> {
        // SAFETY: the three commands used take an integer and change only this open pipe.
        if unsafe { libc::fcntl(self.read.as_raw_fd(), command, value) } == -1 {
            let errno = Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL);
            return Err(Error::system(call, "arming the lifeline", errno));
        }
        Ok(())
    }
}

impl AsFd for Lifeline {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L-32
    #[test]
    fn the_line_is_cut_only_when_the_last_holder_lets_go() {
        let (hold, child) = LifelinePipe::new().unwrap().split();
        let copy = rustix::io::dup(&hold).unwrap();
        drop(hold);
        assert!(!child.is_cut());
        drop(copy);
        assert!(child.is_cut());
    }
}
