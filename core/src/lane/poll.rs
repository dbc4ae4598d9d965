//! Looking at a mailbox: what changed since the last look.

use super::flight::{Flight, Record};
use super::lane::Life;
use super::{During, Event, HandOver, Lane, Outcome, Phase, Place, Poison, RawState, Sight, Stage};
use crate::ids::PipelineSlot;
use crate::mailbox::{Frame, Stamp, Text, Words, error_code, extension, read_failure};
use crate::time::Instant;
use crate::wire::{DispatchIdentity, FrameState, Preparation};

impl<K: Copy + PartialEq, C: Copy> Lane<K, C> {
    /// The dispatch in the active lane, if all that happened is that it ended well: what most looks at a busy endpoint come
    /// to. It stands for the [`Event::Completed`] that [`poll`](Self::poll) would give; whatever else there is to see is
    /// left to that.
    #[inline]
    pub fn take_success<W: Words>(&mut self, words: &W) -> Option<K> {
        let slot = self.active?;
        let flight = self.flight(slot)?;
        let frame = Frame::task(slot);
        let succeeded = matches!(self.life, Life::Open)
            && frame.state(words) == FrameState::TaskDone.raw()
            && flight.phase.sees(self.spec.frames, FrameState::TaskDone) == Some(Sight::Done)
            && (flight.accepted || frame.accepted(words) == 0)
            && error_code(words, frame) == 0
            && frame.carries(words, &Stamp::of(self.spec.protocol, &flight.identity));
        if !succeeded {
            return None;
        }
        let key = flight.key;
        self.frames[slot.index()] = Record::Free(FrameState::TaskDone);
        self.active = None;
        self.inflight -= 1;
        Some(key)
    }

    /// The next thing that happened, if anything did; call until `None`. `text` receives the child's message with a
    /// [`Outcome::TaskFailure`] or a failed control.
    #[inline]
    pub fn poll<W: Words, const N: usize>(
        &mut self,
        words: &W,
        now: Instant,
        text: &mut Text<N>,
    ) -> Option<Event<K, C>> {
        if let Life::Open = self.life {
            let event = self.poll_open(words, now, text);
            if event.is_some() || matches!(self.life, Life::Open) {
                return event;
            }
        }
        self.poll_ending(words, now, text)
    }

    /// What is left to report of an endpoint that is being stopped or was poisoned.
    #[cold]
    fn poll_ending<W: Words, const N: usize>(
        &mut self,
        words: &W,
        now: Instant,
        text: &mut Text<N>,
    ) -> Option<Event<K, C>> {
        if let Life::Stopping = self.life {
            let event = self.fail_control().or_else(|| self.poll_open(words, now, text));
            if event.is_some() || matches!(self.life, Life::Stopping) {
                return event;
            }
        }
        if let Life::Poisoned { reason, reported: reported @ false, .. } = &mut self.life {
            *reported = true;
            return Some(Event::Poisoned { reason: *reason });
        }
        self.fail_control().or_else(|| self.give_back(words))
    }

    fn poll_open<W: Words, const N: usize>(
        &mut self,
        words: &W,
        now: Instant,
        text: &mut Text<N>,
    ) -> Option<Event<K, C>> {
        for lane in [self.active, self.staged] {
            let Some(slot) = lane else { continue };
            let found = Frame::task(slot).state(words);
            if self.is_unchanged(slot, found, now) {
                continue;
            }
            match self.poll_frame(words, slot, found, now, text) {
                Ok(None) => {}
                Ok(event) => return event,
                Err(reason) => {
                    self.set_poison(reason, now);
                    return None;
                }
            }
        }
        if !self.has_control() {
            return None;
        }
        self.publish_control(words, now);
        self.poll_control(words, now, text)
    }

    /// Whether a frame stands as it was left and is not overdue: what most looks find.
    #[inline]
    fn is_unchanged(&self, slot: PipelineSlot, found: i32, now: Instant) -> bool {
        let Some(flight) = self.flight(slot) else { return true };
        found == flight.phase.state().raw() && (flight.accepted || !self.spec.marks_acceptance) && flight.due > now
    }

