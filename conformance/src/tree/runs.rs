//! How runs begin, wait, end and fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use laneway_linux::{BoxError, CallConfig, Error, FailureKind, Orchestrator, TaskArgs, TaskArgsView};

use super::Grove;
use super::signal::{Signal, until};
use crate::case::Case;
use crate::expect::{Must, Verdict, equal, holds, mentions, refused};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::tree("runs/an_empty_run_completes", &["E-4", "E-8"], "A run without tasks ends well, at once.", empty),
        Case::tree(
            "runs/runs_are_executed_in_the_order_of_their_begin",
            &["E-3", "E-14"],
            "A later run sees everything that an earlier one did, without an edge between them.",
            in_order,
        ),
        Case::tree(
            "runs/a_failed_task_takes_its_consumers_and_nothing_else",
            &["E-7", "E-12", "E-22"],
            "What depends on a failed task never runs, whatever else is in the run does; the run has the first error.",
            poison,
        ),
        Case::tree(
            "runs/a_callback_that_fails_fails_its_run_alone",
            &["E-6"],
            "An error of the callback is the run's; the next run is unaffected.",
            callback_fails,
        ),
        Case::tree(
            "runs/a_cancelled_run_ends_what_runs_and_starts_nothing",
            &["E-9"],
            "Cancel lets the running task finish, starts no other, and the run ends as cancelled.",
            cancelled,
        ),
        Case::tree(
            "runs/a_wait_replays_the_same_end",
            &["E-9"],
            "A run can be waited for again and again, and always ends the same way.",
            replay,
        ),
        Case::tree(
            "runs/a_wait_that_times_out_leaves_the_run_as_it_was",
            &["E-9"],
            "A wait with a time limit says so when it is over, and the run goes on to its end.",
            times_out,
        ),
        Case::tree(
            "runs/a_callback_waits_for_a_part_of_its_graph",
            &["E-2"],
            "A callback sees the results of the tasks that it waits for while others still run, and the error of one that failed.",
            partial,
        ),
        Case::tree(
            "runs/calls_inside_a_callback_that_would_wait_for_themselves_are_errors",
            &["E-1", "P-13"],
            "A run or a close of the same worker inside its callback is an error, not a deadlock.",
            inside,
        ),
        Case::tree(
            "runs/a_run_is_accepted_when_every_member_of_its_group_is",
            &["L-19", "L-18"],
            "Each member of a group owes an acceptance: the wait for it ends when the last member has, not with the first.",
            members,
        ),
        Case::tree(
            "runs/an_orchestration_takes_arguments_and_a_config",
            &["E-40", "W-7"],
            "run_with hands its arguments and its config to the function, after both were judged.",
            with_arguments,
        ),
    ]
}

fn empty(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    equal("an empty run", subs.worker.run(|_| Ok(7)), Ok(7))?;
    let run = subs.worker.submit(|_| Ok(())).must("submit")?;
    run.wait_accepted().must("wait_accepted")?;
    run.wait().must("wait")?;
    subs.close()
}

fn members(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(2).build().must("a worker")?;
    let gate = Arc::new(Signal::new()?);
    let opened = gate.clone();
    let member = worker.register("member", move |args| if args.scalar(0)? == 0 { Ok(()) } else { Ok(opened.wait()?) });
    let member = member.must("register")?;
    worker.init().must("init")?;
    let (mut quick, mut slow) = (TaskArgs::new(), TaskArgs::new());
    quick.scalar(0);
    slow.scalar(1);
    let run = worker.submit(|orch| Ok(orch.submit_sub_group(&member, &[&quick, &slow]).map(drop)?)).must("submit")?;
    let accepted = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let ended = run.wait_accepted();
            accepted.store(true, Ordering::Release);
            ended
        });
        until("one member has ended", || worker.metrics().tasks.completed == 1)?;
        for _ in 0..1000 {
            std::thread::yield_now();
        }
        let early = accepted.load(Ordering::Acquire);
        gate.send().must("the gate")?;
        waits.join().ok().must("the thread that waits")?.must("wait_accepted")?;
        equal("whether the run was accepted when one member was", early, false)
    })?;
    run.wait().must("the run")?;
    worker.close().must("close")
}

fn in_order(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let (x, y) = (subs.tensor(4)?, subs.tensor(4)?);
    let first = subs
        .worker
        .submit(|orch| {
            orch.submit_sub(&subs.hold, TaskArgs::new().inout(&x))?;
            orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(5))?;
            Ok(())
        })
        .must("the first run")?;
    let second = subs
        .worker
        .submit(|orch| Ok(orch.submit_sub(&subs.copy, TaskArgs::new().input(&x).output(&y)).map(drop)?))
        .must("the second run")?;
    subs.running.wait().must("the first task runs")?;
    equal("the second run while the first one is held", second.is_done(), false)?;
    subs.gate.send().must("the gate")?;
    second.wait().must("the second run")?;
    equal("the first run when the second has ended", first.is_done(), true)?;
    equal("what the second run saw", y.to_vec().must("the tensor")?, [5; 4])?;
    subs.close()
}

fn poison(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let [x, y, z] = [subs.tensor(1)?, subs.tensor(1)?, subs.tensor(1)?];
    let ended = subs.worker.run(|orch| {
        orch.submit_sub(&subs.fail, TaskArgs::new().output(&x).scalar(7))?;
        orch.submit_sub(&subs.copy, TaskArgs::new().input(&x).output(&y))?;
        orch.submit_sub(&subs.add, TaskArgs::new().inout(&y).scalar(1))?;
        orch.submit_sub(&subs.add, TaskArgs::new().inout(&z).scalar(1))?;
        Ok(())
    });
    let error = refused("a run with a task that fails", ended, "the task's failure", |error| {
        matches!(error, Error::RunFailed { kind: FailureKind::Task, .. })
    })?;
    mentions("the error", &error.to_string(), &["element 7 is wrong"])?;
    let seen = (y.to_vec().must("y")?, z.to_vec().must("z")?);
    equal("what depends on it, and what does not", seen, (vec![0], vec![1]))?;
    subs.adds()?;
    subs.close()
}

