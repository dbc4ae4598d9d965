//! What a driver asks of its surroundings, and what it tells them.

use crate::ids::EndpointIndex;
use crate::time::Instant;

/// How the driver wakes a child that sleeps.
pub trait Doorbells {
    /// Wakes the child of `endpoint` in the kernel. Called after the publish, after a full fence, and only if the child had
    /// announced that it sleeps; its announcement is already taken back, so a second call means that it slept again.
    fn ring(&mut self, endpoint: EndpointIndex);

    /// Something was published to `endpoint`, whether or not its child sleeps. For surroundings that keep the time of it.
    fn published(&mut self, _endpoint: EndpointIndex) {}
}

/// How a round treats SUB children that sleep.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wake {
    /// Another round follows, when [`Step::held`] says at the latest: a task that a child at work is about to be free for waits
    /// for that child.
    Spare,
    /// Nobody may look again: a round that leaves without progress has left nothing that could be placed.
    All,
}

/// What one round of [`Driver::step`](super::Driver::step) came to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Step {
    /// Whether anything changed; another round may find more to do.
    pub progressed: bool,
    /// When [`Driver::step`](super::Driver::step) must be called again even if no word changes: the timeout of a control, the
    /// end of a poisoned child's grace.
    pub deadline: Option<Instant>,
    /// Until when a task waits for a child at work rather than for the wake of one that sleeps. Whoever sleeps behind this round
    /// sleeps no longer than that.
    pub held: Option<Instant>,
}

/// What a part of a round came to, small enough to be handed on in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Whether anything changed.
    pub(super) progressed: bool,
    /// When something falls due by itself; [`Instant::NEVER`] if nothing does.
    pub(super) due: Instant,
}

impl Part {
    /// Nothing was there to do.
    pub(super) const IDLE: Self = Self { progressed: false, due: Instant::NEVER };

    /// Something was done, and nothing is left.
    pub(super) const DONE: Self = Self { progressed: true, due: Instant::NEVER };

    #[inline(always)]
    pub(super) fn and(self, other: Self) -> Self {
        Self { progressed: self.progressed | other.progressed, due: self.due.min(other.due) }
    }

    #[inline(always)]
    pub(super) fn step(self, held: Option<Instant>) -> Step {
        Step { progressed: self.progressed, deadline: Some(self.due).filter(|due| *due != Instant::NEVER), held }
    }
}

/// A word that the next event of a busy endpoint will change, and what it held when the driver last looked. It can be
/// watched without the lock around the driver; only when it differs is the lock worth taking.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Watch {
    /// Whose mailbox.
    pub endpoint: EndpointIndex,
    /// Byte offset of the `i32` word in the mailbox region.
    pub at: usize,
    /// The value last seen there.
    pub seen: i32,
}