    #[inline]
    fn poll_frame<W: Words, const N: usize>(
        &mut self,
        words: &W,
        slot: PipelineSlot,
        found: i32,
        now: Instant,
        text: &mut Text<N>,
    ) -> Result<Option<Event<K, C>>, Poison> {
        let frame = Frame::task(slot);
        // The record is borrowed, not copied.
        let Some(flight) = self.flight(slot) else { return Ok(None) };
        let place = Place::Task(slot);
        let (key, phase) = (flight.key, flight.phase);
        let sight = FrameState::from_raw(found).and_then(|state| phase.sees(self.spec.frames, state));
        let Some(sight) = sight else {
            let during = During::Dispatch(phase);
            return Err(Poison::State { place, during, found: RawState(found) });
        };
        // A withdrawn dispatch has no identity any more; its answer is taken as it comes (L-38).
        if phase == Phase::Withdrawn {
            return Ok((sight == Sight::Failed).then(|| self.end(slot, key, FrameState::TaskFailed, Outcome::Skipped)));
        }
        if !flight.accepted
            && (sight != Sight::Same || self.spec.marks_acceptance)
            && self.is_accepted(words, slot, &flight.identity)?
        {
            if let Some(flight) = self.flight_mut(slot) {
                flight.accepted = true;
            }
            return Ok(Some(Event::Accepted { key }));
        }
        match sight {
            Sight::Same if flight.due <= now => {
                let (identity, age) = (flight.identity, now.since(flight.since));
                let stage = Stage { phase, running: extension::says_running(words, &identity) };
                Err(Poison::Overdue { identity, stage, age })
            }
            Sight::Same => Ok(None),
            Sight::Moved(phase @ (Phase::Staged | Phase::Waiting)) => {
                self.compare(words, slot, &flight.identity, HandOver::Staging)?;
                let preparation = staged_preparation(frame.preparation(words), place)?;
                self.set_phase(slot, phase);
                // A failure to publish has poisoned, which the next poll reports.
                let _ = self.do_wanted(words, slot, now);
                Ok(Some(Event::Staged { key, preparation }))
            }
            Sight::Moved(phase) => {
                self.set_phase(slot, phase);
                Ok(None)
            }
            Sight::Done | Sight::Failed => {
                self.compare(words, slot, &flight.identity, HandOver::Completion)?;
                let terminal = if sight == Sight::Done { FrameState::TaskDone } else { FrameState::TaskFailed };
                let outcome = match error_code(words, frame) {
                    0 if sight == Sight::Done => Outcome::Success,
                    code => {
                        text.clear();
                        read_failure(words, frame, self.child, text);
                        Outcome::TaskFailure { code }
                    }
                };
                Ok(Some(self.end(slot, key, terminal, outcome)))
            }
        }
    }

    /// Whether the acceptance word is set, and of this dispatch (L-18).
    #[inline]
    fn is_accepted<W: Words>(
        &self,
        words: &W,
        slot: PipelineSlot,
        identity: &DispatchIdentity,
    ) -> Result<bool, Poison> {
        match Frame::task(slot).accepted(words) {
            0 => Ok(false),
            1 => self.compare(words, slot, identity, HandOver::Acceptance).map(|()| true),
            found => Err(Poison::Acceptance { place: Place::Task(slot), found }),
        }
    }

    fn set_phase(&mut self, slot: PipelineSlot, phase: Phase) {
        if let Some(flight) = self.flight_mut(slot) {
            flight.phase = phase;
        }
    }

    /// Ends the dispatch in a frame: the frame is free, its lane too.
    #[inline]
    fn end(&mut self, slot: PipelineSlot, key: K, left: FrameState, outcome: Outcome) -> Event<K, C> {
        self.frames[slot.index()] = Record::Free(left);
        for lane in [&mut self.active, &mut self.staged] {
            if *lane == Some(slot) {
                *lane = None;
            }
        }
        self.inflight -= 1;
        Event::Completed { key, outcome }
    }

    /// Poisoned: gives owned frames back, one per call, once nothing can write what their tasks name (L-27).
    fn give_back<W: Words>(&mut self, words: &W) -> Option<Event<K, C>> {
        [self.active, self.staged].into_iter().flatten().find_map(|slot| {
            let state = FrameState::from_raw(Frame::task(slot).state(words));
            if !self.subtree_gone && (self.spec.waitable || !state.is_some_and(FrameState::is_terminal)) {
                return None;
            }
            let Flight { key, identity, phase, since, .. } = *self.flight(slot)?;
            Some(self.end(slot, key, FrameState::Idle, Outcome::EndpointFailure { identity, phase, since }))
        })
    }
}

fn staged_preparation(found: i32, place: Place) -> Result<Preparation, Poison> {
    match Preparation::from_raw(found) {
        Some(preparation @ (Preparation::Validated | Preparation::Prepared)) => Ok(preparation),
        _ => Err(Poison::Preparation { place, found }),
    }
}
