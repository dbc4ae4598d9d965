//! Children of a user's own kind (P-28): the user supplies what a child does with a task, this library everything else.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use laneway_core::ids::WorkerId;
use laneway_core::serve::{Failure, Leaf, Report, Task};
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;

use super::Worker;
use crate::Error;
use crate::callable::{BoxError, CallableHandle};

/// What a child of a user's own kind is given at its start, in its own process.
#[derive(Clone, Copy, Debug)]
pub struct CustomStart<'a> {
    /// Address ranges that hold the tensors of the tree; they stay mapped for the child's life.
    pub shared: &'a [Range<u64>],
    /// What was registered for this kind of child, by digest.
    pub callables: &'a [(Digest, Arc<[u8]>)],
}

/// How such a child starts.
type Start = Box<dyn Fn(CustomStart<'_>) -> Result<Box<dyn Leaf>, BoxError> + Send>;

/// A child of a user's own kind: its name in messages, and what makes its [`Leaf`] in its own process.
pub struct CustomChild {
    pub(super) kind: &'static str,
    start: Start,
}

impl CustomChild {
    /// A child of the kind `kind`. `start` is called once, in the child; an error or a panic fails the init of the worker.
    pub fn new<L, E>(kind: &'static str, start: impl Fn(CustomStart<'_>) -> Result<L, E> + Send + 'static) -> Self
    where
        L: Leaf + 'static,
        E: Into<BoxError>,
    {
        let start =
            move |given: CustomStart<'_>| start(given).map(|leaf| Box::new(leaf) as Box<dyn Leaf>).map_err(Into::into);
        Self { kind, start: Box::new(start) }
    }

    pub(super) fn start(&self, given: CustomStart<'_>) -> Result<CustomLeaf, BoxError> {
        (self.start)(given).map(CustomLeaf)
    }
}

impl fmt::Debug for CustomChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CustomChild({})", self.kind)
    }
}

/// A user's leaf of whatever type.
pub(super) struct CustomLeaf(Box<dyn Leaf>);

impl Leaf for CustomLeaf {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.0.knows(digest)
    }

    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        match crate::sys::panics::catch(|| self.0.run(task, report)) {
            Ok(ended) => ended,
            Err(text) => Err(super::fail(report, &format_args!("panic: {text}"))),
        }
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        self.0.control(request, report)
    }

    fn shutdown(&mut self) {
        self.0.shutdown();
    }
}

impl Worker {
    /// Adds a child of a user's own kind; its worker id is the next free one (E-39).
    ///
    /// # Errors
    /// [`Error::WrongState`] after init.
    pub fn add_child(&self, child: CustomChild) -> Result<WorkerId, Error> {
        self.in_new("add_child", |children| children.add_custom(child))
    }

    /// Registers a callable for children of a user's own kind: a name, and bytes that mean something to them.
    ///
    /// # Errors
    /// [`Error::RegisteredTooLate`] after init.
    pub fn register_custom(&self, name: &str, version: u32, bytes: &[u8]) -> Result<CallableHandle, Error> {
        self.before_the_forks(name, |registry| registry.custom(name, version, bytes))
    }
}
