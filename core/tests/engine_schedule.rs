//! Who is handed what, and when: queues, groups, SUB workers, staging, deaths.

mod engine_support;

use core::time::Duration;

use engine_support::{World, args, bytes, config, worker};
use laneway_core::engine::{Config, EngineError, FailureKind, GroupState, Outcome, RunOutcome, Target, TaskState};
use laneway_core::engine::{Engine, WorkerClass, WorkerSpec};
use laneway_core::ids::{EndpointIndex, SubId};
use laneway_core::model::TaskArgs;
use laneway_core::time::Instant;
use laneway_core::wire::CallConfig;

fn diagnostic() -> CallConfig {
    let mut config = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
    config.set_output_prefix(b"/tmp/pmu").expect("short");
    config
}

/// E-29, E-30: singles go to their worker in order; a busy worker holds up nobody else's queue, and nothing is stolen.
#[test]
fn singles_go_to_their_worker_in_order() {
    let mut world = World::new(2, 1);
    let run = world.begin();
    let a = world.task(run, 0, |_| {});
    let b = world.task(run, 0, |_| {});
    let c = world.task(run, 1, |_| {});
    let d = world.task(run, 0, |_| {});
    assert_eq!(world.pump(), [(a, 0), (c, 1)]);
    world.finish(c);
    assert_eq!(world.pump(), [], "worker 1 is idle and takes nothing of worker 0's");
    world.finish(a);
    assert_eq!(world.pump(), [(b, 0)]);
    world.finish(b);
    assert_eq!(world.pump(), [(d, 0)]);
}

/// E-30: consumers that become ready together queue in the order of their submission.
#[test]
fn consumers_queue_in_the_order_of_their_submission() {
    let mut world = World::new(2, 0);
    let run = world.begin();
    let producer = world.task(run, 0, |args| {
        args.output(bytes(0, 64));
    });
    let consumers: Vec<_> = (0..10)
        .map(|_| {
            world.task(run, 1, |args| {
                args.input(bytes(0, 64));
            })
        })
        .collect();
    world.pump();
    world.finish(producer);
    for consumer in consumers {
        assert_eq!(world.pump(), [(consumer, 1)]);
        world.finish(consumer);
    }
}

/// E-31, T-7: a group launches when every target is idle, and waits without anything to look at until then.
#[test]
fn a_group_launches_whole_and_waits_quietly() {
    let mut world = World::new(3, 0);
    let run = world.begin();
    let busy = world.task(run, 1, |_| {});
    world.pump();
    let group = world.group(run, &[0, 1, 2]);
    assert_eq!(world.pump(), []);
    world.engine.take_signals();
    for _ in 0..3 {
        assert_eq!(world.engine.next_action(), None);
        assert!(!world.engine.take_signals().work, "T-7: nothing to spin for");
    }
    world.finish(busy);
    assert!(world.engine.take_signals().work, "E-35");
    assert_eq!(world.pump(), [(group, 0), (group, 1), (group, 2)]);
}

/// E-31, T-8: a blocked group keeps its targets free of singles, so a stream of them cannot starve it; later groups
/// are not looked at.
#[test]
fn a_blocked_group_reserves_its_targets() {
    let mut world = World::new(4, 0);
    let run = world.begin();
    let busy = world.task(run, 0, |_| {});
    world.pump();
    let group = world.group(run, &[0, 1]);
    let later = world.group(run, &[2, 3]);
    let single = world.task(run, 1, |_| {});
    let other = world.task(run, 3, |_| {});
    assert_eq!(world.pump(), [(other, 3)], "worker 1 is reserved, worker 3 is not");
    world.finish(other);
    assert_eq!(world.pump(), []);
    for _ in 0..5 {
        world.task(run, 0, |_| {});
    }
    world.finish(busy);
    assert_eq!(world.pump(), [(group, 0), (group, 1), (later, 2), (later, 3)]);
    world.finish(group);
    let started = world.pump();
    assert!(started.contains(&(single, 1)), "what waited behind the reservation goes on: {started:?}");
}

