//! Submitting a task.

use core::time::Duration;

use crate::ids::{GroupIndex, RunId, TaskSlot, WorkerId};
use crate::wire::{CallConfig, Digest};

use super::group::{GroupState, Member, MemberState};
use super::slot::{ArgsRef, Kind, TaskEvent};
use super::standin::TaskArgs;
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

impl Engine {
    /// Submits a task into the run that is being built.
    ///
    /// # Errors
    /// What is wrong with the submission, naming the argument; [`EngineError::Blocked`] when a pool is full.
    pub fn submit(
        &mut self,
        run: RunId,
        submission: &Submission<'_>,
        _allocated: &mut dyn FnMut(Allocated),
    ) -> Result<(), EngineError> {
        let lease = self.building_slot(run)?;
        let kind = self.resolve(submission)?;
        let config = 0;
        let Some(slot) = self.slots.reserve() else {
            return Err(self.blocked(Resource::TaskWindow, 1, self.slots.capacity().into()));
        };
        let members = submission.members.len() as u16;
        let record = &mut self.slots[slot];
        record.run = lease;
        record.kind = kind;
        record.digest = *submission.digest;
        record.config = config;
        record.members = members;
        record.ended = 0;
        record.references = 2;
        record.accepted = false;
        record.spread = false;
        record.group = GroupState::Waiting;
        record.deadline = submission.deadline.map_or(0, |after| after.as_nanos() as u64);
        self.scopes.add(&mut self.slots, slot);
        if let Some(live) = self.live_mut(lease) {
            live.alive += 1;
            live.owed += u32::from(members);
            live.used = true;
        }
        self.slots.mark_unfinished(slot);
        self.move_task(slot, TaskEvent::PublishReady);
        self.enqueue(slot);
        Ok(())
    }

    /// Finds the target workers.
    fn resolve(&mut self, submission: &Submission<'_>) -> Result<Kind, EngineError> {
        let members = submission.members.len();
        if members == 0 {
            return Err(EngineError::NoMembers);
        }
        match submission.target {
            Target::NextLevel(id) => {
                let worker = self.workers.next_level(id).ok_or(EngineError::UnknownWorker { worker: id })?;
                Ok(Kind::NextLevel(worker))
            }
            Target::Sub => Ok(Kind::Sub),
            Target::NextLevelGroup(targets) => {
                let first = self.members.extents.take(members as u32);
                let first = first.ok_or_else(|| self.blocked(Resource::GroupMembers, members as u64, 0))?;
                for (index, id) in targets.iter().enumerate() {
                    let worker = self.workers.next_level(*id).ok_or(EngineError::UnknownWorker { worker: *id })?;
                    self.members.members[first as usize + index] =
                        Member { target: worker, state: MemberState::Waiting, accepted: false, args: ArgsRef::EMPTY };
                }
                Ok(Kind::Group { first, sub: false })
            }
            Target::SubGroup => Err(EngineError::SubGroupTooLarge { members, pool: self.workers.sub_pool }),
        }
    }

    /// Gives back everything that a consumed task held.
    pub(super) fn free_memory(&mut self, slot: TaskSlot) {
        let record = &mut self.slots[slot];
        let (kind, members) = (record.kind, record.members);
        self.arena.free(core::mem::replace(&mut record.args, ArgsRef::EMPTY));
        if let Some(text) = record.error.take() {
            self.texts.give_back(text);
        }
        self.configs.give_back(record.config);
        if let Kind::Group { first, .. } = kind {
            for member in self.members.of(first, members) {
                self.arena.free(member.args);
            }
            self.members.extents.free(first);
        }
    }
}
