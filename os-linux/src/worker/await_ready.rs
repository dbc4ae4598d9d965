//! The barrier of `init`: all children together, in the order in which they become ready, under one deadline.

use std::time::Duration;

use laneway_core::ids::EndpointIndex;
use laneway_core::lane::{self, Start};
use laneway_core::mailbox::{LongText, Words};
use laneway_core::time::Instant;
use laneway_core::wire::FrameState;
use laneway_core::wire::frame as at;

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
    /// In the order in which they were started.
    children: Vec<Born>,
}

/// One of them.
struct Born {
    endpoint: EndpointIndex,
    child: Child,
    /// The depth that it published; `None` while it is still starting.
    depth: Option<u64>,
}

/// Where a death has to be looked for, this often.
const LOOK_EVERY: Duration = Duration::from_millis(10);

const CANCEL: Token = Token(u64::MAX);

impl Nursery {
    pub(super) fn new(level: u32, capacity: usize) -> Self {
        Self { level, children: Vec::with_capacity(capacity) }
    }

    /// Children that are ready and have to go all the same.
    pub(super) fn of_ready(level: u32, children: Vec<Child>) -> Self {
        let born = |(endpoint, child)| Born { endpoint, child, depth: Some(0) };
        Self { level, children: (0..).map(EndpointIndex).zip(children).map(born).collect() }
    }

    pub(super) fn add(&mut self, endpoint: EndpointIndex, child: Child) {
        self.children.push(Born { endpoint, child, depth: None });
    }

    /// The children, by endpoint, and the depth that each published.
    pub(super) fn grown(&mut self) -> impl Iterator<Item = (&Child, u64)> {
        self.children.sort_by_key(|born| born.endpoint);
        self.children.iter().map(|born| (&born.child, born.depth.unwrap_or_default()))
    }

    /// Lets the children go, by endpoint: from here on somebody else is responsible for them.
    pub(super) fn graduate(mut self) -> Vec<Child> {
        self.children.sort_by_key(|born| born.endpoint);
        std::mem::take(&mut self.children).into_iter().map(|born| born.child).collect()
    }

    /// Waits until every child is ready. `after` is what the deadline was made of.
    pub(super) fn await_all(
        &mut self,
        bell: &BellWord,
        deadline: Instant,
        after: Duration,
        cancel: &Cancel,
    ) -> Result<(), Error> {
        let set = Poller::new()?;
        set.add(&cancel.bell, CANCEL, Watch::Level)?;
        for (i, Born { child, .. }) in (0..).zip(&self.children) {
            set.add(&child.link.waiter, Token(i), Watch::Edge)?;
            if let Some(end) = child.host.end() {
                set.add(end, Token(i), Watch::OneShot)?;
            }
        }
        // A death that no descriptor tells of is looked for (L-25).
        let longest = match self.children.iter().all(|born| born.child.host.end().is_some()) {
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
            if self.children.iter().all(|born| born.depth.is_some()) {
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
        Ok(())
    }

    /// What one child has published or become.
    fn look(&mut self, i: usize) -> Result<(), Error> {
        let level = self.level;
        let Born { child, depth: published, .. } = &mut self.children[i];
        // Looked at before the mailbox: what a child published before it ended is then not missed.
        let ended = child.host.poll();
        if published.is_none() {
            let mut text = LongText::new();
            match lane::poll_start(&child.link.words(), &mut text) {
                Start::Starting => {}
                Start::Ready { depth, .. } => *published = Some(depth),
                Start::Failed => return Err(child.start_error(level, StartCause::Failed(text.as_str().to_owned()))),
                Start::Illegal { found } => return Err(child.start_error(level, StartCause::Illegal { found })),
            }
        }
        match ended {
            Some(cause) => Err(child.start_error(level, StartCause::Died(cause))),
            None => Ok(()),
        }
    }

    fn late(&self, after: Duration) -> Error {
        match self.children.iter().find(|born| born.depth.is_none()) {
            Some(Born { child, .. }) => child.start_error(self.level, StartCause::Late { after }),
            None => Error::InitCancelled,
        }
    }

    /// Asks the ready ones to leave and terminates the others, kills what is left, and reaps all (P-6).
    fn reclaim(&mut self) {
        for Born { child, depth, .. } in &mut self.children {
            if depth.is_some() {
                let words = child.link.words();
                words.store(at::SHUTDOWN, 1);
                words.store(at::STATE, FrameState::Shutdown.raw());
                child.link.wake.ring();
            } else {
                child.host.terminate();
            }
        }
        let budget = Budget { leave: RECLAIM_BUDGET, die: KILL_BUDGET };
        let mut children: Vec<_> = self.children.drain(..).map(|born| born.child).collect();
        // Whoever is left after that cannot be ended by anybody; it keeps its own mappings.
        Farewell::new(clock::now(), budget).run(&mut children, |_| {});
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        if !self.children.is_empty() {
            self.reclaim();
        }
    }
}
