//! Single stories of a level.

use std::time::Duration;

use laneway_core::driver::{ControlFault, DriverError, SubPool, Wake};
use laneway_core::ids::EndpointIndex;
use laneway_core::lane::Poison;
use laneway_core::model::TaskArgs;
use laneway_core::wire::control::ControlRequest;

use crate::device::{HANGS, QUICK, SLOW};
use crate::kind::{FAILS, Kind, digest};
use crate::world::*;

const MALLOC: ControlRequest = ControlRequest::Malloc { bytes: 21 };

/// Spec 03 §7, spec 02 §3: one run over every kind of child.
#[test]
fn a_run_over_every_kind_of_child_completes() {
    let mut world = World::new(&[Kind::Concurrent, Kind::Exclusive, Kind::Single, Kind::Sub, Kind::Sub]);
    let run = world.driver.engine_mut().begin_run().unwrap();
    for target in [0, 1, 2, 3, 4, 0, 1, 2, 3, 4] {
        world.submit(run, target, SLOW).unwrap();
    }
    world.driver.engine_mut().close_submission(run).unwrap();
    world.settle();
    assert_eq!(world.outcome(run), "completed");
    assert_eq!(world.monitor.borrow().launches, 10);
    assert!(!world.driver.is_busy() && world.driver.is_drained());
}

/// L-28: the message of a failed task names worker, code and text; the child lives on.
#[test]
fn a_failed_task_names_its_worker_and_the_next_run_is_unaffected() {
    let mut world = World::new(&[Kind::Sub, Kind::Concurrent]);
    for (target, label) in [(0, "sub 0"), (1, "worker 1")] {
        let run = world.driver.engine_mut().begin_run().unwrap();
        world.submit(run, target, FAILS).unwrap();
        world.driver.engine_mut().close_submission(run).unwrap();
        world.settle();
        let message = world.outcome(run);
        assert!(message.starts_with(&format!("{label}: code 1: dispatch 1 of run {run}")), "{message}");
    }
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit(run, 0, QUICK).unwrap();
    world.submit(run, 1, QUICK).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    world.settle();
    assert_eq!(world.outcome(run), "completed");
}

/// L-10 … L-13, E-33, E-34: the next run's task is staged and prepared while the first executes, and runs after it.
#[test]
fn the_next_run_is_staged_beside_the_executing_one() {
    let mut world = World::new(&[Kind::Concurrent]);
    let first = world.driver.engine_mut().begin_run().unwrap();
    world.submit(first, 0, HANGS - 3).unwrap();
    world.driver.engine_mut().close_submission(first).unwrap();
    let second = world.driver.engine_mut().begin_run().unwrap();
    world.submit(second, 0, QUICK).unwrap();
    world.driver.engine_mut().close_submission(second).unwrap();
    world.rounds(8);
    assert_eq!(world.monitor.borrow().prepared_beside, 1);
    let lane = world.driver.lane(EndpointIndex(0)).unwrap();
    assert!(lane.active().is_some() && lane.staged().is_some());
    world.settle();
    assert_eq!((world.outcome(first), world.outcome(second)), ("completed".into(), "completed".into()));
}

/// E-9, L-38: a cancelled run's staged dispatch is withdrawn; the executing run is not disturbed.
#[test]
fn cancelling_the_next_run_withdraws_its_staged_task() {
    let mut world = World::new(&[Kind::Concurrent]);
    let first = world.driver.engine_mut().begin_run().unwrap();
    world.submit(first, 0, 50).unwrap();
    world.driver.engine_mut().close_submission(first).unwrap();
    let second = world.driver.engine_mut().begin_run().unwrap();
    world.submit(second, 0, QUICK).unwrap();
    world.driver.engine_mut().close_submission(second).unwrap();
    world.rounds(8);
    world.driver.engine_mut().cancel(second).unwrap();
    world.rounds(8);
    assert_eq!((world.outcome(first), world.outcome(second)), ("open".into(), "cancelled".into()));
    world.settle();
    assert_eq!(world.outcome(first), "completed");
    assert_eq!(world.monitor.borrow().launches, 1);
}

/// T-19, L-25, L-27, E-41: a child killed inside a task.
#[test]
fn a_killed_child_fails_its_task_with_pid_and_signal_once_its_subtree_is_gone() {
    let mut world = World::new(&[Kind::Concurrent, Kind::Sub]);
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit(run, 0, HANGS).unwrap();
    world.submit(run, 0, QUICK).unwrap();
    world.submit(run, 1, QUICK).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    for _ in 0..8 {
        world.drive();
        world.step(0);
        world.step(1);
    }
    world.kill(0);
    world.report(0);
    world.drive();
    assert_eq!(world.outcome(run), "open", "a grandchild may still write");
    world.report(0);
    world.drive();
    let message = world.outcome(run);
    assert!(
        message.contains("worker 0 (pid 1000): the child died: process 1000 was killed by signal 9 (SIGKILL)"),
        "{message}"
    );

    let next = world.driver.engine_mut().begin_run().unwrap();
    let refused = world.submit(next, 0, QUICK);
    world.driver.engine_mut().close_submission(next).unwrap();
    world.settle();
    let message = refused.err().unwrap_or_else(|| world.outcome(next));
    assert!(message.contains("killed by signal 9"), "E-41, T-26: {message}");
}

