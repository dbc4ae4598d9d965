//! Submitting a task.

use core::time::Duration;

use crate::ids::{GroupIndex, WorkerId};
use crate::model::TaskArgs;
use crate::wire::{CallConfig, Digest};

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
