//! Poison: what causes it, what it withholds, and when it gives back.

use std::time::Duration;

use laneway_core::lane::{ControlOutcome, EndpointSpec, Event, ExitCause, Frames, LaneError, Outcome, Phase, Poison};
use laneway_core::mailbox::{Frame, Words};
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{FrameState, frame};

use crate::support::*;

const KILLED: ExitCause = ExitCause::Signalled { pid: 4711, signal: 9, unexpected: true, memory_limit: None };
const MALLOC: ControlRequest = ControlRequest::Malloc { bytes: 64 };

/// Which keys came back as failures of the endpoint.
fn given_back(events: &Events) -> Vec<u32> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Completed { key, outcome: Outcome::EndpointFailure { .. } } => Some(*key),
            _ => None,
        })
        .collect()
}

/// L-25, L-27, T-19: a death with both frames busy and a control outstanding.
#[test]
fn a_death_fails_the_control_at_once_and_withholds_frames_until_the_subtree_is_gone() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.submit(2, 2, ONE, true).unwrap();
    bench.control(5, &MALLOC).unwrap();
    bench.poll();
    bench.lane.child_exited(KILLED, bench.now);
    let reason = Poison::Dead { cause: KILLED };
    assert_eq!(
        bench.poll(),
        [Event::Poisoned { reason }, Event::Control { key: 5, outcome: ControlOutcome::Poisoned(reason) }]
    );
    assert_eq!(bench.poll(), [], "a grandchild may still write");
    assert!(!bench.lane.is_quiet());
    bench.lane.subtree_gone();
    let events = bench.poll();
    assert_eq!(given_back(&events), [1, 2]);
    assert_eq!(bench.poll(), [], "exactly once");
    assert!(bench.lane.is_quiet());
    assert!(matches!(bench.submit(3, 1, ZERO, false), Err(LaneError::Poisoned(why)) if why == reason), "T-26");
    assert!(matches!(bench.control(6, &MALLOC), Err(LaneError::Poisoned(why)) if why == reason), "T-19");
}

/// L-27: without a waitable child, once each owned frame is terminal.
#[test]
fn without_a_waitable_child_a_frame_comes_back_when_it_is_terminal() {
    let mut bench = Bench::with_spec(
        EndpointSpec { waitable: false, ..spec(Frames::Two) },
        Script { concurrent: true, ..Script::default() },
    );
    bench.fill();
    bench.poll();
    bench.lane.set_poison(Poison::Driver, bench.now);
    assert_eq!(bench.poll(), [Event::Poisoned { reason: Poison::Driver }]);
    assert!(bench.lane.wants_shutdown());
    bench.lane.request_stop(&bench.words);
    assert_eq!(bench.poll(), []);
    bench.settle();
    assert_eq!(given_back(&bench.poll()), [1, 2]);
}

/// L-26: the first reason is kept.
#[test]
fn the_first_reason_is_kept() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.set_state(ZERO, FrameState::Idle);
    let events = bench.poll();
    let [Event::Poisoned { reason: first @ Poison::State { .. } }] = events[..] else { panic!("{events:?}") };
    bench.lane.child_exited(KILLED, bench.now);
    assert_eq!(bench.lane.poison(), Some(first));
    assert_eq!(bench.lane.exit(), Some(KILLED), "and how it ended is known all the same");
    bench.lane.subtree_gone();
    assert_eq!(given_back(&bench.poll()), [1]);
}

/// L-3, L-26: a frame that is neither IDLE nor the terminal state that was read cannot be used.
#[test]
fn publishing_over_a_foreign_state_is_refused_and_poisons() {
    for state in [FrameState::TaskReady, FrameState::FrameStaged, FrameState::TaskFailed, FrameState::ControlDone] {
        let mut bench = Bench::new(Frames::One, Script { blocking: true, ..Script::default() });
        bench.submit(1, 1, ZERO, false).unwrap();
        bench.settle();
        bench.poll();
        bench.set_state(ZERO, state);
        let refused = bench.submit(2, 1, ZERO, false);
        assert!(matches!(refused, Err(LaneError::Poisoned(Poison::NotReusable { .. }))), "{refused:?}");
        assert!(matches!(bench.poll()[..], [Event::Poisoned { .. }]), "L-2: nothing is in flight for it");
        assert_eq!(bench.state(ZERO), state.raw(), "and nothing was written");
    }
}