/// L-24: a control that one child does not answer delays nothing on another, and its own running task completes.
#[test]
fn a_control_that_hangs_on_one_child_stalls_nobody() {
    let mut world = World::new(&[Kind::Concurrent, Kind::Sub]);
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit(run, 1, QUICK).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    let ticket = world.driver.control(EndpointIndex(0), &MALLOC, None, world.now).unwrap();
    for _ in 0..8 {
        world.drive();
        world.step(1);
    }
    assert_eq!(world.outcome(run), "completed");
    assert!(world.driver.control_result(ticket).is_none());
    world.settle();
    assert_eq!(world.driver.control_result(ticket).unwrap(), Ok(42));
    assert!(world.driver.control_result(ticket).is_none(), "fetched once");
}

/// L-20: controls of one endpoint queue and are answered in order.
#[test]
fn controls_queue_and_errors_carry_the_childs_text() {
    let mut world = World::new(&[Kind::Sub]);
    let tickets: Vec<_> = [21, 0, 4]
        .map(|bytes| {
            world.driver.control(EndpointIndex(0), &ControlRequest::Malloc { bytes }, None, world.now).unwrap()
        })
        .into();
    world.settle();
    assert_eq!(world.driver.control_result(tickets[0]).unwrap(), Ok(42));
    let error = world.driver.control_result(tickets[1]).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "sub 0: control Malloc: code 1: zero bytes");
    assert_eq!(world.driver.control_result(tickets[2]).unwrap(), Ok(8));
    let missing = world.driver.control(EndpointIndex(9), &MALLOC, None, world.now);
    assert_eq!(missing, Err(DriverError::NoSuchEndpoint { endpoint: EndpointIndex(9), endpoints: 1 }));
}

/// L-22: the one that was sent poisons, the one that was not had no effect; later ones fail at once.
#[test]
fn a_control_that_times_out_poisons_and_a_queued_one_was_never_sent() {
    let mut world = World::new(&[Kind::Sub]);
    let timeout = Some(Duration::from_millis(1));
    let first = world.driver.control(EndpointIndex(0), &MALLOC, timeout, world.now).unwrap();
    let second = world.driver.control(EndpointIndex(0), &MALLOC, timeout, world.now).unwrap();
    assert!(world.drive().deadline.is_some());
    world.now = world.now.saturating_add(Duration::from_millis(1));
    world.drive();
    let fault = |world: &mut World, ticket| world.driver.control_result(ticket).unwrap().unwrap_err().fault;
    assert!(matches!(fault(&mut world, first), ControlFault::Dead(Poison::ControlTimeout { .. })));
    assert!(matches!(fault(&mut world, second), ControlFault::NotSent { .. }));
    let third = world.driver.control(EndpointIndex(0), &MALLOC, None, world.now).unwrap();
    world.drive();
    assert!(matches!(fault(&mut world, third), ControlFault::Dead(Poison::ControlTimeout { .. })));
}

/// L-21: while a registry control is under way, dispatches are held back and go out when it is answered.
#[test]
fn a_registry_control_holds_dispatches_back_and_lets_them_go() {
    let mut world = World::new(&[Kind::Concurrent]);
    let request = ControlRequest::Unregister { digest: digest(99) };
    let ticket = world.driver.control(EndpointIndex(0), &request, None, world.now).unwrap();
    world.drive();
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit(run, 0, QUICK).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    world.drive();
    assert_eq!(world.driver.lane(EndpointIndex(0)).unwrap().in_flight(), 0);
    world.settle();
    assert_eq!(world.driver.control_result(ticket).unwrap(), Ok(0));
    assert_eq!(world.outcome(run), "completed");
}

/// L-35: poisoned, asked to leave, still there after the grace: its owner is told to kill it, once.
#[test]
fn a_child_that_ignores_poison_is_named_for_killing_after_its_grace() {
    let mut world = World::new(&[Kind::Concurrent]);
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit(run, 0, HANGS).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    world.rounds(4);
    world.driver.poison(EndpointIndex(0), Poison::Driver, world.now);
    let deadline = world.drive().deadline.unwrap();
    assert_eq!(world.driver.take_kills().count(), 0);
    world.now = deadline;
    world.drive();
    assert_eq!(world.driver.take_kills().collect::<Vec<_>>(), [EndpointIndex(0)]);
    world.drive();
    assert_eq!(world.driver.take_kills().count(), 0);
    world.kill(0);
    world.settle();
    assert!(world.outcome(run).contains("the progress driver failed"), "{}", world.outcome(run));
}

