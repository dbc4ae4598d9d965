//! Runs and whole-run FIFO admission.

mod engine_support;

use engine_support::{World, bytes, config};
use laneway_core::engine::{EngineError, FailureKind, Outcome, Report, RunOutcome, RunPhase, Target};
use laneway_core::ids::RunId;
use laneway_core::model::TaskArgs;

fn failed(kind: FailureKind, message: &str) -> Option<RunOutcome<'_>> {
    Some(RunOutcome::Failed { kind, message })
}

/// E-1: a lease is taken before anything is built, and a begin without one says whose end would free it.
#[test]
fn begin_takes_a_lease_and_the_third_run_waits_for_the_first() {
    let mut world = World::new(1, 0);
    let first = world.begin();
    assert_eq!(world.engine.begin_run(), Err(EngineError::BuildingAlready { run: first }));
    world.task(first, 0, |_| {});
    world.close(first);
    let second = world.begin();
    world.task(second, 0, |_| {});
    world.close(second);
    let blocked = world.engine.begin_run().expect_err("both leases are out");
    assert_eq!(blocked, EngineError::NoLease { oldest: first, depth: 2 });
    assert!(blocked.is_blocked());
    assert_eq!(blocked.to_string(), "no pipeline slot is free: 2 runs are open, the oldest is run 1");
    world.pump();
    world.engine.take_signals();
    world.finish(1);
    assert!(world.engine.take_signals().lease_free, "whoever waits for a lease is woken");
    assert!(world.engine.begin_run().is_ok());
}

/// E-1: ids go up by one and a begin that fails does not use one up twice.
#[test]
fn run_ids_are_never_reused() {
    let mut world = World::new(1, 0);
    for id in 1..20 {
        let run = world.begin();
        assert_eq!(run, RunId::new(id).expect("not zero"));
        world.close(run);
        world.engine.release(run).expect("known");
        assert_eq!(world.engine.phase(run), None);
        assert_eq!(world.engine.release(run), Err(EngineError::UnknownRun { run }));
    }
}

/// E-2: the head executes while it is being built; a later run only once every earlier one is terminal.
#[test]
fn the_head_executes_while_it_is_built_and_the_next_waits_for_its_end() {
    let mut world = World::new(2, 0);
    let first = world.begin();
    assert_eq!(world.engine.phase(first), Some(RunPhase::Executing));
    let a = world.task(first, 0, |_| {});
    assert_eq!(world.pump(), [(a, 0)], "before the graph is closed");
    world.close(first);
    let second = world.begin();
    assert_eq!(world.engine.phase(second), Some(RunPhase::Building));
    let b = world.task(second, 1, |_| {});
    world.close(second);
    assert_eq!(world.engine.phase(second), Some(RunPhase::Prepared));
    world.pump();
    assert_eq!(world.log.last().map(String::as_str), Some("stage 2.0 on 1"), "staged, not started");
    world.finish(a);
    assert_eq!(world.engine.outcome(first), Some(RunOutcome::Completed));
    assert_eq!(world.engine.phase(second), Some(RunPhase::Executing));
    world.pump();
    assert_eq!(world.log.last().map(String::as_str), Some("activate 2 on 1"));
    world.finish(b);
    assert_eq!(world.engine.outcome(second), Some(RunOutcome::Completed));
}

/// E-3: work of a run that is not at the head is not handed out, whatever is idle.
#[test]
fn two_runs_never_interleave() {
    let mut world = World::new(2, 1);
    let first = world.begin();
    let a = world.task(first, 0, |_| {});
    world.close(first);
    let second = world.begin();
    let (b, c) = (world.sub(second, |_| {}), world.group(second, &[0, 1]));
    world.close(second);
    assert_eq!(world.pump(), [(a, 0)]);
    world.finish(a);
    let mut started = world.pump();
    started.sort_unstable();
    assert_eq!(started, [(b, 2), (c, 0), (c, 1)]);
}

/// E-4: an empty run completes at close, and one with work when the last of it is consumed.
#[test]
fn an_empty_run_completes_at_close() {
    let mut world = World::new(1, 0);
    let first = world.begin();
    world.close(first);
    assert_eq!(world.engine.outcome(first), Some(RunOutcome::Completed));
    let busy = world.begin();
    let a = world.task(busy, 0, |_| {});
    world.close(busy);
    let empty = world.begin();
    world.close(empty);
    assert_eq!(world.engine.outcome(empty), Some(RunOutcome::Completed), "also behind another");
    assert_eq!(world.engine.outcome(busy), None);
    world.pump();
    world.finish(a);
    assert_eq!(world.engine.outcome(busy), Some(RunOutcome::Completed));
}

