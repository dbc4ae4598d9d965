//! How an endpoint ends: stopped, poisoned, dead.

use core::time::Duration;

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
    pub fn set_poison(&mut self, reason: Poison, now: Instant) {
        if !matches!(self.life, Life::Poisoned { .. }) {
            self.life = Life::Poisoned { reason, since: now, reported: false };
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
    #[must_use]
    pub fn wants_shutdown(&self) -> bool {
        self.life != Life::Open && self.exit.is_none()
    }

    /// Requests shutdown: the sticky word first, then the state (L-30). Returns whether a word was written, so that the
    /// child must be woken.
    pub fn request_stop<W: Words>(&self, words: &W) -> bool {
        let mut wrote = false;
        if words.load(Frame::BASE.at(at::SHUTDOWN)) != 1 {
            words.store(Frame::BASE.at(at::SHUTDOWN), 1);
            wrote = true;
        }
        // CONTROL_DONE may have overwritten it since the last round.
        if Frame::BASE.state(words) != FrameState::Shutdown.raw() {
            Frame::BASE.publish_state(words, FrameState::Shutdown);
            wrote = true;
        }
        wrote
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

    /// When a poisoned child that has not ended is due to be killed by its owner (L-35).
    #[must_use]
    pub fn kill_due(&self) -> Option<Instant> {
        match self.life {
            Life::Poisoned { since, .. } if self.exit.is_none() => Some(since.saturating_add(self.spec.poison_grace)),
            _ => None,
        }
    }

    /// When this lane must be polled again although no word changed.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.control.pending().and_then(|pending| pending.deadline)
    }

    /// Whether nothing is in flight, no control is outstanding and every event was taken: the lane need not be polled.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let told = !matches!(self.life, Life::Poisoned { reported: false, .. });
        self.inflight == 0 && !self.has_control() && told
    }

    /// How long a dispatch has been out.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.active().or(self.staged()).map(|flight| now.since(flight.since))
    }
}
