//! Submitting a task, and allocating memory in a run.

use core::time::Duration;

use crate::ids::{GroupIndex, PipelineSlot, RunId, TaskSlot, WorkerId};
use crate::model::TaskArgs;
use crate::wire::{CallConfig, Digest};

use super::check::Destination;
use super::group::{GroupState, MemberState};
use super::ring::{Ring, RingFull};
use super::slot::{ArgsRef, BlockRef, Kind, NIL, TaskEvent};
use super::{Engine, EngineError, Resource};

/// Where a task goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    /// To exactly this worker.
    NextLevel(WorkerId),
    /// To any SUB worker.
    Sub,
    /// One member to each of these workers, all at once.
    NextLevelGroup(&'a [WorkerId]),
    /// One member to each of as many distinct SUB workers as there are argument lists, all at once.
    SubGroup,
}

/// A task to be submitted.
#[derive(Clone, Copy, Debug)]
pub struct Submission<'a> {
    /// Where it goes.
    pub target: Target<'a>,
    /// What it runs.
    pub digest: &'a Digest,
    /// How; `None` is the all-zero config, which SUB tasks always carry.
    pub config: Option<&'a CallConfig>,
    /// One argument list, for a group one per member.
    pub members: &'a [&'a TaskArgs],
    /// How long an endpoint may take (E-43).
    pub deadline: Option<Duration>,
}

/// An output that the submit allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocated {
    /// Which member, 0 unless the task is a group.
    pub member: GroupIndex,
    /// Which tensor of its list.
    pub tensor: usize,
    /// Where it is now.
    pub address: u64,
}

/// What a submission needs of the pools; found out before anything is changed.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Needs {
    /// Tensors in all lists: without any there is nothing to wire.
    pub(super) tensors: usize,
    /// Map entries.
    pub(super) entries: u32,
    /// Bytes of the block for all outputs to be allocated, each piece rounded up.
    pub(super) block: u64,
}

impl Engine {
    /// Submits a task into the run that is being built. Outputs without an address are allocated, in one block, and
    /// told to `allocated` in argument and member order; nothing is told when the submit fails.
    ///
    /// # Errors
    /// What is wrong with the submission, naming the argument; [`EngineError::RunAborted`] after the run's submission
    /// failed or it was cancelled (E-7); [`EngineError::Blocked`] when a pool is full: drive progress and try again. In
    /// all cases nothing of the task is left (E-11).
    pub fn submit(
        &mut self,
        run: RunId,
        submission: &Submission<'_>,
        allocated: &mut dyn FnMut(Allocated),
    ) -> Result<(), EngineError> {
        let lease = self.open_slot(run)?;
        let destination = self.check_target(submission)?;
        let needs = self.check_arguments(submission)?;
        let slot = self.reserve(lease, submission, destination)?;
        let mut poison = NIL;
        if needs.tensors > 0 {
            if let Err(error) = self.depend(slot, submission, needs, &mut poison) {
                self.abandon(slot);
                return Err(error);
            }
            if needs.block > 0 {
                self.place_outputs(slot, submission, allocated);
            }
            self.insert_entries(slot);
        }
        self.publish(slot, poison);
        Ok(())
    }

    /// Takes what the tensors need: edges, entries, and last of all the block, so that nothing can fail after it.
    fn depend(
        &mut self,
        slot: TaskSlot,
        submission: &Submission<'_>,
        needs: Needs,
        poison: &mut u32,
    ) -> Result<(), EngineError> {
        self.fit(needs)?;
        self.wire(slot, submission, poison)?;
        self.take_block(slot, needs)
    }

    /// Allocates `bytes` from the ring of the innermost scope: a slab that lives until its scope has ended and every
    /// task that names bytes of it is consumed (E-27). Returns its address.
    ///
    /// # Errors
    /// [`EngineError::EmptyAllocation`]; [`EngineError::TooLarge`] for more than the ring holds;
    /// [`EngineError::Blocked`] when the ring or the task window is full.
    pub fn alloc(&mut self, run: RunId, bytes: u64) -> Result<u64, EngineError> {
        let lease = self.open_slot(run)?;
        if bytes == 0 {
            return Err(EngineError::EmptyAllocation);
        }
        let block = Ring::footprint(bytes).unwrap_or(u64::MAX);
        let Some(slot) = self.slots.reserve() else { return Err(self.window_full()) };
        let record = &mut self.slots[slot];
        record.run = lease;
        record.kind = Kind::Slab;
        record.members = 0;
        record.references = 1;
        record.spread = false;
        if let Err(error) = self.take_block(slot, Needs { block, ..Needs::default() }) {
            self.abandon(slot);
            return Err(error);
        }
        self.scopes.add(&mut self.slots, slot);
        if let Some(live) = self.live_mut(lease) {
            live.alive += 1;
        }
        self.move_task(slot, TaskEvent::Materialise);
        Ok(self.block_start(slot))
    }

