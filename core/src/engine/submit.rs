//! Submitting a task, and allocating memory in a run.

use alloc::string::String;
use core::time::Duration;

use crate::ids::{GroupIndex, PipelineSlot, RunId, TaskSlot, WorkerId};
use crate::model::TaskArgs;
use crate::wire::{ByteRange, CallConfig, ChipTensor, Digest, TensorTag};

use super::group::GroupState;
use super::ring::{Ring, RingFull};
use super::slot::{ArgsRef, BlockRef, Kind, NIL, Slot, TaskEvent};
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

/// What comes up while the arguments of a submission are taken in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wiring {
    /// Outputs that the submit allocates; each will need a map entry.
    pub(super) outputs: u32,
    /// Bytes of the block for them, each piece rounded up.
    pub(super) block: u64,
    /// The first producer that has failed already (E-12), or [`NIL`].
    pub(super) poison: u32,
    /// The map entry that was made last, or [`NIL`].
    pub(super) last_entry: u32,
}

/// One argument list, taken apart once.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    pub(super) tensors: &'a [ChipTensor],
    pub(super) tags: &'a [TensorTag],
    pub(super) ranges: &'a [ByteRange],
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
        let kind = self.check_target(submission)?;
        let Some((slot, record)) = self.slots.reserve() else {
            let full = self.window_full();
            return self.submit_again(full, run, submission, allocated);
        };
        prepare(record, lease, kind, submission);
        let mut wiring = Wiring { outputs: 0, block: 0, poison: NIL, last_entry: NIL };
        if let Err(error) = self.take_in(slot, submission, &mut wiring) {
            self.abandon(slot);
            return self.submit_again(error, run, submission, allocated);
        }
        // Nothing fails from here on.
        if wiring.outputs > 0 {
            self.place_outputs(slot, submission, &mut wiring, allocated);
        }
        self.publish(slot, wiring.poison);
        Ok(())
    }

    /// A submit that is blocked on a pool gets another try if open scopes let go of something for it. They never do twice
    /// in a row.
    #[cold]
    fn submit_again(
        &mut self,
        error: EngineError,
        run: RunId,
        submission: &Submission<'_>,
        allocated: &mut dyn FnMut(Allocated),
    ) -> Result<(), EngineError> {
        match error {
            EngineError::Blocked { resource, .. } if self.let_go_of_completed(resource) => {
                self.submit(run, submission, allocated)
            }
            error => Err(error),
        }
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
        if self.slots.is_full() {
            self.let_go_of_completed(Resource::TaskWindow);
        }
        let Some((slot, record)) = self.slots.reserve() else { return Err(self.window_full()) };
        record.run = lease;
        record.kind = Kind::Slab;
        record.members = 0;
        record.references = 1;
        record.spread = false;
        if let Err(error) = self.take_block(slot, block) {
            self.abandon(slot);
            return Err(error);
        }
        self.scopes.add(&mut self.slots[slot], slot);
        if let Some(live) = self.live_mut(lease) {
            live.alive += 1;
        }
        self.move_task(slot, TaskEvent::Materialise);
        Ok(self.block_start(slot))
    }

    /// The lease slot of `run` if it takes work.
    #[inline]
    fn open_slot(&self, run: RunId) -> Result<PipelineSlot, EngineError> {
        match self.open {
            Some((open, lease)) if open == run => Ok(lease),
            _ => Err(self.why_not_open(run)),
        }
    }

    #[cold]
    fn why_not_open(&self, run: RunId) -> EngineError {
        if self.stopping {
            return EngineError::Stopped;
        }
        match self.building_slot(run).map(|lease| self.live(lease)) {
            Err(error) => error,
            Ok(live) => {
                EngineError::RunAborted { run, reason: live.map_or_else(String::new, |live| self.abort_reason(live)) }
            }
        }
    }

    #[cold]
    fn window_full(&self) -> EngineError {
        self.blocked(Resource::TaskWindow, 1, self.slots.capacity().into())
    }

    /// Checks, connects and stores the arguments, and takes the config. The block comes last, so that a submit that
    /// is blocked on anything else leaves the ring alone.
    fn take_in(&mut self, slot: TaskSlot, submission: &Submission<'_>, wiring: &mut Wiring) -> Result<(), EngineError> {
        match submission.target {
            Target::NextLevel(_) | Target::Sub => {
                let list = submission.members[0];
                if !list.is_empty() {
                    self.slots[slot].args = self.take_list(slot, 0, list, wiring)?;
                }
            }
            Target::NextLevelGroup(_) | Target::SubGroup => self.fill_group(slot, submission, wiring)?,
        }
        if let Some(config) = submission.config
            && matches!(submission.target, Target::NextLevel(_) | Target::NextLevelGroup(_))
        {
            // SUB tasks, and `None`, carry the all-zero config.
            self.choose_config(slot, config)?;
        }
        if wiring.block > 0 { self.take_block(slot, wiring.block) } else { Ok(()) }
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

    /// Makes the member table of a group and takes in each member's arguments.
    fn fill_group(
        &mut self,
        slot: TaskSlot,
        submission: &Submission<'_>,
        wiring: &mut Wiring,
    ) -> Result<(), EngineError> {
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
            if let Some(target) = targets.and_then(|targets| self.workers.next_level(targets[index])) {
                self.members.members[first as usize + index].target = target;
            }
            if !args.is_empty() {
                let args = self.take_list(slot, index, args, wiring)?;
                self.members.members[first as usize + index].args = args;
            }
        }
        Ok(())
    }

    /// Checks and connects the tensors of one list that is not empty, and encodes it into the arena.
    fn take_list(
        &mut self,
        slot: TaskSlot,
        member: usize,
        args: &TaskArgs,
        wiring: &mut Wiring,
    ) -> Result<ArgsRef, EngineError> {
        args.check().map_err(|error| EngineError::Arguments { member, error })?;
        let list = List { tensors: args.tensors(), tags: args.tags(), ranges: args.ranges() };
        self.wire_list(slot, member, list, wiring)?;
        match self.arena.store(args.lines(), args.encoded_len()) {
            Some(stored) => Ok(stored),
            None => Err(self.arena_full(args)),
        }
    }

    #[cold]
    fn arena_full(&self, args: &TaskArgs) -> EngineError {
        self.blocked(Resource::Arguments, size_of_val(args.lines()) as u64, self.arena.capacity() as u64)
    }

    /// Takes the task's block from the ring of the innermost scope.
    fn take_block(&mut self, slot: TaskSlot, block: u64) -> Result<(), EngineError> {
        let index = self.scopes.ring();
        let run = self.slots[slot].run;
        let size = self.backings.rings[index].bytes();
        if block > size {
            return Err(EngineError::TooLarge { resource: Resource::Ring(index), needed: block, size });
        }
        match self.backings.take_slab(index, block, slot, run) {
            Ok(sequence) => {
                self.slots[slot].block = Some(BlockRef { ring: index as u8, sequence });
                Ok(())
            }
            Err(RingFull::Bytes) => Err(self.blocked(Resource::Ring(index), block, size)),
            Err(RingFull::Records) => {
                let limit = self.backings.rings[index].limit().into();
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
        self.slots.recycle(slot, TaskEvent::Abandon);
    }

    /// The record is complete: the map, the run, its scope and the queues learn of the task.
    #[inline]
    fn publish(&mut self, slot: TaskSlot, poison: u32) {
        let mut record = &mut self.slots[slot];
        if record.entries != NIL {
            self.insert_entries(slot);
            record = &mut self.slots[slot];
        }
        self.scopes.add(record, slot);
        if let Some(live) = self.live[record.run.index()].as_mut() {
            live.alive += 1;
            live.owed += u32::from(record.members);
            live.used = true;
        }
        if poison != NIL {
            self.publish_poisoned(slot, TaskSlot(poison));
            return;
        }
        let (run, kind, ready) = (record.run, record.kind, record.pending == 0);
        record.advance(if ready { TaskEvent::PublishReady } else { TaskEvent::PublishPending });
        self.slots.mark_unfinished(slot);
        if ready {
            self.enqueue(slot, run, kind);
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

    /// Gives back everything that a task held, its references on others included.
    pub(super) fn free_memory(&mut self, slot: TaskSlot) {
        if self.slots[slot].producers != NIL {
            self.release_producers(slot, true);
        }
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

/// Fills a new record with what is known before the arguments are looked at.
#[inline]
fn prepare(record: &mut Slot, lease: PipelineSlot, kind: Kind, submission: &Submission<'_>) {
    record.run = lease;
    record.kind = kind;
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
}
