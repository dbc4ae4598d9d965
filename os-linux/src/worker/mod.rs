//! The worker: what people build, run graphs on, and close.

mod await_ready;
mod builder;
mod cancel;
mod children;
mod close;
mod cpus;
mod custom;
mod door;
mod endpoint;
mod init;
mod nested;
mod outer;
mod plan;
mod register;
mod share;
mod staged;
mod traces;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use laneway_core::ids::WorkerId;
use laneway_core::model::TaskArgs;
use laneway_core::wire::{CallConfig, TaskArgsView};

use crate::Error;
use crate::callable::BoxError;
use crate::config::Config;
use crate::element::Element;
use crate::live::Live;
use crate::memory::Space;
use crate::orchestrator::Orchestrator;
use crate::progress::Background;
use crate::registry::Registry;
use crate::run::RunHandle;
use crate::tensor::Tensor;

pub use builder::WorkerBuilder;
use cancel::Cancel;
pub use cancel::InitCanceller;
use children::Children;
pub use children::Chip;
pub(crate) use cpus::Cpus;
pub use custom::{CustomChild, CustomStart};
use door::Door;
pub use endpoint::{Endpoint, EndpointBell, EndpointStart, OwnEndpoint};
use outer::Above;
pub(crate) use outer::Outer;
pub(crate) use staged::{fail, fetch};

/// The parent of one level: it owns its children and runs graphs of tasks on them.
///
/// Life: [`Worker::builder`] → register callables and add chips → [`Worker::init`] forks the children → runs →
/// [`Worker::close`]. All methods take `&self` and can be called from any thread; a call in the wrong state is an error that
/// names the state (P-7). Clones are the same worker; dropping the last one closes it.
#[derive(Clone)]
pub struct Worker {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    state: Mutex<State>,
    /// Opened and shut with the state, under its lock.
    door: Door,
    /// Rung when `state` leaves [`State::Initializing`].
    settled: Condvar,
    /// What cancels `init`, while somebody has it.
    cancel: Mutex<Weak<Cancel>>,
}

/// Where a worker is in its life (P-7).
enum State {
    /// Collecting children and callables.
    New {
        children: Children,
        registry: Registry,
        /// Mapped by the first tensor that is made before init.
        space: Option<Arc<Space>>,
    },
    /// A child of another worker, whose init starts it in a process or a thread of its own (P-9).
    Attached { children: Children, registry: Registry },
    /// Another worker's init started it, in another process or in a thread that has ended; nothing of it is here.
    Below,
    /// A thread is inside `init`.
    Initializing { cancel: Arc<Cancel> },
    /// Open for runs.
    Ready { live: Arc<Live>, background: Background },
    /// A thread is inside `close`.
    Closing { live: Arc<Live> },
    /// `init` failed; everything is reclaimed.
    Failed,
    /// Closed.
    Closed,
}

/// The name of a state (P-7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkerState {
    New,
    Attached,
    Initializing,
    Ready,
    Closing,
    Failed,
    Closed,
}

impl WorkerState {
    /// By their numbers, which the status board shows.
    pub(crate) const ALL: [Self; 7] =
        [Self::New, Self::Attached, Self::Initializing, Self::Ready, Self::Closing, Self::Failed, Self::Closed];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::Attached => "ATTACHED",
            Self::Initializing => "INITIALIZING",
            Self::Ready => "READY",
            Self::Closing => "CLOSING",
            Self::Failed => "FAILED",
            Self::Closed => "CLOSED",
        }
    }
}

impl State {
    fn kind(&self) -> WorkerState {
        match self {
            Self::Ready { live, .. } | Self::Closing { live } if live.is_foreign() => WorkerState::Attached,
            Self::New { .. } => WorkerState::New,
            Self::Attached { .. } | Self::Below => WorkerState::Attached,
            Self::Initializing { .. } => WorkerState::Initializing,
            Self::Ready { .. } => WorkerState::Ready,
            Self::Closing { .. } => WorkerState::Closing,
            Self::Failed => WorkerState::Failed,
            Self::Closed => WorkerState::Closed,
        }
    }

    fn name(&self) -> &'static str {
        self.kind().name()
    }
}

impl Worker {
    /// Starts describing a worker.
    #[must_use]
    pub fn builder() -> WorkerBuilder {
        WorkerBuilder::default()
    }