    /// The lease slot of `run` if it takes work.
    fn open_slot(&self, run: RunId) -> Result<PipelineSlot, EngineError> {
        if self.stopping {
            return Err(EngineError::Stopped);
        }
        let lease = self.building_slot(run)?;
        match self.live(lease) {
            Some(live) if live.aborted => Err(EngineError::RunAborted { run, reason: self.abort_reason(live) }),
            _ => Ok(lease),
        }
    }

    #[cold]
    fn window_full(&self) -> EngineError {
        self.blocked(Resource::TaskWindow, 1, self.slots.capacity().into())
    }

    /// Takes a record, room for the arguments, and the config.
    fn reserve(
        &mut self,
        lease: PipelineSlot,
        submission: &Submission<'_>,
        destination: Destination,
    ) -> Result<TaskSlot, EngineError> {
        let Some(slot) = self.slots.reserve() else { return Err(self.window_full()) };
        let record = &mut self.slots[slot];
        record.run = lease;
        record.kind = Kind::Slab;
        record.digest = *submission.digest;
        record.members = submission.members.len() as u16;
        record.ended = 0;
        record.pending = 0;
        // Its own end and its scope.
        record.references = 2;
        record.accepted = false;
        record.spread = false;
        record.diagnostic = false;
        record.group = GroupState::Waiting;
        record.deadline = match submission.deadline {
            None => 0,
            Some(after) => u64::try_from(after.as_nanos()).unwrap_or(u64::MAX).max(1),
        };
        if let Err(error) = self.fill(slot, submission, destination) {
            self.abandon(slot);
            return Err(error);
        }
        Ok(slot)
    }

    fn fill(
        &mut self,
        slot: TaskSlot,
        submission: &Submission<'_>,
        destination: Destination,
    ) -> Result<(), EngineError> {
        match destination {
            Destination::One(kind) => {
                self.slots[slot].kind = kind;
                self.slots[slot].args = self.store_args(submission.members[0])?;
            }
            Destination::Group => self.fill_group(slot, submission)?,
        }
        match submission.config {
            // SUB tasks, and `None`, carry the all-zero config.
            Some(config) if matches!(submission.target, Target::NextLevel(_) | Target::NextLevelGroup(_)) => {
                self.choose_config(slot, config)
            }
            _ => Ok(()),
        }
    }

    fn choose_config(&mut self, slot: TaskSlot, config: &CallConfig) -> Result<(), EngineError> {
        let held = self.configs.hold(config).map_err(|error| EngineError::Invalid { what: "call config", error })?;
        let Some(index) = held else {
            return Err(self.blocked(Resource::Configs, 1, self.configs.capacity().into()));
        };
        let record = &mut self.slots[slot];
        record.config = index;
        record.diagnostic = index != 0 && config.is_diagnostic();
        Ok(())
    }

    /// Makes the member table of a group and stores each member's arguments.
    fn fill_group(&mut self, slot: TaskSlot, submission: &Submission<'_>) -> Result<(), EngineError> {
        let count = submission.members.len();
        let Some(first) = self.members.take(count as u32) else {
            return Err(self.blocked(Resource::GroupMembers, count as u64, self.members.capacity().into()));
        };
        let targets = match submission.target {
            Target::NextLevelGroup(targets) => Some(targets),
            _ => None,
        };
        self.slots[slot].kind = Kind::Group { first, sub: targets.is_none() };
        for (index, args) in submission.members.iter().enumerate() {
            let args = self.store_args(args)?;
            let target = targets.and_then(|targets| self.workers.next_level(targets[index]));
            let member = &mut self.members.members[first as usize + index];
            member.args = args;
            member.state = MemberState::Waiting;
            member.target = target.unwrap_or(member.target);
        }
        Ok(())
    }

    /// Encodes an argument list into the arena; one without arguments takes no room.
    fn store_args(&mut self, args: &TaskArgs) -> Result<ArgsRef, EngineError> {
        let view = args.view();
        if view.counts().word() == 0 {
            return Ok(ArgsRef::EMPTY);
        }
        let (tensors, scalars) = (view.tensors(), view.scalars());
        let bytes = 8 + size_of_val(tensors) + size_of_val(scalars);
        let Some(stored) = self.arena.take(bytes) else {
            let needed = super::arena::ArgsArena::footprint(bytes) as u64;
            return Err(self.blocked(Resource::Arguments, needed, self.arena.capacity() as u64));
        };
        match crate::wire::args::encode(tensors, scalars, self.arena.blob_mut(stored)) {
            Ok(_) => Ok(stored),
            Err(error) => {
                self.arena.free(stored);
                Err(EngineError::Invalid { what: "argument list", error })
            }
        }
    }

