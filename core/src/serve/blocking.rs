//! A child that runs tasks in one call, seen as one that runs them in phases.

use super::leaf::{Failure, Launch, Leaf, Poll, PrepareError, Report, Runner, Task};
use crate::wire::Digest;
use crate::wire::control::ControlRequest;

/// Serves a [`Leaf`]: launch runs the task to its end, the other phases are empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Blocking<L> {
    leaf: L,
}

impl<L: Leaf> Blocking<L> {
    /// Wraps `leaf`.
    #[must_use]
    pub const fn new(leaf: L) -> Self {
        Self { leaf }
    }

    /// The leaf.
    #[must_use]
    pub const fn leaf(&self) -> &L {
        &self.leaf
    }
}

impl<L: Leaf> Runner for Blocking<L> {
    type Token = ();

    fn knows(&mut self, digest: &Digest) -> bool {
        self.leaf.knows(digest)
    }

    fn prepares_concurrently(&self) -> bool {
        false
    }

    fn prepare(&mut self, _: &Task<'_>, _: &mut Report) -> Result<(), PrepareError> {
        Ok(())
    }

    fn launch(&mut self, (): (), task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        self.leaf.run(task, report).map(|()| Launch::Complete)
    }

    fn accepted(&mut self, (): ()) -> bool {
        false
    }

    fn poll(&mut self, (): (), _: &mut Report) -> Result<Poll, Failure> {
        Ok(Poll::Complete)
    }

    fn finalize(&mut self, (): (), _: &mut Report) -> Result<(), Failure> {
        Ok(())
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        self.leaf.control(request, report)
    }

    fn shutdown(&mut self) {
        self.leaf.shutdown();
    }
}