/// L-3: a terminal frame that the parent read is free, IDLE is free.
#[test]
fn idle_and_the_terminal_state_that_was_read_are_free() {
    let mut bench = Bench::new(Frames::One, Script { blocking: true, ..Script::default() });
    for (key, state) in [(1, FrameState::Idle), (2, FrameState::TaskDone), (3, FrameState::Idle)] {
        bench.set_state(ZERO, if key == 1 { FrameState::Idle } else { state });
        bench.submit(key, 1, ZERO, false).unwrap();
        bench.settle();
        assert!(bench.poll().contains(&success(key)));
    }
}

/// Every state word that has no place in a phase poisons, whatever the phase; none is ignored, none panics.
#[test]
fn every_illegal_state_poisons_in_every_phase() {
    let mut checked = 0;
    for frames in [Frames::One, Frames::Two] {
        for raw in -2..16 {
            let mut bench = Bench::new(frames, Script::default());
            bench.submit(1, 1, ZERO, false).unwrap();
            bench.words.store(Frame::task(ZERO).at(frame::STATE), raw);
            let legal = FrameState::from_raw(raw).and_then(|state| Phase::Published.sees(frames, state));
            let poisoned = bench.poll().iter().any(|event| matches!(event, Event::Poisoned { .. }));
            // FRAME_STAGED without a preparation is the one legal state that still poisons here (L-6).
            assert_eq!(poisoned, legal.is_none() || raw == FrameState::FrameStaged.raw(), "{frames:?} {raw}");
            checked += 1;
        }
    }
    assert_eq!(checked, 36);
}

/// L-17: the word is 0 or 1.
#[test]
fn a_foreign_acceptance_word_poisons() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.words.store(Frame::task(ZERO).at(frame::ACCEPTED), 2);
    assert!(matches!(bench.poll()[..], [Event::Poisoned { reason: Poison::Acceptance { found: 2, .. } }]));
}

/// L-35: the owner is asked once, after the grace, and only while the child has not ended.
#[test]
fn a_poisoned_child_that_does_not_leave_is_to_be_killed_after_its_grace() {
    let mut bench = two();
    bench.lane.set_poison(Poison::Driver, bench.now);
    bench.poll();
    assert!(!bench.lane.is_quiet(), "somebody must look at the clock");
    assert_eq!(bench.lane.deadline(), Some(bench.now.saturating_add(EndpointSpec::POISON_GRACE)));
    bench.later(Duration::from_millis(1_999));
    assert!(!bench.lane.take_kill(bench.now));
    bench.later(Duration::from_millis(1));
    assert!(bench.lane.take_kill(bench.now));
    assert!(!bench.lane.take_kill(bench.now), "once");
    assert!(bench.lane.deadline().is_none() && bench.lane.is_quiet());

    let mut bench = two();
    bench.lane.set_poison(Poison::Driver, bench.now);
    bench.lane.child_exited(KILLED, bench.now);
    bench.later(Duration::from_secs(9));
    assert!(!bench.lane.take_kill(bench.now), "what has ended is not killed");
}

/// L-35: frames of a stuck child never come back.
#[test]
fn a_stuck_child_gives_nothing_back() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.lane.abandon(bench.now);
    assert_eq!(bench.poll(), [Event::Poisoned { reason: Poison::Stuck }]);
    bench.lane.subtree_gone();
    assert_eq!(bench.poll(), []);
}

/// E-43, C-15
#[test]
fn a_task_past_its_deadline_loses_the_child_and_is_named() {
    let mut bench = two();
    let job = laneway_core::lane::Job {
        key: 1,
        run: laneway_core::ids::RunId::FIRST,
        slot: ZERO,
        generation: laneway_core::ids::Generation::FIRST,
        digest: &KNOWN,
        config: &laneway_core::wire::CallConfig::ZERO,
        blob: &NO_ARGS,
        limit: Some(Duration::from_millis(10)),
        prepare_only: true,
    };
    bench.lane.submit(&bench.words, &job, bench.now).unwrap();
    bench.settle();
    bench.later(Duration::from_millis(100));
    bench.poll();
    assert!(bench.lane.poison().is_none(), "a successor that waits for its run is not late");
    bench.activate(1).unwrap();
    bench.settle();
    bench.later(Duration::from_millis(9));
    bench.poll();
    assert!(bench.lane.poison().is_none());
    bench.later(Duration::from_millis(1));
    let events = bench.poll();
    let [Event::Poisoned { reason: reason @ Poison::Overdue { .. } }] = events[..] else { panic!("{events:?}") };
    let text = reason.to_string();
    assert!(text.contains("dispatch 1 of run 1") && text.contains("launched"), "{text}");
}
