//! The parent half of one mailbox.

use core::time::Duration;

use super::control::ControlState;
use super::flight::{Flight, Record};
use super::{Act, EndpointSpec, ExitCause, Frames, LaneError, Phase, Place, Poison, RawState};
use crate::ids::{DispatchId, Generation, PipelineSlot, RunId};
use crate::mailbox::{Frame, Peer, Publication, Stamp, Words, extension, publish};
use crate::time::Instant;
use crate::wire::{CallConfig, Digest, DispatchIdentity, FrameState};

/// A task to send.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a, K> {
    /// What the owner names the dispatch by; every event about it carries this.
    pub key: K,
    /// The run.
    pub run: RunId,
    /// The pipeline slot of its lease.
    pub slot: PipelineSlot,
    /// The generation of its lease.
    pub generation: Generation,
    /// Which callable.
    pub digest: &'a Digest,
    /// How it is to run.
    pub config: &'a CallConfig,
    /// Its encoded arguments, in the protocol of the endpoint.
    pub blob: &'a [u8],
    /// How long it may take from the moment that it may run (E-43).
    pub limit: Option<Duration>,
    /// Stage it for the next run; it runs after [`Lane::activate`].
    pub prepare_only: bool,
}

/// One endpoint as its parent keeps it: an active lane, a staged lane, one control, and whether it still lives. It owns no
/// thread and no memory; every method that touches the mailbox takes it. `K` is what the owner names a dispatch by, `C` a
/// control.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lane<K, C> {
    pub(super) spec: EndpointSpec,
    pub(super) child: Peer,
    next_dispatch: Option<DispatchId>,
    pub(super) frames: [Record<K>; 2],
    /// Which frame is in the active lane.
    pub(super) active: Option<PipelineSlot>,
    /// Which frame is in the staged lane.
    pub(super) staged: Option<PipelineSlot>,
    /// Dispatches in flight, counted apart from the lanes.
    pub(super) inflight: usize,
    pub(super) control: ControlState<C>,
    pub(super) life: Life,
    pub(super) exit: Option<ExitCause>,
    pub(super) subtree_gone: bool,
    /// Whether something was published since [`Lane::take_published`].
    pub(super) published: bool,
}

/// Whether an endpoint accepts work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Life {
    Open,
    /// Shutdown was requested; what is in flight ends.
    Stopping,
    Poisoned {
        reason: Poison,
        since: Instant,
        /// Whether the event was taken.
        reported: bool,
        /// Whether its owner was asked to kill it.
        kill_asked: bool,
    },
}

impl<K: Copy + PartialEq, C: Copy> Lane<K, C> {
    /// The endpoint of a child whose INIT_READY was consumed ([`poll_start`](super::poll_start)).
    #[must_use]
    pub fn new<W: Words>(spec: EndpointSpec, words: &W) -> Self {
        Self {
            spec,
            child: extension::child(words),
            next_dispatch: Some(DispatchId::FIRST),
            frames: [Record::Free(FrameState::Idle); 2],
            active: None,
            staged: None,
            inflight: 0,
            control: ControlState::Idle,
            life: Life::Open,
            exit: None,
            subtree_gone: false,
            published: false,
        }
    }

    /// What it was registered with.
    #[must_use]
    pub const fn spec(&self) -> &EndpointSpec {
        &self.spec
    }

    /// Whether something was published since the last call. If so, and the child announces its sleep, the caller looks for a
    /// sleeper ([`extension::take_sleeper`]) and wakes it.
    pub const fn take_published(&mut self) -> bool {
        core::mem::replace(&mut self.published, false)
    }

    /// Whether the child showed this project's magic.
    #[must_use]
    pub const fn child(&self) -> Peer {
        self.child
    }

    /// Whether a control that changes the registry holds back a task of the executing run, or of the next one if
    /// `prepare_only` (L-21). It is over by itself; submit then.
    #[must_use]
    pub fn is_held_back(&self, prepare_only: bool) -> bool {
        if prepare_only { self.control.holds_successors() } else { self.control.holds_everything() }
    }

