//! Why an endpoint is poisoned (L-26), and why a call on one is refused.

use core::fmt;
use core::time::Duration;

use super::{ExitCause, Phase};
use crate::ids::PipelineSlot;
use crate::mailbox::Stamp;
use crate::wire::control::ControlCommand;
use crate::wire::{DispatchIdentity, FrameState};

/// A frame of a mailbox, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The base frame.
    Base,
    /// The task frame of a pipeline slot.
    Task(PipelineSlot),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.write_str("base frame"),
            Self::Task(slot) => write!(f, "task frame {}", slot.index()),
        }
    }
}

/// A value of a state word, with its name if it has one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RawState(pub i32);

impl fmt::Display for RawState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match FrameState::from_raw(self.0) {
            Some(state) => write!(f, "{} ({state:?})", self.0),
            None => write!(f, "{}, which is no state", self.0),
        }
    }
}

/// Why nothing more is sent to an endpoint. The first reason is kept. The text goes behind the label of the endpoint and
/// names the side to blame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Poison {
    /// The child is gone (L-25).
    #[error("the child died: {cause}")]
    Dead {
        /// How it ended.
        cause: ExitCause,
    },
    /// Trailer or lease of an occupied frame changed (L-1).
    #[error(
        "the child broke the protocol: at {hand_over}, {place} should carry {expected} and carries {found}; the child was \
         asked to leave"
    )]
    Identity {
        /// At which hand-over it was seen.
        hand_over: HandOver,
        /// Where.
        place: Place,
        /// What the parent published.
        expected: Stamp,
        /// What stands there.
        found: Stamp,
    },
    /// A state that has no place where it was seen.
    #[error("the child broke the protocol: the state of {place}, {during}, is {found}; the child was asked to leave")]
    State {
        /// Where.
        place: Place,
        /// What the parent was waiting for.
        during: During,
        /// The word.
        found: RawState,
    },
    /// FRAME_STAGED without saying how far (L-6).
    #[error(
        "the child broke the protocol: {place} is staged with preparation {found}, legal are 1 (validated) and 2 \
         (prepared); the child was asked to leave"
    )]
    Preparation {
        /// Where.
        place: Place,
        /// The word.
        found: i32,
    },
    /// An acceptance word that is neither 0 nor 1 (L-17).
    #[error(
        "the child broke the protocol: the acceptance word of {place} is {found}, legal are 0 and 1; the child was asked \
         to leave"
    )]
    Acceptance {
        /// Where.
        place: Place,
        /// The word.
        found: i32,
    },
    /// A frame that should have been free was not (L-3).
    #[error("{place} could not be reused: its state is {found}, left there was {left:?}; the child was asked to leave")]
    NotReusable {
        /// Where.
        place: Place,
        /// The word.
        found: RawState,
        /// What the parent last saw there.
        left: FrameState,
    },
    /// A control did not come back in time, so what it did is unknown (L-22).
    #[error(
        "control {command:?} got no answer within {waited:?}, so its outcome is unknown; the child was asked to leave"
    )]
    ControlTimeout {
        /// Which.
        command: ControlCommand,
        /// How long it was given, deferral included.
        waited: Duration,
    },
    /// A task had a deadline and did not end by it (E-43, C-15).
    #[error(
        "{identity} did not end by its deadline: it is {phase} since {age:?}; the child is lost and will be killed"
    )]
    Overdue {
        /// Whose task it is.
        identity: DispatchIdentity,
        /// Where it stands.
        phase: Phase,
        /// How long ago it was published.
        age: Duration,
    },
    /// A killed child, or its subtree, did not go (L-35).
    #[error("the child cannot be got rid of; what its tasks name is kept until this process ends")]
    Stuck,
    /// The thread that drives the lanes failed in between (L-26).
    #[error(
        "the progress driver failed inside a round over this endpoint; the child was asked to leave, please report this"
    )]
    Driver,
    /// Every dispatch id was used.
    #[error("all 2^64 dispatch ids of this endpoint are used")]
    OutOfIds,
}

/// A hand-over at which identities are compared (L-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HandOver {
    /// FRAME_STAGED was seen.
    Staging,
    /// ACTIVATE is about to be published.
    Activation,
    /// The acceptance word was seen.
    Acceptance,
    /// A terminal state was seen.
    Completion,
}

impl fmt::Display for HandOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Staging => "staging",
            Self::Activation => "activation",
            Self::Acceptance => "acceptance",
            Self::Completion => "completion",
        })
    }
}

/// What the parent was waiting for when it saw an illegal state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum During {
    /// A dispatch in this phase.
    Dispatch(Phase),
    /// The answer to a control.
    Control,
    /// Nothing: a control was about to be published.
    Rest,
}

impl fmt::Display for During {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatch(phase) => write!(f, "whose task is {phase}"),
            Self::Control => f.write_str("while a control is outstanding"),
            Self::Rest => f.write_str("while nothing is outstanding"),
        }
    }
}

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
