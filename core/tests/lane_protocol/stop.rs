//! Stop, in every state.

use laneway_core::lane::{ControlOutcome, Event, ExitCause, Frames, LaneError, Poison};
use laneway_core::mailbox::{Frame, Words};
use laneway_core::serve::Served;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{FrameState, frame};

use crate::support::*;

const MALLOC: ControlRequest = ControlRequest::Malloc { bytes: 64 };
const LEFT: ExitCause = ExitCause::Exited { pid: 4711, status: 0 };

/// Brings a frame into a state.
type Scene = fn(&mut Bench);

/// Breaks the protocol.
type Scribble = fn(&Bench);

impl Bench {
    fn stop(&mut self) {
        self.lane.stop();
        self.lane.request_stop(&self.words);
    }
}

/// L-31: a launched run is finalised, a prepared one abandoned, both frames fail with a message, the device is closed.
#[test]
fn a_two_frame_child_stops_with_both_frames_busy() {
    let mut bench = two();
    bench.fill();
    bench.poll();
    bench.stop();
    assert!(matches!(bench.submit(3, 1, ZERO, false), Err(LaneError::Stopping)), "L-29");
    assert_eq!(bench.step(), Served::Exit(0));
    assert_eq!(bench.state(ZERO), FrameState::TaskFailed.raw());
    assert_eq!(bench.state(ONE), FrameState::TaskFailed.raw());
    assert_eq!(bench.device.take_log()[3..], ["finalize launched", "finalize prepared", "shutdown"]);
    assert_eq!(bench.poll(), [failed(1), failed(2)]);
    assert!(bench.text.as_str().starts_with("worker closed"), "{}", bench.text);
    bench.lane.child_exited(LEFT, bench.now);
    assert_eq!(bench.poll(), []);
    assert!(bench.lane.poison().is_none(), "an orderly end is no poison");
}

/// L-31, in every state of a frame: nothing is left without a terminal state.
#[test]
fn a_frame_in_any_state_is_terminal_after_a_stop() {
    let scenes: [(&str, Scene); 5] = [
        ("published", |bench| bench.submit(1, 1, ZERO, false).unwrap()),
        ("published for staging", |bench| bench.submit(1, 1, ZERO, true).unwrap()),
        ("staged", |bench| {
            bench.submit(1, 1, ZERO, true).unwrap();
            bench.settle();
        }),
        ("activated", |bench| {
            bench.submit(1, 1, ZERO, true).unwrap();
            bench.settle();
            bench.poll();
            bench.activate(1).unwrap();
        }),
        ("launched", |bench| {
            bench.submit(1, 1, ZERO, false).unwrap();
            bench.settle();
        }),
    ];
    for (name, prepare) in scenes {
        let mut bench = two();
        prepare(&mut bench);
        bench.stop();
        assert_eq!(bench.step(), Served::Exit(0), "{name}");
        assert!(bench.poll().contains(&failed(1)), "{name}");
        assert!(bench.lane.is_quiet(), "{name}");
        assert!(bench.device.0.borrow().shut, "{name}");
    }
}

/// L-33: SHUTDOWN waits for the running task of a one-frame child, which ends normally.
#[test]
fn the_running_task_of_a_one_frame_child_ends_normally() {
    let mut bench = Bench::new(Frames::One, Script::default());
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.stop();
    for _ in 0..3 {
        bench.step();
        bench.lane.request_stop(&bench.words);
    }
    assert_eq!(bench.step(), Served::Running);
    bench.device.0.borrow_mut().finish = true;
    assert_eq!(bench.settle(), Served::Exit(0));
    assert!(bench.poll().contains(&success(1)));
}

