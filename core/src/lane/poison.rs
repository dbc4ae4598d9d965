//! Why an endpoint is poisoned (L-26).

use core::fmt;
use core::time::Duration;

use super::{ExitCause, Phase, Stage};
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
    #[error("the child broke the protocol: at {hand_over}, {place} should carry {expected} and carries {found}")]
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
    #[error("the child broke the protocol: the state of {place}, {during}, is {found}")]
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
        "the child broke the protocol: {place} is staged with preparation {found}, legal are 1 (validated) and 2 (prepared)"
    )]
    Preparation {
        /// Where.
        place: Place,
        /// The word.
        found: i32,
    },
    /// An acceptance word that is neither 0 nor 1 (L-17).
    #[error("the child broke the protocol: the acceptance word of {place} is {found}, legal are 0 and 1")]
    Acceptance {
        /// Where.
        place: Place,
        /// The word.
        found: i32,
    },
    /// A frame that should have been free was not (L-3).
    #[error("{place} could not be reused: its state is {found}, left there was {left:?}")]
    NotReusable {
        /// Where.
        place: Place,
        /// The word.
        found: RawState,
        /// What the parent last saw there.
        left: FrameState,
    },
    /// A control did not come back in time, so what it did is unknown (L-22).
    #[error("control {command:?} got no answer within {waited:?}, so its outcome is unknown")]
    ControlTimeout {
        /// Which.
        command: ControlCommand,
        /// How long it was given, deferral included.
        waited: Duration,
    },
    /// A task had a deadline and did not end by it (E-43, C-15).
    #[error(
        "{identity} did not end by its deadline: published {age:?} ago, it is {stage}; the child is given up as lost"
    )]
    Overdue {
        /// Whose task it is.
        identity: DispatchIdentity,
        /// Where it stands.
        stage: Stage,
        /// How long ago it was published.
        age: Duration,
    },
    /// A killed child, or its subtree, did not go (L-35).
    #[error("the child, or something below it, was killed and is still there")]
    Stuck,
    /// The thread that drives the lanes failed in between (L-26).
    #[error("the progress driver failed inside a round over this endpoint")]
    Driver,
    /// Every dispatch id was used.
    #[error("all 2^64 dispatch ids of this endpoint are used")]
    OutOfIds,
}

impl Poison {
    /// What a person can do about it.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Dead { .. } => "its own output may say more; close this worker and build a new one",
            Self::Identity { .. }
            | Self::State { .. }
            | Self::Preparation { .. }
            | Self::Acceptance { .. }
            | Self::NotReusable { .. } => {
                "it was asked to leave; close this worker and build a new one, and if it comes back look for two builds of \
                 laneway side by side, or for a callable that writes where it must not"
            }
            Self::ControlTimeout { .. } => {
                "it was asked to leave; give the control more time, or none at all: then it waits as long as the child lives"
            }
            Self::Overdue { .. } => {
                "it will be killed; raise the deadline if the task may take that long, else look at its callable"
            }
            Self::Stuck => {
                "what its tasks name is kept until this process ends; it most likely sits in a system call that cannot be \
                 interrupted (its state and stack are under /proc)"
            }
            Self::Driver => {
                "it was asked to leave; this is a fault of laneway, please report it with the text of the panic"
            }
            Self::OutOfIds => "close this worker and build a new one",
        }
    }
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

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::ids::{DispatchId, Generation, RunId};
    use crate::wire::Protocol;

    const IDENTITY: DispatchIdentity = DispatchIdentity {
        run: RunId::FIRST,
        slot: PipelineSlot::One,
        generation: Generation::FIRST,
        dispatch: DispatchId::FIRST,
    };

    /// One of each, with the facts that its text must carry. The match has no default, so a new variant comes here.
    fn facts(poison: &Poison) -> &'static [&'static str] {
        match poison {
            Poison::Dead { .. } => &["died", "process 7", "signal 9", "SIGKILL", "memory"],
            Poison::Identity { .. } => {
                &["protocol", "completion", "task frame 1", "dispatch 1 of run 1", "dispatch 99"]
            }
            Poison::State { .. } => &["protocol", "task frame 1", "launched", "77", "no state"],
            Poison::Preparation { .. } => &["protocol", "task frame 1", "preparation 5", "1 (validated)"],
            Poison::Acceptance { .. } => &["protocol", "task frame 1", "is 5", "0 and 1"],
            Poison::NotReusable { .. } => &["task frame 1", "reused", "1 (TaskReady)", "TaskDone"],
            Poison::ControlTimeout { .. } => &["Malloc", "5ms", "unknown"],
            Poison::Overdue { .. } => &["dispatch 1 of run 1", "deadline", "running by the child's own word", "2s"],
            Poison::Stuck => &["killed", "still there"],
            Poison::Driver => &["progress driver"],
            Poison::OutOfIds => &["dispatch ids"],
        }
    }

    fn one_of_each() -> [Poison; 11] {
        let place = Place::Task(PipelineSlot::One);
        let expected = Stamp::of(Protocol::ChipTensors, &IDENTITY);
        let mut found = expected;
        found.trailer.dispatch = 99;
        let during = During::Dispatch(Phase::Launched);
        let (age, waited) = (Duration::from_secs(2), Duration::from_millis(5));
        [
            Poison::Dead { cause: ExitCause::Signalled { pid: 7, signal: 9, unexpected: true, memory_limit: None } },
            Poison::Identity { hand_over: HandOver::Completion, place, expected, found },
            Poison::State { place, during, found: RawState(77) },
            Poison::Preparation { place, found: 5 },
            Poison::Acceptance { place, found: 5 },
            Poison::NotReusable { place, found: RawState(1), left: FrameState::TaskDone },
            Poison::ControlTimeout { command: ControlCommand::Malloc, waited },
            Poison::Overdue { identity: IDENTITY, stage: Stage { phase: Phase::Published, running: true }, age },
            Poison::Stuck,
            Poison::Driver,
            Poison::OutOfIds,
        ]
    }

    /// L-26: what a person reads at three in the morning.
    #[test]
    fn every_reason_carries_its_facts_and_a_remedy() {
        for poison in one_of_each() {
            let text = poison.to_string();
            for fact in facts(&poison) {
                assert!(text.contains(fact), "{text:?} does not say {fact:?}");
            }
            assert!(poison.remedy().len() > 20, "{poison:?} has no remedy");
            assert!(!text.contains("  ") && !poison.remedy().contains("  "), "{text:?}");
        }
    }
}
