//! Groups: they launch whole, reserve their targets, and end once.

use core::time::Duration;

use laneway_core::engine::{FailureKind, Outcome, RunOutcome, Target};
use laneway_core::ids::EndpointIndex;
use laneway_core::model::TaskArgs;
use laneway_core::time::Instant;

use crate::engine_support::{World, args, bytes, worker};

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
