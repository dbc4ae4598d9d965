//! What looking costs.

use std::sync::atomic::Ordering;
use std::time::Instant;

use laneway_linux::{TaskArgs, WorkerBuilder};

use crate::{ALLOCATIONS, Bench};

/// Tasks of one run.
const TASKS: usize = 2_000;

/// T-50: with tracing off and with it on, a task allocates nothing in the parent and nothing in the child.
pub(crate) fn nothing_is_allocated_on_the_way_of_a_task_untraced_or_traced() {
    let off: fn(WorkerBuilder) -> WorkerBuilder = |builder| builder;
    for (what, setting) in [("off", off), ("on", |builder| builder.tracing(true))] {
        let bench = Bench::new(1, setting);
        let (cell, args) = (bench.cell(), TaskArgs::new());
        let mut count = TaskArgs::new();
        count.output(&cell);
        bench.pass(TASKS);
        let in_child = || {
            bench.worker.run(|orch| Ok(orch.submit_sub(&bench.allocations, &count).map(drop)?)).unwrap();
            cell.to_vec().unwrap()[0]
        };
        in_child();
        let before = in_child();
        let mut nanos = 0;
        let in_parent = bench
            .worker
            .run(|orch| {
                orch.submit_sub(&bench.pass, &args)?;
                let (before, start) = (ALLOCATIONS.load(Ordering::Relaxed), Instant::now());
                for _ in 0..TASKS {
                    orch.submit_sub(&bench.pass, &args)?;
                }
                nanos = start.elapsed().as_nanos();
                Ok(ALLOCATIONS.load(Ordering::Relaxed) - before)
            })
            .unwrap();
        assert_eq!(in_parent, 0, "the parent, tracing {what}");
        assert_eq!(in_child() - before, 0, "the child, tracing {what}");
        println!("tracing {what}: {} ns to submit a task", nanos / TASKS as u128);
        bench.worker.close().unwrap();
    }
}
