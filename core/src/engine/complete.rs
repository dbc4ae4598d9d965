//! Reports from endpoints, and how a task ends (E-20 to E-24).

use crate::ids::{PipelineSlot, TaskSlot};

use super::Engine;
use super::action::{Outcome, Report, Ticket};
use super::edge::EdgeKind;
use super::group::{GroupEvent, MemberState};
use super::run::FailureKind;
use super::slot::{Kind, NIL, TaskEvent, TaskState};
use super::text::TextRef;
use super::worker::WorkerIndex;

impl Engine {
    /// The child validated and staged a dispatch. It changes no accounting (L-7).
    pub fn staged(&mut self, ticket: Ticket) -> Report {
        if self.is_current(ticket) { Report::Counted } else { Report::Late }
    }

    /// The dispatch was launched: one acceptance of its run is settled, once per member (E-8, L-18).
    pub fn accepted(&mut self, ticket: Ticket) -> Report {
        if self.is_current(ticket) && self.accept(ticket) { Report::Counted } else { Report::Late }
    }

    /// A dispatch ended. Frees its lane, and ends the task when it was the last member (E-24). Process this before
    /// asking for new actions (E-35).
    #[inline]
    pub fn completed(&mut self, ticket: Ticket, outcome: Outcome<'_>) -> Report {
        if matches!(outcome, Outcome::Success) && self.end_single(ticket) {
            return Report::Counted;
        }
        self.end_any(ticket, outcome)
    }

    /// The usual end, in one go: a task that is no group has succeeded. `false` if it is anything else; nothing has changed
    /// then.
    #[inline(always)]
    fn end_single(&mut self, ticket: Ticket) -> bool {
        let Some(record) = self.slots.get_mut(ticket.slot) else { return false };
        let worker = match record.kind {
            Kind::NextLevel(worker) => worker,
            Kind::Sub => record.runner,
            Kind::Group { .. } | Kind::Slab => return false,
        };
        if record.serial != ticket.serial || record.state != TaskState::Running || record.error.is_some() {
            return false;
        }
        record.advance(TaskEvent::Succeed);
        let owed = u32::from(!core::mem::replace(&mut record.accepted, true));
        let (run, has_edges) = (record.run, record.has_edges());
        if !has_edges {
            // Nobody waits for it and it held nobody.
            record.drop_reference(ticket.slot, &mut self.unreferenced);
        }
        self.slots.mark_finished(ticket.slot);
        self.free_lane(worker, ticket);
        if has_edges {
            self.settle_single(ticket.slot);
        }
        if self.unreferenced != NIL {
            self.consume_unreferenced();
        }
        self.signals.task_ended = true;
        if let Some(live) = self.live[run.index()].as_mut() {
            live.owed -= owed;
            if live.closed {
                self.signals.run_changed |= owed > 0 && live.owed == 0;
                self.settle_run(run);
            }
        }
        true
    }

    /// As [`end_tasks`](Self::end_tasks) for one task that has succeeded: seldom does another end with it.
    #[inline(never)]
    fn settle_single(&mut self, slot: TaskSlot) {
        let mut work = NIL;
        self.settle_task(slot, &mut work);
        if work != NIL {
            self.end_tasks(TaskSlot(work));
        }
    }

    #[inline(never)]
    fn end_any(&mut self, ticket: Ticket, outcome: Outcome<'_>) -> Report {
        if !self.is_current(ticket) {
            return Report::Late;
        }
        self.accept(ticket);
        self.free_lane(self.target_of(ticket), ticket);
        self.end_member(ticket, outcome);
        self.signals.task_ended = true;
        Report::Counted
    }

    /// Counts the acceptance of a current dispatch; `false` if it has been counted before.
    #[inline]
    fn accept(&mut self, ticket: Ticket) -> bool {
        let slot = &mut self.slots[ticket.slot];
        let accepted = match slot.kind {
            Kind::Group { first, .. } => &mut self.members.members[first as usize + ticket.member.index()].accepted,
            _ => &mut slot.accepted,
        };
        if core::mem::replace(accepted, true) {
            return false;
        }
        let run = slot.run;
        self.settle_acceptances(run, 1);
        true
    }

    /// Whether the dispatch is with its endpoint.
    #[inline]
    pub(super) fn is_current(&self, ticket: Ticket) -> bool {
        let Some(slot) = self.slots.get(ticket.slot) else { return false };
        if slot.serial != ticket.serial || slot.state != TaskState::Running {
            return false;
        }
        match slot.kind {
            Kind::Group { first, .. } => {
                ticket.member.0 < slot.members
                    && self.members.members[first as usize + ticket.member.index()].state == MemberState::Running
            }
            _ => true,
        }
    }

