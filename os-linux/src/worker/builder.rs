//! Describing a worker before it exists.

use std::time::Duration;

use laneway_core::engine::Config as Capacities;
use laneway_core::lane::Label;

use super::Worker;
use crate::Error;
use crate::config::Config;
use crate::host::ChildMode;

/// Settings of a worker, each with a sensible default; [`WorkerBuilder::build`] checks them together.
#[derive(Clone, Debug, Default)]
pub struct WorkerBuilder {
    config: Config,
    subs: u32,
}

/// Smallest region, in bytes: one page.
const LEAST_REGION: u64 = 4096;

/// Most SUB children of one worker.
const MOST_SUBS: u32 = 4096;

impl WorkerBuilder {
    /// The level that messages name; 3 by default. Nothing depends on it.
    #[must_use]
    pub fn level(mut self, level: u32) -> Self {
        self.config.level = level;
        self
    }

    /// How many SUB children to start; none by default.
    #[must_use]
    pub fn subs(mut self, count: u32) -> Self {
        self.subs = count;
        self
    }

    /// Bytes of each of the four heap rings; 1 GiB by default. Address space only, pages are committed by first use.
    #[must_use]
    pub fn heap_ring_bytes(mut self, bytes: u64) -> Self {
        self.config.sizes.ring = bytes;
        self
    }

