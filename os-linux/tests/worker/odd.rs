//! Callbacks and callables that do odd things.

use std::fmt;
use std::time::{Duration, Instant};

use laneway_linux::{Error, FailureKind, TaskArgs};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{self, children};
use crate::support::{Bench, Gate, nothing, until};

/// An error that cannot be printed.
#[derive(Debug)]
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("not even this")
    }
}

impl std::error::Error for Unprintable {}

/// E-6, P-19
pub(crate) fn an_error_that_cannot_be_printed_fails_its_run_and_nothing_else() {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let odd = worker.register("odd", |_| Err(Unprintable.into())).unwrap();
    worker.init().unwrap();
    let child = children();
    let error = worker.run(|_| Err::<(), _>(Unprintable.into())).unwrap_err();
    assert!(matches!(&error, Error::CallbackPanicked { message, .. } if message == "not even this"), "{error:?}");
    let error = worker.run(|orch| Ok(orch.submit_sub(&odd, TaskArgs::new()).map(drop)?)).unwrap_err();
    assert!(error.to_string().contains("panic: not even this"), "{error}");
    assert_eq!(children(), child, "the child lives on");
    worker.close().unwrap();
}

/// E-35: whoever owns progress, it is made while a callback is silent.
pub(crate) fn a_callback_that_polls_a_tensor_sees_its_tasks_end() {
    let bench = Bench::new(1);
    let [x, y] = [bench.tensor(1), bench.tensor(1)];
    for depth in 1..=3 {
        let run = |orch: &mut laneway_linux::Orchestrator<'_>| {
            for round in 1..=10 {
                for _ in 0..depth {
                    orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
                }
                // No call of the orchestrator, only looks.
                until("the tasks have ended", || x.view().is_ok());
                assert_eq!(x.to_vec()?[0] % depth, 0, "round {round}");
            }
            // And none at all: the graph goes on by itself.
            let gate = Gate::new(&bench);
            for _ in 0..depth {
                orch.submit_sub(&bench.add, TaskArgs::new().inout(&y).scalar(1))?;
            }
            orch.submit_sub(&bench.pid, TaskArgs::new().inout(gate.arg()).input(&y))?;
            until("the last task has written", || gate.cell().load(std::sync::atomic::Ordering::Relaxed) != 0);
            Ok(())
        };
        bench.worker.run(run).unwrap();
    }
    bench.worker.close().unwrap();
}

/// P-31: what a closure captured of another worker, or of its own, does not work in a child and harms nobody.
pub(crate) fn a_worker_captured_by_a_callable_is_refused_in_the_child() {
    let first = Bench::new(1);
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let (captured, tensor, own) = (first.worker.clone(), first.tensor(4), worker.clone());
    tensor.copy_from(&[1, 2, 3, 4]).unwrap();
    let finished = first.worker.submit(|_| Ok(())).unwrap();
    let odd = worker
        .register("odd", move |args| {
            let inherited = [
                captured.run(|_| Ok(())),
                captured.close(),
                captured.close_now(),
                captured.tensor::<i32>(&[1]).map(drop),
                finished.wait(),
                finished.cancel(),
                own.close(),
            ];
            match inherited.iter().position(|answer| *answer != Err(Error::Inherited)) {
                Some(i) => Err(format!("call {i}: {:?}", inherited[i]).into()),
                None => Ok(args.tensor::<i32>(0)?.set(0, tensor.to_vec()?.iter().sum())?),
            }
        })
        .unwrap();
    worker.init().unwrap();
    let x = worker.tensor::<i32>(&[1]).unwrap();
    worker.run(|orch| Ok(orch.submit_sub(&odd, TaskArgs::new().output(&x)).map(drop)?)).unwrap();
    assert_eq!(x.to_vec().unwrap(), [10]);
    first
        .worker
        .run(|orch| Ok(orch.submit_sub(&first.pid, TaskArgs::new().output(&first.tensor(1))).map(drop)?))
        .unwrap();
    worker.close().unwrap();
    first.worker.close().unwrap();
}

