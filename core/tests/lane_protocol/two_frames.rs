//! Two task frames: staging, activation, native preparation, withdrawal.

use laneway_core::ids::PipelineSlot;
use laneway_core::lane::{Event, Frames, HandOver, LaneError, Outcome, Poison};
use laneway_core::mailbox::{Frame, Words};
use laneway_core::serve::{Failure, PrepareError, Served};
use laneway_core::wire::{CallConfig, FrameState, Preparation, frame};

use crate::support::*;

fn staged(key: u32, preparation: Preparation) -> Event<u32, u32> {
    Event::Staged { key, preparation }
}

fn diagnostic() -> CallConfig {
    let mut config = CallConfig { enable_pmu: 2, ..CallConfig::ZERO };
    config.output_prefix[..4].copy_from_slice(b"/tmp");
    config
}

impl Bench {
    /// Lets the launched run end and takes in what follows.
    fn finish(&mut self) -> Served {
        self.device.0.borrow_mut().finish = true;
        self.settle()
    }

    fn submit_diagnostic(&mut self, key: u32, run: u64, slot: PipelineSlot, prepare_only: bool) {
        self.submit_with(key, run, slot, prepare_only, &KNOWN, &diagnostic(), &NO_ARGS).unwrap();
    }
}

/// Spec §3: the whole way of a prepared successor; L-13 disposition 2, L-9, L-14.
#[test]
fn a_successor_is_prepared_beside_its_predecessor_and_launched_after_it() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    assert_eq!(bench.settle(), Served::Running);
    assert_eq!(bench.state(ZERO), FrameState::TaskLaunched.raw());
    assert_eq!(bench.poll(), [Event::Accepted { key: 1 }]);

    bench.submit(2, 2, ONE, true).unwrap();
    assert_eq!(bench.state(ONE), FrameState::PrepareReady.raw());
    bench.settle();
    assert_eq!(bench.poll(), [staged(2, Preparation::Prepared)]);
    assert_eq!(bench.poll(), [], "L-7: reported once");
    assert!(matches!(bench.activate(2), Err(LaneError::Occupied { lane: "active", .. })), "L-9");

    bench.finish();
    assert_eq!(bench.poll(), [success(1)]);
    bench.activate(2).unwrap();
    assert_eq!(bench.state(ONE), FrameState::Activate.raw());
    assert_eq!(bench.settle(), Served::Running);
    bench.finish();
    assert_eq!(bench.poll(), [Event::Accepted { key: 2 }, success(2)]);
    let expected =
        ["prepare 1", "launch 1", "prepare 2", "finalize launched", "launch 2", "finalize launched"].map(String::from);
    assert_eq!(bench.device.take_log(), expected);
}

/// L-6, L-12: tensormap_and_ringbuffer never prepares ahead; the same protocol, validated only.
#[test]
fn a_runtime_that_cannot_prepare_concurrently_stages_validated_only() {
    let mut bench = Bench::new(Frames::Two, Script::default());
    bench.fill();
    assert_eq!(bench.poll(), [Event::Accepted { key: 1 }, staged(2, Preparation::Validated)]);
    bench.finish();
    bench.poll();
    bench.activate(2).unwrap();
    bench.settle();
    assert_eq!(bench.device.take_log(), ["prepare 1", "launch 1", "finalize launched", "prepare 2", "launch 2"]);
}

/// L-12: neither the successor's config nor its predecessor's may be diagnostic.
#[test]
fn nothing_is_prepared_beside_a_diagnostic_run_or_for_one() {
    for (first, second) in [(true, false), (false, true), (true, true)] {
        let mut bench = two();
        match first {
            true => bench.submit_diagnostic(1, 1, ZERO, false),
            false => bench.submit(1, 1, ZERO, false).unwrap(),
        }
        bench.settle();
        match second {
            true => bench.submit_diagnostic(2, 2, ONE, true),
            false => bench.submit(2, 2, ONE, true).unwrap(),
        }
        bench.settle();
        assert!(bench.poll().contains(&staged(2, Preparation::Validated)), "{first} {second}");
        assert_eq!(bench.device.take_log(), ["prepare 1", "launch 1"]);
        bench.finish();
        bench.poll();
        bench.activate(2).unwrap();
        assert_eq!(bench.settle(), Served::Running);
    }
}

