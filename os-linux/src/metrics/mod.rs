//! Numbers about a worker that can be read at any time, without its lock.

mod counters;
mod histogram;
#[cfg(feature = "prometheus")]
mod prometheus;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::lane::Label;

pub(crate) use counters::{Counters, grow};
pub use histogram::Histogram;
#[cfg(feature = "prometheus")]
pub use prometheus::MetricsCollector;

use crate::board;
use crate::health::share;
use crate::live::Live;
use crate::sys::clock;
use crate::worker::Worker;

/// What a worker has done since its init, and how full it is. Read one number at a time while others go on: numbers that
/// belong together may be a few tasks apart.
///
/// Tasks are counted by member: a group of three counts as three. When no run is open, every submitted task has completed,
/// failed or been skipped.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// The worker's level.
    pub level: u32,
    /// Its runs.
    pub runs: RunCounts,
    /// The tasks of its runs.
    pub tasks: TaskCounts,
    /// Control commands that were sent.
    pub controls: u64,
    /// Children that slept and were woken by the kernel.
    pub doorbells: u64,
    /// How often a thread that drives the worker slept in the kernel.
    pub sleeps: u64,
    /// How long the worker has been ready.
    pub age: Duration,
    /// How long threads that drive it have spun for news.
    pub spinning: Duration,
    /// How full the engine's pools are.
    pub pools: PoolUse,
    /// From the submit of a task to the publication of its dispatch.
    pub submit_to_dispatch: Histogram,
    /// From the publication of a dispatch to its end as the parent saw it.
    pub dispatch_to_completion: Histogram,
    /// From the first task of a run to its terminal state.
    pub run_time: Histogram,
    /// Its children, by endpoint.
    pub children: Vec<ChildMetrics>,
}

/// Runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RunCounts {
    /// Runs that got a lease.
    pub begun: u64,
    /// Runs of which every task succeeded.
    pub completed: u64,
    /// Runs that failed or were cancelled.
    pub failed: u64,
}

/// Tasks, by member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TaskCounts {
    /// Submitted.
    pub submitted: u64,
    /// Ran and succeeded.
    pub completed: u64,
    /// Ran and failed, or were lost with their child.
    pub failed: u64,
    /// Never ran, because something that they depend on failed or their run did. Counted when the run has ended.
    pub skipped: u64,
    /// With a child now.
    pub in_flight: u64,
}

/// What of the engine is in use. The capacities are those of [`Capacities`](crate::Capacities).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PoolUse {
    /// Task records: tasks and allocations that are not consumed.
    pub tasks: u64,
    /// Tasks that have not ended, in a queue or with a child.
    pub unfinished: u64,
    /// Dependencies.
    pub edges: u64,
    /// Ranges of bytes that order tasks.
    pub map_entries: u64,
    /// Bytes of encoded arguments.
    pub args_bytes: u64,
    /// Blocks in the heap rings.
    pub slabs: u64,
    /// Run records.
    pub runs: u64,
}

/// One child.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct ChildMetrics {
    /// What users call it.
    pub label: Label,
    /// Dispatches that were published to it.
    pub dispatches: u64,
    /// How long it has been ready.
    pub age: Duration,
    /// How long it has been at tasks, without the one that it is at; by its own account.
    pub busy: Duration,
    /// How long it has spun for work; by its own account.
    pub spinning: Duration,
}

impl ChildMetrics {
    /// The part of its life that it spent in tasks, 0 to 1.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        share(self.busy, self.age)
    }

    /// The part of its life that it spun for work, 0 to 1.
    #[must_use]
    pub fn spin_share(&self) -> f64 {
        share(self.spinning, self.age)
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Worker {
    /// What the worker has done and how full it is: atomic counters, read without any lock of the driver. All zero before
    /// init; none of the numbers survives close.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let (level, _, live) = self.snapshot();
        match live {
            Some(live) => live.metrics(),
            None => Counters::new(level, Box::default()).snapshot(),
        }
    }
}

impl Live {
    pub(crate) fn metrics(&self) -> Metrics {
        let mut metrics = self.counters.snapshot();
        let seen = board::look(self.board.words(), self.board.len(), clock::now(), |i, _| Some(self.words[i]));
        (metrics.age, metrics.spinning) = (seen.age, seen.spinning);
        for (child, seen) in metrics.children.iter_mut().zip(seen.children) {
            (child.age, child.busy, child.spinning) = (seen.age, seen.busy, seen.spinning);
        }
        metrics
    }
}

impl Counters {
    fn snapshot(&self) -> Metrics {
        let child = |(label, dispatches): (&Label, &AtomicU64)| ChildMetrics {
            label: *label,
            dispatches: read(dispatches),
            age: Duration::ZERO,
            busy: Duration::ZERO,
            spinning: Duration::ZERO,
        };
        Metrics {
            level: self.level,
            runs: RunCounts {
                begun: read(&self.runs_begun),
                completed: read(&self.runs_completed),
                failed: read(&self.runs_failed),
            },
            tasks: TaskCounts {
                submitted: read(&self.submitted),
                completed: read(&self.completed),
                failed: read(&self.failed),
                skipped: read(&self.skipped),
                in_flight: read(&self.in_flight),
            },
            controls: read(&self.controls),
            doorbells: read(&self.rings),
            sleeps: read(&self.sleeps),
            age: Duration::ZERO,
            spinning: Duration::ZERO,
            pools: PoolUse {
                tasks: read(&self.pools.tasks),
                unfinished: read(&self.pools.unfinished),
                edges: read(&self.pools.edges),
                map_entries: read(&self.pools.map_entries),
                args_bytes: read(&self.pools.args_bytes),
                slabs: read(&self.pools.slabs),
                runs: read(&self.pools.runs),
            },
            submit_to_dispatch: self.submit_to_dispatch.snapshot(),
            dispatch_to_completion: self.dispatch_to_completion.snapshot(),
            run_time: self.begin_to_end.snapshot(),
            children: self.labels.iter().zip(&self.dispatches).map(child).collect(),
        }
    }
}
