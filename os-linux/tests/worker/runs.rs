//! How runs end, and who waits for them.

use std::sync::Mutex;
use std::time::Duration;

use laneway_linux::{BoxError, CallConfig, Error, FailureKind, Orchestrator, TaskArgs, TaskArgsView};

use crate::harness::children;
use crate::support::{Bench, Gate, until};

/// L-28, E-7
pub(crate) fn the_error_of_a_callable_arrives_with_its_text() {
    let bench = Bench::new(1);
    let error = bench.worker.run(|orch| Ok(orch.submit_sub(&bench.fail, TaskArgs::new().scalar(42))?)).unwrap_err();
    let Error::RunFailed { kind: FailureKind::Task, level: 3, message, .. } = &error else { panic!("{error:?}") };
    assert!(message.starts_with("sub 0: code 1: element 42 is wrong; in fail (sha256:"), "{message}");
}

/// W-9: the 256 bytes of the frame hold only the head of a long text.
pub(crate) fn a_long_error_arrives_whole() {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let text = "αβγ ".repeat(300);
    let long = text.clone();
    let fail = worker.register("long", move |_| Err(long.clone().into())).unwrap();
    worker.init().unwrap();
    let error = worker.run(|orch| Ok(orch.submit_sub(&fail, TaskArgs::new())?)).unwrap_err();
    assert!(error.to_string().contains(&text), "{error}");
}

/// P-19
pub(crate) fn a_panic_fails_its_task_and_the_child_lives_on() {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let panics = worker.register("panics", |args| panic!("no {}", args.scalar(0)?)).unwrap();
    let works = worker.register("works", crate::support::nothing).unwrap();
    worker.init().unwrap();
    let before = children();
    for i in 0..3 {
        let error = worker.run(|orch| Ok(orch.submit_sub(&panics, TaskArgs::new().scalar(i))?)).unwrap_err();
        assert!(error.to_string().contains(&format!("panic: no {i}")), "{error}");
        worker.run(|orch| Ok(orch.submit_sub(&works, TaskArgs::new())?)).unwrap();
    }
    assert_eq!(before, children());
    worker.close().unwrap();
}

/// E-12, E-22
pub(crate) fn the_consumers_of_a_failed_task_never_run() {
    let bench = Bench::new(2);
    let (x, y, z) = (bench.tensor(1), bench.tensor(1), bench.tensor(1));
    let error = bench
        .worker
        .run(|orch| {
            orch.submit_sub(&bench.fail, TaskArgs::new().output(&x).scalar(7))?;
            orch.submit_sub(&bench.copy, TaskArgs::new().input(&x).output(&y))?;
            orch.submit_sub(&bench.add, TaskArgs::new().inout(&y).scalar(1))?;
            orch.submit_sub(&bench.add, TaskArgs::new().inout(&z).scalar(1))?;
            Ok(())
        })
        .unwrap_err();
    assert!(error.to_string().contains("element 7 is wrong"), "{error}");
    assert_eq!((y.to_vec().unwrap()[0], z.to_vec().unwrap()[0]), (0, 1));
}

/// E-6
pub(crate) fn a_callback_that_fails_fails_its_run_and_the_next_run_works() {
    let bench = Bench::new(1);
    let x = bench.tensor(1);
    for round in 0..3 {
        let error = bench
            .worker
            .run(|orch| {
                orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
                Err::<(), BoxError>("changed my mind".into())
            })
            .unwrap_err();
        assert!(error.to_string().contains("changed my mind"), "{error}");
        let before = x.to_vec().unwrap()[0];
        bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(100))?)).unwrap();
        assert_eq!(x.to_vec().unwrap()[0], before + 100, "round {round}");
    }
    bench.worker.close().unwrap();
}

/// E-6
pub(crate) fn a_callback_that_panics_fails_its_run_and_the_next_run_works() {
    let bench = Bench::new(1);
    let x = bench.tensor(1);
    let error = bench
        .worker
        .run(|orch| -> Result<(), BoxError> {
            orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            panic!("out of ideas");
        })
        .unwrap_err();
    assert!(matches!(&error, Error::CallbackPanicked { message, .. } if message.contains("out of ideas")), "{error:?}");
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    bench.worker.close().unwrap();
}

/// E-2
pub(crate) fn a_callback_may_wait_for_part_of_its_graph() {
    let bench = Bench::new(2);
    let (x, y) = (bench.tensor(1), bench.tensor(1));
    let gate = Gate::new(&bench);
    bench
        .worker
        .run(|orch| {
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()).inout(&y))?;
            for _ in 0..10 {
                orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            }
            orch.wait(&[x.as_arg()])?;
            // The other task still runs; this one's result is there.
            assert_eq!(x.to_vec()?, [10]);
            assert!(matches!(y.to_vec(), Err(Error::InUse { .. })), "P-19");
            gate.open();
            Ok(())
        })
        .unwrap();
    let error = bench
        .worker
        .run(|orch| {
            orch.submit_sub(&bench.fail, TaskArgs::new().inout(&x).scalar(5))?;
            Ok(orch.wait(&[x.as_arg()])?)
        })
        .unwrap_err();
    assert!(error.to_string().contains("element 5 is wrong"), "{error}");
}

