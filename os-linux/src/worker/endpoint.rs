//! Endpoints of a user's own (P-28): something that tasks are handed to and that ends them later, in this process or reached
//! from it.
//!
//! An endpoint is served like a child: it has a lane with identities, at most one dispatch in flight, exactly one end for each,
//! poison and a place in the order of close. What it lacks is a process. It lives in a thread of its worker's process, whatever
//! the worker's [`ChildMode`](crate::ChildMode), which sleeps until the worker sends something or the endpoint's
//! [`EndpointBell`] rings.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use laneway_core::ids::WorkerId;
use laneway_core::serve::{Child, Failure, Launch, Poll, PrepareError, Report, Runner, Served, Task};
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{Digest, extension};

use super::{Worker, fail};
use crate::Error;
use crate::callable::BoxError;
use crate::progress::ParentRing;
use crate::sys::eventfd::Bell;
use crate::sys::panics;
use crate::sys::park::{Bed, Woke};
use crate::sys::spin::SpinWindow;
use crate::sys::words::MailboxWords;
use crate::trace::Traced;

/// Something that tasks are handed to and that ends them later. All calls come from one thread, the endpoint's own, and none
/// while another is in progress; a call that takes long delays only this endpoint.
///
/// At most one task is under way: after [`Endpoint::submit`] has taken one the next comes after [`Endpoint::poll`] has returned
/// its end. A panic in a call fails the task that is under way and loses the endpoint, as [`Failure::FATAL`] does: it accepts
/// nothing more as long as its worker lives (E-41).
pub trait Endpoint {
    /// Whether `digest` names a callable that this endpoint can run.
    fn knows(&mut self, digest: &Digest) -> bool;

    /// Takes a task over. `task` and its arguments are gone when this returns; its identity names it in every message of the
    /// worker.
    ///
    /// # Errors
    /// The task fails; `report` says why.
    fn submit(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure>;

    /// Says how the task that was taken over has ended, or `None` while it has not. Asked after every ring of the
    /// [`EndpointBell`], and now and then without one.
    fn poll(&mut self, report: &mut Report) -> Option<Result<(), Failure>>;

    /// Serves one control command and returns its result (0 if it has none); never while a task is under way.
    ///
    /// # Errors
    /// The command failed or is not one of this endpoint's; `report` says why.
    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure>;

    /// The last call, with no task under way: gives back what the endpoint holds.
    fn shutdown(&mut self);
}

/// Wakes an endpoint to be polled, from any thread; also from before its start has returned. A ring is never lost.
#[derive(Clone, Debug)]
pub struct EndpointBell(Arc<Bell>);

impl EndpointBell {
    pub(super) fn new(wake: Arc<Bell>) -> Self {
        Self(wake)
    }

    /// Says that [`Endpoint::poll`] has something to return. One write to an eventfd.
    pub fn ring(&self) {
        self.0.ring();
    }
}

/// What an endpoint is given at its start, in its own thread.
#[derive(Clone, Debug)]
pub struct EndpointStart<'a> {
    /// Address ranges that hold the tensors of the tree; they stay mapped for the endpoint's life.
    pub shared: &'a [Range<u64>],
    /// What was registered with [`Worker::register_custom`], by digest.
    pub callables: &'a [(Digest, Arc<[u8]>)],
    /// What whoever ends a task rings.
    pub bell: EndpointBell,
}

/// How such an endpoint starts.
type Start = Box<dyn Fn(EndpointStart<'_>) -> Result<Box<dyn Endpoint>, BoxError> + Send>;

/// An endpoint to be: its name in messages, and what makes it in its own thread.
pub struct OwnEndpoint {
    pub(super) kind: &'static str,
    start: Start,
}

impl OwnEndpoint {
    /// An endpoint of the kind `kind`. `start` is called once, when the children that are processes are ready; an error or a
    /// panic fails the init of the worker.
    pub fn new<P, E>(kind: &'static str, start: impl Fn(EndpointStart<'_>) -> Result<P, E> + Send + 'static) -> Self
    where
        P: Endpoint + 'static,
        E: Into<BoxError>,
    {
        let start = move |given: EndpointStart<'_>| {
            start(given).map(|endpoint| Box::new(endpoint) as Box<dyn Endpoint>).map_err(Into::into)
        };
        Self { kind, start: Box::new(start) }
    }

    pub(super) fn start(&self, given: EndpointStart<'_>) -> Result<Box<dyn Endpoint>, BoxError> {
        (self.start)(given)
    }
}

impl fmt::Debug for OwnEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnEndpoint({})", self.kind)
    }
}

impl Worker {
    /// Adds an endpoint of a user's own; its worker id is the next free one (E-39). Its callables are those of
    /// [`Worker::register_custom`].
    ///
    /// # Errors
    /// [`Error::WrongState`] after init.
    pub fn add_endpoint(&self, endpoint: OwnEndpoint) -> Result<WorkerId, Error> {
        self.in_new("add_endpoint", |children| children.add_endpoint(endpoint))
    }
}

/// A user's endpoint as what the child half drives.
pub(super) struct EndpointRunner(Box<dyn Endpoint>);

impl EndpointRunner {
    pub(super) fn new(endpoint: Box<dyn Endpoint>) -> Self {
        Self(endpoint)
    }
}

/// A call into the endpoint; a panic leaves it in a state that nobody knows.
fn guarded<T>(report: &mut Report, call: impl FnOnce(&mut Report) -> Result<T, Failure>) -> Result<T, Failure> {
    panics::catch(|| call(report)).unwrap_or_else(|text| {
        report.clear();
        Err(Failure { leave: true, ..fail(report, &format_args!("panic: {text}")) })
    })
}

impl Runner for EndpointRunner {
    type Token = ();

    fn knows(&mut self, digest: &Digest) -> bool {
        self.0.knows(digest)
    }

    fn prepares_concurrently(&self) -> bool {
        false
    }

    fn prepare(&mut self, _: &Task<'_>, _: &mut Report) -> Result<(), PrepareError> {
        Ok(())
    }

    fn launch(&mut self, (): (), task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        guarded(report, |report| self.0.submit(task, report)).map(|()| Launch::Running)
    }

    fn accepted(&mut self, (): ()) -> bool {
        false
    }

    fn poll(&mut self, (): (), report: &mut Report) -> Result<Poll, Failure> {
        guarded(report, |report| match self.0.poll(report) {
            None => Ok(Poll::NotReady),
            Some(ended) => ended.map(|()| Poll::Complete),
        })
    }

    fn finalize(&mut self, (): (), _: &mut Report) -> Result<(), Failure> {
        Ok(())
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        guarded(report, |report| self.0.control(request, report))
    }

    fn shutdown(&mut self) {
        self.0.shutdown();
    }
}

/// The loop of an endpoint: it sleeps while a task is under way, since whoever ends that rings. The exit status.
pub(super) fn serve_endpoint(
    child: &mut Child<MailboxWords, Traced<EndpointRunner>>,
    ring: &mut ParentRing<'_>,
    mut bed: Bed,
    window: SpinWindow,
) -> i32 {
    let words = *child.words();
    loop {
        match child.step(ring) {
            Served::Exit(status) => return status.into(),
            Served::Worked => continue,
            Served::Idle if window.until(|| child.has_work()) => continue,
            Served::Idle | Served::Running => {}
        }
        match bed.park(&words, extension::PARKED, None, || child.has_work()) {
            Woke::ParentGone | Woke::CutOff => child.orphaned(),
            Woke::Work | Woke::Bell | Woke::TimedOut => {}
        }
    }
}
