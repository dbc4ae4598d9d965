//! More processes than CPUs.

use std::time::Duration;

use laneway_linux::TaskArgs;
use laneway_linux::sys::clock;

use super::super::Failure;
use super::super::case::Case;
use super::super::slice::Slice;
use super::super::trees::{NamedTree, SubTree, Trees};
use super::graphs::{Extra, independent, run, single};

/// What a busy task takes of a CPU.
pub(in super::super) const BUSY: Duration = Duration::from_micros(100);
/// Busy tasks of a run: so many that its beginning and end, when not all children can be busy, hardly count, and so few that a slice
/// of one child alone stays under 100 ms.
pub(super) const BUSY_TASKS: usize = 250;
/// Children that answer; the one behind them computes.
const ANSWERING: usize = 8;

pub(super) fn cases(trees: &Trees) -> Vec<Case<'_>> {
    let (crowd, named) = (&trees.crowd, &trees.named);
    let mut cases = vec![
        Case::pinned("one_of_9", "run of 1 task, 8 more children idle", move |slice| single(crowd, slice, Extra::None)),
        Case::free("round_robin", "run of 1 task, 8 children in turn", move |slice| round_robin(named, slice)),
        Case::free("one_computes", "task on 8 children in turn while a ninth computes", move |slice| {
            one_computes(named, slice)
        }),
    ];
    for (subs, tree) in &trees.pools {
        let (id, title) = (format!("pool_{subs}"), format!("{}: 2,000 no-op tasks, each", children(*subs)));
        cases.push(Case::free(&id, &title, move |slice| independent(tree, slice, Extra::None)));
    }
    for (subs, tree) in &trees.pools {
        let (id, title) = (format!("busy_pool_{subs}"), format!("{}: 100 µs tasks, each", children(*subs)));
        cases.push(Case::free(&id, &title, move |slice| busy(tree, slice)));
    }
    cases
}

fn children(count: u32) -> String {
    if count == 1 { "1 child".to_owned() } else { format!("{count} children") }
}

fn round_robin(tree: &NamedTree, slice: &mut Slice) -> Result<(), Failure> {
    let args = TaskArgs::new();
    let mut turns = tree.children.iter().take(ANSWERING).cycle();
    slice.repeat(1, || {
        let child = *turns.next().ok_or("no children")?;
        Ok(tree.worker.run(|orch| Ok(orch.submit_next_level(&tree.compute, child, &args).map(drop)?))?)
    })
}

/// One run: a long task, and beside it one short task after the other, each waited for.
fn one_computes(tree: &NamedTree, slice: &mut Slice) -> Result<(), Failure> {
    let (mut long, mut short) = (TaskArgs::new(), TaskArgs::new());
    long.scalar(slice.length().as_nanos() as u64);
    let deadline = slice.deadline();
    Ok(tree.worker.run(|orch| {
        orch.submit_next_level(&tree.compute, tree.children[ANSWERING], &long)?;
        for child in tree.children.iter().take(ANSWERING).cycle() {
            let tensor = tree.tensors.take(1)[0];
            short.clear();
            short.inout(tensor);
            let start = clock::now();
            orch.submit_next_level(&tree.compute, *child, &short)?;
            orch.wait(&[tensor])?;
            let end = clock::now();
            slice.record(end.since(start), 1);
            if end >= deadline {
                break;
            }
        }
        Ok(())
    })?)
}

fn busy(tree: &SubTree, slice: &mut Slice) -> Result<(), Failure> {
    let mut args = TaskArgs::new();
    args.scalar(BUSY.as_nanos() as u64);
    slice.repeat(BUSY_TASKS as u64, || {
        run(tree, |orch| {
            for _ in 0..BUSY_TASKS {
                orch.submit_sub(&tree.compute, &args)?;
            }
            Ok(())
        })
    })
}
