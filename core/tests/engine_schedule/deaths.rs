//! Deaths of endpoints.

use laneway_core::engine::{EngineError, FailureKind, Outcome, RunOutcome, Target};
use laneway_core::ids::{EndpointIndex, SubId};
use laneway_core::model::TaskArgs;

use crate::engine_support::{World, bytes, worker};

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