/// E-4: the first error of a run is its result.
#[test]
fn a_run_fails_with_its_first_error() {
    let mut world = World::new(2, 0);
    let run = world.begin();
    let (a, b) = (world.task(run, 0, |_| {}), world.task(run, 1, |_| {}));
    world.close(run);
    world.pump();
    world.fail(b, "worker 1: code 1: second submitted, first failed");
    assert_eq!(world.engine.outcome(run), None);
    world.fail(a, "too late");
    assert_eq!(
        world.engine.outcome(run),
        failed(FailureKind::Task, "worker 1: code 1: second submitted, first failed")
    );
}

/// E-5: the terminal transition gives the lease back once and lets the next run execute.
#[test]
fn the_terminal_transition_happens_once() {
    let mut world = World::new(1, 0);
    let first = world.begin();
    let a = world.task(first, 0, |_| {});
    world.close(first);
    let second = world.begin();
    world.pump();
    let ticket = world.ticket(a);
    world.finish(a);
    assert_eq!(world.engine.leases().leased(), 1);
    assert_eq!(world.engine.completed(ticket, Outcome::Success), Report::Late);
    assert_eq!(world.engine.leases().leased(), 1);
    assert_eq!(world.engine.phase(second), Some(RunPhase::Executing));
}

/// T-14: a result is there for everyone who asks, however often, also while other runs go on.
#[test]
fn a_result_is_there_for_every_waiter() {
    let mut world = World::new(1, 0);
    let run = world.begin();
    world.task(run, 0, |_| {});
    world.engine.fail_submission(run, "panicked").expect("open");
    for _ in 0..2 {
        let outcome = RunOutcome::Failed { kind: FailureKind::Submission, message: "panicked" };
        assert_eq!(world.engine.outcome(run), Some(outcome));
        let other = world.begin();
        world.close(other);
    }
}

/// E-6, E-7: a callback that fails ends its run without any device work; the next run is unaffected.
#[test]
fn a_failed_callback_starts_nothing_and_gives_the_lease_back() {
    let mut world = World::new(1, 0);
    let run = world.begin();
    world.task(run, 0, |args| {
        args.inout(bytes(0, 64));
    });
    world.task(run, 0, |args| {
        args.inout(bytes(0, 64));
    });
    world.engine.fail_submission(run, "callback panicked: boom").expect("open");
    assert_eq!(world.pump(), []);
    assert_eq!(world.engine.outcome(run), failed(FailureKind::Submission, "callback panicked: boom"));
    world.engine.release(run).expect("known");
    assert!(world.engine.usage().is_idle(), "{:?}", world.engine.usage());
    let next = world.begin();
    world.task(next, 0, |_| {});
    world.close(next);
    world.drain();
    assert_eq!(world.engine.outcome(next), Some(RunOutcome::Completed));
}

/// E-6: what runs finishes, and what depends on it is consumed without waiting for it.
#[test]
fn a_failed_callback_lets_running_tasks_finish() {
    let mut world = World::new(1, 0);
    let run = world.begin();
    let a = world.task(run, 0, |args| {
        args.inout(bytes(0, 64));
    });
    world.task(run, 0, |args| {
        args.inout(bytes(0, 64));
    });
    world.pump();
    world.engine.fail_submission(run, "no").expect("open");
    assert_eq!(world.engine.usage().tasks, 1, "only the running one is left");
    assert_eq!(world.engine.outcome(run), None);
    world.finish(a);
    assert_eq!(world.pump(), []);
    assert_eq!(world.engine.outcome(run), failed(FailureKind::Submission, "no"));
}

/// E-6: a failed run behind another ends without ever executing.
#[test]
fn a_failed_run_behind_another_ends_before_it() {
    let mut world = World::new(1, 0);
    let first = world.begin();
    world.task(first, 0, |_| {});
    world.close(first);
    let second = world.begin();
    world.task(second, 0, |_| {});
    world.engine.fail_submission(second, "no").expect("open");
    assert_eq!(world.engine.outcome(second), failed(FailureKind::Submission, "no"));
    assert_eq!(world.engine.outcome(first), None);
    assert!(world.engine.begin_run().is_ok(), "its lease is free");
}

