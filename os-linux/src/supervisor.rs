//! The children as processes: who reaps them, and what their ends tell.

use std::os::fd::{AsFd, BorrowedFd};

use laneway_core::ids::EndpointIndex;
use laneway_core::lane::{ExitCause, Label};

use crate::error::{Error, ProcessId, StartCause};
use crate::link::Link;
use crate::progress::News;
use crate::sys::child::ChildProcess;
use crate::sys::epoll::{Poller, Token, Watch};
use crate::sys::exit::Exit;
use crate::sys::farewell::Leaving;
use crate::sys::lifeline::LifelineHold;
use crate::sys::subtree::SubtreeWatch;

/// One child of this worker.
pub(crate) struct Child {
    pub(crate) label: Label,
    /// What kind of child it is, in messages.
    pub(crate) kind: &'static str,
    pub(crate) process: ChildProcess,
    /// Dropping it tells the child that its parent is gone.
    pub(crate) lifeline: LifelineHold,
    pub(crate) subtree: SubtreeWatch,
    pub(crate) link: Link,
    /// Whether this worker sent it a SIGKILL.
    pub(crate) killed: bool,
    /// Whether its whole subtree is known to be gone.
    pub(crate) gone: bool,
    /// Whether something told of its end that it lets go of a moment before it can be reaped.
    pub(crate) suspect: bool,
}

/// What woke the background thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// Somebody asks for a round.
    Control,
    /// A callback may have been silent for too long.
    Takeover,
    /// A child published while nobody waits.
    Published,
    /// A child process ended.
    Exit(EndpointIndex),
    /// A subtree pipe hung up.
    Subtree(EndpointIndex),
}

impl Woken {
    const STRIDE: u64 = 4;

    pub(crate) fn token(self) -> Token {
        Token(match self {
            Self::Control => 0,
            Self::Takeover => 1,
            Self::Published => 2,
            Self::Exit(endpoint) => Self::STRIDE * (1 + u64::from(endpoint.0)),
            Self::Subtree(endpoint) => Self::STRIDE * (1 + u64::from(endpoint.0)) + 1,
        })
    }

    pub(crate) fn of(token: Token) -> Self {
        let endpoint = EndpointIndex((token.0 / Self::STRIDE).saturating_sub(1) as u16);
        match token.0 {
            0 => Self::Control,
            1 => Self::Takeover,
            2 | 3 => Self::Published,
            other if other % Self::STRIDE == 0 => Self::Exit(endpoint),
            _ => Self::Subtree(endpoint),
        }
    }
}

/// All children. The background thread alone reaps.
pub(crate) struct Supervisor {
    pub(crate) children: Vec<Child>,
}

impl Supervisor {
    /// Adds every child's bells, pidfd and subtree pipe to the background thread's wait set.
    pub(crate) fn watch(&self, set: &Poller) -> Result<(), Error> {
        for (endpoint, child) in self.endpoints() {
            set.add(&child.link.owner, Woken::Published.token(), Watch::Edge)?;
            set.add(&child.subtree, Woken::Subtree(endpoint).token(), Watch::OneShot)?;
            match child.process.pidfd() {
                Some(pidfd) => set.add(pidfd, Woken::Exit(endpoint).token(), Watch::OneShot)?,
                None => set.add(&child.lifeline, Woken::Exit(endpoint).token(), Watch::OneShot)?,
            }
        }
        Ok(())
    }

    /// Looks at one child, because something told of its end; what that tells, at most once each.
    pub(crate) fn look(&mut self, endpoint: EndpointIndex, mut tell: impl FnMut(News)) {
        let Some(child) = self.children.get_mut(endpoint.index()) else { return };
        let known = child.process.exit().is_some();
        // Asked again also after its end: as PID 1 or subreaper this process reaps what it left behind (P-34).
        let exit = child.process.poll();
        if let (false, Some(exit)) = (known, exit) {
            tell(News::Exited(endpoint, child.cause(exit)));
        }
        if !child.gone && exit.is_some() && child.subtree.is_gone() {
            child.gone = true;
            tell(News::SubtreeGone(endpoint));
        }
        child.suspect = exit.is_none() || (child.gone && child.process.has_orphans());
    }

    /// Looks again at children of which something told more than could be seen then. Says whether to come back soon.
    pub(crate) fn look_again(&mut self, mut tell: impl FnMut(News)) -> bool {
        for i in 0..self.children.len() {
            if self.children[i].suspect {
                self.look(EndpointIndex(i as u16), &mut tell);
            }
        }
        self.children.iter().any(|child| child.suspect)
    }

    /// Kills one child, with its group.
    pub(crate) fn kill(&mut self, endpoint: EndpointIndex) {
        if let Some(child) = self.children.get_mut(endpoint.index()) {
            child.killed |= child.process.kill();
        }
    }

    /// Kills every child that has not ended, with its group.
    pub(crate) fn kill_all(&mut self) {
        for child in &mut self.children {
            child.killed |= child.process.kill();
        }
    }

    /// Children that have not been reaped, as (what users call them, pid).
    pub(crate) fn survivors(&self) -> Vec<(Label, ProcessId)> {
        let alive = self.children.iter().filter(|child| child.process.exit().is_none());
        alive.map(|child| (child.label, ProcessId(child.process.pid()))).collect()
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = (EndpointIndex, &Child)> {
        (0..).map(EndpointIndex).zip(&self.children)
    }
}

impl Leaving for Child {
    fn is_gone(&mut self) -> bool {
        self.process.poll().is_some() && self.subtree.is_gone() && !self.process.has_orphans()
    }

    fn kill(&mut self) {
        self.killed |= self.process.kill();
    }

    fn watch(&self) -> Option<BorrowedFd<'_>> {
        // Once it was reaped its subtree is what is waited for; before, that pipe may hang up a moment too early.
        if self.process.exit().is_some() { Some(self.subtree.as_fd()) } else { self.process.pidfd() }
    }
}

impl Child {
    /// Why it did not become ready.
    pub(crate) fn start_error(&self, level: u32, cause: StartCause) -> Error {
        Error::ChildStart { level, label: self.label, kind: self.kind, pid: self.process.pid(), cause }
    }

    /// The end of this child in the words of the driver.
    pub(crate) fn cause(&self, exit: Exit) -> ExitCause {
        let pid = self.process.pid();
        match exit {
            Exit::Code(status) => ExitCause::Exited { pid, status },
            Exit::Signal { number, .. } => ExitCause::Signalled { pid, signal: number, unexpected: !self.killed },
            Exit::Unknown => ExitCause::Vanished { pid },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_was_made_of() {
        let ends = [EndpointIndex(0), EndpointIndex(1), EndpointIndex(u16::MAX - 1)];
        let all = [Woken::Control, Woken::Takeover, Woken::Published].into_iter();
        for woken in all.chain(ends.map(Woken::Exit)).chain(ends.map(Woken::Subtree)) {
            assert_eq!(Woken::of(woken.token()), woken);
        }
    }
}
