//! Graphs of runs.

use std::sync::atomic::{AtomicI64, Ordering};

use laneway_linux::{Error, TaskArgs};

use crate::Bench;

/// a → (b, c) → d, then a writer that overwrites what d read.
pub(crate) fn a_diamond_is_drawn_with_its_reasons() {
    let bench = Bench::new(2, |builder| builder.record_graphs(true));
    let [x, y, z] = [(); 3].map(|()| bench.cell());
    let run = bench
        .worker
        .submit(|orch| {
            let submit = |orch: &mut laneway_linux::Orchestrator<'_>, args: &TaskArgs| {
                orch.submit_sub(&bench.pass, args).map(drop)
            };
            submit(orch, TaskArgs::new().output(&x))?;
            submit(orch, TaskArgs::new().input(&x).output(&y))?;
            submit(orch, TaskArgs::new().input(&x).output(&z))?;
            submit(orch, TaskArgs::new().input(&y).input(&z))?;
            submit(orch, TaskArgs::new().inout(&y))?;
            assert!(orch.dot()?.contains("t4"), "the graph so far");
            Ok(())
        })
        .unwrap();
    run.wait().unwrap();
    let dot = run.dot().unwrap();
    let lines: Vec<_> = dot.lines().map(str::trim).collect();
    assert_eq!(lines[0], "digraph run_1 {");
    assert_eq!(lines.last(), Some(&"}"));
    let nodes: Vec<_> = lines.iter().filter(|line| line.contains("fillcolor")).collect();
    assert_eq!(nodes.len(), 5);
    for (i, node) in nodes.iter().enumerate() {
        assert_eq!(**node, format!("t{i} [label=\"pass\\nsub\\ncompleted\", fillcolor=palegreen];"));
    }
    let edges: Vec<_> =
        lines.iter().filter_map(|line| line.split_once(" [").filter(|(edge, _)| edge.contains("->"))).collect();
    let read = "label=\"read after write\", style=solid];";
    let expected = [("t0 -> t1", read), ("t0 -> t2", read), ("t1 -> t3", read), ("t2 -> t3", read), ("t1 -> t4", read)];
    assert_eq!(edges, expected);
    drop(run);
    bench.worker.close().unwrap();
}

/// E-12, E-22: what depends on a task that failed never runs.
pub(crate) fn a_failure_is_drawn_with_what_never_ran() {
    let bench = Bench::new(1, |builder| builder.record_graphs(true).strict_war(true));
    let (gate, x, y) = (bench.cell(), bench.cell(), bench.cell());
    let open = gate.as_arg().addr() as *mut i64;
    let run = bench.worker.submit(|orch| {
        orch.submit_sub(&bench.hold, TaskArgs::new().input(&gate).input(&x))?;
        orch.submit_sub(&bench.fail, TaskArgs::new().output(&x))?;
        orch.submit_sub(&bench.pass, TaskArgs::new().input(&x).output(&y))?;
        orch.submit_sub(&bench.pass, TaskArgs::new().output(&x))?;
        // SAFETY: the tensor keeps its memory mapped, and everybody accesses it by atomics.
        unsafe { AtomicI64::from_ptr(open) }.store(1, Ordering::Relaxed);
        // By name: until the failure has come, however long that takes.
        assert!(orch.wait(&[x.as_arg()]).is_err());
        Ok(orch.submit_sub(&bench.pass, TaskArgs::new().input(&y)).map(drop)?)
    });
    let run = run.unwrap();
    assert!(matches!(run.wait(), Err(Error::RunFailed { .. })));
    let dot = run.dot().unwrap();
    assert!(dot.contains("t1 [label=\"fail\\nsub\\nfailed\", fillcolor=lightcoral];"), "{dot}");
    assert!(dot.contains("t0 -> t1 [label=\"write after read\", style=dashed];"), "{dot}");
    assert!(dot.contains("t1 -> t2 [label=\"read after write\", style=solid];"), "{dot}");
    assert!(dot.contains("t1 -> t3 [label=\"write after write\", style=dashed];"), "{dot}");
    assert!(dot.contains("t2 -> t3 [label=\"write after read\", style=dashed];"), "{dot}");
    // The last one failed as it was submitted.
    assert!(dot.contains("t2 -> t4 [label=\"read after write\", style=solid];"), "{dot}");
    for never in ["t2", "t4"] {
        assert!(dot.contains(&format!("{never} [label=\"pass\\nsub\\nnever ran\", fillcolor=lightgray];")), "{dot}");
    }
    drop(run);
    bench.worker.close().unwrap();
}

pub(crate) fn graphs_that_nobody_asked_for_are_an_error() {
    let bench = Bench::new(1, |builder| builder);
    let run = bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.pass, TaskArgs::new()).map(drop)?)).unwrap();
    let error = run.dot().unwrap_err();
    assert_eq!(error.to_string(), "the graph of a run is not recorded: build the worker with record_graphs(true)");
    run.wait().unwrap();
    drop(run);
    bench.worker.close().unwrap();
}
