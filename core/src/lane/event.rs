//! What a lane reports.

use super::{Phase, Poison};
use crate::time::Instant;
use crate::wire::{DispatchIdentity, Preparation};

/// One thing that happened on an endpoint. `K` is what the owner names a dispatch by, `C` a control.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event<K, C> {
    /// The child holds a validated snapshot of the frame. At most once per dispatch; changes no accounting (L-7).
    Staged {
        /// Which dispatch.
        key: K,
        /// How far the child prepared it.
        preparation: Preparation,
    },
    /// The device accepted the launch. At most once per dispatch, and before its completion (L-18).
    Accepted {
        /// Which dispatch.
        key: K,
    },
    /// The dispatch is over; exactly once per dispatch that was submitted.
    Completed {
        /// Which dispatch.
        key: K,
        /// How it ended.
        outcome: Outcome,
    },
    /// A control is over.
    Control {
        /// Which.
        key: C,
        /// How it ended.
        outcome: ControlOutcome,
    },
    /// Nothing more is accepted. Once per endpoint, and before the completions that follow from it.
    Poisoned {
        /// Why.
        reason: Poison,
    },
}

/// How a dispatch ended (L-28).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// It ran.
    Success,
    /// The child reported an error; its text went where [`Lane::poll`](super::Lane::poll) was told.
    TaskFailure {
        /// The error word.
        code: i32,
    },
    /// The endpoint failed; [`Lane::poison`](super::Lane::poison) says why.
    EndpointFailure {
        /// Whose task it was.
        identity: DispatchIdentity,
        /// Where it stood.
        phase: Phase,
        /// When it was published.
        since: Instant,
    },
    /// It was withdrawn and never ran.
    Skipped,
}

/// How a control ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ControlOutcome {
    /// With this result.
    Done(u64),
    /// The child reported an error; its text went where [`Lane::poll`](super::Lane::poll) was told.
    Failed {
        /// The error word.
        code: i32,
    },
    /// The endpoint was poisoned meanwhile (L-37).
    Poisoned(Poison),
    /// The endpoint was stopped meanwhile (L-37).
    Stopped,
}
