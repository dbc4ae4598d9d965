//! Children that die, hang, or write where they should not.

use std::time::{Duration, Instant};

use laneway_linux::{BoxError, Error, Health, SubArgs, TaskArgs, observe};
use laneway_sim::{Action, FaultPlan, Kernel, Point};
use rustix::process::{Pid, Signal, kill_process};

use super::Grove;
use super::grove::children;
use super::nested::Tower;
use super::signal::until;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};

const ADD: &[Kernel] = &[Kernel::Add];

/// Long enough for anything that must not wait for a time limit.
const SOON: Duration = Duration::from_secs(10);

pub(super) fn cases() -> Vec<Case> {
    let once = |at, action| FaultPlan::none().with(at, 1, action);
    let deadline = |name, at| {
        let says =
            "A task past its deadline is lost: its child is killed and reaped, the error names it, the rest goes on.";
        Case::tree(name, &["C-15", "E-43", "E-41"], says, past_its_deadline).kernels(ADD).faults(once(at, Action::Hang))
    };
    let lost = |name, at, action| {
        let says = "A device whose completion is unproven ends its endpoint for the worker's life, and no other.";
        Case::tree(name, &["C-9", "E-41", "P-15"], says, lost_device).kernels(ADD).faults(once(at, action))
    };
    let dies = |name, at, action, run| {
        let says = "A chip child that its device takes down is reported with the signal; the other chip goes on.";
        Case::tree(name, &["L-25", "L-27", "E-41"], says, run).kernels(ADD).faults(once(at, action))
    };
    let all = vec![
        Case::tree(
            "deaths/a_child_killed_in_its_task_is_reported_with_pid_and_signal",
            &["L-25", "L-27", "P-16", "T-19"],
            "The run of a child that is killed fails at once, naming child, process and signal; nothing of it is left.",
            killed,
        ),
        Case::tree(
            "deaths/a_child_that_exits_in_its_task_is_reported_with_its_status",
            &["L-25"],
            "The run of a child that ends itself fails with its exit status.",
            exits,
        ),
        Case::tree(
            "deaths/the_other_children_go_on",
            &["E-41", "P-22", "T-26"],
            "After a death the other children serve on; a group larger than what is left is refused.",
            others,
        ),
        Case::tree(
            "deaths/work_for_the_dead_is_refused_with_the_reason",
            &["E-41", "E-7"],
            "When nobody is left who could run a task it fails at once, with why the last one died.",
            refused_work,
        ),
        dies("deaths/a_device_that_kills_its_process_in_prepare", Point::Prepare, Action::Kill, by_sigkill),
        dies("deaths/a_device_that_aborts_in_launch", Point::Launch, Action::Abort, by_sigabrt),
        dies("deaths/a_device_that_kills_its_process_in_poll", Point::Poll, Action::Kill, by_sigkill),
        dies("deaths/a_device_that_aborts_in_finalize", Point::Finalize, Action::Abort, by_sigabrt),
        lost("deaths/a_device_that_is_lost_in_poll", Point::Poll, Action::Error(-9)),
        lost("deaths/a_device_that_is_lost_in_launch", Point::Launch, Action::HalfLaunch),
        deadline("deaths/a_run_that_never_completes_passes_its_deadline", Point::Launch),
        deadline("deaths/a_prepare_that_never_returns_passes_its_deadline", Point::Prepare),
        deadline("deaths/a_finalize_that_never_returns_passes_its_deadline", Point::Finalize),
        Case::tree(
            "deaths/the_first_reason_is_kept",
            &["L-26", "L-35", "E-41"],
            "What is refused later says why its endpoint was given up at first, and not how the child was killed after that.",
            first_reason,
        )
        .kernels(ADD)
        .faults(once(Point::Launch, Action::Hang)),
        Case::tree(
            "deaths/every_task_of_a_child_that_dies_ends_once_and_counts_as_accepted",
            &["L-2", "L-18"],
            "Of a run whose only child dies every task is failed or skipped, once, and nobody waits on for its acceptance.",
            each_once,
        ),
        Case::tree(
            "deaths/what_is_below_a_dead_parent_is_gone_soon",
            &["L-32", "P-14"],
            "When a process of the tree is killed everything below it ends by itself, a callable that runs for ever included.",
            below,
        ),
        Case::tree(
            "deaths/close_now_does_not_wait_for_a_device_that_hangs",
            &["C-15", "P-12", "P-13", "P-15"],
            "close_now ends a child whose device never completes, and says that it had to.",
            hangs_at_close,
        )
        .kernels(ADD)
        .faults(once(Point::Launch, Action::Hang)),
        Case::tree(
            "deaths/a_child_that_scribbles_over_its_frames_harms_itself_alone",
            &["L-1", "L-3", "L-35", "W-8"],
            "Garbage in the mailbox of one child ends its own task, well or with an error that names it; the worker and its \
             other chip go on, and close returns.",
            scribbles,
        )
        .kernels(ADD)
        .faults(
            FaultPlan::none()
                .with(Point::Prepare, 2, Action::Scribble)
                .with(Point::Launch, 3, Action::Scribble)
                .with(Point::Finalize, 4, Action::Scribble),
        ),
    ];
    all.into_iter().map(Case::processes).collect()
}