/// L-12: a prepared successor is given up when a diagnostic task of the executing run comes before it.
#[test]
fn a_prepared_successor_is_abandoned_for_a_diagnostic_task_before_it() {
    let mut bench = two();
    bench.fill();
    bench.finish();
    bench.poll();
    bench.device.take_log();
    bench.submit_diagnostic(3, 1, ZERO, false);
    assert_eq!(bench.settle(), Served::Running);
    assert_eq!(bench.device.take_log(), ["finalize prepared", "prepare 3", "launch 3"]);
    bench.finish();
    bench.poll();
    bench.activate(2).unwrap();
    bench.settle();
    assert_eq!(bench.device.take_log(), ["finalize launched", "prepare 2", "launch 2"]);
}

/// L-13: without an active claim the child stages at once, and prepares when a predecessor claims.
#[test]
fn a_successor_that_came_first_is_prepared_once_a_predecessor_runs() {
    let mut bench = two();
    bench.submit(1, 2, ONE, true).unwrap();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.poll(), [staged(1, Preparation::Validated)]);
    bench.submit(2, 1, ZERO, false).unwrap();
    assert_eq!(bench.settle(), Served::Running);
    assert_eq!(bench.device.take_log(), ["prepare 2", "launch 2", "prepare 1"]);
    assert_eq!(bench.state(ONE), FrameState::FrameStaged.raw(), "with no further state change");
}

/// L-8: activation may come before the child staged the frame; the permission is remembered.
#[test]
fn activation_before_staging_is_published_when_the_frame_is_staged() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, true).unwrap();
    bench.activate(1).unwrap();
    assert_eq!(bench.state(ZERO), FrameState::PrepareReady.raw(), "nothing may be written over PREPARE_READY");
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.state(ZERO), FrameState::FrameStaged.raw());
    assert_eq!(bench.poll(), [staged(1, Preparation::Validated)]);
    assert_eq!(bench.state(ZERO), FrameState::Activate.raw());
    assert!(bench.lane.take_published(), "and the child must be woken for it");
    assert_eq!(bench.settle(), Served::Running);
}

/// L-9: a second activation, or one of another run, is refused.
#[test]
fn only_the_staged_run_is_activated_and_only_once() {
    let mut bench = two();
    assert!(matches!(bench.activate(1), Err(LaneError::NothingStaged)));
    bench.submit(1, 1, ZERO, true).unwrap();
    assert!(matches!(bench.activate(2), Err(LaneError::NothingStaged)));
    bench.activate(1).unwrap();
    assert!(matches!(bench.activate(1), Err(LaneError::NothingStaged)));
}

/// L-36: the second frame never overlaps two tasks of one run.
#[test]
fn a_second_task_of_the_executing_run_waits_for_the_active_lane() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, false).unwrap();
    assert!(matches!(bench.submit(2, 1, ZERO, false), Err(LaneError::Occupied { lane: "active", .. })));
    assert!(matches!(bench.submit(2, 1, ZERO, true), Err(LaneError::FrameBusy { .. })));
    bench.submit(3, 2, ONE, true).unwrap();
    assert!(matches!(bench.submit(4, 3, ZERO, true), Err(LaneError::Occupied { lane: "staged", .. })));
}

/// L-10: the smaller dispatch id runs first, wherever it lies.
#[test]
fn the_child_chooses_by_dispatch_id_not_by_frame() {
    let mut bench = two();
    // Published by hand: this parent never has two tasks ready at once, another one may.
    bench.submit(1, 1, ONE, false).unwrap();
    let first = Frame::task(ONE).stamp(&bench.words);
    for (at, value) in [(0, 2), (8, first.trailer.run), (24, first.trailer.generation), (32, 2)] {
        bench.write(ZERO, frame::TRAILER + at, value);
    }
    bench.write(ZERO, frame::LEASE + 8, first.lease.generation);
    bench.set_state(ZERO, FrameState::TaskReady);
    assert_eq!(bench.settle(), Served::Running);
    bench.finish();
    bench.finish();
    let launches = bench.device.take_log().into_iter().filter(|line| line.starts_with("launch"));
    assert_eq!(launches.collect::<Vec<_>>(), ["launch 1", "launch 2"]);
}

