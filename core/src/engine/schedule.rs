//! What to hand to which endpoint next (E-29 to E-37).

use core::time::Duration;

use crate::ids::{Generation, GroupIndex, PipelineSlot, TaskSlot};

use super::Engine;
use super::action::{Action, Outcome, Payload, Ticket};
use super::group::{GroupEvent, MemberState};
use super::slot::{Kind, Slot, TaskEvent};
use super::worker::{Life, Occupant, Worker, WorkerIndex};

/// A launched group whose members are being handed out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch {
    pub(super) slot: TaskSlot,
    pub(super) next: u16,
}

/// The group at the head of its queue that waits for busy targets and reserves all of them (E-31).
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    pub(super) slot: TaskSlot,
    pub(super) busy: u32,
}

impl Engine {
    /// The next thing to do on an endpoint, `None` when there is nothing to do until something is reported or
    /// submitted. Costs what has changed, not what exists (E-37).
    #[inline]
    pub fn next_action(&mut self) -> Option<Action> {
        if self.work { self.look() } else { None }
    }

    #[inline]
    fn look(&mut self) -> Option<Action> {
        if self.staged_actions > 0
            && let Some(action) = self.next_staged_action()
        {
            return Some(action);
        }
        if self.launching.is_some()
            && let Some(action) = self.next_member()
        {
            return Some(action);
        }
        let action = self.place();
        if action.is_none() {
            // What is held may be placed although nothing more is reported.
            self.work = self.subs_held;
            self.signals.work = false;
        }
        action
    }

    /// Only the ready work of the executing head is looked at (E-3), and of the prepared run what may be staged.
    #[inline]
    fn place(&mut self) -> Option<Action> {
        let run = *self.fifo.first()?;
        let live = self.live[run.index()].as_ref()?;
        if self.stopping || !live.phase.is_executing() {
            return None;
        }
        let (groups, subs) = (!live.groups.is_empty(), !live.subs.is_empty());
        if groups && self.place_group(run) {
            return self.next_member();
        }
        if let Some(action) = self.place_single(run) {
            // With nothing else in sight, the next call need not look.
            self.work = groups || subs || self.staging_due || !self.is_ready_list_empty(run);
            return Some(action);
        }
        if subs && let Some(action) = self.place_sub(run) {
            return Some(action);
        }
        if self.staging_due { self.stage() } else { None }
    }

