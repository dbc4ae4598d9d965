//! Seeing into a worker and its children: what is counted, what is told, and what it costs when nobody asks.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_linux::{CallableHandle, TaskArgs, Tensor, Worker, WorkerBuilder};

#[path = "observe/costs.rs"]
mod costs;
#[path = "observe/graphs.rs"]
mod graphs;
mod harness;
#[path = "observe/importer.rs"]
mod importer;
#[path = "observe/numbers.rs"]
mod numbers;
#[path = "observe/subscriber.rs"]
mod subscriber;
#[path = "observe/traces.rs"]
mod traces;

use costs::*;
use graphs::*;
use numbers::*;
use subscriber::*;
use traces::*;

/// Counts what this process allocates, whichever thread does it.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on to the system's allocator as it came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller promised what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `alloc` above with this layout, as the caller promised.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    #[cfg_attr(not(feature = "prometheus"), expect(unused_mut, reason = "nothing is added"))]
    let mut cases = harness::cases![
        nothing_is_allocated_on_the_way_of_a_task_untraced_or_traced,
        metrics_count_every_task_once,
        metrics_are_read_while_another_thread_holds_the_lock,
        metrics_of_a_worker_that_does_not_run_are_zero,
        a_subscriber_hears_every_process_in_order_and_outside_of_the_lock,
        a_subscriber_that_wants_nothing_is_told_nothing,
        a_full_log_makes_room_for_a_subscriber,
        a_subscriber_that_panics_has_had_its_say,
        a_subscriber_that_would_wait_for_its_worker_is_told_so,
        a_worker_whose_last_handle_a_subscriber_drops_is_closed,
        a_trace_pairs_every_task_with_its_dispatch,
        the_trace_of_a_killed_child_ends_with_it,
        a_trace_is_written_whenever_it_is_asked_for,
        a_full_log_counts_what_it_lost,
        a_scribbled_log_still_makes_a_trace,
        children_that_are_threads_have_tracks_of_their_own,
        workers_in_one_process_have_tracks_of_their_own,
        a_child_process_and_its_threads_have_tracks_of_their_own,
        a_trace_that_cannot_be_written_is_an_error_of_close,
        a_trace_into_a_pipe_that_nobody_reads_is_an_error_of_close,
        a_diamond_is_drawn_with_its_reasons,
        a_failure_is_drawn_with_what_never_ran,
        graphs_that_nobody_asked_for_are_an_error,
    ]
    .to_vec();
    #[cfg(feature = "prometheus")]
    cases.extend(harness::cases![scrapes_show_the_numbers_of_the_snapshot]);
    harness::main(&cases)
}

/// A worker with SUB children that are good for a few things; ready.
struct Bench {
    worker: Worker,
    /// Does nothing with whatever it is given.
    pass: CallableHandle,
    /// Fails.
    fail: CallableHandle,
    /// Spins until the first element of its first tensor is not 0.
    hold: CallableHandle,
    /// Stores how many allocations its process has made.
    allocations: CallableHandle,
    /// Kills its process.
    die: CallableHandle,
}

impl Bench {
    fn new(subs: u32, setting: impl FnOnce(WorkerBuilder) -> WorkerBuilder) -> Self {
        let builder = Worker::builder().subs(subs).heap_ring_bytes(1 << 20).buffer_bytes(1 << 24);
        let worker = setting(builder).build().unwrap();
        let pass = worker.register("pass", |_| Ok(())).unwrap();
        let fail = worker.register("fail", |_| Err("as it was told".into())).unwrap();
        let hold = worker.register("hold", |args| {
            let cell = args.tensor::<i64>(0)?;
            while cell.get(0) == Some(0) {
                std::hint::spin_loop();
            }
            Ok(())
        });
        let allocations = worker.register("allocations", |args| {
            let count = ALLOCATIONS.load(Ordering::Relaxed) as i64;
            Ok(args.tensor::<i64>(0)?.set(0, count)?)
        });
        let die = worker.register("die", |_| {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
            Ok(())
        });
        worker.init().unwrap();
        Self { worker, pass, fail, hold: hold.unwrap(), allocations: allocations.unwrap(), die: die.unwrap() }
    }

    fn cell(&self) -> Tensor<i64> {
        self.worker.tensor(&[8]).unwrap()
    }

    /// A run of independent tasks that do nothing.
    fn pass(&self, tasks: usize) {
        let args = TaskArgs::new();
        self.worker
            .run(|orch| {
                for _ in 0..tasks {
                    orch.submit_sub(&self.pass, &args)?;
                }
                Ok(())
            })
            .unwrap();
    }
}
