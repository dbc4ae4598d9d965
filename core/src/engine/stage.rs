//! Staging one task of the prepared run, its activation on promotion and its withdrawal (E-33, E-34, L-38).

use crate::ids::{GroupIndex, PipelineSlot, TaskSlot};

use super::Engine;
use super::action::{Action, Ticket};
use super::run::RunPhase;
use super::slot::{Kind, TaskEvent};
use super::worker::{Life, Occupant, ReadyList, WorkerIndex};

/// What is still to be said to the endpoint that holds a staged task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StagedAction {
    Activate(Ticket, WorkerIndex),
    Withdraw(Ticket, WorkerIndex),
}

impl Engine {
    /// Stages the first eligible single of the prepared run (E-33). Looks again only when something has changed.
    pub(super) fn stage(&mut self) -> Option<Action> {
        self.staging_due = false;
        let &run = self.fifo.get(1)?;
        let live = self.live[run.index()].as_mut()?;
        if live.phase != RunPhase::Prepared || live.aborted || live.staged.is_some() || !live.groups.is_empty() {
            return None;
        }
        let mut candidate = live.ready.first();
        while let Some(worker) = candidate {
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
            candidate = ReadyList::after(&self.workers.workers, run, worker);
            let entry = &mut self.workers[worker];
            if !entry.staging || entry.staged.is_some() || !matches!(entry.life, Life::Alive) {
                continue;
            }
            let queue = &mut entry.partitions[run.index()].queue;
            let Some(slot) = queue.take_first(&mut self.slots, |slots, slot| !slots[slot].diagnostic) else { continue };
            entry.staged = Some(Occupant { slot, member: GroupIndex(0) });
            live.staged = Some(worker);
            let endpoint = entry.endpoint;
            self.move_task(slot, TaskEvent::Claim);
            self.slots[slot].staged = true;
            return Some(Action::Dispatch { ticket: self.staged_ticket(slot), endpoint, prepare_only: true });
        }
        None
    }

    fn staged_ticket(&self, slot: TaskSlot) -> Ticket {
        Ticket { slot, member: GroupIndex(0), serial: self.slots[slot].serial }
    }

    /// The run is at the head: its staged task moves to the active lane, before anything else is dispatched (E-34).
    pub(super) fn activate_staged(&mut self, run: PipelineSlot) {
        let Some(live) = self.live[run.index()].as_mut() else { return };
        if live.aborted {
            return;
        }
        let Some(worker) = live.staged.take() else { return };
        let entry = &mut self.workers[worker];
        debug_assert!(entry.active.is_none(), "an earlier run has ended, its lanes are free");
        let Some(occupant) = entry.staged.take() else { return };
        entry.active = Some(occupant);
        self.slots[occupant.slot].staged = false;
        let ticket = self.staged_ticket(occupant.slot);
        self.say(run, StagedAction::Activate(ticket, worker));
    }

    /// The run is aborted: its staged task is taken back (L-38).
    pub(super) fn withdraw_staged(&mut self, run: PipelineSlot) {
        if let Some(StagedAction::Activate(ticket, worker)) = self.staged_action[run.index()] {
            // Promoted, but its endpoint has not been told: it has not started, and is in the staged lane as before.
            self.say(run, StagedAction::Withdraw(ticket, worker));
            let is_current = self.is_current(ticket);
            let entry = &mut self.workers[worker];
            if let Some(occupant) = entry.active.take_if(|occupant| is_current && occupant.slot == ticket.slot) {
                entry.staged = Some(occupant);
                self.slots[ticket.slot].staged = true;
                if let Some(live) = self.live[run.index()].as_mut() {
                    live.staged = Some(worker);
                }
            }
            return;
        }
        let Some(worker) = self.live[run.index()].as_ref().and_then(|live| live.staged) else { return };
        if let (Some(occupant), Life::Alive) = (self.workers[worker].staged, self.workers[worker].life) {
            let ticket = self.staged_ticket(occupant.slot);
            self.say(run, StagedAction::Withdraw(ticket, worker));
        }
    }

    /// The staged task of its run has ended.
    pub(super) fn forget_staged(&mut self, slot: TaskSlot) {
        let record = &mut self.slots[slot];
        record.staged = false;
        debug_assert!(matches!(record.kind, Kind::NextLevel(_)), "only singles are staged");
        if let Some(live) = self.live[record.run.index()].as_mut() {
            live.staged = None;
        }
        self.look_for_work();
    }

    fn say(&mut self, run: PipelineSlot, action: StagedAction) {
        let place = &mut self.staged_action[run.index()];
        if place.replace(action).is_none() {
            self.staged_actions += 1;
        }
        self.wake();
    }

    /// What is still to be said to an endpoint with a staged task; a task that has ended meanwhile is skipped.
    pub(super) fn next_staged_action(&mut self) -> Option<Action> {
        for index in 0..self.staged_action.len() {
            let Some(action) = self.staged_action[index].take() else { continue };
            self.staged_actions -= 1;
            match action {
                StagedAction::Activate(ticket, worker) if self.is_current(ticket) => {
                    let run = self.live(self.slots[ticket.slot].run)?.id;
                    return Some(Action::Activate { run, endpoint: self.workers[worker].endpoint, ticket });
                }
                StagedAction::Withdraw(ticket, worker) if self.is_current(ticket) => {
                    return Some(Action::Withdraw { endpoint: self.workers[worker].endpoint, ticket });
                }
                StagedAction::Activate(..) | StagedAction::Withdraw(..) => {}
            }
        }
        None
    }
}