/// L-16, T-28: an incompatible preparation is deferred, not failed, and asked again after its predecessor.
#[test]
fn an_incompatible_successor_is_prepared_after_its_predecessor() {
    let mut bench = two();
    bench.device.0.borrow_mut().prepares = [Ok(()), Err(PrepareError::Incompatible)].into();
    bench.fill();
    assert!(bench.poll().contains(&staged(2, Preparation::Validated)));
    bench.finish();
    bench.poll();
    bench.activate(2).unwrap();
    assert_eq!(bench.settle(), Served::Running);
    assert_eq!(
        bench.device.take_log(),
        ["prepare 1", "launch 1", "prepare 2 refused", "finalize launched", "prepare 2", "launch 2"]
    );
}

/// L-15, T-31: a launch that fails finalises its token once, and what the device never got is no success.
#[test]
fn a_failed_launch_finalises_the_prepared_run() {
    let mut bench = two();
    bench.device.0.borrow_mut().launches = [Err(Failure::MESSAGE)].into();
    bench.submit(1, 1, ZERO, false).unwrap();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.state(ZERO), FrameState::TaskFailed.raw());
    assert_eq!(bench.poll(), [failed(1)]);
    assert_eq!(bench.device.take_log(), ["prepare 1", "launch 1 failed", "finalize prepared"]);
    assert_eq!(Frame::task(ZERO).accepted(&bench.words), 0, "L-17");
}

/// A successor may fail while it is staged.
#[test]
fn a_successor_whose_preparation_fails_ends_before_it_was_activated() {
    let mut bench = two();
    bench.device.0.borrow_mut().prepares = [Ok(()), Err(PrepareError::Failed(Failure::MESSAGE))].into();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.submit(2, 2, ONE, true).unwrap();
    assert_eq!(bench.settle(), Served::Running);
    assert_eq!(bench.poll(), [Event::Accepted { key: 1 }, failed(2)]);
    assert_eq!(bench.text.as_str(), "prepare said no");
    assert!(matches!(bench.activate(2), Err(LaneError::NothingStaged)));
}

/// C-9: a loss of the device is reported, then the child leaves.
#[test]
fn a_runtime_error_after_launch_is_reported_and_the_child_leaves() {
    let mut bench = two();
    bench.fill();
    bench.device.0.borrow_mut().poll_error = Some(Failure::FATAL);
    assert_eq!(bench.settle(), Served::Exit(laneway_core::lane::EXIT_DEVICE));
    let events = bench.poll();
    assert!(events.contains(&failed(1)) && events.contains(&failed(2)), "{events:?}");
    assert!(bench.text.as_str().contains("poll said no"), "{}", bench.text);
    assert_eq!(bench.device.take_log()[3..], ["finalize launched", "finalize prepared", "shutdown"]);
}

/// L-11: ACTIVATE with a changed identity abandons the prepared run and fails the frame; the child leaves.
#[test]
fn a_stale_activation_abandons_the_prepared_run_once() {
    let mut bench = two();
    bench.fill();
    bench.poll();
    bench.write(ONE, frame::TRAILER + 24, 77);
    bench.set_state(ONE, FrameState::Activate);
    assert_eq!(bench.settle(), Served::Exit(laneway_core::lane::EXIT_PROTOCOL));
    assert_eq!(bench.state(ONE), FrameState::TaskFailed.raw());
    assert_eq!(bench.state(ZERO), FrameState::TaskFailed.raw());
    let log = bench.device.take_log();
    assert_eq!(log.iter().filter(|line| line.starts_with("finalize")).count(), 2, "{log:?}");
}