    fn new(config: Config, subs: u32) -> Self {
        static OWNERS: AtomicU64 = AtomicU64::new(1);
        // Two processes that forked from one count alike from there on (T-43).
        let owner = OWNERS.fetch_add(1, Ordering::Relaxed) << 32 | u64::from(std::process::id());
        let registry = Registry::new(owner);
        let state = State::New { children: Children::new(subs), registry, space: None };
        let (door, settled, cancel) = (Door::default(), Condvar::new(), Mutex::default());
        Self { shared: Arc::new(Shared { config, state: Mutex::new(state), door, settled, cancel }) }
    }

    /// Adds a chip child; its worker id is the next free one (E-39).
    ///
    /// # Errors
    /// [`Error::WrongState`] after init.
    pub fn add_chip(&self, chip: Chip) -> Result<WorkerId, Error> {
        self.in_new("add_chip", |children| children.add_chip(chip))
    }

    /// Starts the children and returns when all are ready, or fails with nothing left behind.
    ///
    /// # Errors
    /// Where children are forked: [`Error::ForeignThreads`] in a process with threads of its own, [`Error::ThreadChildren`] in
    /// one that runs children as threads, [`Error::HoldsDevice`] in one that has a device open. Anywhere: the first child that fails, dies or is late, with its
    /// kind, index, pid and cause; a limit that is too low, with both numbers.
    pub fn init(&self) -> Result<(), Error> {
        self.start(None, |state| match state {
            State::New { children, registry, space } => Ok((children, registry, space)),
            other => Err(other),
        })
    }

    /// `init`, at the root or below another worker; `take` accepts the states that it may begin in.
    fn start(
        &self,
        above: Option<Above>,
        take: impl FnOnce(State) -> Result<(Children, Registry, Option<Arc<Space>>), State>,
    ) -> Result<(), Error> {
        let cancel = self.cancel()?;
        let mut state = self.state();
        let before = std::mem::replace(&mut *state, State::Initializing { cancel: cancel.clone() });
        let (children, registry, space) = match take(before) {
            Ok(content) => content,
            Err(other) => {
                let name = other.name();
                *state = other;
                return Err(Error::WrongState { call: "init", state: name });
            }
        };
        drop(state);
        let below = above.is_some();
        let unwinding = Unwinding { shared: &self.shared, end: if below { || State::Below } else { || State::Failed } };
        let started = init::start(&self.shared.config, children, registry, space, above, &cancel);
        std::mem::forget(unwinding);
        let mut state = self.state();
        let result = match started {
            Ok((live, background)) => {
                self.shared.door.open(&live);
                *state = State::Ready { live, background };
                Ok(())
            }
            Err(error) => {
                *state = match error {
                    _ if below => State::Below,
                    Error::InitCancelled => State::Closed,
                    _ => State::Failed,
                };
                Err(error)
            }
        };
        self.shared.settled.notify_all();
        result
    }

    /// A zeroed tensor in the buffer region: valid at one address in every process of the tree, whether it is made before
    /// init or after it.
    ///
    /// ```no_run
    /// # use laneway_linux::{Error, Worker};
    /// # fn example(worker: &Worker) -> Result<(), Error> {
    /// let x = worker.tensor::<f32>(&[2, 3])?; // two rows of three
    /// x.copy_from(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let second_row = x.as_arg().slice(0, 1, 2, 1)?; // an argument for a task; nothing is copied
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A shape without elements; [`Error::BuffersFull`]; [`Error::WrongState`] while the worker starts, and once it is closed.
    pub fn tensor<T: Element>(&self, shape: &[u32]) -> Result<Tensor<T>, Error> {
        let space = match &mut *self.state() {
            State::New { space, .. } => self.mapped(space)?,
            // A run that was accepted may still need some while close waits for it.
            State::Ready { live, .. } | State::Closing { live } if !live.is_foreign() => {
                live.check_lineage()?;
                live.space.clone()
            }
            State::Initializing { cancel } if cancel.is_of_a_parent() => return Err(Error::Inherited),
            other => return Err(Error::WrongState { call: "tensor", state: other.name() }),
        };
        Tensor::new(&space, shape)
    }