fn kill(pid: i32) -> Verdict {
    let pid = Pid::from_raw(pid).must("a process id")?;
    kill_process(pid, Signal::KILL).must("kill")
}

fn killed(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let pid = subs.child()?;
    let run = subs.worker.submit(|orch| Ok(orch.submit_sub(&subs.hold, TaskArgs::new()).map(drop)?)).must("submit")?;
    subs.running.wait().must("the task runs")?;
    let start = Instant::now();
    kill(pid)?;
    let error = refused("the run of a child that was killed", run.wait(), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["sub 0", &pid.to_string(), "SIGKILL"])?;
    holds("it is reported at once", start.elapsed() < SOON, || format!("after {:?}", start.elapsed()))?;
    equal("children, zombies included", children(), Vec::<i32>::new())?;
    subs.close()
}

fn exits(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(1).build().must("a worker")?;
    let exit = worker.register("exit", |_| std::process::exit(23)).must("register")?;
    worker.init().must("init")?;
    let error = worker.run(|orch| Ok(orch.submit_sub(&exit, TaskArgs::new()).map(drop)?));
    let error = refused("a task that ends its process", error, "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["exited with status 23"])?;
    worker.close().must("close")
}

fn others(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(3)?;
    let victim = subs.child()?;
    kill(victim)?;
    until("the death is noticed", || !children().contains(&victim))?;
    let x = subs.tensor(1)?;
    for _ in 0..20 {
        subs.one(&subs.add, TaskArgs::new().inout(&x).scalar(1)).must("a task for those that are left")?;
    }
    equal("their additions", x.to_vec().must("the tensor")?, [20])?;
    let list = TaskArgs::new();
    let three = subs.worker.run(|orch| Ok(orch.submit_sub_group(&subs.fail, &[&list, &list, &list]).map(drop)?));
    refused("a group of three on two", three, "an error", |error| !error.to_string().contains("is wrong"))?;
    subs.close()
}

fn refused_work(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    kill(subs.child()?)?;
    until("the death is noticed", || children().is_empty())?;
    for _ in 0..3 {
        let start = Instant::now();
        let error = subs.one(&subs.add, TaskArgs::new().inout(&subs.tensor(1)?).scalar(1));
        let error = refused("a task for the dead", error, "an error", |_| true)?;
        mentions("the error", &error.to_string(), &["SIGKILL"])?;
        holds("it fails at once", start.elapsed() < SOON, || format!("after {:?}", start.elapsed()))?;
    }
    subs.close()
}

fn by_sigkill(grove: &mut Grove<'_>) -> Verdict {
    dies_by(grove, "SIGKILL")
}

fn by_sigabrt(grove: &mut Grove<'_>) -> Verdict {
    dies_by(grove, "SIGABRT")
}

fn dies_by(grove: &mut Grove<'_>, signal: &str) -> Verdict {
    let chips = grove.one_faulty(1)?;
    mentions("the error", &chips.add_fails(0)?, &["worker 0", signal])?;
    chips.adds(1)?;
    mentions("the error of the next task", &chips.add_fails(0)?, &[signal])?;
    chips.adds(1)?;
    chips.close(true)
}

fn lost_device(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(1)?;
    mentions("the error", &chips.add_fails(0)?, &["worker 0", "unproven"])?;
    chips.adds(1)?;
    chips.add_fails(0)?;
    chips.adds(1)?;
    chips.close(true)
}

fn past_its_deadline(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(1)?;
    let before = children().len();
    let (a, out, add) = (chips.vector(1.0)?, chips.vector(0.0)?, chips.kernel(Kernel::Add)?);
    let start = Instant::now();
    let ended = chips.worker.run(|orch| {
        orch.set_deadline(Some(Duration::from_millis(50)));
        let mut args = TaskArgs::new();
        args.input(&a).input(&a).output(&out);
        Ok(orch.submit_next_level(add, chips.ids[0], args).map(drop)?)
    });
    let error = refused("a task past its deadline", ended, "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["worker 0", "deadline", "run 1"])?;
    holds("it is given up soon", start.elapsed() < SOON, || format!("after {:?}", start.elapsed()))?;
    equal("children that are left", children().len(), before - 1)?;
    chips.adds(1)?;
    chips.add_fails(0)?;
    chips.close(true)
}

fn first_reason(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(1)?;
    let (a, out, add) = (chips.vector(1.0)?, chips.vector(0.0)?, chips.kernel(Kernel::Add)?);
    let ended = chips.worker.run(|orch| {
        orch.set_deadline(Some(Duration::from_millis(50)));
        let mut args = TaskArgs::new();
        args.input(&a).input(&a).output(&out);
        Ok(orch.submit_next_level(add, chips.ids[0], args).map(drop)?)
    });
    refused("a task past its deadline", ended, "an error", |_| true)?;
    // By now the child has been killed for it.
    for _ in 0..3 {
        let text = chips.add_fails(0)?;
        mentions("the error of the next task", &text, &["worker 0", "deadline"])?;
        holds("it does not name the signal", !text.contains("SIGKILL"), || text.clone())?;
    }
    chips.close(true)
}

fn each_once(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let (x, pid) = (subs.tensor(1)?, subs.child()?);
    let before = subs.worker.metrics().tasks;
    let run = subs.worker.submit(|orch| {
        orch.submit_sub(&subs.hold, TaskArgs::new().inout(&x))?;
        for _ in 0..10 {
            orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(1))?;
            orch.submit_sub(&subs.fail, TaskArgs::new().scalar(1))?;
        }
        Ok(())
    });
    let run = run.must("submit")?;
    subs.running.wait().must("the first task runs")?;
    kill(pid)?;
    // Its outcome is not asked for: that it returns is the point.
    let _ = run.wait_accepted();
    refused("the run", run.wait(), "an error", |_| true)?;
    let after = subs.worker.metrics().tasks;
    let ended = [after.completed - before.completed, after.failed - before.failed, after.skipped - before.skipped];
    equal(
        "tasks that were submitted, and are in flight",
        (after.submitted - before.submitted, after.in_flight),
        (21, 0),
    )?;
    equal("tasks that ended", ended.iter().sum::<u64>(), 21_u64)?;
    equal("tasks that completed", ended[0], 0_u64)?;
    subs.close()
}

/// Never returns.
fn for_ever(_: &SubArgs<'_>) -> Result<(), BoxError> {
    loop {
        std::thread::park();
    }
}

/// The only child of a process.
fn only_child(pid: i32) -> Result<i32, Violation> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).must("the children of a child")?;
    text.trim().parse().must(format_args!("one child of process {pid}"))
}

