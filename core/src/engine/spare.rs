//! Leaving a SUB task in its queue for a child that is awake, rather than waking one that sleeps.

use super::Engine;
use super::slot::Kind;
use crate::ids::EndpointIndex;

/// An idle SUB child that the next task would go to while others are at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    /// The child: the one that finished last of those that are idle.
    pub endpoint: EndpointIndex,
    /// SUB children at work.
    pub busy: usize,
}

impl Engine {
    /// The idle SUB child that the task at the head of the queue would go to, if another SUB child is at work and could take it
    /// instead when it is done. Groups are not asked about: they need their children at the same time.
    #[must_use]
    pub fn spare_sub(&self) -> Option<Spare> {
        let idle = &self.workers.idle_subs;
        let busy = self.workers.live_subs.checked_sub(idle.len()).filter(|&busy| busy > 0)?;
        let spare = *idle.last()?;
        let head = self.live(*self.fifo.first()?)?.subs.head()?;
        let endpoint = self.workers[spare].endpoint;
        matches!(self.slots[head].kind, Kind::Sub).then_some(Spare { endpoint, busy })
    }

    /// While `hold`, [`next_action`](Self::next_action) places no single SUB task. Whoever holds lifts it again before it sleeps:
    /// nothing is reported for what is held (E-35).
    pub fn hold_subs(&mut self, hold: bool) {
        if self.subs_held && !hold {
            self.wake();
        }
        self.subs_held = hold;
    }

    /// Whether [`next_action`](Self::next_action) may have something to say, or would if nothing were
    /// [held](Self::hold_subs).
    #[inline]
    #[must_use]
    pub const fn may_act(&self) -> bool {
        self.work
    }

    /// The endpoints of all its workers.
    pub fn endpoints(&self) -> impl Iterator<Item = EndpointIndex> + '_ {
        self.workers.workers.iter().map(|worker| worker.endpoint)
    }
}
