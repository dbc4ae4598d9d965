//! What a kind of child must supply.

use core::fmt;
use core::hash::Hash;

use crate::mailbox::LongText;
use crate::wire::args::ArgsView;
use crate::wire::control::ControlRequest;
use crate::wire::{CallConfig, Digest, DispatchIdentity, TaskArgsView, Tensor};

/// A task as a child runs it: a private, validated copy of what its frame carried. It lives as long as the call.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Whose task it is.
    pub identity: DispatchIdentity,
    /// Which callable.
    pub digest: &'a Digest,
    /// How it is to run.
    pub config: &'a CallConfig,
    /// Its arguments, in a child that serves protocol 2; else none.
    pub args: TaskArgsView<'a>,
    /// Its arguments, in a child that serves protocol 3; else none.
    pub described: ArgsView<'a, Tensor>,
}

/// A task or a control that did not succeed. Its text went into the report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Failure {
    /// Goes into the error word; 0 would be success and is sent as 1.
    pub code: i32,
    /// Whether the child must leave after it reported this: what it drives is in an unknown state (C-9).
    pub leave: bool,
}

impl Failure {
    /// A failure with a message, after which the child goes on serving.
    pub const MESSAGE: Self = Self { code: 1, leave: false };

    /// A failure after which the child leaves (C-9).
    pub const FATAL: Self = Self { code: 1, leave: true };
}

/// Where a failure's text goes. Writing to it cannot fail and does not allocate; what is too long is cut.
pub type Report = LongText;

/// A child that runs each task to its end inside one call: SUB children, nested workers, and whatever a user of this
/// library adds (P-28). Wrap it in [`Blocking`](super::Blocking) to serve it.
pub trait Leaf {
    /// Whether `digest` names a callable that this child can run now.
    fn knows(&mut self, digest: &Digest) -> bool;

    /// Runs one task to its end. A panic must not pass; catch it where there is a `catch_unwind`.
    ///
    /// # Errors
    /// The task failed; `report` says why, in full.
    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure>;

    /// Serves one control command and returns its result (0 if it has none).
    ///
    /// # Errors
    /// The command failed or is not one of this child's; `report` says why. The child goes on serving.
    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure>;

    /// The last call: gives back what this child holds.
    fn shutdown(&mut self);
}

/// One of several kinds of child, chosen when it starts.
#[cfg(feature = "engine")]
impl<L: Leaf + ?Sized> Leaf for alloc::boxed::Box<L> {
    fn knows(&mut self, digest: &Digest) -> bool {
        (**self).knows(digest)
    }

    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        (**self).run(task, report)
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        (**self).control(request, report)
    }

    fn shutdown(&mut self) {
        (**self).shutdown();
    }
}

/// A child that runs tasks in phases: prepare → launch → poll → finalize. Chip children are; the phases are what lets a
/// successor be prepared while its predecessor executes (L-12).
///
/// The child half calls it so that at most one run is launched and unfinalised, at most one more is prepared, and every
/// prepared run is finalised exactly once (L-12, L-14, L-15).
pub trait Runner {
    /// Names a prepared run.
    type Token: Copy + Eq + Hash + fmt::Debug;

    /// Whether `digest` names a callable that is prepared here.
    fn knows(&mut self, digest: &Digest) -> bool;

    /// Whether a run may be prepared while another is launched: the runtime advertises it *and* its kind allows it (L-12).
    fn prepares_concurrently(&self) -> bool;

    /// Makes a run ready. What it needs of `task` later it copies.
    ///
    /// # Errors
    /// [`PrepareError::Incompatible`] defers the preparation (L-16); [`PrepareError::Failed`] fails the task.
    fn prepare(&mut self, task: &Task<'_>, report: &mut Report) -> Result<Self::Token, PrepareError>;

    /// Starts a prepared run. `task` is the one that was prepared.
    ///
    /// # Errors
    /// The run did not start, or failed at once. It is finalised all the same.
    fn launch(&mut self, token: Self::Token, task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure>;

    /// Whether the device accepted the launch (L-17). Sticky until finalize; never true where nothing marks it.
    fn accepted(&mut self, token: Self::Token) -> bool;

    /// Looks whether a launched run is complete. Does not wait.
    ///
    /// # Errors
    /// The run failed. It is finalised all the same.
    fn poll(&mut self, token: Self::Token, report: &mut Report) -> Result<Poll, Failure>;

    /// Ends a run and copies its results back; waits if it is launched and not complete.
    ///
    /// # Errors
    /// What could not be completed or copied back; the token is dead all the same.
    fn finalize(&mut self, token: Self::Token, report: &mut Report) -> Result<(), Failure>;

    /// Serves one control command and returns its result (0 if it has none).
    ///
    /// # Errors
    /// The command failed or is not one of this child's; `report` says why. The child goes on serving.
    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure>;

    /// The last call, with no run left: closes the device.
    fn shutdown(&mut self);
}

/// Why a run could not be prepared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PrepareError {
    /// Not beside the run that is prepared or launched now; later it can be (L-16).
    Incompatible,
    /// Not at all.
    Failed(Failure),
}

/// How a launch went.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Launch {
    /// The device has it.
    Running,
    /// The run came to its end inside the call.
    Complete,
}

/// The answer to a poll.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Poll {
    /// Still at work.
    NotReady,
    /// Complete; it may be finalised.
    Complete,
}

/// How the child tells the parent that something was published.
pub trait ParentBell {
    /// Called after each store that the parent may be waiting for. The implementer fences, looks whether the parent
    /// sleeps, and wakes it.
    fn published(&mut self);
}

/// A bell for a parent that polls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct NoBell;

impl ParentBell for NoBell {
    fn published(&mut self) {}
}