/// L-19: every member owes one acceptance; a run is accepted when the last of them was.
#[test]
fn each_member_of_a_group_owes_one_acceptance() {
    let mut world = World::new(&[Kind::Concurrent, Kind::Exclusive]);
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit_group(run, false, 100).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    world.drive();
    for _ in 0..4 {
        world.step(0);
        world.drive();
    }
    assert!(!world.driver.engine().is_accepted(run), "one of two was launched");
    for _ in 0..4 {
        world.step(1);
        world.drive();
    }
    assert!(world.driver.engine().is_accepted(run) && !world.driver.engine().is_terminal(run));
    world.settle();
    assert_eq!(world.outcome(run), "completed");
}

/// E-43, C-15: a task past its deadline loses its child, which is named for killing; the run's error names the task.
#[test]
fn a_task_past_its_deadline_loses_its_child() {
    let mut world = World::new(&[Kind::Concurrent]);
    let run = world.driver.engine_mut().begin_run().unwrap();
    let limit = Some(Duration::from_millis(5));
    world.submit_with(run, 0, HANGS, &TaskArgs::new(), limit).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    world.rounds(4);
    let deadline = world.drive().deadline.unwrap();
    assert_eq!(deadline, world.now.saturating_add(Duration::from_millis(5)));
    world.now = deadline;
    let grace = world.drive().deadline.unwrap();
    world.now = grace;
    world.drive();
    assert_eq!(world.driver.take_kills().count(), 1);
    world.kill(0);
    world.settle();
    let message = world.outcome(run);
    assert!(message.contains("dispatch 1 of run 1") && message.contains("deadline"), "{message}");
}

/// L-35: a stuck child fails its run, and its frames never come back.
#[test]
fn a_stuck_child_fails_its_run_with_the_facts() {
    let mut world = World::new(&[Kind::Concurrent]);
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit(run, 0, HANGS).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    world.rounds(4);
    world.driver.stuck(EndpointIndex(0), "killed 2 s ago and still there", world.now);
    world.drive();
    assert!(world.outcome(run).contains("killed 2 s ago"), "{}", world.outcome(run));
    assert!(world.driver.is_drained());
}

/// L-29, E-36: a stop lets what runs end, fails the rest, and every child exits 0.
#[test]
fn a_stop_ends_every_run_and_every_child() {
    let mut world = World::new(&[Kind::Concurrent, Kind::Exclusive, Kind::Single, Kind::Sub]);
    let run = world.driver.engine_mut().begin_run().unwrap();
    for target in [0, 1, 2, 3, 0, 1, 2, 3] {
        world.submit(run, target, SLOW).unwrap();
    }
    world.driver.engine_mut().close_submission(run).unwrap();
    world.rounds(2);
    let ticket = world.driver.control(EndpointIndex(0), &MALLOC, None, world.now).unwrap();
    world.driver.stop();
    for _ in 0..50 {
        world.drive();
        for index in 0..4 {
            world.step(index);
        }
    }
    assert!(world.driver.is_drained());
    assert!(world.outcome(run).contains("worker closed"), "{}", world.outcome(run));
    assert!(matches!(world.driver.control_result(ticket), Some(Err(error)) if error.fault == ControlFault::Stopped));
    for member in &world.members {
        assert!(matches!(member.life, Life::Ended(cause) if cause.is_orderly()), "{:?}", member.life);
    }
}

/// E-37: the words to watch are those of busy lanes only, 256 endpoints or one.
#[test]
fn only_busy_lanes_are_watched() {
    let mut world = World::new(&[Kind::Sub; 256]);
    let mut watches = Vec::new();
    world.driver.watches(&mut watches);
    assert!(watches.is_empty());
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit(run, 0, QUICK).unwrap();
    world.driver.engine_mut().close_submission(run).unwrap();
    world.drive();
    world.driver.watches(&mut watches);
    assert_eq!(watches.len(), 1);
    world.settle();
    assert_eq!(world.outcome(run), "completed");
}

/// E-35: news of other children that never ends keeps a driver from its last look before a sleep; a task that is held for a
/// child at work reaches one that sleeps all the same.
#[test]
fn a_task_held_for_a_child_at_work_is_not_held_for_ever_by_a_driver_that_never_sleeps() {
    const WINDOW: Duration = Duration::from_micros(6);
    let mut world = World::new(&[Kind::Single, Kind::Sub, Kind::Sub]);
    world.driver.set_sub_pool(SubPool { window: WINDOW, wake: WINDOW, cpus: 2 });
    (1..3).for_each(|sub| world.step(sub));
    assert!(world.members[1].parked && world.members[2].parked);
    let run = world.driver.engine_mut().begin_run().unwrap();
    world.submit(run, 1, QUICK).unwrap();
    world.drive();
    world.submit(run, 1, QUICK).unwrap();
    let start = world.now;
    // One of the two takes long; the stream on the other endpoint is news in every round.
    while world.members[1].parked || world.members[2].parked {
        world.submit(run, 0, QUICK).unwrap();
        for _ in 0..4 {
            world.now = world.now.saturating_add(Duration::from_micros(1));
            world.drive_on(Wake::Spare);
            world.step(0);
        }
        assert!(world.now.since(start) < 100 * WINDOW, "a child sleeps while a task for it waits");
    }
}
