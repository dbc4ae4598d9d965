//! What a child holds of one task frame, and what each state word means to it: the transition table of the child half.

use crate::ids::DispatchId;
use crate::lane::Frames;
use crate::wire::{DispatchIdentity, FrameState};

/// What the child holds of one task frame. Without one the frame is the parent's, idle or terminal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Hold<T> {
    /// Whose task it is: the identity words of the frame as validated, which must not change meanwhile (L-1).
    pub(super) identity: DispatchIdentity,
    /// How far it is.
    pub(super) progress: Progress<T>,
}

/// How far a task is that was taken in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Progress<T> {
    /// Its snapshot is validated.
    Staged(Staged<T>),
    /// A launched run that was not finalised.
    Running {
        /// The run.
        token: T,
        /// Whether its acceptance was forwarded into the frame.
        accepted: bool,
    },
    /// A run that was finalised; its terminal state is about to be published.
    Closing,
}

/// A validated snapshot that is not launched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Staged<T> {
    /// Whether the config is diagnostic, which forbids preparing beside it (L-12).
    pub(super) diagnostic: bool,
    /// By which state it came and what was permitted since.
    pub(super) right: Right,
    /// The natively prepared run, if it is prepared.
    pub(super) token: Option<T>,
    /// Whether the runtime called it incompatible beside its predecessor (L-16).
    pub(super) deferred: bool,
}

/// Whether a staged task may be launched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Right {
    /// It came as TASK_READY: as soon as the device is free.
    Active,
    /// It came as PREPARE_READY: not before ACTIVATE.
    Waiting,
    /// It came as PREPARE_READY and was activated.
    Activated,
}

impl<T> Hold<T> {
    /// The dispatch id of a staged task that may be launched.
    #[inline]
    pub(super) fn eligible(&self) -> Option<DispatchId> {
        match &self.progress {
            Progress::Staged(staged) if staged.right != Right::Waiting => Some(self.identity.dispatch),
            _ => None,
        }
    }

    /// The row of the transition table.
    #[inline]
    const fn stage(&self) -> Stage {
        match self.progress {
            Progress::Staged(Staged { right: Right::Active, .. }) => Stage::Staged,
            Progress::Staged(Staged { right: Right::Waiting, .. }) => Stage::Waiting,
            Progress::Staged(Staged { right: Right::Activated, .. }) => Stage::Activated,
            Progress::Running { .. } | Progress::Closing => Stage::Running,
        }
    }
}

/// Where the child stands with one task frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// The frame is the parent's.
    Empty,
    /// An active task is validated; it may be launched.
    Staged,
    /// A successor is validated; it waits for ACTIVATE.
    Waiting,
    /// A successor was activated; it may be launched.
    Activated,
    /// A run is launched and not finalised.
    Running,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Empty, Self::Staged, Self::Waiting, Self::Activated, Self::Running];

    /// Where the child stands that holds this of a frame.
    #[inline]
    pub(super) const fn of<T>(hold: Option<&Hold<T>>) -> Self {
        match hold {
            Some(hold) => hold.stage(),
            None => Self::Empty,
        }
    }
}

/// What a state word means to the child.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum News {
    /// Nothing new.
    None,
    /// An active task is published.
    Task,
    /// A successor is published for staging.
    Successor,
    /// The staged successor may run, or is withdrawn.
    Activation,
}

/// The transition table of the child half: what a state word, seen in a stage, means; `None` is a violation of the
/// protocol by the parent.
#[inline]
#[must_use]
pub const fn news(frames: Frames, stage: Stage, state: FrameState) -> Option<News> {
    use FrameState as S;
    Some(match (frames, stage, state) {
        (_, Stage::Empty, S::Idle | S::TaskDone) => News::None,
        (_, Stage::Empty, S::TaskReady) => News::Task,
        // A one-frame child passes from the task it saw to its terminal state; meanwhile nobody writes the word.
        (Frames::One, Stage::Staged | Stage::Running, S::TaskReady) => News::None,

        (Frames::Two, Stage::Empty, S::TaskFailed) => News::None,
        (Frames::Two, Stage::Empty, S::PrepareReady) => News::Successor,
        (Frames::Two, Stage::Staged | Stage::Waiting, S::FrameStaged) => News::None,
        (Frames::Two, Stage::Waiting, S::Activate) => News::Activation,
        (Frames::Two, Stage::Activated, S::Activate) => News::None,
        (Frames::Two, Stage::Running, S::TaskLaunched) => News::None,
        _ => return None,
    })
}

/// What the child does to a task that it took in: the other half of its transition table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deed {
    /// Its private snapshot is validated.
    Stage,
    /// The device has it.
    Launch,
    /// It ran, and was finalised.
    Succeed,
    /// It was refused, failed, withdrawn or given up.
    Fail,
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stage, Self::Launch, Self::Succeed, Self::Fail];

    /// The state word that is published for it, if any.
    #[inline]
    #[must_use]
    pub const fn state(self, frames: Frames) -> Option<FrameState> {
        match (frames, self) {
            (Frames::One, Self::Stage | Self::Launch) => None,
            (Frames::One, Self::Succeed | Self::Fail) | (Frames::Two, Self::Succeed) => Some(FrameState::TaskDone),
            (Frames::Two, Self::Stage) => Some(FrameState::FrameStaged),
            (Frames::Two, Self::Launch) => Some(FrameState::TaskLaunched),
            (Frames::Two, Self::Fail) => Some(FrameState::TaskFailed),
        }
    }

    /// The stage that it leads to from `stage`; `None` where it cannot happen. A task that is refused was never staged.
    #[must_use]
    pub const fn leads_to(self, stage: Stage) -> Option<Stage> {
        match (self, stage) {
            (Self::Stage, Stage::Staged | Stage::Waiting) => Some(stage),
            (Self::Launch, Stage::Staged | Stage::Activated) => Some(Stage::Running),
            // A short run is over before its launch was published.
            (Self::Succeed, Stage::Running) => Some(Stage::Empty),
            (Self::Fail, _) => Some(Stage::Empty),
            _ => None,
        }
    }
}

impl News {
    /// The stage that it leads to, if it changes anything.
    #[must_use]
    pub const fn leads_to(self) -> Option<Stage> {
        match self {
            Self::None => None,
            Self::Task => Some(Stage::Staged),
            Self::Successor => Some(Stage::Waiting),
            Self::Activation => Some(Stage::Activated),
        }
    }
}
