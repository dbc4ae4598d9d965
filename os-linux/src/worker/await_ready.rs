//! The barrier of `init`: all children together, in the order in which they become ready, under one deadline.

use std::time::Duration;

use laneway_core::lane::{self, Start};
use laneway_core::mailbox::{Text, Words};
use laneway_core::time::Instant;
use laneway_core::wire::FrameState;
use laneway_core::wire::frame as at;
use rustix::process::Signal;

use crate::Error;
use crate::error::StartCause;
use crate::progress::{BellWord, Ring};
use crate::supervisor::Child;
use crate::sys::clock;
use crate::sys::epoll::{Events, Poller, Token, Watch};
use crate::sys::eventfd::Bell;

/// For children that are to go because the start failed: shut down or terminated, then killed (P-6).
const RECLAIM_BUDGET: Duration = Duration::from_secs(10);

/// For killed children to be gone.
const KILL_BUDGET: Duration = Duration::from_secs(2);

/// Children on their way to being ready. Dropped before they all are, it reclaims every one of them.
pub(super) struct Nursery {
    children: Vec<Child>,
    /// The depth that each published; `None` for one that is still starting.
    depths: Vec<Option<u64>>,
}

const CANCEL: Token = Token(u64::MAX);

impl Nursery {
    pub(super) fn new(capacity: usize) -> Self {
        Self { children: Vec::with_capacity(capacity), depths: Vec::with_capacity(capacity) }
    }

    pub(super) fn add(&mut self, child: Child) {
        self.children.push(child);
        self.depths.push(None);
    }

    /// The children, in the order in which they were added.
    pub(super) fn children(&self) -> &[Child] {
        &self.children
    }

    /// Lets the children go: from here on somebody else is responsible for them.
    pub(super) fn graduate(mut self) -> Vec<Child> {
        std::mem::take(&mut self.children)
    }

    /// Waits until every child is ready; the depth that each published.
    pub(super) fn await_all(&mut self, bell: &BellWord, timeout: Duration, cancel: &Bell) -> Result<Vec<u64>, Error> {
        let deadline = clock::now().saturating_add(timeout);
        let set = Poller::new()?;
        set.add(cancel, CANCEL, Watch::Level)?;
        for (i, child) in (0..).zip(&self.children) {
            set.add(&child.link.waiter, Token(i), Watch::Edge)?;
            if let Some(pidfd) = child.process.pidfd() {
                set.add(pidfd, Token(i), Watch::OneShot)?;
            }
        }
        let mut events = Events::new();
        loop {
            // Announced before the look, so that a child that publishes after it rings.
            bell.announce(Ring::Waiter);
            for i in 0..self.children.len() {
                self.look(i)?;
            }
            if self.depths.iter().all(Option::is_some) {
                break;
            }
            let left = deadline.since(clock::now());
            if left.is_zero() {
                return Err(self.late(timeout));
            }
            set.wait(&mut events, Some(left))?;
            if events.iter().any(|ready| ready.token == CANCEL) {
                return Err(Error::InitCancelled);
            }
        }
        bell.awake();
        Ok(self.depths.iter().copied().flatten().collect())
    }

    /// What one child has published or become.
    fn look(&mut self, i: usize) -> Result<(), Error> {
        let child = &mut self.children[i];
        // Looked at before the mailbox: what a child published before it ended is then not missed.
        let ended = child.process.poll();
        if self.depths[i].is_none() {
            let mut text = Text::<{ at::MESSAGE_BYTES }>::new();
            match lane::poll_start(&child.link.words(), &mut text) {
                Start::Starting => {}
                Start::Ready { depth, .. } => self.depths[i] = Some(depth),
                Start::Failed => return Err(failed(child, StartCause::Failed(text.as_str().to_owned()))),
                Start::Illegal { found } => return Err(failed(child, StartCause::Illegal { found })),
            }
        }
        match ended {
            Some(exit) => Err(failed(child, StartCause::Died(child.cause(exit)))),
            None => Ok(()),
        }
    }

    fn late(&self, after: Duration) -> Error {
        let late = self.children.iter().zip(&self.depths).find(|(_, depth)| depth.is_none());
        match late {
            Some((child, _)) => failed(child, StartCause::Late { after }),
            None => Error::InitCancelled,
        }
    }

    /// Asks the ready ones to leave and terminates the others, kills what is left, and reaps all (P-6).
    fn reclaim(&mut self) {
        for (child, depth) in self.children.iter().zip(&self.depths) {
            if depth.is_some() {
                let words = child.link.words();
                words.store(at::SHUTDOWN, 1);
                words.store(at::STATE, FrameState::Shutdown.raw());
                child.link.wake.ring();
            } else {
                child.process.signal(Signal::TERM);
            }
        }
        if self.reap_until(clock::now().saturating_add(RECLAIM_BUDGET)) {
            return;
        }
        for child in &mut self.children {
            child.killed |= child.process.kill();
        }
        self.reap_until(clock::now().saturating_add(KILL_BUDGET));
    }

    /// Whether all were reaped by then.
    fn reap_until(&mut self, deadline: Instant) -> bool {
        let Ok(set) = Poller::new() else { return false };
        for (i, child) in (0..).zip(&self.children) {
            if let Some(pidfd) = child.process.pidfd() {
                // A pidfd that cannot be watched is looked at when another one fires, or at the end.
                let _ = set.add(pidfd, Token(i), Watch::OneShot);
            }
        }
        let mut events = Events::new();
        loop {
            let alive = self.children.iter_mut().filter_map(|c| c.process.poll().is_none().then_some(())).count();
            let left = deadline.since(clock::now());
            if alive == 0 || left.is_zero() || set.wait(&mut events, Some(left)).is_err() {
                return alive == 0;
            }
        }
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        if !self.children.is_empty() {
            self.reclaim();
        }
    }
}

fn failed(child: &Child, cause: StartCause) -> Error {
    Error::ChildStart { label: child.label, pid: child.process.pid(), cause }
}