    /// Builds a run with `callback` and waits for its end.
    ///
    /// ```no_run
    /// # use laneway_linux::{Error, TaskArgs, Worker};
    /// # fn example(worker: &Worker, add: &laneway_linux::CallableHandle) -> Result<(), Error> {
    /// let x = worker.tensor::<i64>(&[8])?;
    /// let tasks = worker.run(|orch| {
    ///     for _ in 0..3 {
    ///         orch.submit_sub(add, TaskArgs::new().inout(&x))?; // each waits for the one before
    ///     }
    ///     Ok(3)
    /// })?;
    /// assert_eq!(tasks, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the callback returned, after the tasks that it had started have ended; else [`Error::RunFailed`] with the first
    /// error of the run.
    pub fn run<R>(&self, callback: impl FnOnce(&mut Orchestrator<'_>) -> Result<R, BoxError>) -> Result<R, Error> {
        self.live("run")?.run(callback)
    }

    /// As [`Worker::run`], for an orchestration that takes its arguments and config as a parameter, so that the same
    /// function serves at any level (E-40).
    ///
    /// # Errors
    /// As [`Worker::run`]; also for arguments that were built wrongly.
    pub fn run_with<R>(
        &self,
        orchestration: impl FnOnce(&mut Orchestrator<'_>, TaskArgsView<'_>, &CallConfig) -> Result<R, BoxError>,
        args: &TaskArgs,
        config: &CallConfig,
    ) -> Result<R, Error> {
        args.check()?;
        config.validate()?;
        self.run(|orchestrator| orchestration(orchestrator, args.view(), config))
    }

    /// Builds a run with `callback` and returns while it executes. The background thread drives it when nobody waits.
    ///
    /// ```no_run
    /// # use laneway_linux::{Error, TaskArgs, Worker};
    /// # fn example(worker: &Worker, add: &laneway_linux::CallableHandle) -> Result<(), Error> {
    /// # let x = worker.tensor::<i64>(&[8])?;
    /// let run = worker.submit(|orch| {
    ///     orch.submit_sub(add, TaskArgs::new().inout(&x))?;
    ///     Ok(())
    /// })?;
    /// // … the next graph can be built meanwhile …
    /// run.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the callback returned; [`Error::InsideCallback`] from inside a callback of this worker.
    pub fn submit(
        &self,
        callback: impl FnOnce(&mut Orchestrator<'_>) -> Result<(), BoxError>,
    ) -> Result<RunHandle, Error> {
        let ((), run) = self.live("submit")?.build(callback)?;
        Ok(run)
    }

    /// Level, state, and the running worker if there is one.
    pub(crate) fn snapshot(&self) -> (u32, WorkerState, Option<Arc<Live>>) {
        let state = self.state();
        let live = match &*state {
            State::Ready { live, .. } | State::Closing { live } if live.check_lineage().is_ok() => Some(live.clone()),
            _ => None,
        };
        (self.shared.config.level, state.kind(), live)
    }

    pub(crate) fn live(&self, call: &'static str) -> Result<Arc<Live>, Error> {
        if let Some(live) = self.shared.door.enter()
            && !live.is_foreign()
        {
            return live.check_lineage().map(|()| live);
        }
        match &*self.state() {
            State::Ready { live, .. } if !live.is_foreign() => live.check_lineage().map(|()| live.clone()),
            // What a child process inherited stays so for ever.
            State::Initializing { cancel } if cancel.is_of_a_parent() => Err(Error::Inherited),
            State::Closing { live } if live.check_lineage().is_err() => Err(Error::Inherited),
            other => Err(Error::WrongState { call, state: other.name() }),
        }
    }

    /// The tensor memory of a worker that has not started.
    fn space_of_new(&self, call: &'static str) -> Result<Arc<Space>, Error> {
        match &mut *self.state() {
            State::New { space, .. } => self.mapped(space),
            other => Err(Error::WrongState { call, state: other.name() }),
        }
    }

    fn mapped(&self, space: &mut Option<Arc<Space>>) -> Result<Arc<Space>, Error> {
        match space {
            Some(space) => Ok(space.clone()),
            None => Ok(space.insert(Arc::new(Space::map(self.shared.config.sizes)?)).clone()),
        }
    }

    fn in_new<R>(
        &self,
        call: &'static str,
        change: impl FnOnce(&mut Children) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match &mut *self.state() {
            State::New { children, .. } => change(children),
            other => Err(Error::WrongState { call, state: other.name() }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropped by a panic inside `init` or `close`: whoever waits for the end of that waits no longer. What users' closures own is dropped
/// there too, and may panic.
struct Unwinding<'a> {
    shared: &'a Shared,
    end: fn() -> State,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *state, (self.end)());
        drop(state);
        self.shared.settled.notify_all();
        drop(before);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Worker(level {}, {})", self.shared.config.level, self.state().name())
    }
}
