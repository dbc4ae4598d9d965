//! Runs: begin, close, fail, cancel, and the whole-run FIFO (E-1 to E-9).

use alloc::string::String;

use crate::ids::{PipelineSlot, RunId};
use crate::model::SlotPool;

use super::run::{FailureKind, LiveRun, RecordState, RunEvent, RunFailure, RunOutcome, RunPhase};
use super::text::TextRef;
use super::worker::{ReadyList, TaskQueue};
use super::{Engine, EngineError};

impl Engine {
    /// Takes a lease and opens a run for submits (E-1). Its id is never used again, even if nothing comes of it.
    ///
    /// # Errors
    /// [`EngineError::NoLease`] while every lease is out: try again on [`Signals::lease_free`](super::Signals).
    /// [`EngineError::Stuck`] when none can ever be free again. [`EngineError::BuildingAlready`] while another run is
    /// being built. [`EngineError::RunRecords`] when handles hold every record. [`EngineError::Stopped`] after a stop.
    pub fn begin_run(&mut self) -> Result<RunId, EngineError> {
        if self.stopping {
            return Err(EngineError::Stopped);
        }
        if let Some(live) = self.building.and_then(|slot| self.live[slot.index()].as_ref()) {
            return Err(EngineError::BuildingAlready { run: live.id });
        }
        if self.leases.usable() == 0 {
            return Err(EngineError::Stuck);
        }
        if self.runs.is_full() {
            return Err(EngineError::RunRecords { limit: self.runs.capacity() });
        }
        let run = self.next_run.ok_or(EngineError::NumbersExhausted)?;
        let Some(lease) = self.leases.try_acquire().map_err(|_| EngineError::NumbersExhausted)? else {
            let oldest =
                self.fifo.first().and_then(|slot| self.live[slot.index()].as_ref()).map_or(run, |live| live.id);
            return Err(EngineError::NoLease { oldest, depth: self.leases.depth() });
        };
        let Some(slot) = PipelineSlot::new(lease.slot_id.into()) else {
            return Err(EngineError::NumbersExhausted);
        };
        self.next_run = run.next();
        self.runs.insert(run, slot);
        self.live[slot.index()] = Some(LiveRun {
            id: run,
            lease,
            phase: RunPhase::Reserved,
            closed: false,
            aborted: false,
            alive: 0,
            owed: 0,
            used: false,
            failure: None,
            groups: TaskQueue::EMPTY,
            subs: TaskQueue::EMPTY,
            ready: ReadyList::EMPTY,
            staged: None,
        });
        self.move_run(slot, RunEvent::Open);
        self.building = Some(slot);
        self.open = Some((run, slot));
        self.scopes.open();
        // Never full: there are no more live runs than leases.
        let _ = self.fifo.push(slot);
        self.promote();
        Ok(run)
    }

