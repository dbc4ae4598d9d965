//! Failing what has not started: an aborted run, a dead endpoint, a stuck child, a stopped engine.

use alloc::format;

use crate::ids::{EndpointIndex, PipelineSlot, TaskSlot};

use super::run::{FailureKind, RunEvent};
use super::slot::{Kind, NIL, TaskState};
use super::text::TextRef;
use super::worker::{Life, Occupant, ReadyList, TaskQueue, WorkerIndex};
use super::{Engine, EngineError, WorkerClass};

impl Engine {
    /// Fails every task of a run that has not been handed out, and takes its staged one back (E-6, E-9). Costs a look
    /// at every record and worker: aborting a run is rare.
    pub(super) fn fail_unstarted(&mut self, run: PipelineSlot, text: TextRef) {
        if self.reservation.is_some_and(|reservation| self.slots[reservation.slot].run == run) {
            self.lift_reservation();
        }
        if let Some(live) = self.live[run.index()].as_mut() {
            live.groups = TaskQueue::EMPTY;
            live.subs = TaskQueue::EMPTY;
            live.ready = ReadyList::EMPTY;
        }
        for worker in &mut self.workers.workers {
            worker.partitions[run.index()].clear();
        }
        self.withdraw_staged(run);
        // Members of a launched group that are not handed out yet end with the next action.
        if self.launching.is_some() {
            self.wake();
        }
        let mut failed = NIL;
        let mut from = 0;
        while let Some(slot) = self.slots.next_unfinished(from) {
            from = slot.0 + 1;
            if self.slots[slot].run == run && matches!(self.slots[slot].state, TaskState::Pending | TaskState::Ready) {
                self.stop_waiting(slot);
                self.poison(slot, text);
                self.slots[slot].spread = true;
                self.slots[slot].queue_next = core::mem::replace(&mut failed, slot.0);
            }
        }
        self.end_worklist(failed);
    }

    /// The endpoint is gone for good: everything that can only go there fails now, queued or not yet ready (E-41).
    /// What it has been handed is still to be reported, by whoever knows when its memory is safe (L-27).
    ///
    /// # Errors
    /// [`EngineError::UnknownEndpoint`].
    pub fn endpoint_dead(&mut self, endpoint: EndpointIndex, reason: &str) -> Result<(), EngineError> {
        let worker = self.workers.by_endpoint(endpoint).ok_or(EngineError::UnknownEndpoint { endpoint })?;
        if !matches!(self.workers[worker].life, Life::Alive) {
            return Ok(());
        }
        let text = self.texts.store(reason);
        self.workers[worker].life = Life::Dead(text);
        if let WorkerClass::Sub(_) = self.workers[worker].class {
            self.workers.live_subs -= 1;
            self.workers.idle_subs.retain(|idle| *idle != worker);
            self.workers.last_dead_sub = Some(worker);
        }
        let mut failed = NIL;
        let mut from = 0;
        while let Some(slot) = self.slots.next_unfinished(from) {
            from = slot.0 + 1;
            let state = self.slots[slot].state;
            if !matches!(state, TaskState::Pending | TaskState::Ready) || !self.is_unreachable(slot, worker) {
                continue;
            }
            if state == TaskState::Ready {
                self.take_from_queue(slot);
            }
            self.poison(slot, text);
            if let Some(error) = self.slots[slot].error {
                self.texts.hold(error);
                self.fail_run(self.slots[slot].run, FailureKind::Task, error);
            }
            self.slots[slot].queue_next = core::mem::replace(&mut failed, slot.0);
        }
        self.end_worklist(failed);
        self.look_for_work();
        self.settle_all();
        Ok(())
    }