fn below(grove: &mut Grove<'_>) -> Verdict {
    let tower = Tower::new(grove, for_ever)?;
    let middle = tower.top.health().children.first().must("a child")?.pid;
    let lower = only_child(middle)?;
    let lowest = only_child(lower)?;
    let args = TaskArgs::new();
    let run = tower.top.submit(|orch| Ok(orch.submit_next_level(&tower.call, tower.below, &args).map(drop)?));
    let run = run.must("submit")?;
    let runs = |worker: &Health| worker.children.iter().any(|child| child.to_string().contains("running for "));
    until("the callable runs", || observe(lower).is_ok_and(|workers| workers.iter().any(runs)))?;
    let start = Instant::now();
    kill(middle)?;
    // Whoever inherits them may be slow to take their exit status.
    let is_gone = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
    };
    until("both are gone", || is_gone(lower) && is_gone(lowest))?;
    holds("it takes 100 ms, on a busy machine some more", start.elapsed() < SOON / 5, || {
        format!("{:?}", start.elapsed())
    })?;
    let error = refused("the run", run.wait(), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["worker 0", &middle.to_string(), "SIGKILL"])?;
    tower.top.close().must("close")
}

fn hangs_at_close(grove: &mut Grove<'_>) -> Verdict {
    let short = Duration::from_millis(100);
    let builder = grove.builder().drain_budget(short).reap_budget(short);
    let chips = grove.one_faulty_of(builder)?;
    let (a, out, add) = (chips.vector(1.0)?, chips.vector(0.0)?, chips.kernel(Kernel::Add)?);
    let run = chips.worker.submit(|orch| {
        let mut args = TaskArgs::new();
        args.input(&a).input(&a).output(&out);
        Ok(orch.submit_next_level(add, chips.ids[0], args).map(drop)?)
    });
    let run = run.must("submit")?;
    run.wait_accepted().must("wait_accepted")?;
    let start = Instant::now();
    refused("close_now", chips.worker.close_now(), "AbnormalExits", |error| {
        matches!(error, Error::AbnormalExits { .. })
    })?;
    holds("it returns soon", start.elapsed() < SOON, || format!("after {:?}", start.elapsed()))?;
    refused("the run", run.wait(), "an error", |_| true)?;
    equal("children after close_now", children(), Vec::<i32>::new())
}

fn scribbles(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(1)?;
    let start = Instant::now();
    for round in 0..6 {
        // A wrong sum of a task that is called a success is a violation inside.
        if let Err(error) = chips.add(0)? {
            mentions(format_args!("the error of round {round}"), &error.to_string(), &["worker 0"])?;
        }
        chips.adds(1)?;
    }
    holds("nothing hangs", start.elapsed() < 2 * SOON, || format!("{:?}", start.elapsed()))?;
    chips.close(true)?;
    equal("children after close", children(), Vec::<i32>::new())
}