/// E-31: a reservation that is given up sets its idle targets free.
#[test]
fn a_group_that_dies_sets_its_targets_free() {
    let mut world = World::new(3, 0);
    let run = world.begin();
    let busy = world.task(run, 0, |_| {});
    world.pump();
    world.group(run, &[0, 1, 2]);
    let single = world.task(run, 1, |_| {});
    assert_eq!(world.pump(), []);
    world.engine.endpoint_dead(EndpointIndex(2), "gone").expect("known");
    assert_eq!(world.pump(), [(single, 1)]);
    world.finish(busy);
}

/// E-31: the stall of a reserved idle target with work behind it is reported once per episode, with the facts.
#[test]
fn a_stalled_reservation_is_reported_once() {
    let mut world = World::new(3, 0);
    let run = world.begin();
    let busy = world.task(run, 0, |_| {});
    world.pump();
    world.group(run, &[0, 1, 2]);
    world.pump();
    let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
    let age = Duration::from_secs(5);
    assert!(world.engine.stalled_group(at(1), age).is_none());
    assert!(world.engine.stalled_group(at(9), age).is_none(), "no work waits behind it");
    world.task(run, 1, |_| {});
    world.pump();
    assert!(world.engine.stalled_group(at(10), age).is_none());
    assert!(world.engine.stalled_group(at(14), age).is_none());
    let group = world.engine.stalled_group(at(15), age).expect("5 s with work queued");
    let members: Vec<_> = group.members().map(|m| (m.worker.get(), m.busy, m.queue_head.is_some())).collect();
    assert_eq!(members, [(0, true, false), (1, false, true), (2, false, false)]);
    assert!(world.engine.stalled_group(at(99), age).is_none(), "once per episode");
    world.finish(busy);
    world.pump();
    world.group(run, &[0, 1]);
    world.task(run, 1, |_| {});
    world.finish(2);
    world.pump();
}

/// E-24: a group is one node: its consumers wait for every member, the first failure decides, and a member reports
/// once.
#[test]
fn a_group_ends_with_its_last_member_and_fails_with_its_first_failure() {
    let mut world = World::new(4, 0);
    let run = world.begin();
    let write = args(|args| {
        args.output(bytes(0, 64));
    });
    let (group, _) = {
        let targets = [worker(0), worker(1), worker(2)];
        let other = TaskArgs::new();
        world.try_submit(run, Target::NextLevelGroup(&targets), None, &[&write, &other, &other]).expect("room")
    };
    world.task(run, 3, |args| {
        args.input(bytes(0, 64));
    });
    world.pump();
    world.end_member(group, 1, Outcome::TaskFailure("first"));
    world.end_member(group, 0, Outcome::EndpointFailure("second"));
    assert_eq!(world.engine.usage().unfinished, 2);
    world.end_member(group, 2, Outcome::Skipped);
    assert_eq!(world.pump(), [], "the consumer is poisoned");
    world.close(run);
    let outcome = RunOutcome::Failed { kind: FailureKind::Task, message: "first" };
    assert_eq!(world.engine.outcome(run), Some(outcome));
}

/// E-24: members of a launched group that are not handed out when their run is cancelled are skipped.
#[test]
fn members_that_are_not_handed_out_are_skipped() {
    let mut world = World::new(3, 0);
    let run = world.begin();
    let group = world.group(run, &[0, 1, 2]);
    let first = world.engine.next_action();
    assert!(first.is_some());
    world.engine.take_signals();
    world.engine.cancel(run).expect("known");
    assert!(world.engine.take_signals().work, "the rest of the group is to be settled");
    assert_eq!(world.engine.next_action(), None);
    let Some(laneway_core::engine::Action::Dispatch { ticket, .. }) = first else { panic!("a dispatch") };
    assert_eq!(world.name(ticket), group);
    world.engine.completed(ticket, Outcome::Success);
    world.close(run);
    let outcome = RunOutcome::Failed { kind: FailureKind::Cancelled, message: "cancelled" };
    assert_eq!(world.engine.outcome(run), Some(outcome));
}