/// E-7: after a cancel further submits fail with the run's error; after a failed task they do not.
#[test]
fn submits_into_a_cancelled_run_fail_and_into_a_failed_one_do_not() {
    let mut world = World::new(2, 0);
    let run = world.begin();
    let a = world.task(run, 0, |_| {});
    world.pump();
    world.fail(a, "bad");
    let b = world.task(run, 0, |_| {});
    assert_eq!(world.pump(), [(b, 0)]);
    world.engine.cancel(run).expect("known");
    let refused = world.try_submit(run, Target::NextLevel(engine_support::worker(0)), None, &[&TaskArgs::new()]);
    assert_eq!(refused, Err(EngineError::RunAborted { run, reason: "bad".into() }));
    assert_eq!(world.engine.alloc(run, 64), Err(EngineError::RunAborted { run, reason: "bad".into() }));
    world.finish(b);
    assert_eq!(world.engine.outcome(run), None, "its graph is still open");
    world.close(run);
    assert_eq!(world.engine.outcome(run), failed(FailureKind::Task, "bad"));
}

/// E-8, L-18, T-13: the fence opens with the last acceptance, and completion counts for one that was never seen.
#[test]
fn the_acceptance_fence_opens_before_completion() {
    let mut world = World::new(2, 0);
    let run = world.begin();
    let group = world.group(run, &[0, 1]);
    world.pump();
    world.close(run);
    assert!(!world.engine.is_accepted(run));
    let ticket = world.ticket(group);
    assert_eq!(world.engine.accepted(ticket), Report::Counted);
    assert_eq!(world.engine.accepted(ticket), Report::Late, "once per member");
    assert!(!world.engine.is_accepted(run), "L-19: every member owes one");
    world.engine.take_signals();
    world.end_member(group, 1, Outcome::Success);
    assert!(world.engine.is_accepted(run));
    assert!(world.engine.take_signals().run_changed);
    assert_eq!(world.engine.outcome(run), None);
}

/// T-12, T-16: a consumer that is poisoned settles what it owed, also after the run's submission was closed.
#[test]
fn poisoned_tasks_owe_no_acceptance() {
    let mut world = World::new(1, 0);
    let run = world.begin();
    let a = world.task(run, 0, |args| {
        args.output(bytes(0, 64));
    });
    world.task(run, 0, |args| {
        args.input(bytes(0, 64));
    });
    world.pump();
    world.close(run);
    assert_eq!(world.engine.accepted(world.ticket(a)), Report::Counted);
    assert!(!world.engine.is_accepted(run), "the consumer owes one");
    world.engine.take_signals();
    world.fail(a, "bad");
    assert!(world.engine.is_accepted(run));
    let signals = world.engine.take_signals();
    assert!(signals.run_changed && signals.lease_free, "waiters wake");
    assert_eq!(world.engine.outcome(run), failed(FailureKind::Task, "bad"));
}

/// T-12: a consumer that is poisoned at submit settles at once.
#[test]
fn a_task_poisoned_at_submit_owes_no_acceptance() {
    let mut world = World::new(1, 0);
    let run = world.begin();
    let a = world.task(run, 0, |args| {
        args.output(bytes(0, 64));
    });
    world.pump();
    world.fail(a, "bad");
    world.task(run, 0, |args| {
        args.input(bytes(0, 64));
    });
    assert_eq!(world.pump(), []);
    world.close(run);
    assert!(world.engine.is_accepted(run));
    assert_eq!(world.engine.outcome(run), failed(FailureKind::Task, "bad"));
}

/// E-9: a result can be asked for again and again; releasing the last handle frees the record.
#[test]
fn run_records_are_held_by_handles_and_run_out_with_an_error() {
    let mut config = config();
    config.runs = 3;
    let mut world = World::with(&config, 2, 1, 0);
    let mut runs = Vec::new();
    for _ in 0..3 {
        let run = world.begin();
        world.close(run);
        assert_eq!(world.engine.outcome(run), Some(RunOutcome::Completed));
        assert_eq!(world.engine.outcome(run), Some(RunOutcome::Completed));
        runs.push(run);
    }
    assert_eq!(world.engine.begin_run(), Err(EngineError::RunRecords { limit: 3 }));
    world.engine.release(runs[1]).expect("known");
    let open = world.begin();
    world.engine.release(open).expect("known");
    world.close(open);
    assert_eq!(world.engine.phase(open), None, "released before its end: gone with it");
    assert_eq!(world.engine.outcome(runs[2]), Some(RunOutcome::Completed));
}

