//! What a child of a test is, and how the tasks that it knows behave.

use laneway_core::lane::Frames;
use laneway_core::wire::Digest;

/// A callable that every child knows; its first byte says how the task behaves: the number of polls that it takes, or one of
/// the behaviours below.
pub(crate) fn digest(behaviour: u8) -> Digest {
    let mut digest = Digest([7; 32]);
    digest.0[0] = behaviour;
    digest
}

/// Fails when it is launched.
pub(crate) const FAILS: u8 = 200;
/// Is not known to any child.
pub(crate) const UNKNOWN: u8 = 201;

/// What a child is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Two frames, prepares beside a running one.
    Concurrent,
    /// Two frames, prepares alone.
    Exclusive,
    /// One frame, native.
    Single,
    /// One frame, one call.
    Sub,
}

impl Kind {
    pub(crate) fn frames(self) -> Frames {
        match self {
            Self::Concurrent | Self::Exclusive => Frames::Two,
            Self::Single | Self::Sub => Frames::One,
        }
    }

    /// The pipeline depth that it publishes.
    pub(crate) fn depth(self) -> u32 {
        if self.frames() == Frames::Two { 2 } else { 0 }
    }
}