/// E-32: SUB work goes to any idle SUB worker, the one that finished last first; a group takes distinct ones.
#[test]
fn sub_work_goes_to_the_worker_that_finished_last() {
    let mut world = World::new(1, 3);
    let run = world.begin();
    let (a, b, c) = (world.sub(run, |_| {}), world.sub(run, |_| {}), world.sub(run, |_| {}));
    assert_eq!(world.pump(), [(a, 1), (b, 2), (c, 3)]);
    world.finish(b);
    world.finish(a);
    let d = world.sub(run, |_| {});
    assert_eq!(world.pump(), [(d, 1)]);
    world.finish(d);
    let group = world.sub_group(run, 2);
    let endpoints: Vec<_> = world.pump().into_iter().map(|(task, endpoint)| (task == group, endpoint)).collect();
    assert_eq!(endpoints, [(true, 1), (true, 2)]);
}

/// E-32: a SUB group that does not fit keeps its place at the head.
#[test]
fn a_sub_group_does_not_starve_behind_singles() {
    let mut world = World::new(1, 2);
    let run = world.begin();
    let a = world.sub(run, |_| {});
    world.pump();
    let group = world.sub_group(run, 2);
    let b = world.sub(run, |_| {});
    assert_eq!(world.pump(), [], "one SUB worker is idle and is kept for the group");
    world.finish(a);
    assert_eq!(world.pump().len(), 2);
    world.finish(group);
    assert_eq!(world.pump(), [(b, 1)].map(|(task, _)| (task, world.running[&(b, 0)].endpoint)));
    let too_large = world.try_submit(run, Target::SubGroup, None, &[&TaskArgs::new(); 3]);
    assert_eq!(too_large, Err(EngineError::SubGroupTooLarge { members: 3, pool: 2 }));
}

/// E-33, E-34: of the prepared run one single is staged, the first that is not diagnostic, on a worker that can; on
/// promotion it is activated before anything else is handed out.
#[test]
fn the_first_eligible_single_of_the_prepared_run_is_staged() {
    let mut world = World::new(2, 1);
    let first = world.begin();
    let a = world.task(first, 0, |_| {});
    world.close(first);
    world.pump();
    let second = world.begin();
    let empty = TaskArgs::new();
    let target = Target::NextLevel(worker(0));
    let (skipped, _) = world.try_submit(second, target, Some(&diagnostic()), &[&empty]).expect("room");
    let b = world.task(second, 0, |_| {});
    let c = world.task(second, 1, |_| {});
    world.sub(second, |_| {});
    assert_eq!(world.pump(), [], "not before its graph is closed");
    world.close(second);
    assert_eq!(world.pump(), [(b, 0)], "one, although worker 1 is idle");
    assert_eq!(world.log.last().map(String::as_str), Some("stage 3.0 on 0"));
    world.finish(a);
    let started = world.pump();
    assert_eq!(world.log[world.log.len() - 3], "activate 3 on 0", "E-34: before anything else");
    assert!(started.contains(&(c, 1)));
    assert!(!started.contains(&(skipped, 0)), "the lane is taken by the activated task");
    world.finish(b);
    assert_eq!(world.pump(), [(skipped, 0)]);
}

/// E-33: nothing is staged past a ready group, on a worker that cannot, or of a run that is not the second.
#[test]
fn nothing_is_staged_past_a_ready_group() {
    let mut world = World::new(2, 0);
    let first = world.begin();
    world.task(first, 0, |_| {});
    world.close(first);
    world.pump();
    let second = world.begin();
    world.task(second, 1, |_| {});
    world.group(second, &[0, 1]);
    world.close(second);
    assert_eq!(world.pump(), []);

    let spec = |id: i32, staging| WorkerSpec {
        class: WorkerClass::NextLevel(worker(id)),
        endpoint: EndpointIndex(id as u16),
        staging,
    };
    let mut plain = World::new(1, 0);
    plain.engine = Engine::new(&config(), 2, &[spec(0, false), spec(1, false)]).expect("valid");
    let first = plain.begin();
    plain.task(first, 0, |_| {});
    plain.close(first);
    plain.pump();
    let second = plain.begin();
    plain.task(second, 1, |_| {});
    plain.close(second);
    assert_eq!(plain.pump(), []);
}

