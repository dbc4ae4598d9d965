//! Why a call on a lane is refused.

use super::{Place, Poison};
use crate::wire::control::ControlCommand;

/// Why a call on a lane was refused. Nothing was published.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaneError {
    /// The endpoint is dead.
    #[error("{0}")]
    Poisoned(Poison),
    /// The endpoint is being stopped.
    #[error("worker closed")]
    Stopping,
    /// The lane already carries a dispatch, or the endpoint carries as many as it can.
    #[error(
        "the {lane} lane is occupied ({inflight} of {capacity} dispatches in flight): a second task was sent to a busy child"
    )]
    Occupied {
        /// "active" or "staged".
        lane: &'static str,
        /// Dispatches in flight.
        inflight: usize,
        /// How many there can be.
        capacity: usize,
    },
    /// The task frame of that pipeline slot still carries a dispatch.
    #[error("{place} still carries a dispatch, so a task of the same pipeline slot cannot be published")]
    FrameBusy {
        /// Which.
        place: Place,
    },
    /// A one-frame endpoint stages nothing.
    #[error("this endpoint has one task frame and stages no successor")]
    NoStaging,
    /// Nothing is staged that could be activated or withdrawn.
    #[error("no such dispatch is staged")]
    NothingStaged,
    /// A control is outstanding already (L-20).
    #[error("control {outstanding:?} is outstanding; one at a time")]
    ControlOutstanding {
        /// Which.
        outstanding: ControlCommand,
    },
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::ids::PipelineSlot;

    /// One of each, with the facts that its text must carry. The match has no default, so a new variant comes here.
    fn facts(error: &LaneError) -> &'static [&'static str] {
        match error {
            LaneError::Poisoned(_) => &["progress driver"],
            LaneError::Stopping => &["worker closed"],
            LaneError::Occupied { .. } => &["active lane", "1 of 2", "busy child"],
            LaneError::FrameBusy { .. } => &["task frame 0", "same pipeline slot"],
            LaneError::NoStaging => &["one task frame"],
            LaneError::NothingStaged => &["staged"],
            LaneError::ControlOutstanding { .. } => &["Free", "one at a time"],
        }
    }

    #[test]
    fn every_refusal_carries_its_facts() {
        let all = [
            LaneError::Poisoned(Poison::Driver),
            LaneError::Stopping,
            LaneError::Occupied { lane: "active", inflight: 1, capacity: 2 },
            LaneError::FrameBusy { place: Place::Task(PipelineSlot::Zero) },
            LaneError::NoStaging,
            LaneError::NothingStaged,
            LaneError::ControlOutstanding { outstanding: ControlCommand::Free },
        ];
        for error in all {
            for fact in facts(&error) {
                assert!(error.to_string().contains(fact), "{error} does not say {fact:?}");
            }
        }
    }
}