/// E-9
pub(crate) fn a_run_is_waited_for_again_and_from_other_threads() {
    let bench = Bench::new(1);
    let gate = Gate::new(&bench);
    let run = bench
        .worker
        .submit(|orch| {
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
            orch.submit_sub(&bench.fail, TaskArgs::new().scalar(1))?;
            Ok(())
        })
        .unwrap();
    assert!(!run.is_done());
    let errors = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| errors.lock().unwrap().push(run.wait().unwrap_err()));
        }
        gate.open();
    });
    let errors = errors.into_inner().unwrap();
    assert_eq!(errors.len(), 4);
    assert!(run.is_done());
    assert!(errors.iter().all(|error| *error == run.wait().unwrap_err()));
}

/// E-9
pub(crate) fn a_wait_with_a_time_limit_leaves_the_run_as_it_was() {
    let bench = Bench::new(1);
    let gate = Gate::new(&bench);
    let run = bench
        .worker
        .submit(|orch| Ok(orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg())).map(drop)?))
        .unwrap();
    for limit in [0, 1, 20] {
        let limit = Duration::from_millis(limit);
        assert!(matches!(run.wait_timeout(limit), Err(Error::WaitTimedOut { after, .. }) if after == limit));
    }
    gate.open();
    run.wait_timeout(Duration::from_secs(60)).unwrap();
    run.wait().unwrap();
}

/// Architecture, progress: the background thread owns it while nobody waits.
pub(crate) fn a_run_that_nobody_waits_for_ends_too() {
    let bench = Bench::new(2);
    let x = bench.tensor(1);
    let run = bench
        .worker
        .submit(|orch| {
            for _ in 0..200 {
                orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            }
            Ok(())
        })
        .unwrap();
    until("the run ends by itself", || run.is_done());
    assert_eq!(x.to_vec().unwrap(), [200]);
    // A handle dropped at once changes nothing.
    for _ in 0..200 {
        drop(
            bench
                .worker
                .submit(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1)).map(drop)?))
                .unwrap(),
        );
    }
    until("the tasks of dropped handles run", || x.to_vec().is_ok_and(|x| x == [400]));
    bench.worker.close().unwrap();
}

/// E-9
pub(crate) fn a_cancelled_run_ends_and_the_next_one_works() {
    let bench = Bench::new(1);
    let (gate, x) = (Gate::new(&bench), bench.tensor(1));
    let run = bench
        .worker
        .submit(|orch| {
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()).inout(&x))?;
            orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            Ok(())
        })
        .unwrap();
    run.cancel().unwrap();
    gate.open();
    let error = run.wait().unwrap_err();
    assert!(matches!(error, Error::RunFailed { kind: FailureKind::Cancelled, .. }), "{error:?}");
    assert_eq!(x.to_vec().unwrap(), [0]);
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    assert_eq!(x.to_vec().unwrap(), [1]);
}

/// E-1: callers are served in turn; E-14: runs share an address without an edge, one after the other.
pub(crate) fn threads_submit_and_wait_side_by_side() {
    const THREADS: usize = 4;
    const RUNS: i32 = 100;
    let bench = Bench::new(2);
    let cells: Vec<_> = (0..THREADS).map(|_| bench.tensor(1)).collect();
    let (worker, add) = (&bench.worker, &bench.add);
    std::thread::scope(|scope| {
        for cell in &cells {
            scope.spawn(move || {
                for i in 0..RUNS {
                    let args = |orch: &mut Orchestrator<'_>| {
                        orch.submit_sub(add, TaskArgs::new().inout(cell).scalar(1))?;
                        orch.submit_sub(add, TaskArgs::new().inout(cell).scalar(1))?;
                        Ok(())
                    };
                    match i % 3 {
                        0 => worker.run(args).unwrap(),
                        1 => worker.submit(args).unwrap().wait().unwrap(),
                        _ => drop(worker.submit(args).unwrap()),
                    }
                }
            });
        }
    });
    bench.worker.close().unwrap();
    for cell in &cells {
        assert_eq!(cell.to_vec().unwrap(), [2 * RUNS]);
    }
}

/// E-40
pub(crate) fn an_orchestration_takes_arguments_and_config() {
    let bench = Bench::new(1);
    let (x, y) = (bench.tensor(4), bench.tensor(4));
    x.fill_with(|i| i as i32).unwrap();
    let mut args = TaskArgs::new();
    args.input(&x).output(&y).scalar(5);
    let orchestration =
        |orch: &mut Orchestrator<'_>, args: TaskArgsView<'_>, _: &CallConfig| -> Result<u64, BoxError> {
            let [from, to] = args.tensors() else { return Err("two tensors are needed".into()) };
            orch.submit_sub(&bench.copy, TaskArgs::new().input(*from).output(*to))?;
            orch.submit_sub(&bench.add, TaskArgs::new().inout(*to).scalar(args.scalars()[0]))?;
            Ok(args.scalars()[0])
        };
    assert_eq!(bench.worker.run_with(orchestration, &args, &CallConfig::default()), Ok(5));
    assert_eq!(y.to_vec().unwrap(), [5, 6, 7, 8]);
    args.input(&x);
    assert!(bench.worker.run_with(orchestration, &args, &CallConfig::default()).is_err(), "a tensor after a scalar");
}

/// E-1
pub(crate) fn a_submit_inside_a_callback_is_an_error() {
    let bench = Bench::new(1);
    let inner = bench.worker.clone();
    bench
        .worker
        .run(|_| {
            assert!(matches!(inner.run(|_| Ok(())), Err(Error::InsideCallback { .. })));
            assert!(matches!(inner.close(), Err(Error::InsideCallback { .. })), "P-13");
            Ok(())
        })
        .unwrap();
    bench.worker.run(|_| Ok(())).unwrap();
}