    /// Dispatches in flight.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.inflight
    }

    /// The dispatch in the active lane.
    #[must_use]
    pub fn active(&self) -> Option<&Flight<K>> {
        self.active.and_then(|slot| self.flight(slot))
    }

    /// The dispatch in the staged lane.
    #[must_use]
    pub fn staged(&self) -> Option<&Flight<K>> {
        self.staged.and_then(|slot| self.flight(slot))
    }

    #[inline]
    pub(super) fn flight(&self, slot: PipelineSlot) -> Option<&Flight<K>> {
        match &self.frames[slot.index()] {
            Record::Busy(flight) => Some(flight),
            Record::Free(_) => None,
        }
    }

    #[inline]
    pub(super) fn flight_mut(&mut self, slot: PipelineSlot) -> Option<&mut Flight<K>> {
        match &mut self.frames[slot.index()] {
            Record::Busy(flight) => Some(flight),
            Record::Free(_) => None,
        }
    }

    /// Publishes a task and returns its dispatch id. It must then be polled for.
    ///
    /// # Errors
    /// Nothing was published: the endpoint is dead or stopping, the lane is occupied, or the frame could not be reused, which
    /// poisons. The caller ends that dispatch as a failure of the endpoint, once (L-2).
    #[inline]
    pub fn submit<W: Words>(&mut self, words: &W, job: &Job<'_, K>, now: Instant) -> Result<DispatchId, LaneError> {
        self.check_open()?;
        let slot = self.vacant_lane(job)?;
        let frame = Frame::task(slot);
        if let Record::Free(left) = self.frames[slot.index()] {
            let found = frame.state(words);
            if found != FrameState::Idle.raw() && found != left.raw() {
                let reason = Poison::NotReusable { place: Place::Task(slot), found: RawState(found), left };
                return Err(self.poisoned(reason, now));
            }
            if self.child == Peer::Stranger && found != FrameState::Idle.raw() {
                frame.publish_state(words, FrameState::Idle);
            }
        }
        let Some(dispatch) = self.next_dispatch else { return Err(self.poisoned(Poison::OutOfIds, now)) };
        self.next_dispatch = dispatch.next();
        let identity = DispatchIdentity { run: job.run, slot: job.slot, generation: job.generation, dispatch };
        let (act, lane) = match job.prepare_only {
            false => (Act::Send, &mut self.active),
            true => (Act::Stage, &mut self.staged),
        };
        let phase = act.leads_to();
        *lane = Some(slot);
        self.inflight += 1;
        let due = if job.prepare_only { Instant::NEVER } else { due(job.limit, now) };
        let (key, limit) = (job.key, job.limit);
        let flight = Flight { key, identity, phase, since: now, accepted: false, wanted: None, limit, due };
        self.frames[slot.index()] = Record::Busy(flight);
        let stamp = Stamp::of(self.spec.protocol, &identity);
        let task = Publication { stamp, digest: job.digest, config: job.config, blob: job.blob };
        publish(words, frame, &task, self.child, phase.state());
        self.published = true;
        Ok(dispatch)
    }

    /// The frame for a job, if its lane is free.
    #[inline]
    fn vacant_lane(&self, job: &Job<'_, K>) -> Result<PipelineSlot, LaneError> {
        let (inflight, capacity) = (self.inflight, self.spec.frames.count());
        let occupied = |lane| LaneError::Occupied { lane, inflight, capacity };
        let slot = match self.spec.frames {
            Frames::One if job.prepare_only => return Err(LaneError::NoStaging),
            // The lease's slot travels in the trailer; the frame is always the first (W-2).
            Frames::One => PipelineSlot::Zero,
            Frames::Two => job.slot,
        };
        match job.prepare_only {
            false if self.active.is_some() => Err(occupied("active")),
            true if self.staged.is_some() => Err(occupied("staged")),
            _ if inflight >= capacity => Err(occupied("second")),
            _ if self.flight(slot).is_some() => Err(LaneError::FrameBusy { place: Place::Task(slot) }),
            _ => Ok(slot),
        }
    }

    /// The run of the staged dispatch is executing now: the staged lane becomes the active one, and ACTIVATE is published as
    /// soon as the child has staged the frame (L-8, L-9).
    ///
    /// # Errors
    /// The active lane is occupied, or nothing of `run` is staged; nothing changed.
    pub fn activate<W: Words>(&mut self, words: &W, run: RunId, now: Instant) -> Result<(), LaneError> {
        self.check_open()?;
        let slot = self.staged.ok_or(LaneError::NothingStaged)?;
        if self.active.is_some() {
            let (inflight, capacity) = (self.inflight, self.spec.frames.count());
            return Err(LaneError::Occupied { lane: "active", inflight, capacity });
        }
        let flight = self.flight_mut(slot).ok_or(LaneError::NothingStaged)?;
        if flight.identity.run != run || flight.wanted.is_some() || flight.phase == Phase::Withdrawn {
            return Err(LaneError::NothingStaged);
        }
        flight.wanted = Some(Act::Activate);
        flight.due = due(flight.limit, now);
        (self.active, self.staged) = (Some(slot), None);
        self.do_wanted(words, slot, now)
    }

    /// Takes a staged dispatch back; it ends as skipped once the child has answered (L-38).
    ///
    /// # Errors
    /// That dispatch is not staged, or was activated; nothing changed.
    pub fn withdraw<W: Words>(&mut self, words: &W, key: K, now: Instant) -> Result<(), LaneError> {
        self.check_open()?;
        let slot = self.staged.ok_or(LaneError::NothingStaged)?;
        let flight = self.flight_mut(slot).filter(|flight| flight.key == key).ok_or(LaneError::NothingStaged)?;
        flight.wanted = Some(Act::Withdraw);
        self.do_wanted(words, slot, now)
    }

    /// Publishes ACTIVATE by compare-exchange from FRAME_STAGED, if that is wanted and the child has staged the frame.
    pub(super) fn do_wanted<W: Words>(&mut self, words: &W, slot: PipelineSlot, now: Instant) -> Result<(), LaneError> {
        let Some(Flight { phase, wanted: Some(act), identity, .. }) = self.flight(slot).copied() else { return Ok(()) };
        if act.legal_in() != Some(phase) {
            return Ok(());
        }
        let frame = Frame::task(slot);
        self.compare(words, slot, &identity, super::HandOver::Activation)
            .map_err(|reason| self.poisoned(reason, now))?;
        if act == Act::Withdraw {
            frame.clear_dispatch(words);
        }
        if let Some(flight) = self.flight_mut(slot) {
            // If the exchange fails the child has failed the frame meanwhile, and the next look sees that.
            flight.phase = act.leads_to();
        }
        if frame.activate(words).is_ok() {
            self.published = true;
        }
        Ok(())
    }

    /// Compares trailer and lease with what was published (L-1).
    #[inline(always)]
    pub(super) fn compare<W: Words>(
        &self,
        words: &W,
        slot: PipelineSlot,
        identity: &DispatchIdentity,
        hand_over: super::HandOver,
    ) -> Result<(), Poison> {
        let expected = Stamp::of(self.spec.protocol, identity);
        if Frame::task(slot).carries(words, &expected) {
            return Ok(());
        }
        Err(identity_changed(words, slot, expected, hand_over))
    }

    #[inline]
    fn check_open(&self) -> Result<(), LaneError> {
        match self.life {
            Life::Open => Ok(()),
            Life::Stopping => Err(LaneError::Stopping),
            Life::Poisoned { reason, .. } => Err(LaneError::Poisoned(reason)),
        }
    }

    #[cold]
    fn poisoned(&mut self, reason: Poison, now: Instant) -> LaneError {
        self.set_poison(reason, now);
        LaneError::Poisoned(self.poison().unwrap_or(reason))
    }
}

/// When a task is overdue that may run from `now` on.
#[inline]
fn due(limit: Option<Duration>, now: Instant) -> Instant {
    limit.map_or(Instant::NEVER, |limit| now.saturating_add(limit))
}

#[cold]
fn identity_changed<W: Words>(words: &W, slot: PipelineSlot, expected: Stamp, hand_over: super::HandOver) -> Poison {
    Poison::Identity { hand_over, place: Place::Task(slot), expected, found: Frame::task(slot).stamp(words) }
}
