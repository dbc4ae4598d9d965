//! Graphs on one SUB child, or two.

use std::thread;

use laneway_linux::sys::clock;
use laneway_linux::{BoxError, ChipTensor, Orchestrator, TaskArgs};

use super::super::Failure;
use super::super::case::Case;
use super::super::floors::IDLE;
use super::super::slice::Slice;
use super::super::trees::{SubTree, Tensors, Trees};

/// Tasks of a run without order.
pub(super) const INDEPENDENT: usize = 2_000;
/// Tasks of a chain.
const CHAIN: usize = 1_000;
/// Tasks between the first and the last of a fan.
const FAN: usize = 256;
/// Submits that are timed while nothing can be dispatched.
const SUBMITS: usize = 1_000;

/// What each task has besides what the shape of the graph needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    None,
    FourTensors,
}

impl Extra {
    fn add(self, args: &mut TaskArgs, tensors: &Tensors) {
        if self == Self::FourTensors {
            tensors.add_four(args);
        }
    }
}

pub(super) fn cases(trees: &Trees) -> Vec<Case<'_>> {
    let (solo, pair) = (&trees.solo, &trees.pools[1].1);
    let none = Extra::None;
    let four = Extra::FourTensors;
    vec![
        Case::pinned("run_1", "run of 1 task", move |slice| single(solo, slice, none)),
        Case::pinned("run_1_4t", "run of 1 task, 4 tensors", move |slice| single(solo, slice, four)),
        Case::pinned("run_1_4k", "run of 1 task, 4 KiB of arguments", move |slice| sized(solo, slice, 31)),
        Case::pinned("run_1_32k", "run of 1 task, 32 KiB of arguments", move |slice| sized(solo, slice, 255)),
        Case::pinned("independent", "2,000 independent tasks, each", move |slice| independent(solo, slice, none)),
        Case::pinned("independent_4t", "2,000 independent tasks, 4 tensors, each", move |slice| {
            independent(solo, slice, four)
        }),
        Case::free("independent_2", "2,000 independent tasks on 2 children, each", move |slice| {
            independent(pair, slice, none)
        }),
        Case::free("independent_2_4t", "2,000 independent tasks on 2 children, 4 tensors, each", move |slice| {
            independent(pair, slice, four)
        }),
        Case::pinned("chain", "chain of 1,000, each", move |slice| chain(solo, slice, none)),
        Case::pinned("chain_4t", "chain of 1,000, 4 more tensors, each", move |slice| chain(solo, slice, four)),
        Case::pinned("fan", "fan-out and fan-in of 256, each", move |slice| fan(solo, slice, none)),
        Case::pinned("fan_4t", "fan-out and fan-in of 256, 4 more tensors, each", move |slice| fan(solo, slice, four)),
        Case::pinned("submit", "submit alone", move |slice| submit(solo, slice, none)),
        Case::pinned("submit_4t", "submit alone, 4 tensors", move |slice| submit(solo, slice, four)),
        Case::pinned("run_1_idle", "first run of 1 task after 1 ms of idleness", move |slice| {
            let args = TaskArgs::new();
            slice.repeat_after(|| thread::sleep(IDLE), || run(solo, |orch| one(solo, orch, &args)))
        }),
    ]
}

/// Builds a run and waits for its end.
pub(super) fn run(
    tree: &SubTree,
    build: impl FnOnce(&mut Orchestrator<'_>) -> Result<(), BoxError>,
) -> Result<(), Failure> {
    Ok(tree.worker.run(build)?)
}

fn one(tree: &SubTree, orch: &mut Orchestrator<'_>, args: &TaskArgs) -> Result<(), BoxError> {
    orch.submit_sub(&tree.noop, args)?;
    Ok(())
}

pub(super) fn single(tree: &SubTree, slice: &mut Slice, extra: Extra) -> Result<(), Failure> {
    let mut args = TaskArgs::new();
    slice.repeat(1, || {
        run(tree, |orch| {
            args.clear();
            extra.add(&mut args, &tree.tensors);
            one(tree, orch, &args)
        })
    })
}

/// A task whose argument list takes 128 bytes for each of `tensors`, and 64.
fn sized(tree: &SubTree, slice: &mut Slice, tensors: usize) -> Result<(), Failure> {
    let mut args = TaskArgs::new();
    slice.repeat(1, || {
        run(tree, |orch| {
            args.clear();
            for tensor in tree.tensors.take(tensors) {
                args.input(*tensor);
            }
            one(tree, orch, &args)
        })
    })
}

pub(super) fn independent(tree: &SubTree, slice: &mut Slice, extra: Extra) -> Result<(), Failure> {
    let mut args = TaskArgs::new();
    slice.repeat(INDEPENDENT as u64, || {
        run(tree, |orch| {
            (0..INDEPENDENT).try_for_each(|_| {
                args.clear();
                extra.add(&mut args, &tree.tensors);
                one(tree, orch, &args)
            })
        })
    })
}

fn chain(tree: &SubTree, slice: &mut Slice, extra: Extra) -> Result<(), Failure> {
    let mut args = TaskArgs::new();
    let link = tree.tensors.apart();
    slice.repeat(CHAIN as u64, || {
        run(tree, |orch| {
            (0..CHAIN).try_for_each(|_| {
                args.clear();
                args.inout(link);
                extra.add(&mut args, &tree.tensors);
                one(tree, orch, &args)
            })
        })
    })
}

/// One task writes what 256 read; each writes something of its own, and one reads all of that.
fn fan(tree: &SubTree, slice: &mut Slice, extra: Extra) -> Result<(), Failure> {
    let (mut args, mut join) = (TaskArgs::new(), TaskArgs::new());
    let first: ChipTensor = tree.tensors.apart();
    slice.repeat(FAN as u64 + 2, || {
        run(tree, |orch| {
            args.clear();
            one(tree, orch, args.output_existing(first))?;
            join.clear();
            for own in tree.tensors.take(FAN) {
                args.clear();
                args.input(first).output_existing(*own);
                extra.add(&mut args, &tree.tensors);
                one(tree, orch, &args)?;
                join.input(*own);
            }
            one(tree, orch, &join)
        })
    })
}

/// The only child is busy, so a submit is what it costs the submitter and nothing else.
fn submit(tree: &SubTree, slice: &mut Slice, extra: Extra) -> Result<(), Failure> {
    let mut args = TaskArgs::new();
    let deadline = slice.deadline();
    loop {
        tree.set_gate(false);
        run(tree, |orch| {
            orch.submit_sub(&tree.wait_at_gate, TaskArgs::new())?;
            let start = clock::now();
            let submitted = (0..SUBMITS).try_for_each(|_| {
                args.clear();
                extra.add(&mut args, &tree.tensors);
                one(tree, orch, &args)
            });
            let end = clock::now();
            tree.set_gate(true);
            slice.record(end.since(start), SUBMITS as u64);
            submitted
        })?;
        if clock::now() >= deadline {
            return Ok(());
        }
    }
}
