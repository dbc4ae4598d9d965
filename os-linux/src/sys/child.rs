//! A child process as its owner sees it: signalled, noticed when it ends, reaped exactly once (P-16).

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::process::{Pid, Signal, WaitId};

use super::exit::Exit;
use super::group::{self, Group};
use super::pidfd::{Pidfd, Seen, look, reap};

/// A child process. Whoever owns this value is the only one who reaps it.
#[derive(Debug)]
pub struct ChildProcess {
    pid: Pid,
    /// Absent where pidfds are missing or forbidden (P-32), and for a child that was gone at once where the host ignores
    /// SIGCHLD: then only the pipes tell of a death, and looks do.
    pidfd: Option<Pidfd>,
    group: Group,
    life: Life,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    /// Not reaped: the number is its own, alive or zombie.
    Unreaped,
    /// Reaped; as PID 1 or subreaper this process may have to reap orphans of its group.
    Reaped { exit: Exit, orphans: bool },
}

impl ChildProcess {
    /// Takes over a child that was forked a moment ago by this process.
    #[must_use]
    pub fn adopt(pid: Pid, group: Group) -> Self {
        group.settle(Some(pid));
        let pidfd = Pidfd::open(pid).ok();
        Self { pid, pidfd, group, life: Life::Unreaped }
    }

    /// As [`ChildProcess::adopt`], using nothing that a kernel without pidfds lacks (P-32).
    #[must_use]
    pub fn adopt_without_pidfd(pid: Pid, group: Group) -> Self {
        group.settle(Some(pid));
        Self { pid, pidfd: None, group, life: Life::Unreaped }
    }

    /// Its number. After it was reaped it is a word in a message only.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// What becomes readable when it ends. Add it one-shot, and remove it before this value is dropped. Where there is none,
    /// the lifeline and the subtree pipe tell.
    #[must_use]
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// How it ended, once [`ChildProcess::poll`] has seen it.
    #[must_use]
    pub const fn exit(&self) -> Option<Exit> {
        match self.life {
            Life::Unreaped => None,
            Life::Reaped { exit, .. } => Some(exit),
        }
    }

    /// Looks whether it has ended; if so kills what is left of its group, then reaps it. Never blocks.
    ///
    /// Call it when the pidfd fires, and again while [`ChildProcess::has_orphans`].
    pub fn poll(&mut self) -> Option<Exit> {
        match self.life {
            Life::Unreaped => {
                let Seen::Ended(seen) = look(self.id()) else { return None };
                let ours = seen != Exit::Unknown;
                if ours && self.group == Group::Head {
                    // The zombie holds the number: this cannot hit anybody else's group.
                    group::kill(self.pid);
                }
                let exit = match reap(self.id()) {
                    Seen::Ended(Exit::Unknown) | Seen::Alive => seen,
                    Seen::Ended(exit) => exit,
                };
                let orphans = ours && self.group == Group::Head && !group::reap_orphans(self.pid);
                self.life = Life::Reaped { exit, orphans };
                Some(exit)
            }
            Life::Reaped { exit, orphans } => {
                if orphans {
                    self.life = Life::Reaped { exit, orphans: !group::reap_orphans(self.pid) };
                }
                Some(exit)
            }
        }
    }

    /// Whether processes that it left behind are now children of this one and still end (P-34).
    #[must_use]
    pub const fn has_orphans(&self) -> bool {
        matches!(self.life, Life::Reaped { orphans: true, .. })
    }

    /// Sends a signal to it alone; `false` if it has ended. A child that was reaped is never signalled (T-34).
    pub fn signal(&self, signal: Signal) -> bool {
        if self.life != Life::Unreaped {
            return false;
        }
        match &self.pidfd {
            Some(pidfd) => pidfd.signal(signal),
            // Without a pidfd make sure that nobody else reaped it.
            None => look(self.id()) == Seen::Alive && rustix::process::kill_process(self.pid, signal).is_ok(),
        }
    }

    /// Whether it is on its way out, as far as /proc tells.
    pub fn is_ending(&self) -> bool {
        /// Of the flags of a process: it gives back what it holds.
        const EXITING: u64 = 4;
        let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", self.pid())) else { return false };
        // The name in parentheses may hold anything; the state and five numbers stand before the flags.
        let flags = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(6));
        flags.and_then(|flags| flags.parse().ok()).is_some_and(|flags: u64| flags & EXITING != 0)
    }

    /// Kills it, and its group if it heads one; `false` if it has ended.
    pub fn kill(&self) -> bool {
        if self.life != Life::Unreaped {
            return false;
        }
        match self.group {
            // Its number is its own unless the host reaped it behind our back.
            Group::Head if look(self.id()) != Seen::Ended(Exit::Unknown) => group::kill(self.pid),
            _ => {}
        }
        // Also where it could not become the head of its group.
        self.signal(Signal::KILL)
    }

    fn id(&self) -> WaitId<'_> {
        match &self.pidfd {
            Some(pidfd) => WaitId::PidFd(pidfd.as_fd()),
            None => WaitId::Pid(self.pid),
        }
    }
}
