//! The numbers behind the metrics: written by whoever holds the worker's lock, read by anybody.

use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::engine::Usage;
use laneway_core::lane::Label;

use super::histogram::Recording;

/// Adds to a counter that has one writer at a time, which needs no locked instruction.
#[inline]
pub(crate) fn grow(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// All counters of a worker.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) level: u32,
    /// By endpoint.
    pub(crate) labels: Box<[Label]>,
    pub(crate) runs_begun: AtomicU64,
    pub(crate) runs_completed: AtomicU64,
    pub(crate) runs_failed: AtomicU64,
    pub(crate) submitted: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) controls: AtomicU64,
    pub(crate) rings: AtomicU64,
    /// Not under the lock.
    pub(crate) sleeps: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) submit_to_dispatch: Recording,
    pub(crate) dispatch_to_completion: Recording,
    pub(crate) begin_to_end: Recording,
    pub(crate) pools: Pools,
    /// Dispatches, by endpoint.
    pub(crate) dispatches: Box<[AtomicU64]>,
}

/// What of the engine is in use.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pub(crate) tasks: AtomicU64,
    pub(crate) unfinished: AtomicU64,
    pub(crate) edges: AtomicU64,
    pub(crate) map_entries: AtomicU64,
    pub(crate) args_bytes: AtomicU64,
    pub(crate) slabs: AtomicU64,
    pub(crate) runs: AtomicU64,
}

impl Pools {
    pub(crate) fn set(&self, usage: &Usage) {
        let Usage { tasks, unfinished, edges, map_entries, args_bytes, slabs, runs, .. } = *usage;
        let numbers = [tasks, unfinished, edges, map_entries, slabs, runs].map(u64::from);
        let cells = [&self.tasks, &self.unfinished, &self.edges, &self.map_entries, &self.slabs, &self.runs];
        for (cell, number) in cells.into_iter().zip(numbers) {
            cell.store(number, Ordering::Relaxed);
        }
        self.args_bytes.store(args_bytes as u64, Ordering::Relaxed);
    }
}

impl Counters {
    pub(crate) fn new(level: u32, labels: Box<[Label]>) -> Self {
        Self {
            level,
            runs_begun: AtomicU64::new(0),
            runs_completed: AtomicU64::new(0),
            runs_failed: AtomicU64::new(0),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            controls: AtomicU64::new(0),
            rings: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            in_flight: AtomicU64::new(0),
            submit_to_dispatch: Recording::new(),
            dispatch_to_completion: Recording::new(),
            begin_to_end: Recording::new(),
            pools: Pools::default(),
            dispatches: labels.iter().map(|_| AtomicU64::new(0)).collect(),
            labels,
        }
    }
}
