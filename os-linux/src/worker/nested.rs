//! Nested workers: a worker as the child of another one (P-8 … P-11).

use std::collections::HashMap;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::ids::WorkerId;
use laneway_core::serve::{Failure, Leaf, Report, Task};
use laneway_core::time::Instant;
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;

use super::close::{By, Runs};
use super::outer::Above;
use super::staged::{fail, fetch};
use super::{State, Worker};
use crate::Error;
use crate::callable::{Body, CallableName, OrchestrationFn, Role};
use crate::late::{Images, Payload};
use crate::live::Live;
use crate::sys::clock;
use crate::table::Table;

/// What a nested worker's start leaves of the time that the tree has, so that its own error still arrives.
const HEADROOM: Duration = Duration::from_millis(100);

impl Worker {
    /// Attaches a worker as a child: [`Worker::init`] of this one forks a process that initialises `inner` there, with
    /// everything below it. From now on `inner` can be given callables, nothing else (P-9).
    ///
    /// ```no_run
    /// # use laneway_linux::{Error, TaskArgs, Worker};
    /// # fn example() -> Result<(), Error> {
    /// let l3 = Worker::builder().level(3).subs(1).build()?;
    /// let count = l3.register("count", |args| Ok(args.tensor::<i64>(0)?.set(0, 1)?))?;
    ///
    /// let l4 = Worker::builder().level(4).build()?;
    /// let below = l4.add_worker(&l3)?;
    /// let graph = l4.register_orchestration("graph", move |orch, args, _config| {
    ///     orch.submit_sub(&count, TaskArgs::new().output(args.tensors()[0]))?; // on l3
    ///     Ok(())
    /// })?;
    /// l4.init()?;
    /// let x = l4.tensor::<i64>(&[1])?;
    /// l4.run(|orch| Ok(orch.submit_next_level(&graph, below, TaskArgs::new().output(&x))?))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::WrongState`] if either is not NEW: initialised, closed or attached already; or if `inner` has tensors: make
    /// them with the root, every process below it sees them.
    pub fn add_worker(&self, inner: &Worker) -> Result<WorkerId, Error> {
        // Taken first, and with one lock at a time: two workers that are attached to each other at once both fail.
        let content = {
            let mut state = inner.state();
            match std::mem::replace(&mut *state, State::Below) {
                State::New { children, registry, space: None } => (children, registry),
                other => {
                    let name = other.name();
                    *state = other;
                    return Err(Error::WrongState { call: "add_worker of this child", state: name });
                }
            }
        };
        let added = self.in_new("add_worker", |children| children.add_worker(inner.clone()));
        let (children, registry) = content;
        *inner.state() = match added {
            Ok(_) => State::Attached { children, registry },
            Err(_) => State::New { children, registry, space: None },
        };
        added
    }

    /// In the process, or thread, of the nested worker: its own init.
    pub(super) fn start_below(&self, above: Above, given: Vec<(Digest, Arc<[u8]>)>) -> Result<Arc<Live>, Error> {
        self.start(Some(above), |state| match state {
            State::Attached { children, mut registry } => {
                if children.has_chips() {
                    registry.adopt_chips(given);
                }
                Ok((children, registry, None))
            }
            other => Err(other),
        })?;
        let (.., live) = self.snapshot();
        live.ok_or(Error::WrongState { call: "init", state: State::Below.name() })
    }

    /// In the process whose init was to start it, when that is over: this worker lives in a process of its own now, or nowhere.
    /// One that was started by a thread of this process has left this state by itself.
    pub(super) fn left_below(&self) {
        let mut state = self.state();
        if let State::Attached { .. } = &*state
            && let State::Attached { children, .. } = std::mem::replace(&mut *state, State::Below)
        {
            children.left_below();
        }
    }

    /// Whether a chip is somewhere below a worker that is attached.
    pub(super) fn has_chips_below(&self) -> bool {
        matches!(&*self.state(), State::Attached { children, .. } if children.has_chips())
    }
}

/// The deadline of a start one level further down.
pub(super) fn earlier(deadline: Instant) -> Instant {
    let now = clock::now();
    now.saturating_add(deadline.since(now).saturating_sub(HEADROOM.min(deadline.since(now) / 4)))
}

/// What the process of a nested worker does with a task: it builds a run and waits for its end.
pub(super) struct NestedLeaf {
    worker: Worker,
    live: Arc<Live>,
    orchestrations: Table<OrchestrationFn>,
    /// The buffer region of the worker above.
    staging: Range<u64>,
    images: Images,
    /// What the end of the inner worker came to.
    closed: Result<(), Error>,
}

impl NestedLeaf {
    pub(super) fn new(
        worker: Worker,
        live: Arc<Live>,
        orchestrations: HashMap<Digest, OrchestrationFn>,
        staging: Range<u64>,
        images: Images,
    ) -> Self {
        Self { worker, live, orchestrations: Table::new(orchestrations), staging, images, closed: Ok(()) }
    }

    fn install(&mut self, digest: Digest, bytes: &[u8]) -> Result<(), Error> {
        let images = &self.images;
        self.orchestrations.install(digest, || match Payload::decode(bytes, &digest, images)?.body()? {
            Body::Orchestration(function) => Ok(function),
            other => {
                let callable = CallableName::unnamed(digest);
                Err(Error::CallableRole { callable, found: other.role(), wanted: Role::Orchestration })
            }
        })
    }

    /// Whether everything below left in order; asked after the last step.
    pub(super) fn closed(&self) -> &Result<(), Error> {
        &self.closed
    }
}

impl Leaf for NestedLeaf {
    fn knows(&mut self, digest: &Digest) -> bool {
        self.orchestrations.get(digest).is_some()
    }

    fn run(&mut self, task: &Task<'_>, report: &mut Report) -> Result<(), Failure> {
        // Known: the frame was refused otherwise.
        let Some(function) = self.orchestrations.get(task.digest) else { return Err(Failure::MESSAGE) };
        let ended = self.live.run(|orchestrator| function(orchestrator, task.args, task.config));
        ended.map_err(|error| {
            // A report that is full cuts what comes after; writing to it cannot fail.
            if self.live.is_asked_to_stop() {
                let _ = write!(report, "worker closed: ");
            }
            let _ = match error {
                Error::RunFailed { .. } | Error::Callback { .. } | Error::CallbackPanicked { .. } => {
                    write!(report, "{error}")
                }
                // What the orchestration's own calls were refused with (P-10).
                refused => write!(report, "level {}: {refused}", self.live.config.level),
            };
            Failure::MESSAGE
        })
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        let level = self.live.config.level;
        let done = match *request {
            ControlRequest::Register { staged, bytes, digest } => {
                let blob = fetch(&self.staging, staged, bytes, report)?;
                self.live.register_from_above(digest, &blob)
            }
            ControlRequest::Unregister { digest } => self.live.unregister_from_above(&digest),
            ControlRequest::PyRegister { staged, bytes, digest } => {
                let payload = fetch(&self.staging, staged, bytes, report)?;
                self.install(digest, &payload)
            }
            ControlRequest::PyUnregister { digest } => {
                self.orchestrations.remove(&digest);
                Ok(())
            }
            _ => return Err(fail(report, &format_args!("a nested worker does not serve {:?}", request.command()))),
        };
        done.map(|()| 0).map_err(|error| fail(report, &format_args!("level {level}: {error}")))
    }

    fn shutdown(&mut self) {
        self.closed = self.worker.shared.close(Runs::Abandon, By::Parent);
    }
}
