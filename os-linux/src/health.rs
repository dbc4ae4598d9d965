//! What a worker and its children are doing (P-20).

use std::fmt;
use std::time::Duration;

use laneway_core::ids::{DispatchId, RunId};
use laneway_core::lane::{ExitCause, Label, Phase};
use laneway_core::wire::Digest;
use laneway_core::wire::extension::ChildActivity;

use crate::board;
use crate::error::CpuOverlap;
use crate::live::Live;
use crate::sys::clock;
use crate::worker::{Worker, WorkerState};

/// A look at a worker and its children, taken without stopping anything.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Health {
    /// The process that the worker runs in.
    pub pid: i32,
    /// The worker's level.
    pub level: u32,
    /// Where the worker is in its life.
    pub state: &'static str,
    /// Whether it takes runs and every child lives.
    pub ready: bool,
    /// Bytes of its regions that are backed by memory (P-33).
    pub committed_bytes: u64,
    /// Children that were given some CPUs both (P-21). Not known of a worker in another process.
    pub cpu_overlaps: Vec<CpuOverlap>,
    /// How long it has been ready.
    pub age: Duration,
    /// How long a driver spins before it sleeps, as configured; zero where spinning is of no use.
    pub window: Duration,
    /// What a wake through the kernel was found to take here; zero if that was not measured.
    pub wake: Duration,
    /// How long its drivers have spun.
    pub spinning: Duration,
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
    pub kind: String,
    /// Its process id; of a child that is a thread, that of its worker's process (P-27).
    pub pid: i32,
    /// What it is doing, as its parent sees it.
    pub doing: Doing,
    /// What it says it is doing.
    pub activity: ChildActivity,
    /// How long ago it began that.
    pub last_progress: Duration,
    /// Tasks that it has finished, failed ones included.
    pub tasks: u64,
    /// How long it has been at tasks, without the one that it is at.
    pub busy: Duration,
    /// How long it has spun for work.
    pub spinning: Duration,
    /// How long it has been ready.
    pub age: Duration,
}

impl ChildHealth {
    /// Whether it takes work, as far as its parent knows.
    pub(crate) fn serves(&self) -> bool {
        !matches!(self.doing, Doing::Poisoned { .. } | Doing::Dead { .. })
    }

    /// The part of its life that it spent in tasks that are finished, 0 to 1.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        share(self.busy, self.age)
    }

    /// The part of its life that it spent spinning for work, 0 to 1.
    #[must_use]
    pub fn spin_share(&self) -> f64 {
        share(self.spinning, self.age)
    }
}

/// The part of a time that another is, 0 to 1.
pub(crate) fn share(part: Duration, of: Duration) -> f64 {
    if of.is_zero() { 0.0 } else { (part.as_secs_f64() / of.as_secs_f64()).min(1.0) }
}

/// What a child is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Doing {
    /// Its mailbox cannot be read: it, or the process that is looked at, is just going.
    Unknown,
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
        /// What its user called it, or what a chip callable calls itself, if that is known.
        name: Option<String>,
        /// Where the task stands.
        phase: Phase,
        /// Whether the child says that it runs it.
        running: bool,
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
            Self::Unknown => f.write_str("unknown"),
            Self::Idle => f.write_str("idle"),
            Self::Busy { run, dispatch, callable, name, phase, running, age } => {
                write!(f, "run {run}, dispatch {dispatch}, ")?;
                // A child with one frame says by its own words alone that it has begun.
                match (phase, running) {
                    (Phase::Published, true) => write!(f, "running for {age:?}")?,
                    _ => write!(f, "{phase} for {age:?}")?,
                }
                match (name, callable) {
                    (Some(name), Some(callable)) => write!(f, ", {name} ({})", callable.short()),
                    (Some(name), None) => write!(f, ", {name}"),
                    (None, Some(callable)) => write!(f, ", callable {callable}"),
                    (None, None) => Ok(()),
                }
            }
            Self::Poisoned { reason } => write!(f, "unusable: {reason}"),
            Self::Dead { cause } => write!(f, "{cause}"),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "level {}: {}, ", self.level, self.state)?;
        let (all, out) = (self.children.len(), self.children.iter().filter(|child| !child.serves()).count());
        match (self.ready, out) {
            (true, _) => f.write_str("every child serves, ")?,
            (false, 0) => {}
            (false, _) => write!(f, "{out} of {all} children dead or unusable, ")?,
        }
        write!(f, "{} bytes committed", self.committed_bytes)?;
        for CpuOverlap { one, other, cpus } in &self.cpu_overlaps {
            write!(f, "\n  {one} and {other} share CPUs {cpus:?}")?;
        }
        self.children.iter().try_for_each(|child| write!(f, "\n  {child}"))
    }
}

impl Worker {
    /// What the worker and its children are doing. Callable at any time and from any thread: it waits for nobody who
    /// drives.
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
                pid: std::process::id() as i32,
                level,
                state: state.name(),
                ready: false,
                committed_bytes: 0,
                cpu_overlaps: Vec::new(),
                age: Duration::ZERO,
                window: Duration::ZERO,
                wake: Duration::ZERO,
                spinning: Duration::ZERO,
                children: Vec::new(),
            },
        }
    }
}

impl Live {
    /// Looks at words and atomics alone: no lock of whoever drives.
    pub(crate) fn health(&self, state: WorkerState) -> Health {
        let board = self.board.words();
        let found = board::look(board, self.board.len(), clock::now(), |i, _| Some(self.words[i]));
        Health {
            ready: found.ready && state == WorkerState::Ready,
            state: state.name(),
            committed_bytes: self.space.committed_bytes(),
            cpu_overlaps: self.config.cpus.overlaps().collect(),
            ..found
        }
    }
}
