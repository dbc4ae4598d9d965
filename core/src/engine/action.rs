//! What the engine asks of the endpoints, and what they report.

use crate::ids::{EndpointIndex, Generation, GroupIndex, PipelineSlot, RunId, TaskSlot};
use crate::time::Instant;
use crate::wire::{CallConfig, Digest};
use core::time::Duration;

/// One dispatch: a member of a task, and which use of the record it belongs to, so that a late report is recognised.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket {
    pub(super) slot: TaskSlot,
    pub(super) member: GroupIndex,
    pub(super) serial: u32,
}

impl Ticket {
    /// The task's record, for messages.
    #[must_use]
    pub const fn slot(self) -> TaskSlot {
        self.slot
    }

    /// Which use of the record it is: two tasks never share both.
    #[must_use]
    pub const fn serial(self) -> u32 {
        self.serial
    }

    /// The member of a group, 0 otherwise.
    #[must_use]
    pub const fn member(self) -> GroupIndex {
        self.member
    }
}

/// Something to do on an endpoint. The engine has already counted it as done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Send the payload of `ticket`; into the staged lane if `prepare_only` (E-33).
    Dispatch {
        /// Which dispatch.
        ticket: Ticket,
        /// Where to.
        endpoint: EndpointIndex,
        /// Stage it and wait for [`Action::Activate`].
        prepare_only: bool,
    },
    /// The run of a staged dispatch is at the head now: let it run (E-34).
    Activate {
        /// The run.
        run: RunId,
        /// Where it is staged.
        endpoint: EndpointIndex,
        /// Which dispatch.
        ticket: Ticket,
    },
    /// The run of a staged dispatch was cancelled: take it back and report it as skipped (L-38).
    Withdraw {
        /// Where it is staged.
        endpoint: EndpointIndex,
        /// Which dispatch.
        ticket: Ticket,
    },
}

/// How a dispatch ended (L-28).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<'a> {
    /// It ran.
    Success,
    /// The child reported an error.
    TaskFailure(&'a str),
    /// The endpoint failed.
    EndpointFailure(&'a str),
    /// It never ran.
    Skipped,
}

/// What became of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// It was counted.
    Counted,
    /// Its task or run is gone, or the member has reported before: ignored (E-10, E-24).
    Late,
}

/// Everything that a frame needs to carry for one dispatch.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    /// The run.
    pub run: RunId,
    /// Slot of the run's lease.
    pub pipeline_slot: PipelineSlot,
    /// Generation of the run's lease.
    pub generation: Generation,
    /// The callable.
    pub digest: &'a Digest,
    /// The config; all zero for SUB tasks.
    pub config: &'a CallConfig,
    /// The encoded arguments (protocol 2); offset 8 is a multiple of 64 in memory.
    pub blob: &'a [u8],
    /// How long the endpoint may take (E-43).
    pub deadline: Option<Duration>,
}

impl Payload<'_> {
    /// When the dispatch is overdue if it starts at `now`.
    #[must_use]
    pub fn due(&self, now: Instant) -> Option<Instant> {
        self.deadline.map(|after| now.saturating_add(after))
    }
}
