//! Queues of single tasks: their order, and that none holds up another.

use core::time::Duration;

use laneway_core::time::Instant;

use crate::engine_support::{World, bytes};

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
