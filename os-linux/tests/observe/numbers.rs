//! Metrics.

use std::sync::atomic::{AtomicI64, Ordering};

use laneway_linux::{Label, TaskArgs, Worker};

use crate::Bench;

/// Every member of every task is counted when it is submitted and once more when it is over.
pub(crate) fn metrics_count_every_task_once() {
    let bench = Bench::new(2, |builder| builder);
    let cell = bench.cell();
    bench.pass(10);
    let failed = bench.worker.run(|orch| {
        let mut args = TaskArgs::new();
        args.inout(&cell);
        orch.submit_sub(&bench.fail, &args)?;
        orch.submit_sub(&bench.pass, &args)?;
        Ok(orch.submit_sub(&bench.pass, &args).map(drop)?)
    });
    assert!(failed.is_err());
    let none = TaskArgs::new();
    bench.worker.run(|orch| Ok(orch.submit_sub_group(&bench.pass, &[&none, &none]).map(drop)?)).unwrap();

    let found = bench.worker.metrics();
    assert_eq!((found.runs.begun, found.runs.completed, found.runs.failed), (3, 2, 1));
    let tasks = found.tasks;
    assert_eq!((tasks.submitted, tasks.completed, tasks.failed, tasks.skipped), (15, 12, 1, 2));
    assert_eq!(tasks.in_flight, 0);
    assert_eq!((found.pools.unfinished, found.pools.edges, found.pools.tasks), (0, 0, 0));
    assert_eq!(found.children.iter().map(|child| child.dispatches).sum::<u64>(), 13);
    assert!(matches!(found.children[..], [ref a, ref b] if a.label != b.label && matches!(a.label, Label::Sub(_))));
    for child in &found.children {
        assert!(
            child.age > std::time::Duration::ZERO && child.busy <= child.age && child.spinning <= child.age,
            "{child:?}"
        );
        assert!((0.0..=1.0).contains(&child.utilisation()) && (0.0..=1.0).contains(&child.spin_share()), "{child:?}");
    }
    assert!(found.age >= found.spinning);
    // One latency for each dispatch and each run, none longer than all of them together.
    assert_eq!([&found.submit_to_dispatch, &found.dispatch_to_completion].map(|h| h.count()), [13, 13]);
    assert_eq!(found.run_time.count(), 3);
    let longest = found.dispatch_to_completion.quantile(1.0).unwrap();
    assert!(longest <= found.run_time.sum() * 9 / 8, "{longest:?} of {:?}", found.run_time.sum());
    bench.worker.close().unwrap();
}

/// While a task spins and its run is waited for under the lock, numbers are there; P-20's promise for metrics.
pub(crate) fn metrics_are_read_while_another_thread_holds_the_lock() {
    let bench = Bench::new(1, |builder| builder);
    let cell = bench.cell();
    let address = cell.as_arg().addr() as *mut i64;
    let run = bench.worker.submit(|orch| {
        let mut args = TaskArgs::new();
        args.input(&cell);
        orch.submit_sub(&bench.hold, &args)?;
        Ok(orch.submit_sub(&bench.pass, TaskArgs::new()).map(drop)?)
    });
    let run = run.unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| run.wait().unwrap());
        // As soon as the task is with the child; the other one waits for that child.
        while bench.worker.metrics().tasks.in_flight == 0 {
            std::hint::spin_loop();
        }
        let found = bench.worker.metrics();
        assert_eq!((found.tasks.submitted, found.tasks.in_flight, found.tasks.completed), (2, 1, 0));
        // SAFETY: the tensor keeps its memory mapped, and everybody accesses it by atomics.
        unsafe { AtomicI64::from_ptr(address) }.store(1, Ordering::Relaxed);
    });
    assert_eq!(bench.worker.metrics().tasks.completed, 2);
    bench.worker.close().unwrap();
}

pub(crate) fn metrics_of_a_worker_that_does_not_run_are_zero() {
    let worker = Worker::builder().level(7).subs(1).build().unwrap();
    let found = worker.metrics();
    assert_eq!((found.level, found.runs.begun, found.children.len()), (7, 0, 0));
    assert_eq!(found.dispatch_to_completion.quantile(0.5), None);
}

/// The text of a scrape, parsed.
#[cfg(feature = "prometheus")]
pub(crate) fn scrapes_show_the_numbers_of_the_snapshot() {
    use std::collections::HashMap;

    let bench = Bench::new(2, |builder| builder.level(3));
    bench.pass(100);
    let mut registry = prometheus_client::registry::Registry::default();
    registry.register_collector(Box::new(bench.worker.collector().unwrap()));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let (comments, lines): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('#'));
    let samples: HashMap<&str, f64> = lines
        .iter()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect();
    assert_eq!(samples.len(), lines.len(), "no name twice");
    let value = |name: &str| samples[format!("laneway_{name}{{level=\"3\"}}").as_str()];
    assert_eq!((value("tasks_submitted_total"), value("tasks_completed_total")), (100.0, 100.0));
    assert_eq!((value("runs_completed_total"), value("tasks_in_flight")), (1.0, 0.0));
    let children =
        [0, 1].map(|i| samples[format!("laneway_dispatches_total{{level=\"3\",child=\"sub {i}\"}}").as_str()]);
    assert_eq!(children.iter().sum::<f64>(), 100.0);
    // Buckets grow, and the last one holds all.
    let of = |line: &&&str| line.starts_with("laneway_dispatch_to_completion_seconds_bucket");
    let buckets: Vec<f64> =
        lines.iter().filter(of).map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect();
    assert!(buckets.len() > 20 && buckets.is_sorted() && buckets.last() == Some(&100.0), "{buckets:?}");
    assert_eq!(value("dispatch_to_completion_seconds_count"), 100.0);
    let found = bench.worker.metrics().dispatch_to_completion.sum().as_secs_f64();
    assert!((value("dispatch_to_completion_seconds_sum") - found).abs() < 1e-9);
    let spun = samples["laneway_child_spinning_seconds_total{level=\"3\",child=\"sub 0\"}"];
    assert!(spun >= 0.0 && spun <= samples["laneway_child_age_seconds_total{level=\"3\",child=\"sub 0\"}"]);
    assert!(comments.contains(&"# TYPE laneway_run_seconds histogram"), "{comments:?}");
    bench.worker.close().unwrap();
}
