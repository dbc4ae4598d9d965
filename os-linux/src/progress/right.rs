//! The right to drive.

/// Who owns progress. Guarded by the worker's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    /// The background thread. While a lane is busy the bell word says [`super::Ring::Owner`].
    Background,
    /// The callback that builds the executing run: each submit runs one round. When it has been silent for a while the
    /// background thread takes over.
    Builder {
        /// Rounds that submits have run since the callback took the right.
        rounds: u32,
    },
    /// A thread inside [`drive`](crate::live::Live::drive).
    Waiter,
    /// Nobody for a moment: a sleeping waiter was woken and takes it.
    Passed,
}