    /// A child that cannot be ended holds what it was handed for ever (L-35): the runs concerned fail as stuck and
    /// leave the FIFO, their leases and their memory are never used again, and the endpoint is dead.
    ///
    /// # Errors
    /// [`EngineError::UnknownEndpoint`].
    pub fn stuck(&mut self, endpoint: EndpointIndex, facts: &str) -> Result<(), EngineError> {
        let worker = self.workers.by_endpoint(endpoint).ok_or(EngineError::UnknownEndpoint { endpoint })?;
        let held = [self.workers[worker].active, self.workers[worker].staged];
        for Occupant { slot, .. } in held.into_iter().flatten() {
            let text = self.texts.store(&format!("stuck: {facts}"));
            self.abort_run(self.slots[slot].run, FailureKind::Stuck, text);
        }
        self.endpoint_dead(endpoint, facts)?;
        for Occupant { slot, .. } in held.into_iter().flatten() {
            self.retire_run(self.slots[slot].run);
        }
        self.promote();
        Ok(())
    }

    /// Hands nothing out any more and fails what has not been handed out, in every open run (E-36). What runs is still
    /// to be reported; each run ends with its last report.
    pub fn stop(&mut self) {
        self.stopping = true;
        self.open = None;
        for run in PipelineSlot::ALL {
            let Some(live) = self.live(run) else { continue };
            let id = live.id;
            let complete = live.closed && live.alive == 0;
            if !complete {
                let text = self.texts.store("worker closed");
                self.abort_run(run, FailureKind::Closed, text);
            }
            if self.building == Some(run) {
                // The callback may still be running: it learns from its next submit. Its graph ends here.
                let _ = self.close_submission(id);
            }
        }
        self.settle_all();
        self.signals.lease_free = true;
    }

    /// Whether every run has ended.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Whether [`stop`](Self::stop) was called.
    #[must_use]
    pub const fn is_stopping(&self) -> bool {
        self.stopping
    }

    fn settle_all(&mut self) {
        for run in PipelineSlot::ALL {
            self.settle_run(run);
        }
    }

    fn end_worklist(&mut self, first: u32) {
        if first != NIL {
            self.end_tasks(TaskSlot(first));
        }
        self.consume_unreferenced();
    }

    /// Whether `slot` can go nowhere now that `worker` is dead.
    fn is_unreachable(&self, slot: TaskSlot, worker: WorkerIndex) -> bool {
        let record = &self.slots[slot];
        match record.kind {
            Kind::NextLevel(target) => target == worker,
            Kind::Group { first, sub: false } => {
                self.members.of(first, record.members).iter().any(|member| member.target == worker)
            }
            Kind::Sub | Kind::Group { sub: true, .. } => usize::from(record.members) > self.workers.live_subs,
            Kind::Slab => false,
        }
    }

    fn take_from_queue(&mut self, slot: TaskSlot) {
        let record = &self.slots[slot];
        let run = record.run;
        let wanted = |_: &super::slot::SlotTable, candidate: TaskSlot| candidate == slot;
        let Some(live) = self.live[run.index()].as_mut() else { return };
        match record.kind {
            Kind::NextLevel(worker) => {
                self.workers[worker].partitions[run.index()].queue.take_first(&mut self.slots, wanted);
            }
            Kind::Group { sub: false, .. } => {
                live.groups.take_first(&mut self.slots, wanted);
                if self.reservation.is_some_and(|reservation| reservation.slot == slot) {
                    self.lift_reservation();
                }
            }
            Kind::Sub | Kind::Group { sub: true, .. } => {
                live.subs.take_first(&mut self.slots, wanted);
            }
            Kind::Slab => {}
        }
    }

    /// The run leaves the FIFO with its lease and everything that its tasks name (L-35).
    fn retire_run(&mut self, run: PipelineSlot) {
        if self.building == Some(run) {
            self.building = None;
            self.end_all_scopes();
        }
        self.move_run(run, RunEvent::Fail);
        let Some(live) = self.live[run.index()].take() else { return };
        self.fifo.retain(|queued| *queued != run);
        let retired = self.leases.retire(&live.lease);
        debug_assert!(retired, "a live run owns its lease");
        self.signals.lease_free = true;
        self.signals.run_changed = true;
        self.record_end(live.id, live.failure);
    }
}
