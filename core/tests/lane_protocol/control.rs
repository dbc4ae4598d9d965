//! The control plane.

use std::time::Duration;

use laneway_core::lane::{ControlOutcome, Event, Frames, LaneError, Poison};
use laneway_core::mailbox::{Frame, Words};
use laneway_core::serve::{Failure, Served};
use laneway_core::wire::FrameState;
use laneway_core::wire::control::{ControlRequest, Staged};
use laneway_core::wire::frame;

use crate::support::*;

const MALLOC: ControlRequest = ControlRequest::Malloc { bytes: 64 };
const UNREGISTER: ControlRequest = ControlRequest::Unregister { digest: KNOWN };

fn register() -> ControlRequest {
    ControlRequest::Register { staged: Staged::Region(0), bytes: 1, digest: UNKNOWN }
}

fn done(key: u32, result: u64) -> Event<u32, u32> {
    Event::Control { key, outcome: ControlOutcome::Done(result) }
}

/// L-20, L-23
#[test]
fn a_control_is_answered_and_a_failed_one_leaves_the_endpoint_usable() {
    let mut bench = Bench::new(Frames::One, Script { blocking: true, ..Script::default() });
    bench.device.0.borrow_mut().controls = [Ok(0xbeef), Err(Failure::MESSAGE), Ok(1)].into();
    bench.device.0.borrow_mut().text = "out of memory".into();
    bench.control(7, &MALLOC).unwrap();
    assert!(matches!(bench.control(8, &MALLOC), Err(LaneError::ControlOutstanding { .. })), "L-20");
    assert_eq!(bench.poll(), []);
    bench.settle();
    assert_eq!(bench.poll(), [done(7, 0xbeef)]);
    bench.control(8, &MALLOC).unwrap();
    bench.settle();
    assert_eq!(bench.poll(), [Event::Control { key: 8, outcome: ControlOutcome::Failed { code: 1 } }]);
    assert_eq!(bench.text.as_str(), "out of memory");
    assert_eq!(Frame::BASE.state(&bench.words), FrameState::Idle.raw());
    bench.control(9, &MALLOC).unwrap();
    bench.settle();
    assert_eq!(bench.poll(), [done(9, 1)]);
}

/// Spec of the wire §11: an unknown sub-command is answered by name, it neither hangs nor kills.
#[test]
fn unknown_and_unsupported_commands_are_answered() {
    let mut bench = two();
    for (command, says) in [(99, "unknown control sub-command 99"), (7, "AllocDomain is unsupported")] {
        bench.control(1, &MALLOC).unwrap();
        bench.words.write(Frame::BASE.at(frame::SUBCOMMAND), command);
        assert_eq!(bench.settle(), Served::Idle);
        assert_eq!(bench.poll(), [Event::Control { key: 1, outcome: ControlOutcome::Failed { code: 1 } }]);
        assert!(bench.text.as_str().contains(says), "{}", bench.text);
    }
    assert!(bench.device.take_log().is_empty());
}

/// L-21: ordinary controls run while a task runs in a two-frame child.
#[test]
fn an_ordinary_control_is_served_beside_a_running_task() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.control(2, &MALLOC).unwrap();
    assert_eq!(bench.settle(), Served::Running);
    assert!(bench.poll().contains(&done(2, 0)));
}

/// L-21: in a one-frame child they wait for it.
#[test]
fn a_control_waits_for_the_task_of_a_one_frame_child() {
    let mut bench = Bench::new(Frames::One, Script::default());
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.control(2, &MALLOC).unwrap();
    for _ in 0..5 {
        assert_eq!(bench.step(), Served::Running);
        assert!(!bench.poll().contains(&done(2, 0)));
    }
    bench.device.0.borrow_mut().finish = true;
    bench.settle();
    let events = bench.poll();
    assert!(events.contains(&success(1)) && events.contains(&done(2, 0)), "{events:?}");
}

/// L-34: neither tasks nor controls starve the other.
#[test]
fn tasks_and_controls_take_turns() {
    let mut bench = Bench::new(Frames::One, Script { blocking: true, ..Script::default() });
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.control(1, &MALLOC).unwrap();
    assert_eq!(bench.step(), Served::Worked);
    bench.poll();
    bench.submit(2, 1, ZERO, false).unwrap();
    for _ in 0..2 {
        bench.step();
    }
    let order = bench.device.take_log();
    let at = |what: &str| order.iter().position(|line| line == what).unwrap();
    assert!(at("launch 1") < at("control Malloc") && at("control Malloc") < at("launch 2"), "{order:?}");
}