    /// Closes the graph: releases the scopes and lets the run end once nothing is alive (E-4). After a
    /// [`stop`](Self::stop), which has closed it already, there is nothing left to do.
    ///
    /// # Errors
    /// [`EngineError::UnknownRun`], or [`EngineError::NotBuilding`] if the graph is closed already.
    pub fn close_submission(&mut self, run: RunId) -> Result<(), EngineError> {
        match self.building_slot(run) {
            Ok(slot) => self.close_graph(slot),
            Err(EngineError::NotBuilding { .. }) if self.stopping => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The callback failed with `reason` (E-6): nothing more is submitted or started, what runs finishes, and the run
    /// ends as failed. The first error of a run wins.
    ///
    /// # Errors
    /// As [`close_submission`](Self::close_submission).
    pub fn fail_submission(&mut self, run: RunId, reason: &str) -> Result<(), EngineError> {
        if let Ok(slot) = self.building_slot(run) {
            let text = self.texts.store(reason);
            self.abort_run(slot, FailureKind::Submission, text);
        }
        self.close_submission(run)
    }

    /// Fails what has not started and lets what runs finish (E-9). A run that is still being built takes no more work
    /// and ends when its submission is closed. Cancelling a finished run changes nothing.
    ///
    /// # Errors
    /// [`EngineError::UnknownRun`].
    pub fn cancel(&mut self, run: RunId) -> Result<(), EngineError> {
        match self.runs.get(run) {
            None | Some(RecordState::Free) => Err(EngineError::UnknownRun { run }),
            Some(RecordState::Ended { .. }) => Ok(()),
            Some(RecordState::Live { slot, .. }) => {
                let text = self.texts.store("cancelled");
                self.abort_run(slot, FailureKind::Cancelled, text);
                self.settle_run(slot);
                Ok(())
            }
        }
    }

    /// The last handle of a run is gone: its record is freed, at once or when the run ends (E-9).
    ///
    /// # Errors
    /// [`EngineError::UnknownRun`].
    pub fn release(&mut self, run: RunId) -> Result<(), EngineError> {
        match self.runs.get(run) {
            None | Some(RecordState::Free) => return Err(EngineError::UnknownRun { run }),
            Some(RecordState::Live { slot, .. }) => self.runs.set(run, RecordState::Live { slot, released: true }),
            Some(RecordState::Ended { failure }) => {
                if let Some(failure) = failure {
                    self.texts.give_back(failure.text);
                }
                self.runs.remove(run);
            }
        }
        Ok(())
    }

    /// Where a run stands; `None` for one that was never begun or has been released.
    #[must_use]
    pub fn phase(&self, run: RunId) -> Option<RunPhase> {
        match self.runs.get(run)? {
            RecordState::Free => None,
            RecordState::Live { slot, .. } => self.live[slot.index()].as_ref().map(|live| live.phase),
            RecordState::Ended { failure: None } => Some(RunPhase::Completed),
            RecordState::Ended { failure: Some(_) } => Some(RunPhase::Failed),
        }
    }

    /// How a run ended; `None` while it has not, or when it is unknown. Can be asked again and again (E-9).
    #[must_use]
    pub fn outcome(&self, run: RunId) -> Option<RunOutcome<'_>> {
        match self.runs.get(run)? {
            RecordState::Ended { failure: None } => Some(RunOutcome::Completed),
            RecordState::Ended { failure: Some(failure) } => {
                Some(RunOutcome::Failed { kind: failure.kind, message: self.texts.get(failure.text) })
            }
            RecordState::Free | RecordState::Live { .. } => None,
        }
    }

    /// Whether a run has ended; a run that is gone has.
    #[must_use]
    pub fn is_terminal(&self, run: RunId) -> bool {
        self.phase(run).is_none_or(RunPhase::is_terminal)
    }

    /// Whether everything that the run will ever launch has been accepted: its graph is closed and no acceptance is
    /// owed, or it has ended (E-8).
    #[must_use]
    pub fn is_accepted(&self, run: RunId) -> bool {
        match self.runs.get(run) {
            Some(RecordState::Live { slot, .. }) => {
                self.live[slot.index()].as_ref().is_none_or(|live| live.closed && live.owed == 0)
            }
            _ => true,
        }
    }

    /// The lease slot of `run` if it is being built.
    #[inline]
    pub(super) fn building_slot(&self, run: RunId) -> Result<PipelineSlot, EngineError> {
        if let Some(slot) = self.building
            && self.live(slot).is_some_and(|live| live.id == run)
        {
            return Ok(slot);
        }
        match self.phase(run) {
            None => Err(EngineError::UnknownRun { run }),
            Some(phase) => Err(EngineError::NotBuilding { run, phase }),
        }
    }

    #[inline]
    pub(super) fn live(&self, slot: PipelineSlot) -> Option<&LiveRun> {
        self.live[slot.index()].as_ref()
    }

    #[inline]
    pub(super) fn live_mut(&mut self, slot: PipelineSlot) -> Option<&mut LiveRun> {
        self.live[slot.index()].as_mut()
    }

    /// The first error of a run as text, for E-7.
    pub(super) fn abort_reason(&self, live: &LiveRun) -> String {
        live.failure.map_or_else(String::new, |failure| String::from(self.texts.get(failure.text)))
    }

    fn close_graph(&mut self, slot: PipelineSlot) {
        self.building = None;
        self.open = None;
        if let Some(live) = self.live_mut(slot) {
            live.closed = true;
            if live.phase == RunPhase::Building {
                self.move_run(slot, RunEvent::Close);
            }
        }
        self.signals.run_changed = true;
        self.end_all_scopes();
        self.settle_run(slot);
        self.look_for_work();
    }

    /// Keeps the first error of a run; takes over one holder of `text`.
    pub(super) fn fail_run(&mut self, slot: PipelineSlot, kind: FailureKind, text: TextRef) {
        match self.live[slot.index()].as_mut() {
            Some(live) if live.failure.is_none() => live.failure = Some(RunFailure { kind, text }),
            _ => self.texts.give_back(text),
        }
    }

    /// No more submits, nothing new starts, everything unstarted fails. Takes over one holder of `text`.
    pub(super) fn abort_run(&mut self, slot: PipelineSlot, kind: FailureKind, text: TextRef) {
        self.texts.hold(text);
        self.fail_run(slot, kind, text);
        if let Some(live) = self.live_mut(slot)
            && !live.aborted
        {
            live.aborted = true;
            if self.building == Some(slot) {
                self.open = None;
            }
            self.fail_unstarted(slot, text);
            self.signals.run_changed = true;
        }
        self.texts.give_back(text);
    }

    /// Moves a run along its machine. An event that the machine refuses would be a fault of this crate.
    pub(super) fn move_run(&mut self, slot: PipelineSlot, event: RunEvent) {
        if let Some(live) = self.live_mut(slot) {
            let next = live.phase.on(event);
            debug_assert!(next.is_some(), "run {} in {:?} has no transition on {event:?}", live.id, live.phase);
            live.phase = next.unwrap_or(live.phase);
        }
    }

    /// The head of the FIFO executes, whether its graph is closed or not (E-2).
    pub(super) fn promote(&mut self) {
        while let Some(&slot) = self.fifo.first() {
            match self.live(slot) {
                Some(live) if matches!(live.phase, RunPhase::Building | RunPhase::Prepared) => {}
                _ => return,
            }
            // Only this engine gives leases back or retires them, and both end the run: while it executes it owns its
            // lease (E-3), and one look is enough.
            let owned = self.live(slot).is_some_and(|live| self.leases.owns(&live.lease));
            debug_assert!(owned, "a live run owns its lease");
            self.move_run(slot, RunEvent::Promote);
            self.activate_staged(slot);
            self.look_for_work();
            if !self.is_settled(slot) {
                return;
            }
            self.end_run(slot);
        }
    }

    /// E-4: closed, nothing alive, and executed, aborted or empty.
    fn is_settled(&self, slot: PipelineSlot) -> bool {
        self.live(slot).is_some_and(|live| {
            live.closed && live.alive == 0 && (live.phase == RunPhase::Executing || live.aborted || !live.used)
        })
    }

    /// Ends the run if nothing keeps it open.
    #[inline]
    pub(super) fn settle_run(&mut self, slot: PipelineSlot) {
        if self.is_settled(slot) {
            self.end_run(slot);
            self.promote();
        }
    }

    /// The terminal transition (E-5).
    fn end_run(&mut self, slot: PipelineSlot) {
        let failed = self.live(slot).is_some_and(|live| live.failure.is_some());
        self.move_run(slot, if failed { RunEvent::Fail } else { RunEvent::Complete });
        let Some(live) = &mut self.live[slot.index()] else { return };
        // A worker whose only task was staged is still on the list, and must not be when the next run uses the slot.
        while live.ready.pop(&mut self.workers.workers, slot).is_some() {}
        let (run, lease, failure) = (live.id, live.lease, live.failure);
        self.live[slot.index()] = None;
        self.fifo.retain(|queued| *queued != slot);
        let came_back = self.leases.release(&lease);
        debug_assert!(came_back, "a live run owns its lease");
        self.signals.lease_free = true;
        self.signals.run_changed = true;
        self.record_end(run, failure);
    }

    /// Leaves the result for the handles, or frees the record when there are none.
    pub(super) fn record_end(&mut self, run: RunId, failure: Option<RunFailure>) {
        match self.runs.get(run) {
            Some(RecordState::Live { released: true, .. }) => {
                if let Some(failure) = failure {
                    self.texts.give_back(failure.text);
                }
                self.runs.remove(run);
            }
            _ => self.runs.set(run, RecordState::Ended { failure }),
        }
    }

    /// The pool of leases, for a driver that checks ownership before it hands work down (C-5).
    #[must_use]
    pub fn leases(&self) -> &SlotPool {
        &self.leases
    }
}
