//! In the steady state a task allocates nothing: neither in the parent, its background thread included, nor in the child.

mod harness;

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use laneway_core::mailbox::Words;
use laneway_linux::sys::region::{Region, Sharing};
use laneway_linux::sys::words::MappedWords;
use laneway_linux::{AddressSpace, BoxError, CallableHandle, ChipTensor, Dtype, Orchestrator, TaskArgs, Worker};

fn main() -> ExitCode {
    harness::main(harness::cases![
        the_counter_sees_an_allocation_on_either_side,
        runs_of_one_task_allocate_nothing,
        chains_allocate_nothing,
        fans_over_two_children_allocate_nothing,
        what_a_nested_worker_passes_on_allocates_nothing,
    ])
}

/// Allocations of this process, by all of its threads.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Rounds before anything is counted: what is bought once is bought by then.
const WARM: usize = 20;
const ROUNDS: usize = 200;
/// How often these rounds are counted.
const TIMES: usize = 3;
/// Sets of four tensors that the tasks of a case take in turn.
const SETS: u64 = 256;

/// Where children leave their own counts.
fn board() -> MappedWords {
    let region = Box::leak(Box::new(Region::new("board", 4096, Sharing::Tree).unwrap()));
    // SAFETY: the region is leaked.
    unsafe { MappedWords::new(region) }
}

struct Bench {
    worker: Worker,
    board: MappedWords,
    noop: CallableHandle,
    report: CallableHandle,
    boxes: CallableHandle,
    tensors: Vec<ChipTensor>,
    subs: usize,
}

impl Bench {
    fn new(subs: usize) -> Self {
        let worker = Worker::builder().subs(subs as u32).build().unwrap();
        let board = board();
        let noop = worker.register("noop", |_| Ok(())).unwrap();
        // Each member of a group is a child of its own.
        let report = worker.register("report", move |args| {
            board.write(8 * args.scalar(0)? as usize, ALLOCATIONS.load(Relaxed));
            Ok(())
        });
        let boxes = worker.register("boxes", |_| {
            drop(std::hint::black_box(Box::new(7_u64)));
            Ok(())
        });
        let memory = worker.tensor::<f32>(&[4 * SETS as u32 + 1, 16]).unwrap();
        let base = memory.as_arg().addr();
        let tensor = |i| ChipTensor::contiguous(base + 64 * i, 64, Dtype::F32, &[16], AddressSpace::Host).unwrap();
        let tensors = (0..=4 * SETS).map(tensor).collect();
        std::mem::forget(memory);
        worker.init().unwrap();
        Self { worker, board, noop, report: report.unwrap(), boxes: boxes.unwrap(), tensors, subs }
    }

    /// What was allocated so far: in this process, and in all children together.
    fn counts(&self) -> (u64, u64) {
        let members: Vec<_> = (0..self.subs).map(|i| TaskArgs::new().scalar(i as u64).clone()).collect();
        let members: Vec<_> = members.iter().collect();
        self.worker.run(|orch| Ok(orch.submit_sub_group(&self.report, &members).map(drop)?)).unwrap();
        let children = (0..self.subs).map(|i| self.board.read(8 * i)).sum();
        (ALLOCATIONS.load(Relaxed), children)
    }

    /// Appends four tensors, others than the tasks before had.
    fn add_four(&self, args: &mut TaskArgs, turn: &mut usize) {
        let first = 4 * (*turn % SETS as usize);
        *turn += 1;
        if let [a, b, c, d] = self.tensors[first..first + 4] {
            args.input(a).input(b).inout(c).output_existing(d);
        }
    }