/// E-33: a staged task that fails before its activation makes room for the next.
#[test]
fn a_staged_task_that_fails_makes_room_for_the_next() {
    let mut world = World::new(2, 0);
    let first = world.begin();
    world.task(first, 0, |_| {});
    world.close(first);
    world.pump();
    let second = world.begin();
    let (b, c) = (world.task(second, 0, |_| {}), world.task(second, 1, |_| {}));
    world.close(second);
    assert_eq!(world.pump(), [(b, 0)]);
    world.fail(b, "callable unknown");
    assert_eq!(world.pump(), [(c, 1)]);
    assert_eq!(world.log.last().map(String::as_str), Some("stage 3.0 on 1"));
}

/// L-38: a run that is cancelled between its promotion and the word to the endpoint is withdrawn, not activated.
#[test]
fn a_cancel_right_after_promotion_withdraws() {
    let mut world = World::new(1, 0);
    let first = world.begin();
    let a = world.task(first, 0, |_| {});
    world.close(first);
    world.pump();
    let second = world.begin();
    let b = world.task(second, 0, |_| {});
    world.close(second);
    world.pump();
    world.finish(a);
    world.engine.cancel(second).expect("known");
    world.pump();
    assert_eq!(world.log.last().map(String::as_str), Some("withdraw 2 on 0"));
    // Until it is back it holds the staged lane: nothing of the next run goes there (E-33).
    let third = world.begin();
    let c = world.task(third, 0, |_| {});
    world.close(third);
    assert_eq!(world.pump(), []);
    world.end_member(b, 0, Outcome::Skipped);
    assert!(world.engine.is_terminal(second));
    assert_eq!(world.pump(), [(c, 0)]);
    assert_eq!(world.log.last().map(String::as_str), Some("start 3.0 on 0"));
}

/// E-41, E-7: when an endpoint dies, what can only go there fails at once, queued or not yet ready; the rest goes on.
#[test]
fn everything_that_can_only_go_to_a_dead_endpoint_fails_at_once() {
    let mut world = World::new(2, 2);
    let run = world.begin();
    let a = world.task(run, 0, |args| {
        args.output(bytes(0, 64));
    });
    world.pump();
    world.task(run, 0, |_| {});
    let waits = world.task(run, 0, |args| {
        args.input(bytes(0, 64)).output(bytes(64, 64));
    });
    world.task(run, 1, |args| {
        args.input(bytes(64, 64));
    });
    world.group(run, &[0, 1]);
    let alive = world.task(run, 1, |_| {});
    world.pump();
    world.engine.take_signals();
    world.engine.endpoint_dead(EndpointIndex(0), "pid 7 was killed by signal 9").expect("known");
    assert!(world.engine.take_signals().task_ended);
    assert_eq!(world.engine.usage().unfinished, 2, "the running one and worker 1's: {waits} never becomes ready");
    let target = Target::NextLevel(worker(0));
    let refused = world.try_submit(run, target, None, &[&TaskArgs::new()]).expect_err("dead");
    assert_eq!(refused.to_string(), "worker 0 is dead: pid 7 was killed by signal 9");
    world.end_member(a, 0, Outcome::EndpointFailure("pid 7 was killed by signal 9"));
    world.pump();
    world.finish(alive);
    world.close(run);
    let message = "pid 7 was killed by signal 9";
    assert_eq!(world.engine.outcome(run), Some(RunOutcome::Failed { kind: FailureKind::Task, message }));
    world.engine.release(run).expect("known");
    assert!(world.engine.usage().is_idle());
    let next = world.begin();
    let b = world.task(next, 1, |_| {});
    world.close(next);
    assert_eq!(world.pump(), [(b, 1)], "the next run is unaffected");
}

