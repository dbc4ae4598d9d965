//! One outstanding control per endpoint, and what it holds back (L-20 … L-23).

use super::lane::Life;
use super::{ControlOutcome, During, Event, Lane, LaneError, Place, Poison, RawState};
use crate::mailbox::{Frame, Text, Words, control, error_code, read_message};
use crate::time::Instant;
use crate::wire::FrameState;
use crate::wire::control::ControlRequest;

/// Where the endpoint's control stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum ControlState<C> {
    Idle,
    /// Asked for, but held back by an unactivated successor.
    Deferred(Pending<C>),
    /// CONTROL_REQUEST is published.
    Outstanding(Pending<C>),
}

/// A control on its way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pending<C> {
    pub(super) key: C,
    pub(super) request: ControlRequest,
    pub(super) since: Instant,
    pub(super) deadline: Option<Instant>,
}

impl<C> Pending<C> {
    fn changes_registry(&self) -> bool {
        control::changes_registry(self.request.command())
    }
}

impl<C> ControlState<C> {
    pub(super) const fn pending(&self) -> Option<&Pending<C>> {
        match self {
            Self::Idle => None,
            Self::Deferred(pending) | Self::Outstanding(pending) => Some(pending),
        }
    }

    /// From the moment a registry control is asked for, no successor is staged.
    pub(super) fn holds_successors(&self) -> bool {
        self.pending().is_some_and(Pending::changes_registry)
    }

    /// Once it is stored, nothing is published until it is answered.
    pub(super) fn holds_everything(&self) -> bool {
        matches!(self, Self::Outstanding(pending) if pending.changes_registry())
    }
}

impl<K: Copy + PartialEq, C: Copy> Lane<K, C> {
    /// Asks for a control. Its end is an [`Event::Control`]; `deadline` includes any deferral (L-22).
    ///
    /// # Errors
    /// The endpoint is dead or stopping, or a control is outstanding; the caller queues (L-20).
    pub fn control<W: Words>(
        &mut self,
        words: &W,
        key: C,
        request: &ControlRequest,
        deadline: Option<Instant>,
        now: Instant,
    ) -> Result<(), LaneError> {
        match self.life {
            Life::Open => {}
            Life::Stopping => return Err(LaneError::Stopping),
            Life::Poisoned { reason, .. } => return Err(LaneError::Poisoned(reason)),
        }
        if let Some(pending) = self.control.pending() {
            return Err(LaneError::ControlOutstanding { outstanding: pending.request.command() });
        }
        self.control = ControlState::Deferred(Pending { key, request: *request, since: now, deadline });
        self.publish_control(words, now);
        Ok(())
    }

    /// Whether a control is asked for and not answered.
    #[must_use]
    pub const fn has_control(&self) -> bool {
        self.control.pending().is_some()
    }

    pub(super) const fn is_control_outstanding(&self) -> bool {
        matches!(self.control, ControlState::Outstanding(_))
    }

    /// Publishes a deferred control as soon as no unactivated successor is in its way.
    pub(super) fn publish_control<W: Words>(&mut self, words: &W, now: Instant) {
        let ControlState::Deferred(pending) = self.control else { return };
        if pending.changes_registry() && self.staged.is_some() {
            return;
        }
        let found = Frame::BASE.state(words);
        if found != FrameState::Idle.raw() {
            let (place, during) = (Place::Base, During::Rest);
            self.set_poison(Poison::State { place, during, found: RawState(found) }, now);
            return;
        }
        self.control = ControlState::Outstanding(pending);
        control::publish_request(words, &pending.request);
        self.published = true;
    }

    /// Looks for the answer of an outstanding control, and at its deadline.
    pub(super) fn poll_control<W: Words, const N: usize>(
        &mut self,
        words: &W,
        now: Instant,
        text: &mut Text<N>,
    ) -> Option<Event<K, C>> {
        let pending = *self.control.pending()?;
        if let ControlState::Outstanding(_) = self.control {
            let found = Frame::BASE.state(words);
            match FrameState::from_raw(found) {
                Some(FrameState::ControlRequest) => {}
                Some(FrameState::ControlDone) => {
                    let outcome = match error_code(words, Frame::BASE) {
                        0 => ControlOutcome::Done(control::read_result(words)),
                        code => {
                            text.clear();
                            read_message(words, Frame::BASE, text);
                            ControlOutcome::Failed { code }
                        }
                    };
                    Frame::BASE.publish_state(words, FrameState::Idle);
                    self.control = ControlState::Idle;
                    return Some(Event::Control { key: pending.key, outcome });
                }
                _ => {
                    let (place, during) = (Place::Base, During::Control);
                    self.set_poison(Poison::State { place, during, found: RawState(found) }, now);
                    return None;
                }
            }
        }
        if pending.deadline.is_some_and(|deadline| deadline <= now) {
            let (command, waited) = (pending.request.command(), now.since(pending.since));
            self.set_poison(Poison::ControlTimeout { command, waited }, now);
        }
        None
    }

    /// Ends the outstanding control without looking at the state word again (L-37).
    pub(super) fn fail_control(&mut self) -> Option<Event<K, C>> {
        let outcome = match self.life {
            Life::Open => return None,
            Life::Stopping => ControlOutcome::Stopped,
            Life::Poisoned { reason, .. } => ControlOutcome::Poisoned(reason),
        };
        let key = self.control.pending()?.key;
        self.control = ControlState::Idle;
        Some(Event::Control { key, outcome })
    }
}