fn callback_fails(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let x = subs.tensor(1)?;
    for _ in 0..3 {
        let ended = subs.worker.run(|orch| {
            orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(1))?;
            Err::<(), BoxError>("changed my mind".into())
        });
        let error = refused("a callback that fails", ended, "the callback's error", |error| {
            matches!(error, Error::Callback { .. })
        })?;
        mentions("the error", &error.to_string(), &["changed my mind"])?;
        subs.adds()?;
    }
    subs.close()
}

fn cancelled(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let x = subs.tensor(1)?;
    let run = subs
        .worker
        .submit(|orch| {
            orch.submit_sub(&subs.hold, TaskArgs::new().inout(&x))?;
            orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(1))?;
            Ok(())
        })
        .must("submit")?;
    subs.running.wait().must("the first task runs")?;
    run.cancel().must("cancel")?;
    subs.gate.send().must("the gate")?;
    refused("the run", run.wait(), "cancelled", |error| {
        matches!(error, Error::RunFailed { kind: FailureKind::Cancelled, .. })
    })?;
    equal("what was not started", x.to_vec().must("the tensor")?, [0])?;
    subs.adds()?;
    subs.close()
}

fn replay(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let submit = |orch: &mut Orchestrator<'_>| {
        orch.submit_sub(&subs.fail, TaskArgs::new().scalar(3))?;
        Ok(())
    };
    let run = subs.worker.submit(submit).must("submit")?;
    let first = refused("the run", run.wait(), "an error", |_| true)?;
    for _ in 0..3 {
        equal("another wait", run.wait(), Err(first.clone()))?;
        equal("is_done", run.is_done(), true)?;
        equal("wait_accepted of a run that failed", run.wait_accepted(), Err(first.clone()))?;
    }
    subs.close()
}

fn times_out(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let run = subs.worker.submit(|orch| Ok(orch.submit_sub(&subs.hold, TaskArgs::new()).map(drop)?)).must("submit")?;
    for limit in [0, 1, 10] {
        let limit = Duration::from_millis(limit);
        refused(
            format_args!("a wait for {limit:?}"),
            run.wait_timeout(limit),
            "WaitTimedOut",
            |error| matches!(error, Error::WaitTimedOut { after, .. } if *after == limit),
        )?;
    }
    subs.gate.send().must("the gate")?;
    run.wait_timeout(Duration::from_secs(20)).must("a wait that is long enough")?;
    subs.close()
}

fn partial(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let (x, y) = (subs.tensor(1)?, subs.tensor(1)?);
    subs.worker
        .run(|orch| {
            orch.submit_sub(&subs.hold, TaskArgs::new().inout(&y))?;
            for _ in 0..10 {
                orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(1))?;
            }
            orch.wait(&[x.as_arg()])?;
            equal("the result while another task runs", x.to_vec()?, [10])?;
            refused("bytes of a task that runs", y.to_vec(), "InUse", |error| matches!(error, Error::InUse { .. }))?;
            Ok(subs.gate.send()?)
        })
        .must("the run")?;
    let ended = subs.worker.run(|orch| {
        orch.submit_sub(&subs.fail, TaskArgs::new().inout(&x).scalar(5))?;
        Ok(orch.wait(&[x.as_arg()])?)
    });
    let error = refused("waiting for a task that fails", ended, "its error", |_| true)?;
    mentions("the error", &error.to_string(), &["element 5 is wrong"])?;
    subs.close()
}

fn inside(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let same = subs.worker.clone();
    let is_inside = |error: &Error| matches!(error, Error::InsideCallback { .. });
    subs.worker
        .run(|_| {
            refused("a run inside", same.run(|_| Ok(())), "InsideCallback", is_inside)?;
            refused("a close inside", same.close(), "InsideCallback", is_inside)?;
            refused("a close_now inside", same.close_now(), "InsideCallback", is_inside)?;
            Ok(())
        })
        .must("the run")?;
    subs.adds()?;
    subs.close()
}

fn with_arguments(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let (x, y) = (subs.tensor(4)?, subs.tensor(4)?);
    x.fill_with(|i| i as i32).must("fill")?;
    let orchestration =
        |orch: &mut Orchestrator<'_>, args: TaskArgsView<'_>, config: &CallConfig| -> Result<u64, BoxError> {
            let [from, to] = args.tensors() else { return Err("two tensors are needed".into()) };
            orch.submit_sub(&subs.copy, TaskArgs::new().input(*from).output(*to))?;
            orch.submit_sub(&subs.add, TaskArgs::new().inout(*to).scalar(args.scalars()[0]))?;
            Ok(args.scalars()[0] + config.aicpu_thread_num as u64)
        };
    let mut args = TaskArgs::new();
    args.input(&x).output(&y).scalar(5);
    let config = CallConfig { aicpu_thread_num: 3, ..CallConfig::ZERO };
    equal("what it returned", subs.worker.run_with(orchestration, &args, &config), Ok(8))?;
    equal("what it computed", y.to_vec().must("the tensor")?, [5, 6, 7, 8])?;
    args.input(&x);
    let result = subs.worker.run_with(orchestration, &args, &config);
    holds("a tensor after a scalar is refused", result.is_err(), || format!("{result:?}"))?;
    subs.close()
}
