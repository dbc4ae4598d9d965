//! The report of a group that keeps idle workers from their work for long (E-31).

use core::time::Duration;

use crate::ids::{PipelineSlot, TaskSlot, WorkerId};
use crate::time::Instant;

use super::group::Member;
use super::slot::Kind;
use super::{Engine, WorkerClass};

/// How far the present episode of reservation has been looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Stall {
    /// No reservation, or the present one has been reported.
    #[default]
    Quiet,
    /// A reservation has begun; nobody has told the time yet.
    Begun,
    /// Reserved since.
    Since(Instant),
}

impl Stall {
    pub(super) fn begin(&mut self) {
        *self = Self::Begun;
    }
}

/// A group at the head of its queue that waits for a busy member (E-31).
#[derive(Clone, Copy, Debug)]
pub struct BlockedGroup<'a> {
    engine: &'a Engine,
    slot: TaskSlot,
    run: PipelineSlot,
    members: &'a [Member],
}

/// One target of a blocked group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockedMember {
    /// The worker.
    pub worker: WorkerId,
    /// Whether it runs something else.
    pub busy: bool,
    /// The first single that waits behind the reservation.
    pub queue_head: Option<TaskSlot>,
}

impl<'a> BlockedGroup<'a> {
    /// The group's task.
    #[must_use]
    pub const fn slot(&self) -> TaskSlot {
        self.slot
    }

    /// Its targets, in member order.
    pub fn members(&self) -> impl Iterator<Item = BlockedMember> + use<'a> {
        let Self { engine, run, members, .. } = *self;
        members.iter().filter_map(move |member| {
            let entry = &engine.workers[member.target];
            let WorkerClass::NextLevel(worker) = entry.class else { return None };
            let queue_head = entry.partitions[run.index()].queue.head();
            Some(BlockedMember { worker, busy: entry.active.is_some(), queue_head })
        })
    }
}

impl Engine {
    /// The group that reserves its targets at present.
    #[must_use]
    pub fn blocked_group(&self) -> Option<BlockedGroup<'_>> {
        let slot = self.reservation?.slot;
        let record = &self.slots[slot];
        let Kind::Group { first, .. } = record.kind else { return None };
        let members = self.members.of(first, record.members);
        Some(BlockedGroup { engine: self, slot, run: record.run, members })
    }

    /// The blocked group whose reservation has kept an idle worker from queued work for `age`; reported once per
    /// reservation (E-31). `now` is the caller's clock.
    pub fn stalled_group(&mut self, now: Instant, age: Duration) -> Option<BlockedGroup<'_>> {
        if self.reservation.is_none() {
            self.stall = Stall::Quiet;
            return None;
        }
        let since = match self.stall {
            Stall::Quiet => return None,
            Stall::Begun => now,
            Stall::Since(since) => since,
        };
        let idle_with_work = |member: BlockedMember| !member.busy && member.queue_head.is_some();
        if !self.blocked_group()?.members().any(idle_with_work) {
            self.stall = Stall::Begun;
            return None;
        }
        if now.since(since) < age {
            self.stall = Stall::Since(since);
            return None;
        }
        self.stall = Stall::Quiet;
        self.blocked_group()
    }
}