/// L-33: what was published but not begun is failed with a message.
#[test]
fn a_task_that_was_not_begun_is_failed_with_a_message() {
    let mut bench = Bench::new(Frames::One, Script::default());
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.stop();
    assert_eq!(bench.settle(), Served::Exit(0));
    assert_eq!(bench.state(ZERO), FrameState::TaskDone.raw());
    assert_eq!(bench.poll(), [failed(1)]);
    assert!(bench.text.as_str().contains("published but not begun"), "{}", bench.text);
    assert_eq!(bench.device.take_log(), ["shutdown"]);
}

/// L-30, T-18: SHUTDOWN stored over by CONTROL_DONE is not lost; L-37: the control fails without a look at the word.
#[test]
fn a_shutdown_that_control_done_overwrote_is_seen() {
    let mut bench = two();
    bench.control(5, &MALLOC).unwrap();
    bench.stop();
    assert_eq!(bench.poll(), [Event::Control { key: 5, outcome: ControlOutcome::Stopped }]);
    // The child was inside the control when SHUTDOWN came, and answers it now.
    Frame::BASE.publish_state(&bench.words, FrameState::ControlDone);
    assert_eq!(bench.step(), Served::Exit(0), "the sticky word alone is enough");
    assert_eq!(bench.poll(), []);
}

/// L-30: either signal alone is enough, and the request can be repeated.
#[test]
fn the_state_alone_stops_a_child_too() {
    let mut bench = two();
    Frame::BASE.publish_state(&bench.words, FrameState::Shutdown);
    assert_eq!(bench.step(), Served::Exit(0));
    let mut bench = two();
    bench.stop();
    bench.lane.take_published();
    bench.lane.request_stop(&bench.words);
    assert!(!bench.lane.take_published(), "repeating it writes nothing");
    Frame::BASE.publish_state(&bench.words, FrameState::ControlDone);
    bench.lane.request_stop(&bench.words);
    assert_eq!(Frame::BASE.state(&bench.words), FrameState::Shutdown.raw());
    assert_eq!(bench.words.load(Frame::BASE.at(frame::SHUTDOWN)), 1);
}

/// L-27, E-41: a child that dies while it is being stopped still owes its frames.
#[test]
fn a_death_during_a_stop_poisons_only_if_frames_are_owed() {
    let mut bench = two();
    bench.stop();
    bench.lane.child_exited(LEFT, bench.now);
    assert_eq!(bench.poll(), []);

    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.stop();
    bench.lane.child_exited(LEFT, bench.now);
    assert_eq!(bench.poll(), [Event::Poisoned { reason: Poison::Dead { cause: LEFT } }]);
    bench.lane.subtree_gone();
    assert_eq!(bench.poll().len(), 1);
}

/// L-32: a child that learned of its parent's death leaves in order.
#[test]
fn an_orphan_gives_everything_back_and_leaves() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.child.orphaned();
    assert_eq!(bench.step(), Served::Exit(0));
    assert_eq!(bench.device.take_log()[2..], ["finalize launched", "shutdown"]);
}

/// L-30: a parent that stores garbage makes the child leave, with every frame failed.
#[test]
fn a_parent_that_breaks_the_protocol_is_left() {
    let garbage: [(&str, Scribble); 4] = [
        ("no state", |bench| bench.words.store(Frame::task(ONE).at(frame::STATE), 77)),
        ("activation of nothing", |bench| bench.set_state(ONE, FrameState::Activate)),
        ("a task state on the base frame", |bench| Frame::BASE.publish_state(&bench.words, FrameState::TaskReady)),
        ("idle over a launched task", |bench| bench.set_state(ZERO, FrameState::Idle)),
    ];
    for (name, scribble) in garbage {
        let mut bench = two();
        bench.submit(1, 1, ZERO, false).unwrap();
        bench.settle();
        scribble(&bench);
        assert_eq!(bench.step(), Served::Exit(laneway_core::lane::EXIT_PROTOCOL), "{name}");
        assert_eq!(bench.state(ZERO), FrameState::TaskFailed.raw(), "{name}");
        assert!(bench.device.0.borrow().shut, "{name}");
    }
}
