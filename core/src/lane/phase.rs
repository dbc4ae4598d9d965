//! Where a dispatch stands in the parent's eyes, and what each state word means there: the transition table of the
//! parent half.

use core::fmt;

use super::Frames;
use crate::wire::FrameState;

/// What the parent last published or saw of an occupied frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// TASK_READY was published.
    Published,
    /// FRAME_STAGED of an active task was seen.
    Staged,
    /// PREPARE_READY was published.
    Preparing,
    /// FRAME_STAGED of a successor was seen; it waits for its run.
    Waiting,
    /// ACTIVATE was published.
    Activated,
    /// ACTIVATE was published with the dispatch id taken out (L-38).
    Withdrawn,
    /// TASK_LAUNCHED was seen.
    Launched,
}

/// What the parent publishes into a task frame: the other half of its transition table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// A task of the executing run.
    Send,
    /// A task of the next run, for staging.
    Stage,
    /// A staged task may run: by compare-exchange from FRAME_STAGED (L-8).
    Activate,
    /// A staged task is taken back: the same with the dispatch id gone from the trailer (L-38).
    Withdraw,
}

impl Act {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Send, Self::Stage, Self::Activate, Self::Withdraw];

    /// The phase in which it is legal; `None` is a free frame.
    #[inline]
    #[must_use]
    pub const fn legal_in(self) -> Option<Phase> {
        match self {
            Self::Send | Self::Stage => None,
            Self::Activate | Self::Withdraw => Some(Phase::Waiting),
        }
    }

    /// The phase that it leads to; its [`Phase::state`] is what is published.
    #[inline]
    #[must_use]
    pub const fn leads_to(self) -> Phase {
        match self {
            Self::Send => Phase::Published,
            Self::Stage => Phase::Preparing,
            Self::Activate => Phase::Activated,
            Self::Withdraw => Phase::Withdrawn,
        }
    }

    /// Whether an endpoint with so many frames knows it.
    #[must_use]
    pub const fn exists_with(self, frames: Frames) -> bool {
        matches!((self, frames), (Self::Send, _) | (_, Frames::Two))
    }
}

/// What a state word means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sight {
    /// Nothing new.
    Same,
    /// The child moved on.
    Moved(Phase),
    /// The dispatch is over and succeeded, unless the error word says otherwise.
    Done,
    /// The dispatch is over and failed.
    Failed,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Published,
        Self::Staged,
        Self::Preparing,
        Self::Waiting,
        Self::Activated,
        Self::Withdrawn,
        Self::Launched,
    ];

    /// The transition table of the parent half: what a state word, seen in this phase, means; `None` is a violation of the
    /// protocol by the child. A short task may pass several states between two looks.
    #[inline]
    #[must_use]
    pub const fn sees(self, frames: Frames, state: FrameState) -> Option<Sight> {
        use FrameState as S;
        Some(match (frames, self, state) {
            (_, Self::Published, S::TaskReady) => Sight::Same,
            (_, Self::Published, S::TaskDone) => Sight::Done,
            (Frames::One, ..) => return None,

            (_, Self::Published | Self::Preparing, S::TaskFailed) => Sight::Failed,
            (_, Self::Published, S::FrameStaged) => Sight::Moved(Self::Staged),
            (_, Self::Published, S::TaskLaunched) => Sight::Moved(Self::Launched),

            (_, Self::Staged, S::FrameStaged) => Sight::Same,
            (_, Self::Staged | Self::Activated, S::TaskLaunched) => Sight::Moved(Self::Launched),
            (_, Self::Staged | Self::Activated | Self::Launched, S::TaskDone) => Sight::Done,
            (_, Self::Staged | Self::Activated | Self::Launched, S::TaskFailed) => Sight::Failed,

            (_, Self::Preparing, S::PrepareReady) => Sight::Same,
            (_, Self::Preparing, S::FrameStaged) => Sight::Moved(Self::Waiting),
            (_, Self::Waiting, S::FrameStaged) => Sight::Same,
            (_, Self::Waiting | Self::Withdrawn, S::TaskFailed) => Sight::Failed,

            (_, Self::Activated | Self::Withdrawn, S::Activate) => Sight::Same,
            (_, Self::Launched, S::TaskLaunched) => Sight::Same,
            _ => return None,
        })
    }

    /// The state word that stands in the frame while the phase lasts.
    #[inline]
    #[must_use]
    pub const fn state(self) -> FrameState {
        match self {
            Self::Published => FrameState::TaskReady,
            Self::Preparing => FrameState::PrepareReady,
            Self::Staged | Self::Waiting => FrameState::FrameStaged,
            Self::Activated | Self::Withdrawn => FrameState::Activate,
            Self::Launched => FrameState::TaskLaunched,
        }
    }
}

/// Where a dispatch stands, in messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stage {
    /// What the parent knows.
    pub phase: Phase,
    /// Whether the child says that it runs it (see [`says_running`](crate::mailbox::extension::says_running)): of a frame that
    /// it takes in and runs in one go nothing else tells.
    pub running: bool,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.phase, self.running) {
            (Phase::Published | Phase::Staged | Phase::Activated, true) => {
                f.write_str("running by the child's own word")
            }
            (phase, _) => phase.fmt(f),
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Published => "published, not yet taken in",
            Self::Staged => "staged",
            Self::Preparing => "published for staging",
            Self::Waiting => "staged behind the executing run",
            Self::Activated => "activated",
            Self::Withdrawn => "withdrawn",
            Self::Launched => "launched",
        })
    }
}