/// E-41: SUB work fails when nobody can run it any more, a SUB group when too few are left.
#[test]
fn sub_work_fails_when_too_few_sub_workers_live() {
    let mut world = World::new(1, 3);
    let run = world.begin();
    let busy: Vec<_> = (0..3).map(|_| world.sub(run, |_| {})).collect();
    world.pump();
    world.sub_group(run, 3);
    world.sub_group(run, 2);
    world.sub(run, |_| {});
    assert_eq!(world.engine.usage().unfinished, 6);
    world.engine.endpoint_dead(EndpointIndex(2), "gone").expect("known");
    assert_eq!(world.engine.usage().unfinished, 5);
    let refused = world.try_submit(run, Target::SubGroup, None, &[&TaskArgs::new(); 3]);
    let dead = EngineError::SubDead { needed: 3, live: 2, last: SubId(1), reason: "gone".into() };
    assert_eq!(refused, Err(dead));
    world.engine.endpoint_dead(EndpointIndex(3), "gone").expect("known");
    assert_eq!(world.engine.usage().unfinished, 4);
    world.engine.endpoint_dead(EndpointIndex(1), "gone").expect("known");
    assert_eq!(world.engine.usage().unfinished, 3, "only what runs is left");
    for task in busy {
        world.end_member(task, 0, Outcome::EndpointFailure("gone"));
    }
    world.close(run);
    assert!(world.engine.is_terminal(run));
}

/// E-39: ids are one space, duplicates are refused naming both, and an unknown or repeated target is an error.
#[test]
fn worker_ids_are_checked() {
    let spec = |id: i32, endpoint| WorkerSpec {
        class: WorkerClass::NextLevel(worker(id)),
        endpoint: EndpointIndex(endpoint),
        staging: false,
    };
    let twice = Engine::new(&config(), 2, &[spec(3, 0), spec(5, 1), spec(3, 2)]).err();
    assert_eq!(twice, Some(EngineError::DuplicateWorker { first: 0, second: 2 }));
    let mut world = World::new(1, 1);
    world.engine = Engine::new(&config(), 2, &[spec(7, 0), spec(100_000, 1), spec(3, 2)]).expect("valid");
    let run = world.begin();
    for (id, endpoint) in [(100_000, 1), (3, 2), (7, 0)] {
        let task = world.task(run, id, |_| {});
        assert_eq!(world.pump(), [(task, endpoint)]);
    }
    let empty = TaskArgs::new();
    let unknown = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&empty]);
    assert_eq!(unknown, Err(EngineError::UnknownWorker { worker: worker(0) }));
    let ids = [worker(7), worker(3), worker(7)];
    let repeated = world.try_submit(run, Target::NextLevelGroup(&ids), None, &[&empty; 3]);
    assert_eq!(repeated, Err(EngineError::DuplicateTarget { worker: worker(7), first: 0, second: 2 }));
    let count = world.try_submit(run, Target::NextLevelGroup(&ids), None, &[&empty; 2]);
    assert_eq!(count, Err(EngineError::MemberCount { targets: 3, members: 2 }));
    let two = world.try_submit(run, Target::NextLevel(worker(7)), None, &[&empty; 2]);
    assert_eq!(two, Err(EngineError::MemberCount { targets: 1, members: 2 }));
    assert_eq!(world.try_submit(run, Target::NextLevel(worker(7)), None, &[]), Err(EngineError::NoMembers));
    let none = world.try_submit(run, Target::Sub, None, &[&empty]);
    assert_eq!(none, Err(EngineError::SubGroupTooLarge { members: 1, pool: 0 }));
}

/// E-35, T-9: a root task submitted to an idle worker is placeable, and says so, at once.
#[test]
fn a_root_task_for_an_idle_worker_signals_work() {
    let mut world = World::new(1, 1);
    let run = world.begin();
    world.pump();
    world.engine.take_signals();
    world.task(run, 0, |_| {});
    assert!(world.engine.take_signals().work);
    world.pump();
    world.sub(run, |_| {});
    assert!(world.engine.take_signals().work);
    world.pump();
    world.engine.take_signals();
    world.task(run, 0, |_| {});
    assert!(!world.engine.take_signals().work, "behind a running one there is nothing to place");
}

