//! Groups: one node of the graph with several members (E-24).

use alloc::vec::Vec;

use super::extent::Extents;
use super::slot::ArgsRef;
use super::worker::WorkerIndex;

/// Where a group stands, as far as its members are concerned; the task's own state is [`TaskState`](super::TaskState).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupState {
    /// Not ready, or behind another group.
    Waiting,
    /// At the head with a busy target: keeps its targets free of singles (E-31).
    Reserving,
    /// Every target was idle; its members are on their way.
    Launched,
    /// Every member has ended.
    Ended,
}

/// What moves a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupEvent {
    /// It is at the head and a target is busy.
    Block,
    /// It is at the head and every target is idle.
    Launch,
    /// The last member has reported.
    LastMember,
    /// Cancelled, poisoned or unreachable before it was launched.
    GiveUp,
}

impl GroupState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Reserving, Self::Launched, Self::Ended];

    /// The state after `event`, `None` where the event is illegal. This is the one place where the machine is declared.
    #[must_use]
    pub const fn on(self, event: GroupEvent) -> Option<Self> {
        Some(match (self, event) {
            (Self::Waiting, GroupEvent::Block) => Self::Reserving,
            (Self::Waiting | Self::Reserving, GroupEvent::Launch) => Self::Launched,
            (Self::Launched, GroupEvent::LastMember) => Self::Ended,
            (Self::Waiting | Self::Reserving, GroupEvent::GiveUp) => Self::Ended,
            _ => return None,
        })
    }
}

impl GroupEvent {
    /// Every event.
    pub const ALL: [Self; 4] = [Self::Block, Self::Launch, Self::LastMember, Self::GiveUp];
}

/// How far a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MemberState {
    /// Not handed out.
    Waiting,
    /// With its endpoint.
    Running,
    /// Has reported.
    Ended,
}

/// One member of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// Its worker; chosen at launch for SUB groups.
    pub(super) target: WorkerIndex,
    pub(super) state: MemberState,
    pub(super) accepted: bool,
    pub(super) args: ArgsRef,
}

/// The member tables of all live groups.
#[derive(Clone, Debug)]
pub(super) struct MemberPool {
    pub(super) members: Vec<Member>,
    extents: Extents,
}

impl MemberPool {
    pub(super) fn new(capacity: u32) -> Self {
        let member =
            Member { target: WorkerIndex(0), state: MemberState::Waiting, accepted: false, args: ArgsRef::EMPTY };
        Self { members: alloc::vec![member; capacity as usize], extents: Extents::new(capacity) }
    }

    pub(super) fn capacity(&self) -> u32 {
        self.extents.capacity()
    }

    pub(super) fn used(&self) -> u32 {
        self.extents.used()
    }

    /// A table of `count` members that have not started and have no arguments yet; `None` if there is no room.
    pub(super) fn take(&mut self, count: u32) -> Option<u32> {
        let first = self.extents.take(count)?;
        let member =
            Member { target: WorkerIndex(0), state: MemberState::Waiting, accepted: false, args: ArgsRef::EMPTY };
        self.members[first as usize..(first + count) as usize].fill(member);
        Some(first)
    }

    pub(super) fn free(&mut self, first: u32) {
        self.extents.free(first);
    }

    pub(super) fn of(&self, first: u32, count: u16) -> &[Member] {
        &self.members[first as usize..first as usize + usize::from(count)]
    }
}
