//! The barrier of `init`: all children together, in the order in which they become ready, under one deadline.

use std::time::Duration;

use laneway_core::lane::{self, Start};
use laneway_core::mailbox::{LongText, Words};
use laneway_core::time::Instant;
use laneway_core::wire::FrameState;
use laneway_core::wire::frame as at;
use rustix::process::Signal;

use super::cancel::Cancel;
use crate::error::{Error, StartCause};
use crate::progress::{BellWord, Ring};
use crate::supervisor::Child;
use crate::sys::clock;
use crate::sys::epoll::{Events, Poller, Token, Watch};
use crate::sys::farewell::{Budget, Farewell};

/// For children that are to go because the start failed: shut down or terminated, then killed (P-6).
const RECLAIM_BUDGET: Duration = Duration::from_secs(10);

/// For killed children to be gone.
const KILL_BUDGET: Duration = Duration::from_secs(2);

/// Children on their way to being ready. Dropped before they all are, it reclaims every one of them.
pub(super) struct Nursery {
    level: u32,
    children: Vec<Child>,
    /// The depth that each published; `None` for one that is still starting.
    depths: Vec<Option<u64>>,
}

/// Where a death has to be looked for, this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);

const CANCEL: Token = Token(u64::MAX);

impl Nursery {
    pub(super) fn new(level: u32, capacity: usize) -> Self {
        Self { level, children: Vec::with_capacity(capacity), depths: Vec::with_capacity(capacity) }
    }

    /// Children that are ready and have to go all the same.
    pub(super) fn of_ready(level: u32, children: Vec<Child>) -> Self {
        let depths = vec![Some(0); children.len()];
        Self { level, children, depths }
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

    /// Waits until every child is ready; the depth that each published. `after` is what the deadline was made of.
    pub(super) fn await_all(
        &mut self,
        bell: &BellWord,
        deadline: Instant,
        after: Duration,
        cancel: &Cancel,
    ) -> Result<Vec<u64>, Error> {
        let set = Poller::new()?;
        set.add(&cancel.bell, CANCEL, Watch::Level)?;
        for (i, child) in (0..).zip(&self.children) {
            set.add(&child.link.waiter, Token(i), Watch::Edge)?;
            if let Some(pidfd) = child.process.pidfd() {
                set.add(pidfd, Token(i), Watch::OneShot)?;
            }
        }
        // A death that no descriptor tells of is looked for (L-25).
        let longest = match self.children.iter().all(|child| child.process.pidfd().is_some()) {
            true => Duration::MAX,
            false => LOOK_EVERY,
        };
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
            if cancel.is_asked() {
                return Err(Error::InitCancelled);
            }
            let left = deadline.since(clock::now());
            if left.is_zero() {
                return Err(self.late(after));
            }
            set.wait(&mut events, Some(left.min(longest)))?;
        }
        bell.awake();
        Ok(self.depths.iter().copied().flatten().collect())
    }

    /// What one child has published or become.
    fn look(&mut self, i: usize) -> Result<(), Error> {
        let level = self.level;
        let child = &mut self.children[i];
        // Looked at before the mailbox: what a child published before it ended is then not missed.
        let ended = child.process.poll();
        if self.depths[i].is_none() {
            let mut text = LongText::new();
            match lane::poll_start(&child.link.words(), &mut text) {
                Start::Starting => {}
                Start::Ready { depth, .. } => self.depths[i] = Some(depth),
                Start::Failed => return Err(child.start_error(level, StartCause::Failed(text.as_str().to_owned()))),
                Start::Illegal { found } => return Err(child.start_error(level, StartCause::Illegal { found })),
            }
        }
        match ended {
            Some(exit) => Err(child.start_error(level, StartCause::Died(child.cause(exit)))),
            None => Ok(()),
        }
    }

    fn late(&self, after: Duration) -> Error {
        let late = self.children.iter().zip(&self.depths).find(|(_, depth)| depth.is_none());
        match late {
            Some((child, _)) => child.start_error(self.level, StartCause::Late { after }),
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
        let budget = Budget { leave: RECLAIM_BUDGET, die: KILL_BUDGET };
        // Whoever is left after that cannot be ended by anybody; it keeps its own mappings.
        Farewell::new(clock::now(), budget).run(&mut self.children, |_| {});
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        if !self.children.is_empty() {
            self.reclaim();
        }
    }
}