    /// Bytes of the region that tensors live in; 16 GiB by default. Address space only.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: u64) -> Self {
        self.config.sizes.buffers = bytes;
        self
    }

    /// How many tasks may be alive at once; 4,096 by default.
    #[must_use]
    pub fn task_window(mut self, tasks: u32) -> Self {
        self.config.engine.task_window = tasks;
        self
    }

    /// Changes capacities of the engine. An error of a full pool names the field to enlarge; the heap rings have a setting of
    /// their own.
    ///
    /// ```
    /// # use laneway_linux::Worker;
    /// let worker = Worker::builder().capacities(|engine| engine.edges *= 4).build()?;
    /// # Ok::<(), laneway_linux::Error>(())
    /// ```
    #[must_use]
    pub fn capacities(mut self, change: impl FnOnce(&mut Capacities)) -> Self {
        change(&mut self.config.engine);
        self
    }

    /// How long a thread spins before it sleeps in the kernel; 6 µs by default, nothing where only one CPU is allowed.
    #[must_use]
    pub fn spin(mut self, window: Duration) -> Self {
        self.config.spin = window;
        self
    }

    /// Whether a child whose tasks compute for milliseconds asks the scheduler for long slices, so that drivers and children with
    /// short tasks run at once when they wake on its CPU; yes by default. Threads and processes that are started in such a task
    /// have long slices too, for good: say no if the latency of those counts.
    #[must_use]
    pub fn long_slices(mut self, allowed: bool) -> Self {
        self.config.long_slices = allowed;
        self
    }

    /// How long the whole tree may take to become ready; 300 s by default (P-5).
    #[must_use]
    pub fn init_timeout(mut self, timeout: Duration) -> Self {
        self.config.init_timeout = timeout;
        self
    }

    /// How long one submit or alloc waits for room; 10 s by default (E-13).
    #[must_use]
    pub fn alloc_timeout(mut self, timeout: Duration) -> Self {
        self.config.alloc_timeout = timeout;
        self
    }

    /// How long `close` waits for accepted runs; 10 s by default (P-13).
    #[must_use]
    pub fn drain_budget(mut self, budget: Duration) -> Self {
        self.config.drain_budget = budget;
        self
    }

    /// How long `close` waits for the children to leave before it kills them; 5 s by default (P-12).
    #[must_use]
    pub fn reap_budget(mut self, budget: Duration) -> Self {
        self.config.reap_budget = budget;
        self
    }

    /// Orders a pure overwrite after earlier readers and writers of the same bytes; off by default (E-19).
    #[must_use]
    pub fn strict_war(mut self, strict: bool) -> Self {
        self.config.engine.strict_war = strict;
        self
    }

    /// Where the children live; [`ChildMode::Process`] by default (P-27).
    #[must_use]
    pub fn child_mode(mut self, mode: ChildMode) -> Self {
        self.config.child_mode = mode;
        self
    }

    /// Keeps a child, and what it starts, on these CPUs; it may use all of this process by default. Worker ids count from 0 in
    /// the order of the `add_…` calls. CPUs that cannot be used fail init; those that another child was given too are listed in
    /// [`Health::cpu_overlaps`](crate::Health::cpu_overlaps) (P-21).
    #[must_use]
    pub fn child_cpus(mut self, child: Label, cpus: impl Into<Vec<usize>>) -> Self {
        self.config.cpus.set(child, cpus.into());
        self
    }

    /// Fails init if two children were given the same CPU; off by default (P-21).
    #[must_use]
    pub fn exclusive_cpus(mut self, exclusive: bool) -> Self {
        self.config.cpus.exclusive = exclusive;
        self
    }

    /// Commits the memory of the heap rings and the buffer region at init, so that a lack of it is an error there and not a
    /// signal later; off by default. Give the regions sizes that fit (P-33).
    #[must_use]
    pub fn populate(mut self, populate: bool) -> Self {
        self.config.populate = populate;
        self
    }

    /// Forks although this process has threads that are not this library's. Only if none of them can hold a lock that a
    /// child needs, the allocator's among them, at the moment of `init` (P-2).
    #[must_use]
    pub fn allow_foreign_threads(mut self, allow: bool) -> Self {
        self.config.allow_foreign_threads = allow;
        self
    }

    /// Closes descriptors in the children that this library did not open, the standard streams aside; off by default (P-24).
    #[must_use]
    pub fn close_foreign_descriptors(mut self, close: bool) -> Self {
        self.config.close_foreign_descriptors = close;
        self
    }

    /// Writes down what happens in the whole tree, for the `tracing` subscriber of this process; off by default. Every process
    /// writes into one shared log, which costs it neither a lock nor a descriptor, and the subscriber hears of it outside of
    /// the worker's lock: events with the target `laneway` that carry the time (CLOCK_MONOTONIC, nanoseconds), the process
    /// and the facts. Only the root of a tree tells a subscriber (P-30).
    #[must_use]
    pub fn tracing(mut self, on: bool) -> Self {
        self.config.trace.on = on || self.config.trace.path.is_some();
        self
    }

    /// Writes a trace of the whole tree to `path` when the worker closes, and whenever
    /// [`Worker::write_trace`](crate::Worker::write_trace) is called: a file that <https://ui.perfetto.dev> opens.
    ///
    /// The log keeps what happened first: once it is full, what happens is counted and not kept.
    /// A named pipe must have its reader when the trace is written; nobody waits for one.
    #[must_use]
    pub fn trace_to(mut self, path: impl Into<std::path::PathBuf>) -> Self {
        self.config.trace.path = Some(path.into());
        self.config.trace.on = true;
        self
    }

    /// Bytes of the log of [`tracing`](Self::tracing) and `trace_to`, rounded down to a power of two; 64 MiB by default, which
    /// holds about a million events (a SUB task leaves 5, a chip task 13). Address space only.
    #[must_use]
    pub fn trace_bytes(mut self, bytes: u64) -> Self {
        self.config.trace.bytes = bytes;
        self
    }

    /// Keeps the graph of each run for as long as its handle lives, for [`RunHandle::dot`](crate::RunHandle::dot) and
    /// [`Orchestrator::dot`](crate::Orchestrator::dot); off by default. Each submit allocates then.
    #[must_use]
    pub fn record_graphs(mut self, on: bool) -> Self {
        self.config.trace.graphs = on;
        self
    }

    /// The worker, in state NEW: nothing is mapped or forked yet.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of range.
    pub fn build(self) -> Result<Worker, Error> {
        let sizes = self.config.sizes;
        check("subs", self.subs.into(), 0, MOST_SUBS.into())?;
        check("heap_ring_bytes", sizes.ring, LEAST_REGION, 1 << 46)?;
        check("buffer_bytes", sizes.buffers, LEAST_REGION, 1 << 46)?;
        check("trace_bytes", self.config.trace.bytes, LEAST_REGION, 1 << 40)?;
        Ok(Worker::new(self.config, self.subs))
    }
}

fn check(setting: &'static str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(Error::Setting { setting, value, least, most }) }
}
