//! What a worker and its children are doing (P-20).

use std::fmt;
use std::sync::PoisonError;
use std::time::Duration;

use laneway_core::ids::{DispatchId, EndpointIndex, RunId};
use laneway_core::lane::{ExitCause, Label, Phase};
use laneway_core::wire::Digest;

use crate::error::CpuOverlap;
use crate::live::{Inner, Live};
use crate::supervisor::Child;
use crate::sys::clock;
use crate::worker::{Worker, WorkerState};

/// A look at a worker and its children, taken without stopping anything.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Health {
    /// The worker's level.
    pub level: u32,
    /// Where the worker is in its life.
    pub state: &'static str,
    /// Whether it takes runs and every child lives.
    pub ready: bool,
    /// Bytes of its regions that are backed by memory (P-33).
    pub committed_bytes: u64,
    /// Children that were given some CPUs both (P-21).
    pub cpu_overlaps: Vec<CpuOverlap>,
    /// Its children, by endpoint; none before init and after close.
    pub children: Vec<ChildHealth>,
}

/// One child.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ChildHealth {
    /// What users call it.
    pub label: Label,
    /// What kind of child it is.
    pub kind: &'static str,
    /// Its process id; of a child that is a thread, that of its worker's process (P-27).
    pub pid: i32,
    /// What it is doing.
    pub doing: Doing,
}

/// What a child is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Doing {
    /// It waits for work.
    Idle,
    /// It has a task.
    Busy {
        /// The run of the task.
        run: RunId,
        /// Which dispatch of this child.
        dispatch: DispatchId,
        /// The callable.
        callable: Option<Digest>,
        /// Where the task stands.
        phase: Phase,
        /// How long ago it was sent.
        age: Duration,
    },
    /// It accepts nothing any more; why.
    Poisoned {
        /// The first reason.
        reason: String,
    },
    /// It has ended; how.
    Dead {
        /// The cause.
        cause: ExitCause,
    },
}

impl Health {
    /// Children whose task is older than `age`: what a stall report names.
    pub fn stalled(&self, age: Duration) -> impl Iterator<Item = &ChildHealth> {
        self.children.iter().filter(move |child| matches!(child.doing, Doing::Busy { age: found, .. } if found >= age))
    }
}

impl fmt::Display for ChildHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, pid {}): {}", self.label, self.kind, self.pid, self.doing)
    }
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Busy { run, dispatch, callable, phase, age } => {
                write!(f, "run {run}, dispatch {dispatch}, {phase} for {age:?}")?;
                callable.as_ref().map_or(Ok(()), |callable| write!(f, ", callable {callable}"))
            }
            Self::Poisoned { reason } => write!(f, "unusable: {reason}"),
            Self::Dead { cause } => write!(f, "{cause}"),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ready = if self.ready { "ready" } else { "not ready" };
        write!(f, "level {}: {}, {ready}, {} bytes committed", self.level, self.state, self.committed_bytes)?;
        for CpuOverlap { one, other, cpus } in &self.cpu_overlaps {
            write!(f, "\n  {one} and {other} share CPUs {cpus:?}")?;
        }
        self.children.iter().try_for_each(|child| write!(f, "\n  {child}"))
    }
}

impl Worker {
    /// What the worker and its children are doing. Callable at any time and from any thread: it waits for nothing but a step of
    /// whoever drives.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(worker: &laneway_linux::Worker) {
    /// let health = worker.health();
    /// if !health.ready {
    ///     eprintln!("{health}"); // one line per child
    /// }
    /// for child in health.stalled(Duration::from_secs(5)) {
    ///     eprintln!("{child}");
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        let (level, state, live) = self.snapshot();
        match live {
            Some(live) => live.health(state),
            None => Health {
                level,
                state: state.name(),
                ready: false,
                committed_bytes: 0,
                cpu_overlaps: Vec::new(),
                children: Vec::new(),
            },
        }
    }
}

impl Live {
    pub(crate) fn health(&self, state: WorkerState) -> Health {
        let inner = self.lock();
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        let children: Vec<_> = supervisor.endpoints().map(|(at, child)| child_health(&inner, at, child)).collect();
        let lives = |child: &ChildHealth| matches!(child.doing, Doing::Idle | Doing::Busy { .. });
        Health {
            level: self.config.level,
            state: state.name(),
            ready: state == WorkerState::Ready && children.iter().all(lives),
            committed_bytes: self.space.committed_bytes(),
            cpu_overlaps: self.config.cpus.overlaps().collect(),
            children,
        }
    }
}

fn child_health(inner: &Inner, endpoint: EndpointIndex, child: &Child) -> ChildHealth {
    let lane = inner.driver.lane(endpoint);
    let flight = lane.and_then(|lane| lane.active().or(lane.staged()));
    let reason = lane.and_then(|lane| lane.poison());
    let doing = match (child.host.exit(), reason, flight) {
        (Some(cause), ..) => Doing::Dead { cause },
        (None, Some(reason), _) => Doing::Poisoned { reason: reason.to_string() },
        (None, None, Some(flight)) => Doing::Busy {
            run: flight.identity.run,
            dispatch: flight.identity.dispatch,
            callable: inner.driver.engine().payload(flight.key).map(|payload| *payload.digest),
            phase: flight.phase,
            age: clock::now().since(flight.since),
        },
        (None, None, None) => Doing::Idle,
    };
    let pid = child.host.place().pid().unwrap_or_else(|| std::process::id() as i32);
    ChildHealth { label: child.label, kind: child.kind, pid, doing }
}
