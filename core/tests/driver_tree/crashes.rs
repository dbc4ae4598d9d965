//! A child killed after every single write that it makes, in every phase.

use laneway_core::ids::EndpointIndex;
use laneway_core::wire::control::ControlRequest;

use crate::device::{QUICK, SLOW};
use crate::kind::{FAILS, Kind, UNKNOWN, digest};
use crate::world::*;

/// Two runs over two children of a kind, with failures and controls, child 0 dying after `left` writes. Returns whether it
/// died.
fn story(kind: Kind, left: u64, stop: bool) -> bool {
    let mut world = World::new(&[kind, kind, Kind::Sub]);
    world.members[0].left.set(left);
    let mut runs = Vec::new();
    let mut controls = Vec::new();
    for round in 0..2 {
        let run = world.driver.engine_mut().begin_run().unwrap();
        for (target, behaviour) in [(0, SLOW), (1, SLOW), (2, QUICK), (0, FAILS), (0, UNKNOWN), (1, QUICK)] {
            // Refused once the child is known to be dead.
            let _ = world.submit(run, target, behaviour);
        }
        world.driver.engine_mut().close_submission(run).unwrap();
        runs.push(run);
        let requests = [
            ControlRequest::Malloc { bytes: 0 },
            ControlRequest::Malloc { bytes: 8 },
            ControlRequest::Unregister { digest: digest(90) },
        ];
        for request in &requests[round..] {
            controls.push(world.driver.control(EndpointIndex(0), request, None, world.now).unwrap());
        }
        world.rounds(5);
    }
    if stop {
        world.driver.stop();
    }
    world.settle();
    let died = matches!(world.members[0].life, Life::Gone)
        && world.driver.lane(EndpointIndex(0)).unwrap().exit().is_some_and(|cause| !cause.is_orderly());
    for run in runs {
        assert!(world.driver.engine().is_terminal(run), "{kind:?}, {left} writes: run {run} never ended");
    }
    for ticket in controls {
        assert!(world.driver.control_result(ticket).is_some(), "{kind:?}, {left} writes: a control never ended");
    }
    assert!(world.driver.is_drained() && !world.driver.is_busy());
    if !stop {
        // The others work on, and so does this one if it is still there.
        world.members[0].left.set(u64::MAX);
        let run = world.driver.engine_mut().begin_run().unwrap();
        world.submit(run, 2, QUICK).unwrap();
        if kind != Kind::Sub {
            world.submit(run, 1, QUICK).unwrap();
        }
        world.driver.engine_mut().close_submission(run).unwrap();
        world.settle();
        assert_eq!(world.outcome(run), "completed", "{kind:?}, {left} writes");
    }
    died
}

/// L-25, L-27, T-19: nothing hangs, nothing is counted twice, and the others go on, wherever the child dies.
#[test]
fn a_child_may_die_after_any_of_its_writes() {
    let mut points = 0;
    for kind in [Kind::Concurrent, Kind::Exclusive, Kind::Single, Kind::Sub] {
        for stop in [false, true] {
            let mut left = 0;
            while story(kind, left, stop) {
                left += 1;
            }
            assert!(left > 10, "{kind:?}: the child wrote only {left} words");
            points += left;
        }
    }
    println!("{points} crash points");
}
