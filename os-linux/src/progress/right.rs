//! The right to drive, and who waits for it.

use super::silence::SilenceWatch;

/// Who owns progress. Guarded by the worker's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    /// The background thread. While a lane is busy the bell word says [`super::Ring::Owner`].
    Background,
    /// The callback that builds the executing run: each submit runs one round. When it has been silent for a while the
    /// background thread takes over.
    Builder {
        /// Whether silence matters. A first task that runs alone needs nobody until it has ended and something waits for that.
        watched: bool,
    },
    /// A thread inside [`drive`](super::HandOver::drive).
    Waiter,
    /// Nobody for a moment: a sleeping waiter was woken and takes it.
    Passed,
}

/// The part of the hand-over that the worker's lock guards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Progress {
    /// Who owns progress.
    pub(super) right: Right,
    /// Threads that sleep because another one drives.
    pub(super) sleepers: u32,
    /// How silence is noticed.
    pub(super) watch: SilenceWatch,
}

impl Progress {
    /// Nothing is open and nobody waits.
    pub(crate) const fn new() -> Self {
        Self { right: Right::Background, sleepers: 0, watch: SilenceWatch::new() }
    }
}

/// What a round must leave behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// The same thread looks again soon: what is cheaper to do a moment later may wait.
    Passing,
    /// The thread is about to sleep, until a child rings or the round's [`held`](laneway_core::driver::Step::held): a short task may
    /// be left to a child that is at work.
    Sleeping,
    /// The thread is about to leave, or to step behind another one: nothing that can be done now may be left.
    Last,
}