    /// Whether the map has room for the task's entries.
    fn fit(&self, needs: Needs) -> Result<(), EngineError> {
        let (used, capacity) = (self.map.used(), self.map.capacity());
        if needs.entries > capacity - used {
            return Err(self.blocked(Resource::MapEntries, needs.entries.into(), capacity.into()));
        }
        Ok(())
    }

    /// Takes the task's block from the ring of the innermost scope.
    fn take_block(&mut self, slot: TaskSlot, needs: Needs) -> Result<(), EngineError> {
        if needs.block == 0 {
            return Ok(());
        }
        let index = self.scopes.ring();
        let run = self.slots[slot].run;
        let ring = &mut self.backings.rings[index];
        let size = ring.bytes();
        if needs.block > size {
            return Err(EngineError::TooLarge { resource: Resource::Ring(index), needed: needs.block, size });
        }
        match ring.take(needs.block, slot, run) {
            Ok(sequence) => {
                self.slots[slot].block = Some(BlockRef { ring: index as u8, sequence });
                Ok(())
            }
            Err(RingFull::Bytes) => Err(self.blocked(Resource::Ring(index), needs.block, size)),
            Err(RingFull::Records) => {
                let limit = ring.limit().into();
                Err(self.blocked(Resource::Slabs(index), 1, limit))
            }
        }
    }

    pub(super) fn block_start(&self, slot: TaskSlot) -> u64 {
        match self.slots[slot].block {
            Some(block) => self.backings.rings[block.ring as usize].range(block.sequence).start,
            None => 0,
        }
    }

    /// Undoes what a submit that failed has taken (E-11): nothing of the task is left.
    fn abandon(&mut self, slot: TaskSlot) {
        self.unwire(slot);
        self.free_memory(slot);
        self.move_task(slot, TaskEvent::Abandon);
        self.slots.recycle(slot);
    }

    /// The task is complete: the run, its scope and the queues learn of it.
    fn publish(&mut self, slot: TaskSlot, poison: u32) {
        self.scopes.add(&mut self.slots, slot);
        let record = &self.slots[slot];
        let (run, members, pending) = (record.run, record.members, record.pending);
        if let Some(live) = self.live_mut(run) {
            live.alive += 1;
            live.owed += u32::from(members);
            live.used = true;
        }
        if poison != NIL {
            self.publish_poisoned(slot, TaskSlot(poison));
            return;
        }
        self.slots.mark_unfinished(slot);
        if pending > 0 {
            self.move_task(slot, TaskEvent::PublishPending);
        } else {
            self.move_task(slot, TaskEvent::PublishReady);
            self.enqueue(slot);
        }
    }

    /// A producer has failed already (E-12): its message is the task's.
    #[cold]
    fn publish_poisoned(&mut self, slot: TaskSlot, producer: TaskSlot) {
        self.move_task(slot, TaskEvent::PublishPoisoned);
        if let Kind::Group { .. } = self.slots[slot].kind {
            self.move_group(slot, super::GroupEvent::GiveUp);
        }
        if let Some(text) = self.slots[producer].error {
            self.note_poisoned(slot, text);
        }
        self.end_tasks(slot);
        self.consume_unreferenced();
    }

    /// Gives back everything that a task held, except its references on others.
    pub(super) fn free_memory(&mut self, slot: TaskSlot) {
        self.free_entries(slot);
        let record = &mut self.slots[slot];
        let (kind, members) = (record.kind, record.members);
        let args = core::mem::replace(&mut record.args, ArgsRef::EMPTY);
        let config = core::mem::take(&mut record.config);
        let (error, block) = (record.error.take(), record.block.take());
        self.arena.free(args);
        self.configs.give_back(config);
        if let Some(text) = error {
            self.texts.give_back(text);
        }
        if let Some(block) = block {
            self.backings.rings[block.ring as usize].free(block.sequence);
        }
        if let Kind::Group { first, .. } = kind {
            for member in 0..usize::from(members) {
                let args = core::mem::replace(&mut self.members.members[first as usize + member].args, ArgsRef::EMPTY);
                self.arena.free(args);
            }
            self.members.free(first);
        }
    }
}