/// L-38: withdrawal waits for FRAME_STAGED, comes back as skipped, and the child goes on serving.
#[test]
fn a_withdrawn_successor_comes_back_skipped_without_waiting_for_its_predecessor() {
    for staged_before in [false, true] {
        let mut bench = two();
        bench.submit(1, 1, ZERO, false).unwrap();
        bench.settle();
        bench.submit(2, 2, ONE, true).unwrap();
        if staged_before {
            bench.settle();
            bench.poll();
        }
        bench.lane.withdraw(&bench.words, 2, bench.now).unwrap();
        assert_eq!(bench.words.read(Bench::dispatch_id_at(ONE)), if staged_before { 0 } else { 2 });
        bench.settle();
        bench.poll();
        assert_eq!(bench.settle(), Served::Running, "the predecessor still runs");
        let events = bench.poll();
        assert!(events.is_empty() || events == [completed(2, Outcome::Skipped)], "{events:?}");
        assert!(bench.lane.staged().is_none());
        assert_eq!(bench.device.take_log(), ["prepare 1", "launch 1", "prepare 2", "finalize prepared"]);
        bench.finish();
        assert_eq!(bench.poll(), [success(1)]);
        bench.submit(3, 3, ONE, true).unwrap();
        bench.activate(3).unwrap();
        bench.settle();
        bench.poll();
        assert_eq!(bench.settle(), Served::Running, "and the frame is used again");
    }
}

/// L-38: only what is staged is withdrawn.
#[test]
fn an_activated_dispatch_cannot_be_withdrawn() {
    let mut bench = two();
    bench.submit(1, 1, ZERO, true).unwrap();
    bench.activate(1).unwrap();
    assert!(matches!(bench.lane.withdraw(&bench.words, 1, bench.now), Err(LaneError::NothingStaged)));
}

/// §3: a child may pass several states between two polls.
#[test]
fn states_that_were_passed_between_two_looks_are_not_missed() {
    let mut bench = Bench::new(Frames::Two, Script { polls: Some(0), ..Script::default() });
    bench.submit(1, 1, ZERO, false).unwrap();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(
        bench.poll(),
        [Event::Accepted { key: 1 }, success(1)],
        "neither FRAME_STAGED nor TASK_LAUNCHED was seen"
    );
    bench.submit(2, 2, ONE, true).unwrap();
    bench.settle();
    bench.poll();
    bench.activate(2).unwrap();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.poll(), [Event::Accepted { key: 2 }, success(2)]);
}

/// L-6
#[test]
fn a_frame_staged_without_a_preparation_poisons() {
    for found in [0, 3, -1] {
        let mut bench = two();
        bench.submit(1, 1, ZERO, false).unwrap();
        bench.words.store(Frame::task(ZERO).at(frame::PREPARATION), found);
        bench.set_state(ZERO, FrameState::FrameStaged);
        let events = bench.poll();
        let expected =
            matches!(events[..], [Event::Poisoned { reason: Poison::Preparation { found: f, .. } }] if f == found);
        assert!(expected, "{events:?}");
    }
}

/// L-1: at each hand-over a changed identity poisons.
#[test]
fn a_changed_identity_poisons_at_staging_activation_acceptance_and_completion() {
    type Scene = fn(&mut Bench);
    let cases: [(HandOver, Scene); 4] = [
        (HandOver::Staging, |bench| {
            bench.settle();
        }),
        (HandOver::Activation, |bench| {
            bench.settle();
            bench.poll();
        }),
        (HandOver::Acceptance, |bench| {
            bench.words.store(Frame::task(ZERO).at(frame::ACCEPTED), 1);
        }),
        (HandOver::Completion, |bench| bench.set_state(ZERO, FrameState::TaskFailed)),
    ];
    for (hand_over, prepare) in cases {
        for field in [frame::TRAILER + 8, frame::TRAILER + 32, frame::LEASE, frame::LEASE + 8] {
            let mut bench = two();
            bench.submit(1, 1, ZERO, true).unwrap();
            prepare(&mut bench);
            bench.write(ZERO, field, 1234);
            let refused = bench.activate(1);
            let events = bench.poll();
            let [Event::Poisoned { reason: Poison::Identity { hand_over: at, .. } }] = events[..] else {
                panic!("{hand_over:?}, field {field}: {events:?}, {refused:?}");
            };
            assert_eq!(at, hand_over, "field {field}");
        }
    }
}