    /// The worker that holds a current dispatch.
    #[inline]
    fn target_of(&self, ticket: Ticket) -> WorkerIndex {
        let slot = &self.slots[ticket.slot];
        match slot.kind {
            Kind::NextLevel(worker) => worker,
            Kind::Group { first, .. } => self.members.members[first as usize + ticket.member.index()].target,
            Kind::Sub | Kind::Slab => slot.runner,
        }
    }

    /// Counts the end of a member; the task ends with its last one. The first failure decides.
    fn end_member(&mut self, ticket: Ticket, outcome: Outcome<'_>) {
        if outcome != Outcome::Success {
            self.note_failure(ticket.slot, outcome);
        }
        let slot = &mut self.slots[ticket.slot];
        slot.ended += 1;
        if let Kind::Group { first, .. } = slot.kind {
            self.members.members[first as usize + ticket.member.index()].state = MemberState::Ended;
            if slot.ended < slot.members {
                return;
            }
            self.move_group(ticket.slot, GroupEvent::LastMember);
        }
        let slot = &self.slots[ticket.slot];
        let (run, failure) = (slot.run, slot.error);
        match failure {
            None => self.move_task(ticket.slot, TaskEvent::Succeed),
            Some(text) => {
                self.move_task(ticket.slot, TaskEvent::Fail);
                self.texts.hold(text);
                self.fail_run(run, FailureKind::Task, text);
            }
        }
        self.slots.mark_finished(ticket.slot);
        self.end_tasks(ticket.slot);
        self.consume_unreferenced();
        self.settle_run(run);
    }

    #[cold]
    fn note_failure(&mut self, slot: TaskSlot, outcome: Outcome<'_>) {
        let record = &mut self.slots[slot];
        if record.error.is_some() {
            return;
        }
        record.error = match outcome {
            Outcome::Success => None,
            Outcome::TaskFailure(message) | Outcome::EndpointFailure(message) => Some(self.texts.store(message)),
            Outcome::Skipped => {
                let failure = self.live[record.run.index()].as_ref().and_then(|live| live.failure);
                Some(match failure {
                    Some(failure) => self.texts.hold(failure.text),
                    None => self.texts.store("never ran"),
                })
            }
        };
    }

    /// Moves a task along its machine.
    pub(super) fn move_task(&mut self, slot: TaskSlot, event: TaskEvent) {
        self.slots[slot].advance(event);
    }

    pub(super) fn move_group(&mut self, slot: TaskSlot, event: GroupEvent) {
        let state = &mut self.slots[slot].group;
        let next = state.on(event);
        debug_assert!(next.is_some(), "group {slot} in {state:?} has no transition on {event:?}");
        *state = next.unwrap_or(*state);
    }

    /// `count` acceptances of a run are no longer owed.
    #[inline]
    pub(super) fn settle_acceptances(&mut self, run: PipelineSlot, count: u32) {
        if let Some(live) = self.live[run.index()].as_mut() {
            live.owed -= count;
            if live.owed == 0 && live.closed {
                self.signals.run_changed = true;
            }
        }
    }

    /// Fails a task that has not started; the caller has taken it out of its queue. `text` gets one more holder. What
    /// depends on it is poisoned by the [`end_tasks`](Self::end_tasks) that must follow.
    pub(super) fn poison(&mut self, slot: TaskSlot, text: TextRef) {
        self.move_task(slot, TaskEvent::Poison);
        if let Kind::Group { .. } = self.slots[slot].kind {
            self.move_group(slot, GroupEvent::GiveUp);
        }
        self.slots.mark_finished(slot);
        self.note_poisoned(slot, text);
    }

    /// What a task that will never run leaves behind: a message, and no acceptance owed (E-12, T-12).
    pub(super) fn note_poisoned(&mut self, slot: TaskSlot, text: TextRef) {
        let text = self.texts.hold(text);
        let record = &mut self.slots[slot];
        debug_assert!(record.error.is_none(), "a task that has not run has no message");
        record.error = Some(text);
        let (run, owed) = (record.run, u32::from(record.members));
        self.settle_acceptances(run, owed);
        self.signals.task_ended = true;
    }

    /// Carries the end of the tasks that are linked from `first` (each COMPLETED or FAILED) to everything that depends
    /// on them: consumers become ready or are poisoned in turn. Iterative; the worklist is linked through the records.
    ///
    /// A task that failed before its producers ended is *unsettled*: whoever may overwrite what it was to write must
    /// still come after those producers, so it lets go of them, and of those who wait for it, when the last has ended.
    pub(super) fn end_tasks(&mut self, first: TaskSlot) {
        let mut work = first.0;
        while work != NIL {
            let slot = TaskSlot(work);
            work = core::mem::replace(&mut self.slots[slot].queue_next, NIL);
            if self.slots[slot].state == TaskState::Failed && !self.slots[slot].spread {
                self.slots[slot].spread = true;
                self.poison_consumers(slot, &mut work);
            }
            if self.slots[slot].pending == 0 {
                self.settle_task(slot, &mut work);
            }
        }
    }