/// T-10: work of one worker goes on whatever another worker's endpoint is doing.
#[test]
fn a_slow_worker_holds_up_nobody() {
    let mut world = World::new(2, 0);
    let run = world.begin();
    world.task(run, 0, |_| {});
    for _ in 0..20 {
        let task = world.task(run, 1, |_| {});
        let started = world.pump();
        assert!(started.contains(&(task, 1)));
        world.finish(task);
    }
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

/// E-43: a deadline travels with the dispatch; the caller's clock says when it is over.
#[test]
fn a_deadline_travels_with_its_task() {
    let mut world = World::new(1, 0);
    let run = world.begin();
    world.deadline = Some(Duration::from_millis(250));
    let a = world.task(run, 0, |_| {});
    world.pump();
    let payload = world.engine.payload(world.ticket(a)).expect("running");
    assert_eq!(payload.deadline, Some(Duration::from_millis(250)));
    assert_eq!(payload.due(Instant::from_nanos(1)), Some(Instant::from_nanos(250_000_001)));
}

/// E-20, E-21, E-22, E-24: each machine takes exactly the transitions that the book shows; every other is refused.
#[test]
fn illegal_transitions_are_refused() {
    use laneway_core::engine::{GroupEvent, RunEvent, RunPhase, TaskEvent};
    assert_eq!(TaskState::Ready.on(TaskEvent::Claim), Some(TaskState::Running));
    assert_eq!(TaskState::Running.on(TaskEvent::Claim), None, "claimed once");
    assert_eq!(TaskState::Building.on(TaskEvent::LastProducer), None, "half-built");
    assert_eq!(TaskState::Running.on(TaskEvent::Poison), None, "not from outside");
    assert_eq!(TaskState::Failed.on(TaskEvent::Fail), None, "once");
    assert_eq!(GroupState::Launched.on(GroupEvent::GiveUp), None);
    assert_eq!(RunPhase::Completed.on(RunEvent::Fail), None);
    let legal = |count: usize, of: usize| (count, of);
    let tasks = TaskState::ALL.iter().flat_map(|s| TaskEvent::ALL.iter().filter_map(|e| s.on(*e))).count();
    let runs = RunPhase::ALL.iter().flat_map(|s| RunEvent::ALL.iter().filter_map(|e| s.on(*e))).count();
    let groups = GroupState::ALL.iter().flat_map(|s| GroupEvent::ALL.iter().filter_map(|e| s.on(*e))).count();
    assert_eq!((legal(tasks, 104), runs, groups), ((15, 104), 9, 6));
    for (number, state) in TaskState::ALL.into_iter().enumerate() {
        assert_eq!(state as usize, number, "the numbers are part of the contract");
    }
}

/// Endpoints that are not the engine's are refused.
#[test]
fn an_unknown_endpoint_is_refused() {
    let mut world = World::with(&Config { ..config() }, 2, 1, 0);
    let endpoint = EndpointIndex(9);
    assert_eq!(world.engine.endpoint_dead(endpoint, "x"), Err(EngineError::UnknownEndpoint { endpoint }));
    assert_eq!(world.engine.stuck(endpoint, "x"), Err(EngineError::UnknownEndpoint { endpoint }));
}

/// E-29, E-35: a single SUB task that is held stays in its queue, nothing else does, and it comes out when the hold is lifted.
#[test]
fn a_single_sub_task_is_held_back_for_a_child_at_work_and_comes_out_when_the_hold_is_lifted() {
    let mut world = World::with(&Config { ..config() }, 2, 1, 2);
    let run = world.begin();
    let first = world.sub(run, |_| {});
    assert_eq!(world.engine.spare_sub(), None, "no child is at work that could take it");
    world.pump();
    let second = world.sub(run, |_| {});
    let spare = world.engine.spare_sub().expect("the other child");
    assert_eq!(spare.busy, 1);
    world.engine.hold_subs(true);
    let other = world.task(run, 0, |_| {});
    assert_eq!(world.pump(), [(other, 0)], "only SUB tasks are held");
    world.engine.hold_subs(false);
    assert_eq!(world.pump(), [(second, spare.endpoint.0)]);
    assert_eq!(world.running(), [first, second, other]);
}
