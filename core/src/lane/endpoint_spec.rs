//! What the parent is told about a child when it registers the endpoint.

use core::fmt;
use core::time::Duration;

use crate::ids::{SubId, WorkerId};
use crate::wire::Protocol;

/// What users call a child: it stands in front of every message about it (L-28).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Label {
    /// A NEXT_LEVEL worker: a chip, a nested worker.
    Worker(WorkerId),
    /// A SUB child.
    Sub(SubId),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker(id) => write!(f, "worker {id}"),
            Self::Sub(id) => write!(f, "sub {id}"),
        }
    }
}

/// How many task frames an endpoint uses: a contract given at registration, never read off the region (W-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Frames {
    /// Task frame 0 alone; one dispatch at a time, nothing is staged.
    One,
    /// Pipeline slot 0 → task frame 0, slot 1 → task frame 1 (W-2); one dispatch runs, one more of the next run is staged.
    Two,
}

impl Frames {
    /// 1 or 2.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// Registration of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EndpointSpec {
    /// What users call the child.
    pub label: Label,
    /// The child's process id, for messages only; `None` for a child that is a thread.
    pub pid: Option<i32>,
    /// How many task frames it uses.
    pub frames: Frames,
    /// Version of the task frame's argument blob; it must be the one that the child serves.
    pub protocol: Protocol,
    /// Whether the child launches natively and so sets the acceptance word before its tasks end (L-17). Only then is the word
    /// worth watching; a word that was set is reported either way.
    pub marks_acceptance: bool,
    /// Whether somebody will report the end of the whole subtree with [`Lane::subtree_gone`](super::Lane::subtree_gone).
    /// A child process is waitable; where nothing can be waited for, owned frames come back when each is terminal (L-27).
    pub waitable: bool,
    /// How long a poisoned child may go on before its owner is asked to kill it (L-35). 2 s by default.
    pub poison_grace: Duration,
}

impl EndpointSpec {
    /// The default of [`EndpointSpec::poison_grace`] (L-35).
    pub const POISON_GRACE: Duration = Duration::from_secs(2);
}