    /// Fails every consumer that would have read what `slot` was to write, and puts it on the worklist (E-22).
    fn poison_consumers(&mut self, slot: TaskSlot, work: &mut u32) {
        let mut at = self.slots[slot].consumers;
        while at != NIL {
            let edge = self.edges[at];
            at = edge.next_consumer;
            if edge.consumer_done
                || !edge.kind.has(EdgeKind::DATA)
                || self.slots[edge.consumer].state != TaskState::Pending
            {
                continue;
            }
            if let Some(text) = self.slots[slot].error {
                self.poison(edge.consumer, text);
                self.slots[edge.consumer].queue_next = core::mem::replace(work, edge.consumer.0);
            }
        }
    }

    /// An ended task without unended producers lets go of its consumers, its producers and itself.
    #[inline(always)]
    fn settle_task(&mut self, slot: TaskSlot, work: &mut u32) {
        let consumers = core::mem::replace(&mut self.slots[slot].consumers, NIL);
        if consumers != NIL {
            self.release_consumers(consumers, work);
        }
        if self.slots[slot].producers != NIL {
            self.release_producers(slot, false);
        }
        self.drop_reference(slot);
    }

    /// The producer of these edges has ended: its consumers no longer wait for it.
    #[inline(never)]
    fn release_consumers(&mut self, consumers: u32, work: &mut u32) {
        // Consumers were pushed in front of each other; they become ready in the order of their submission.
        let mut at = self.edges.reverse(consumers);
        while at != NIL {
            let edge = self.edges.end_producer(at);
            at = edge.next_consumer;
            if edge.consumer_done || !edge.waiting {
                continue;
            }
            let consumer = &mut self.slots[edge.consumer];
            consumer.pending -= 1;
            if consumer.pending > 0 {
                continue;
            }
            match consumer.state {
                TaskState::Pending => {
                    consumer.advance(TaskEvent::LastProducer);
                    let (run, kind) = (consumer.run, consumer.kind);
                    self.enqueue(edge.consumer, run, kind);
                }
                // On the worklist already unless its failure has been spread.
                TaskState::Failed if consumer.spread => {
                    consumer.queue_next = core::mem::replace(work, edge.consumer.0);
                }
                _ => {}
            }
        }
    }

    /// Gives back the references that `slot` holds on its producers: all of them when it is `consumed`, else those
    /// that are no lifetime (E-27).
    pub(super) fn release_producers(&mut self, slot: TaskSlot, consumed: bool) {
        let mut at = core::mem::replace(&mut self.slots[slot].producers, NIL);
        while at != NIL {
            let index = at;
            let edge = self.edges[index];
            at = edge.next_producer;
            if edge.kind.has(EdgeKind::LIFETIME) && !consumed {
                self.edges[index].next_producer = core::mem::replace(&mut self.slots[slot].producers, index);
            } else {
                self.edges.end_consumer(index);
                self.drop_reference(edge.producer);
            }
        }
    }

    /// A task that failed with its whole run no longer waits for anything.
    pub(super) fn stop_waiting(&mut self, slot: TaskSlot) {
        let mut at = self.slots[slot].producers;
        while at != NIL {
            let edge = &mut self.edges[at];
            at = edge.next_producer;
            edge.waiting = false;
        }
        self.slots[slot].pending = 0;
    }

    /// One reference less; a task without any is consumed by the next
    /// [`consume_unreferenced`](Self::consume_unreferenced).
    #[inline]
    pub(super) fn drop_reference(&mut self, slot: TaskSlot) {
        self.slots[slot].drop_reference(slot, &mut self.unreferenced);
    }

    /// Consumes what nothing refers to any more (E-23): map entries, slab, arguments, and the run's count.
    pub(super) fn consume_unreferenced(&mut self) {
        while self.unreferenced != NIL {
            let slot = TaskSlot(self.unreferenced);
            let record = &mut self.slots[slot];
            self.unreferenced = core::mem::replace(&mut record.queue_next, NIL);
            record.advance(TaskEvent::Consume);
            if let Some(live) = self.live[record.run.index()].as_mut() {
                live.alive -= 1;
            }
            if record.holds_memory() {
                self.free_memory(slot);
            }
            self.slots.recycle(slot, TaskEvent::Recycle);
            self.signals.released = true;
        }
    }
}