/// L-35: a helper that nobody can end by its group holds the subtree; the run ends all the same, and so does close.
pub(crate) fn what_a_dead_child_left_behind_does_not_hold_up_its_run_for_ever() {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let leave = worker.register("leave", |args| {
        // SAFETY: the new process only sleeps; it is a session of its own, which no kill of a group reaches.
        let helper = unsafe { libc::fork() };
        if helper == 0 {
            // SAFETY: plain system calls.
            unsafe { libc::setsid() };
            args.tensor::<i32>(0)?.set(1, 1)?;
            loop {
                std::thread::park();
            }
        }
        let cells = args.tensor::<i32>(0)?;
        cells.set(0, helper)?;
        while cells.get(1) == Some(0) {
            std::hint::spin_loop();
        }
        kill_process(rustix::process::getpid(), Signal::KILL)?;
        Ok(())
    });
    let leave = leave.unwrap();
    worker.init().unwrap();
    let x = worker.tensor::<i32>(&[2]).unwrap();
    let start = Instant::now();
    let arg = x.as_arg();
    let error = worker.run(|orch| Ok(orch.submit_sub(&leave, TaskArgs::new().no_dep(arg)).map(drop)?)).unwrap_err();
    assert!(matches!(error, Error::RunFailed { kind: FailureKind::Stuck, .. }), "{error:?}");
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(1), "{took:?}");
    harness::in_time("the failure", took, Duration::from_secs(4));
    let start = Instant::now();
    let _ = worker.close();
    harness::in_time("the close", start.elapsed(), Duration::from_secs(4));
    // SAFETY: the tensor keeps its memory mapped.
    let helper = unsafe { *(arg.addr() as *const i32) };
    kill_process(Pid::from_raw(helper).unwrap(), Signal::KILL).unwrap();
}

/// P-13: InsideCallback at once, also while another thread waits for this very callback; tensors can still be made.
pub(crate) fn close_inside_a_callback_is_refused_while_another_thread_closes() {
    let bench = Bench::new(1);
    let (worker, other) = (bench.worker.clone(), bench.worker.clone());
    std::thread::scope(|scope| {
        let closing = bench.worker.run(|_| {
            let closing = scope.spawn(move || worker.close());
            until("close has begun", || matches!(other.init(), Err(Error::WrongState { state: "CLOSING", .. })));
            let start = Instant::now();
            assert_eq!(other.close(), Err(Error::InsideCallback { call: "close" }));
            assert_eq!(other.close_now(), Err(Error::InsideCallback { call: "close" }));
            other.tensor::<i32>(&[4])?;
            harness::in_time("what is refused", start.elapsed(), Duration::from_secs(1));
            Ok(closing)
        });
        closing.unwrap().join().unwrap().unwrap();
    });
    assert_eq!(children(), []);
}

/// P-13, T-35: two closes at once; the second one is in a hurry.
pub(crate) fn close_now_cuts_the_drain_of_another_thread_short() {
    let bench = Bench::new(1);
    let gate = Gate::new(&bench);
    let x = bench.tensor(1);
    let run = bench
        .worker
        .submit(|orch| {
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
            orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            orch.submit_sub(&bench.hold, TaskArgs::new().inout(&x))?;
            Ok(())
        })
        .unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        let draining = scope.spawn(|| bench.worker.close());
        let closing = || matches!(bench.worker.init(), Err(Error::WrongState { state: "CLOSING", .. }));
        until("close has begun", closing);
        let hurried = scope.spawn(|| bench.worker.close_now());
        // Whatever the order, what runs ends here.
        gate.open();
        draining.join().unwrap().unwrap();
        hurried.join().unwrap().unwrap();
    });
    harness::in_time("both closes", start.elapsed(), Duration::from_secs(8));
    let _ = run.wait();
    assert_eq!(children(), []);
}

/// A deadline is kept while every round has news.
pub(crate) fn a_wait_with_a_time_limit_returns_while_the_graph_keeps_going() {
    let worker = crate::harness::builder!().subs(2).task_window(20_000).build().unwrap();
    let nothing = worker.register("nothing", nothing).unwrap();
    worker.init().unwrap();
    let run = worker.submit(|orch| {
        for _ in 0..15_000 {
            orch.submit_sub(&nothing, TaskArgs::new())?;
        }
        Ok(())
    });
    let run = run.unwrap();
    let start = Instant::now();
    let limit = Duration::from_millis(1);
    if run.wait_timeout(limit).is_err() {
        harness::in_time("the wait", start.elapsed(), limit + Duration::from_millis(100));
    }
    run.wait().unwrap();
    worker.close().unwrap();
}
