//! How an endpoint ends: stopped, poisoned, dead.

use super::lane::Life;
use super::{ExitCause, Lane, Poison};
use crate::mailbox::{Frame, Words};
use crate::time::Instant;
use crate::wire::FrameState;
use crate::wire::frame as at;

impl<K: Copy + PartialEq, C: Copy> Lane<K, C> {
    /// Why nothing more is accepted, if the endpoint is poisoned.
    #[must_use]
    pub const fn poison(&self) -> Option<Poison> {
        match self.life {
            Life::Poisoned { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Poisons the endpoint: something outside the mailbox makes it unusable. The first reason is kept (L-26).
    #[cold]
    pub fn set_poison(&mut self, reason: Poison, now: Instant) {
        if !matches!(self.life, Life::Poisoned { .. }) {
            self.life = Life::Poisoned { reason, since: now, reported: false, kill_asked: false };
        }
    }

    /// First step of a stop: no new dispatch and no new control; what is in flight ends (L-29).
    pub fn stop(&mut self) {
        if self.life == Life::Open {
            self.life = Life::Stopping;
        }
    }

    /// Whether the endpoint is being stopped or poisoned, so that shutdown must be requested in every round until it is
    /// [`quiet`](Self::is_quiet).
    #[inline]
    #[must_use]
    pub fn wants_shutdown(&self) -> bool {
        !matches!(self.life, Life::Open) && self.exit.is_none()
    }

    /// Requests shutdown: the sticky word first, then the state (L-30).
    #[cold]
    pub fn request_stop<W: Words>(&mut self, words: &W) {
        if words.load(Frame::BASE.at(at::SHUTDOWN)) != 1 {
            words.store(Frame::BASE.at(at::SHUTDOWN), 1);
            self.published = true;
        }
        // CONTROL_DONE may have overwritten it since the last round.
        if Frame::BASE.state(words) != FrameState::Shutdown.raw() {
            Frame::BASE.publish_state(words, FrameState::Shutdown);
            self.published = true;
        }
    }

    /// The child has ended. An endpoint that was not being stopped, or still owns frames, is poisoned (L-25, E-41). What the
    /// child published before it ended should have been polled for.
    pub fn child_exited(&mut self, cause: ExitCause, now: Instant) {
        self.exit = Some(cause);
        if self.life == Life::Open || self.inflight > 0 {
            self.set_poison(Poison::Dead { cause }, now);
        }
    }

    /// The child's whole subtree has ended, so nothing writes any more what its tasks name (L-27).
    pub const fn subtree_gone(&mut self) {
        self.subtree_gone = true;
    }

    /// How the child ended, if it has.
    #[must_use]
    pub const fn exit(&self) -> Option<ExitCause> {
        self.exit
    }

    /// Whether a poisoned child has used up its grace and its owner must kill it (L-35). Says so once.
    pub fn take_kill(&mut self, now: Instant) -> bool {
        let due = self.kill_due().is_some_and(|due| due <= now);
        if let (true, Life::Poisoned { kill_asked, .. }) = (due, &mut self.life) {
            *kill_asked = true;
        }
        due
    }

    fn kill_due(&self) -> Option<Instant> {
        match self.life {
            Life::Poisoned { since, kill_asked: false, .. } if self.exit.is_none() && self.spec.waitable => {
                Some(since.saturating_add(self.spec.poison_grace))
            }
            _ => None,
        }
    }

    /// The child, or its subtree, is stuck for good: nothing of it is given back, and nothing is waited for (L-35).
    pub fn abandon(&mut self, now: Instant) {
        self.set_poison(Poison::Stuck, now);
        (self.active, self.staged, self.inflight) = (None, None, 0);
    }

    /// When this lane must be polled again although no word changed: the end of a control's time, of a task's, of a grace.
    #[inline]
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        if let Life::Poisoned { .. } = self.life {
            // What was due is over with it.
            return self.kill_due();
        }
        let control = self.control.pending().and_then(|pending| pending.deadline);
        let task = self.active().map(|flight| flight.due).filter(|due| *due != Instant::NEVER);
        match (control, task) {
            (Some(control), Some(task)) => Some(control.min(task)),
            (control, task) => control.or(task),
        }
    }

    /// Reports the words that the next events will change, by region offset, and what they held at the last look.
    pub fn watch(&self, mut word: impl FnMut(usize, i32)) {
        if self.poison().is_some() {
            return;
        }
        for slot in [self.active, self.staged].into_iter().flatten() {
            let Some(flight) = self.flight(slot) else { continue };
            word(Frame::task(slot).at(at::STATE), flight.phase.state().raw());
            if self.spec.marks_acceptance && !flight.accepted {
                word(Frame::task(slot).at(at::ACCEPTED), 0);
            }
        }
        if self.is_control_outstanding() {
            word(Frame::BASE.at(at::STATE), FrameState::ControlRequest.raw());
        }
    }

    /// Whether nothing is in flight, no control is outstanding, every event was taken and no kill is due: the lane need not
    /// be polled.
    #[inline]
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.inflight == 0
            && !self.has_control()
            && match self.life {
                Life::Open | Life::Stopping => true,
                Life::Poisoned { reported, .. } => reported && self.kill_due().is_none(),
            }
    }
}
