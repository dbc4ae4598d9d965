//! Looking at a mailbox: what changed since the last look.

use super::flight::{Flight, Record};
use super::lane::Life;
use super::{During, Event, HandOver, Lane, Outcome, Phase, Place, Poison, RawState, Sight};
use crate::ids::PipelineSlot;
use crate::mailbox::{Frame, Stamp, Text, Words, error_code, read_failure};
use crate::time::Instant;
use crate::wire::{FrameState, Preparation};

impl<K: Copy + PartialEq, C: Copy> Lane<K, C> {
    /// The next thing that happened, if anything did; call until `None`. `text` receives the child's message with a
    /// [`Outcome::TaskFailure`] or a failed control.
    pub fn poll<W: Words, const N: usize>(
        &mut self,
        words: &W,
        now: Instant,
        text: &mut Text<N>,
    ) -> Option<Event<K, C>> {
        if let Life::Open | Life::Stopping = self.life
            && let Some(event) = self.poll_open(words, now, text)
        {
            return Some(event);
        }
        if let Life::Poisoned { reason, reported, .. } = &mut self.life {
            if !*reported {
                *reported = true;
                return Some(Event::Poisoned { reason: *reason });
            }
            return self.fail_control().or_else(|| self.give_back(words));
        }
        None
    }

    #[inline]
    fn poll_open<W: Words, const N: usize>(
        &mut self,
        words: &W,
        now: Instant,
        text: &mut Text<N>,
    ) -> Option<Event<K, C>> {
        if matches!(self.life, Life::Stopping)
            && let Some(event) = self.fail_control()
        {
            return Some(event);
        }
        for lane in [self.active, self.staged] {
            let Some(slot) = lane else { continue };
            match self.poll_frame(words, slot, now, text) {
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

    #[inline]
    fn poll_frame<W: Words, const N: usize>(
        &mut self,
        words: &W,
        slot: PipelineSlot,
        now: Instant,
        text: &mut Text<N>,
    ) -> Result<Option<Event<K, C>>, Poison> {
        let frame = Frame::task(slot);
        // The record is borrowed, not copied: it is large, and most looks find nothing new.
        let Some(flight) = self.flight(slot) else { return Ok(None) };
        let place = Place::Task(slot);
        let (key, phase) = (flight.key, flight.phase);
        let found = frame.state(words);
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
            && self.is_accepted(words, slot, &flight.stamp)?
        {
            if let Some(flight) = self.flight_mut(slot) {
                flight.accepted = true;
            }
            return Ok(Some(Event::Accepted { key }));
        }
        match sight {
            Sight::Same if flight.due.is_some_and(|due| due <= now) => {
                let (identity, age) = (flight.identity, now.since(flight.since));
                Err(Poison::Overdue { identity, phase, age })
            }
            Sight::Same => Ok(None),
            Sight::Moved(phase @ (Phase::Staged | Phase::Waiting)) => {
                self.compare(words, slot, &flight.stamp, HandOver::Staging)?;
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
                self.compare(words, slot, &flight.stamp, HandOver::Completion)?;
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
    fn is_accepted<W: Words>(&self, words: &W, slot: PipelineSlot, stamp: &Stamp) -> Result<bool, Poison> {
        match Frame::task(slot).accepted(words) {
            0 => Ok(false),
            1 => self.compare(words, slot, stamp, HandOver::Acceptance).map(|()| true),
            found => Err(Poison::Acceptance { place: Place::Task(slot), found }),
        }
    }

    fn set_phase(&mut self, slot: PipelineSlot, phase: Phase) {
        if let Some(flight) = self.flight_mut(slot) {
            flight.phase = phase;
        }
    }

    /// Ends the dispatch in a frame: the frame is free, its lane too.
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
