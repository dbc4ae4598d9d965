//! Holds the place of the argument builder until it is there.

/// An empty argument list.
#[derive(Clone, Debug, Default)]
pub struct TaskArgs(());

impl TaskArgs {
    /// No arguments.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }
}