    /// Allocations of `ROUNDS` runs that `build` builds, here and in the children; the least of a few times. What every run
    /// allocates shows each time; what is bought once, by the first turn of the background thread say, may be bought late.
    /// The way to count allocates too, as often with runs as without.
    fn count(&self, mut build: impl FnMut(&mut Orchestrator<'_>) -> Result<(), BoxError>) -> (u64, u64) {
        let mut rounds = |count| (0..count).for_each(|_| self.worker.run(&mut build).unwrap());
        rounds(WARM);
        self.counts();
        let times = (0..TIMES).map(|_| {
            let before = self.counts();
            let between = self.counts();
            rounds(ROUNDS);
            let after = self.counts();
            let of_counting = (between.0 - before.0, between.1 - before.1);
            let of_runs = (after.0 - between.0, after.1 - between.1);
            (of_runs.0.saturating_sub(of_counting.0), of_runs.1.saturating_sub(of_counting.1))
        });
        times.min_by_key(|(here, below)| here + below).expect("at least once")
    }
}

fn the_counter_sees_an_allocation_on_either_side() {
    let bench = Bench::new(1);
    let counted = bench.count(|orch| {
        drop(std::hint::black_box(Box::new(7_u64)));
        Ok(orch.submit_sub(&bench.boxes, TaskArgs::new()).map(drop)?)
    });
    assert_eq!(counted, (ROUNDS as u64, ROUNDS as u64));
    bench.worker.close().unwrap();
}

fn runs_of_one_task_allocate_nothing() {
    let bench = Bench::new(1);
    let (mut args, mut turn) = (TaskArgs::new(), 0);
    let without = bench.count(|orch| Ok(orch.submit_sub(&bench.noop, &args).map(drop)?));
    let with = bench.count(|orch| {
        args.clear();
        bench.add_four(&mut args, &mut turn);
        Ok(orch.submit_sub(&bench.noop, &args).map(drop)?)
    });
    assert_eq!((without, with), ((0, 0), (0, 0)), "without and with tensors, here and in the child");
    bench.worker.close().unwrap();
}

fn chains_allocate_nothing() {
    let bench = Bench::new(1);
    let (mut args, mut turn) = (TaskArgs::new(), 0);
    let mut counted = [false, true].map(|four| {
        bench.count(|orch| {
            for _ in 0..50 {
                args.clear();
                args.inout(bench.tensors[4 * SETS as usize]);
                if four {
                    bench.add_four(&mut args, &mut turn);
                }
                orch.submit_sub(&bench.noop, &args)?;
            }
            Ok(())
        })
    });
    counted.sort_unstable();
    assert_eq!(counted, [(0, 0); 2], "without and with tensors, here and in the child");
    bench.worker.close().unwrap();
}

fn fans_over_two_children_allocate_nothing() {
    let bench = Bench::new(2);
    let (mut args, mut join) = (TaskArgs::new(), TaskArgs::new());
    let counted = bench.count(|orch| {
        let [first, own @ ..] = &bench.tensors[..65] else { return Err("too few tensors".into()) };
        args.clear();
        orch.submit_sub(&bench.noop, args.output_existing(*first) as &TaskArgs)?;
        join.clear();
        for own in own {
            args.clear();
            args.input(*first).output_existing(*own);
            orch.submit_sub(&bench.noop, &args)?;
            join.input(*own);
        }
        Ok(orch.submit_sub(&bench.noop, &join).map(drop)?)
    });
    assert_eq!(counted, (0, 0));
    bench.worker.close().unwrap();
}

fn what_a_nested_worker_passes_on_allocates_nothing() {
    let board = board();
    let inner = Worker::builder().level(3).subs(1).build().unwrap();
    let leaf = inner.register("leaf", move |_| {
        board.write(8, ALLOCATIONS.load(Relaxed));
        Ok(())
    });
    let leaf = leaf.unwrap();
    let worker = Worker::builder().level(4).build().unwrap();
    let pass_on = worker.register_orchestration("pass_on", move |orch, _, _| {
        orch.submit_sub(&leaf, TaskArgs::new())?;
        board.write(0, ALLOCATIONS.load(Relaxed));
        Ok(())
    });
    let pass_on = pass_on.unwrap();
    let below = worker.add_worker(&inner).unwrap();
    worker.init().unwrap();
    let rounds = |count| {
        for _ in 0..count {
            worker.run(|orch| Ok(orch.submit_next_level(&pass_on, below, TaskArgs::new()).map(drop)?)).unwrap();
        }
        (ALLOCATIONS.load(Relaxed), board.read(0), board.read(8))
    };
    let before = rounds(WARM);
    assert_eq!(rounds(ROUNDS), before, "at the root, on the worker below, in its child");
    worker.close().unwrap();
}