/// L-21: asked for beside an unactivated successor, a registry control is stored once that one was promoted; until then the
/// executing run goes on, and no further successor is staged.
#[test]
fn a_registry_control_never_makes_a_staged_frame_wait() {
    let mut bench = two();
    bench.fill();
    bench.poll();
    bench.control(9, &register()).unwrap();
    assert_eq!(Frame::BASE.state(&bench.words), FrameState::Idle.raw(), "not stored yet");
    assert!(bench.lane.is_held_back(true) && !bench.lane.is_held_back(false));
    bench.device.0.borrow_mut().finish = true;
    bench.settle();
    bench.poll();
    bench.submit(3, 1, ZERO, false).unwrap();
    bench.settle();
    bench.device.0.borrow_mut().finish = true;
    bench.settle();
    assert!(bench.poll().contains(&success(3)), "the executing run went on");

    bench.activate(2).unwrap();
    bench.poll();
    assert_eq!(Frame::BASE.state(&bench.words), FrameState::ControlRequest.raw());
    assert!(bench.lane.is_held_back(false), "from now on nothing is published");
    assert_eq!(bench.settle(), Served::Running);
    assert!(!bench.device.take_log().contains(&"control Register".to_string()), "not beside an active frame");
    bench.device.0.borrow_mut().finish = true;
    assert_eq!(bench.settle(), Served::Idle);
    let events = bench.poll();
    assert!(events.contains(&success(2)) && events.contains(&done(9, 0)), "{events:?}");
    assert!(!bench.lane.is_held_back(false) && !bench.lane.is_held_back(true));
}

/// L-21, L-38: a withdrawn successor lets it go as well.
#[test]
fn a_registry_control_follows_a_withdrawn_successor() {
    let mut bench = two();
    bench.submit(1, 2, ONE, true).unwrap();
    bench.settle();
    bench.poll();
    bench.control(9, &UNREGISTER).unwrap();
    bench.lane.withdraw(&bench.words, 1, bench.now).unwrap();
    bench.settle();
    bench.poll();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.poll(), [done(9, 0)]);
}

/// L-21: UNREGISTER waits until no occupied frame carries its digest, also one that was published and not taken in.
#[test]
fn unregister_waits_for_a_published_frame_that_carries_its_digest() {
    let mut bench = Bench::new(Frames::One, Script { blocking: true, ..Script::default() });
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.poll();
    bench.control(2, &UNREGISTER).unwrap();
    // Another parent may publish beside it; this one would hold the task back.
    bench.write(ZERO, frame::TRAILER + 32, 2);
    bench.set_state(ZERO, FrameState::TaskReady);
    bench.device.take_log();
    bench.settle();
    assert_eq!(
        bench.device.take_log(),
        ["prepare 2", "launch 2", "finalize launched", "control Unregister"].map(String::from)
    );
}

/// L-22: an expired control poisons, because its outcome is unknown; later ones fail at once with that reason.
#[test]
fn a_control_without_an_answer_poisons_when_its_time_is_up() {
    let mut bench = two();
    let deadline = bench.now.saturating_add(Duration::from_millis(5));
    bench.lane.control(&bench.words, 1, &MALLOC, Some(deadline), bench.now).unwrap();
    assert_eq!(bench.lane.deadline(), Some(deadline));
    bench.later(Duration::from_millis(4));
    assert_eq!(bench.poll(), []);
    bench.later(Duration::from_millis(1));
    let events = bench.poll();
    let [Event::Poisoned { reason }, Event::Control { key: 1, outcome: ControlOutcome::Poisoned(same) }] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(reason, same);
    assert!(matches!(reason, Poison::ControlTimeout { waited, .. } if waited == Duration::from_millis(5)));
    assert!(matches!(bench.control(2, &MALLOC), Err(LaneError::Poisoned(again)) if again == reason));
}

/// L-22: the time includes the deferral.
#[test]
fn the_time_of_a_deferred_control_runs_from_its_request() {
    let mut bench = two();
    bench.submit(1, 2, ONE, true).unwrap();
    bench.settle();
    bench.poll();
    let deadline = bench.now.saturating_add(Duration::from_millis(5));
    bench.lane.control(&bench.words, 1, &register(), Some(deadline), bench.now).unwrap();
    bench.later(Duration::from_millis(5));
    let events = bench.poll();
    assert!(matches!(events[0], Event::Poisoned { reason: Poison::ControlTimeout { .. } }), "{events:?}");
}

/// An answer that was there when the time ran out is taken.
#[test]
fn an_answer_is_better_than_a_timeout() {
    let mut bench = two();
    let deadline = bench.now.saturating_add(Duration::from_millis(5));
    bench.lane.control(&bench.words, 1, &MALLOC, Some(deadline), bench.now).unwrap();
    bench.settle();
    bench.later(Duration::from_millis(50));
    assert_eq!(bench.poll(), [done(1, 0)]);
}

/// L-26: a base frame in a state that has no place there poisons, whether a control is outstanding or about to be.
#[test]
fn an_illegal_base_state_poisons() {
    let mut bench = two();
    bench.control(1, &MALLOC).unwrap();
    Frame::BASE.publish_state(&bench.words, FrameState::TaskDone);
    assert!(matches!(bench.poll()[0], Event::Poisoned { reason: Poison::State { .. } }));
    let mut bench = two();
    Frame::BASE.publish_state(&bench.words, FrameState::ControlDone);
    bench.control(1, &MALLOC).unwrap();
    assert!(matches!(bench.poll()[0], Event::Poisoned { reason: Poison::State { .. } }));
}