    /// Everything that a frame carries for a dispatch; `None` when the dispatch is over.
    #[inline]
    #[must_use]
    pub fn payload(&self, ticket: Ticket) -> Option<Payload<'_>> {
        if !self.is_current(ticket) {
            return None;
        }
        let slot = &self.slots[ticket.slot];
        let live = self.live(slot.run)?;
        let args = match slot.kind {
            Kind::Group { first, .. } => self.members.members[first as usize + ticket.member.index()].args,
            _ => slot.args,
        };
        Some(Payload {
            run: live.id,
            pipeline_slot: slot.run,
            generation: Generation::new(live.lease.generation)?,
            digest: &slot.digest,
            config: self.configs.get(slot.config),
            blob: self.arena.blob(args),
            deadline: (slot.deadline > 0).then(|| Duration::from_nanos(slot.deadline)),
        })
    }

    /// Puts a ready task of a run into the queue of its kind.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, slot: TaskSlot, run: PipelineSlot, kind: Kind) {
        let Some(live) = self.live[run.index()].as_mut() else { return };
        if let Kind::NextLevel(worker) = kind {
            let entry = &mut self.workers[worker];
            entry.partitions[run.index()].queue.push(&mut self.slots, slot);
            // A busy worker of the executing run is listed when it becomes idle.
            if entry.is_idle() || !live.phase.is_executing() {
                live.ready.push(&mut self.workers.workers, run, worker);
                self.wake();
            }
            return;
        }
        match kind {
            Kind::Group { sub: false, .. } => live.groups.push(&mut self.slots, slot),
            Kind::Sub | Kind::Group { sub: true, .. } => live.subs.push(&mut self.slots, slot),
            Kind::NextLevel(_) | Kind::Slab => return,
        }
        self.wake();
    }

    /// A lane is free again; whatever that makes placeable is listed before anyone sleeps (E-35, T-6).
    #[inline(always)]
    pub(super) fn free_lane(&mut self, worker: WorkerIndex, ticket: Ticket) {
        let occupant = Occupant { slot: ticket.slot, member: ticket.member };
        let entry = &mut self.workers[worker];
        if entry.active == Some(occupant) {
            entry.active = None;
            self.offer(worker);
        } else if entry.staged == Some(occupant) {
            entry.staged = None;
            self.forget_staged(ticket.slot);
        }
    }

    /// An idle worker looks for something to do.
    #[inline(always)]
    pub(super) fn offer(&mut self, worker: WorkerIndex) {
        let entry = &self.workers[worker];
        if !entry.is_idle() {
            return;
        }
        if entry.is_sub() {
            self.workers.idle_subs.push(worker);
            self.wake();
            return;
        }
        if entry.reserved
            && let Some(reservation) = &mut self.reservation
        {
            reservation.busy -= 1;
            if reservation.busy == 0 {
                self.wake();
            }
            return;
        }
        if let Some(&run) = self.fifo.first()
            && !entry.partitions[run.index()].queue.is_empty()
            && let Some(live) = self.live[run.index()].as_mut()
        {
            live.ready.push(&mut self.workers.workers, run, worker);
            self.wake();
        }
    }

    /// Something has become placeable: whoever sleeps is to be woken for it (E-35).
    pub(super) fn wake(&mut self) {
        self.work = true;
        self.signals.work = true;
    }

    /// Something may have become placeable.
    pub(super) fn look_for_work(&mut self) {
        self.wake();
        self.staging_due = true;
    }

    pub(super) fn ticket(&self, slot: TaskSlot, member: u16) -> Ticket {
        Ticket { slot, member: GroupIndex(member), serial: self.slots[slot].serial }
    }

    /// The first ready single whose worker is idle and not reserved (E-30).
    #[inline(always)]
    fn place_single(&mut self, run: PipelineSlot) -> Option<Action> {
        let live = self.live[run.index()].as_mut()?;
        loop {
            let (_, entry) = live.ready.pop(&mut self.workers.workers, run)?;
            #[cfg(test)]
            {
                self.looked_at += 1;
            }
            if entry.reserved || !entry.is_idle() {
                continue;
            }
            let Some((slot, record)) = entry.partitions[run.index()].queue.pop(&mut self.slots) else { continue };
            return Some(start_single(slot, record, entry));
        }
    }

    fn is_ready_list_empty(&self, run: PipelineSlot) -> bool {
        self.live(run).is_none_or(|live| live.ready.first().is_none())
    }

    /// The head of the SUB queue, if enough SUB workers are idle for it; nothing overtakes it (E-32).
    fn place_sub(&mut self, run: PipelineSlot) -> Option<Action> {
        let live = self.live[run.index()].as_mut()?;
        let slot = live.subs.head()?;
        if usize::from(self.slots[slot].members) > self.workers.idle_subs.len() {
            return None;
        }
        if self.subs_held && matches!(self.slots[slot].kind, Kind::Sub) {
            return None;
        }
        live.subs.pop(&mut self.slots);
        match self.slots[slot].kind {
            Kind::Group { first, .. } => {
                let members = self.slots[slot].members;
                for member in 0..usize::from(members) {
                    let worker = self.workers.idle_subs.pop()?;
                    self.members.members[first as usize + member].target = worker;
                }
                self.launch(slot, first, members);
                self.next_member()
            }
            _ => {
                let worker = self.workers.idle_subs.pop()?;
                let record = &mut self.slots[slot];
                record.runner = worker;
                Some(start_single(slot, record, &mut self.workers[worker]))
            }
        }
    }

    /// Launches the group at the head of its queue if every target is idle, else reserves its targets (E-31).
    fn place_group(&mut self, run: PipelineSlot) -> bool {
        let Some(slot) = self.live(run).and_then(|live| live.groups.head()) else { return false };
        let Kind::Group { first, .. } = self.slots[slot].kind else { return false };
        let members = self.slots[slot].members;
        let busy = match self.reservation {
            Some(reservation) => reservation.busy,
            None => {
                let busy = |member: &&super::group::Member| !self.workers[member.target].is_idle();
                self.members.of(first, members).iter().filter(busy).count() as u32
            }
        };
        if busy == 0 {
            if let Some(live) = self.live[run.index()].as_mut() {
                live.groups.pop(&mut self.slots);
            }
            self.launch(slot, first, members);
            return true;
        }
        if self.reservation.is_none() {
            self.move_group(slot, GroupEvent::Block);
            for member in self.members.of(first, members) {
                self.workers[member.target].reserved = true;
            }
            self.reservation = Some(Reservation { slot, busy });
            self.stall.begin();
        }
        false
    }

    fn launch(&mut self, slot: TaskSlot, first: u32, members: u16) {
        self.move_task(slot, TaskEvent::Claim);
        self.move_group(slot, GroupEvent::Launch);
        for (index, member) in self.members.of(first, members).iter().enumerate() {
            let worker = &mut self.workers[member.target];
            worker.reserved = false;
            worker.active = Some(Occupant { slot, member: GroupIndex(index as u16) });
        }
        if self.reservation.is_some_and(|reservation| reservation.slot == slot) {
            self.reservation = None;
        }
        self.launching = Some(Launch { slot, next: 0 });
    }

    /// Hands out the members of a launched group, one at a time. A member whose endpoint died meanwhile, or whose run
    /// was aborted, ends here without having been handed out.
    fn next_member(&mut self) -> Option<Action> {
        while let Some(Launch { slot, next }) = self.launching {
            let Kind::Group { first, .. } = self.slots[slot].kind else { return None };
            let members = self.slots[slot].members;
            self.launching = (next + 1 < members).then_some(Launch { slot, next: next + 1 });
            let ticket = self.ticket(slot, next);
            let aborted = self.stopping || self.live(self.slots[slot].run).is_none_or(|live| live.aborted);
            let member = &mut self.members.members[first as usize + usize::from(next)];
            let worker = member.target;
            member.state = MemberState::Running;
            match self.workers[worker].life {
                Life::Alive if !aborted => {
                    let endpoint = self.workers[worker].endpoint;
                    return Some(Action::Dispatch { ticket, endpoint, prepare_only: false });
                }
                Life::Alive => self.completed(ticket, Outcome::Skipped),
                Life::Dead(text) => {
                    self.slots[slot].error.get_or_insert_with(|| self.texts.hold(text));
                    self.completed(ticket, Outcome::Skipped)
                }
            };
        }
        None
    }

    /// Lifts the reservation of a group that will not be launched.
    pub(super) fn lift_reservation(&mut self) {
        let Some(reservation) = self.reservation.take() else { return };
        let Kind::Group { first, .. } = self.slots[reservation.slot].kind else { return };
        for index in 0..usize::from(self.slots[reservation.slot].members) {
            let worker = self.members.members[first as usize + index].target;
            self.workers[worker].reserved = false;
            self.offer(worker);
        }
    }
}

/// READY → RUNNING, claimed once (E-20).
#[inline]
fn start_single(slot: TaskSlot, record: &mut Slot, worker: &mut Worker) -> Action {
    record.advance(TaskEvent::Claim);
    let member = GroupIndex(0);
    worker.active = Some(Occupant { slot, member });
    let ticket = Ticket { slot, member, serial: record.serial };
    Action::Dispatch { ticket, endpoint: worker.endpoint, prepare_only: false }
}