/// E-9, L-38: cancel fails what has not started, takes a staged dispatch back, and lets what runs finish.
#[test]
fn cancel_withdraws_a_staged_dispatch() {
    let mut world = World::new(2, 0);
    let first = world.begin();
    let a = world.task(first, 0, |_| {});
    world.close(first);
    let second = world.begin();
    let b = world.task(second, 0, |_| {});
    world.task(second, 0, |_| {});
    world.close(second);
    world.pump();
    world.engine.cancel(second).expect("known");
    world.pump();
    assert_eq!(world.log.last().map(String::as_str), Some("withdraw 2 on 0"));
    assert_eq!(world.engine.outcome(second), None, "its endpoint has not answered");
    world.end_member(b, 0, Outcome::Skipped);
    assert_eq!(world.engine.outcome(second), failed(FailureKind::Cancelled, "cancelled"));
    world.finish(a);
    assert_eq!(world.engine.outcome(first), Some(RunOutcome::Completed));
    world.engine.cancel(second).expect("a finished run: nothing changes");
    assert_eq!(world.engine.outcome(second), failed(FailureKind::Cancelled, "cancelled"));
}

/// E-10, T-11: a report that comes after its run is gone touches nothing, even when its record serves another task.
#[test]
fn late_reports_touch_nothing() {
    let mut world = World::new(1, 0);
    let first = world.begin();
    let a = world.task(first, 0, |_| {});
    world.close(first);
    world.pump();
    let late = world.ticket(a);
    world.finish(a);
    world.engine.release(first).expect("known");
    let second = world.begin();
    let b = world.task(second, 0, |_| {});
    world.close(second);
    assert_eq!(world.pump(), [(b, 0)]);
    assert_eq!(world.ticket(b).slot(), late.slot(), "the record is used again");
    assert_eq!(world.engine.accepted(late), Report::Late);
    assert_eq!(world.engine.completed(late, Outcome::TaskFailure("old")), Report::Late);
    assert!(world.engine.payload(late).is_none());
    world.finish(b);
    assert_eq!(world.engine.outcome(second), Some(RunOutcome::Completed));
}

/// E-36, T-17: stopping fails what was not handed out, drains what runs, and leaves no run open.
#[test]
fn stop_leaves_no_run_open() {
    let mut world = World::new(2, 0);
    let first = world.begin();
    let a = world.task(first, 0, |_| {});
    world.task(first, 0, |_| {});
    world.close(first);
    world.pump();
    let second = world.begin();
    world.task(second, 1, |_| {});
    world.engine.take_signals();
    world.engine.stop();
    assert_eq!(world.engine.outcome(second), failed(FailureKind::Closed, "worker closed"));
    assert_eq!(world.engine.close_submission(second), Ok(()), "the callback returns later");
    assert!(world.engine.take_signals().run_changed);
    assert_eq!(world.engine.begin_run(), Err(EngineError::Stopped));
    assert_eq!(world.pump(), [], "nothing new");
    assert!(!world.engine.is_drained());
    world.finish(a);
    assert_eq!(world.engine.outcome(first), failed(FailureKind::Closed, "worker closed"));
    assert!(world.engine.is_drained());
}

/// L-35, E-4: a run with a stuck child ends, and its lease is never handed out again.
#[test]
fn a_stuck_child_takes_its_lease_with_it() {
    let mut world = World::new(2, 0);
    let first = world.begin();
    let (a, b) = (world.task(first, 0, |_| {}), world.task(first, 1, |_| {}));
    world.task(first, 0, |_| {});
    world.close(first);
    world.pump();
    world.engine.stuck(laneway_core::ids::EndpointIndex(0), "pid 7 survives SIGKILL").expect("known");
    assert_eq!(world.engine.outcome(first), failed(FailureKind::Stuck, "stuck: pid 7 survives SIGKILL"));
    world.finish(b);
    assert_eq!(world.engine.completed(world.ticket(a), Outcome::Success), Report::Counted);
    let second = world.begin();
    let c = world.task(second, 1, |_| {});
    world.close(second);
    assert_eq!(world.engine.begin_run(), Err(EngineError::NoLease { oldest: second, depth: 2 }));
    assert_eq!(world.pump(), [(c, 1)]);
    world.engine.stuck(laneway_core::ids::EndpointIndex(1), "so does pid 8").expect("known");
    assert_eq!(world.engine.begin_run(), Err(EngineError::Stuck));
}
