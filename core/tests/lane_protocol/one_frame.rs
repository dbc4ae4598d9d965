//! One task frame: publish, validate, run, complete.

use laneway_core::lane::{Event, Frames, LaneError, Outcome, Poison};
use laneway_core::mailbox::{Frame, Words as _};
use laneway_core::serve::{Failure, Served};
use laneway_core::wire::{CallConfig, FrameState, frame};

use crate::support::*;

fn blocking() -> Script {
    Script { blocking: true, silent: true, ..Script::default() }
}

fn bench() -> Bench {
    Bench::new(Frames::One, blocking())
}

/// L-4, L-34
#[test]
fn a_task_goes_out_runs_and_comes_back() {
    let mut bench = bench();
    for key in 1..=3 {
        bench.submit(key, 1, ZERO, false).unwrap();
        assert_eq!(bench.state(ZERO), FrameState::TaskReady.raw());
        assert_eq!(bench.poll(), []);
        assert_eq!(bench.settle(), Served::Idle);
        assert_eq!(bench.state(ZERO), FrameState::TaskDone.raw());
        assert_eq!(bench.poll(), [success(key)]);
    }
    let expected = [1, 2, 3].map(|n| [format!("prepare {n}"), format!("launch {n}"), "finalize launched".into()]);
    assert_eq!(bench.device.take_log(), expected.concat());
}

/// W-2, L-34: the lease's slot travels in the trailer, the frame is always the first.
#[test]
fn a_task_of_either_pipeline_slot_uses_the_first_frame() {
    let mut bench = bench();
    bench.submit(1, 5, ONE, false).unwrap();
    assert_eq!((bench.state(ZERO), bench.state(ONE)), (FrameState::TaskReady.raw(), FrameState::Idle.raw()));
    bench.settle();
    assert_eq!(bench.poll(), [success(1)]);
}

/// W-1: how many task frames there are was said at registration. Neither side looks at the size of the region, nor at a frame
/// that it was not given, whatever stands there.
#[test]
fn the_number_of_frames_is_a_contract_and_is_not_read_off_the_region() {
    for bytes in [frame::REGION_BYTES, frame::REGION_BYTES + 4 * frame::FRAME_BYTES] {
        for frames in [Frames::One, Frames::Two] {
            let mut bench = Bench::with_region(bytes, spec(frames), blocking());
            let others = 1 + frames.count()..bytes / frame::FRAME_BYTES;
            let state_of = |index: usize| index * frame::FRAME_BYTES + frame::STATE;
            for index in others.clone() {
                bench.words.store(state_of(index), FrameState::TaskReady.raw());
            }
            for key in 1..=3 {
                bench.submit(key, 1, ZERO, false).unwrap();
                bench.settle();
                assert!(bench.poll().contains(&success(key)));
            }
            let launches = bench.device.take_log().iter().filter(|line| line.starts_with("launch")).count();
            assert_eq!(launches, 3, "{frames:?} in {bytes} bytes: a frame that nobody has was served");
            for index in others {
                assert_eq!(bench.words.load(state_of(index)), FrameState::TaskReady.raw(), "frame {index} was touched");
            }
        }
    }
}

/// L-3
#[test]
fn a_second_task_is_refused_while_the_first_is_out() {
    let mut bench = bench();
    bench.submit(1, 1, ZERO, false).unwrap();
    assert!(matches!(bench.submit(2, 1, ZERO, false), Err(LaneError::Occupied { inflight: 1, capacity: 1, .. })));
    assert!(matches!(bench.submit(2, 1, ZERO, true), Err(LaneError::NoStaging)));
    bench.settle();
    assert_eq!(bench.poll(), [success(1)]);
}

/// L-28, T-22
#[test]
fn the_text_and_the_code_of_a_failed_task_reach_the_parent() {
    let mut bench = bench();
    bench.device.0.borrow_mut().launches = [Err(Failure { code: 42, leave: false }), Ok(())].into();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    assert_eq!(bench.poll(), [completed(1, Outcome::TaskFailure { code: 42 })]);
    assert_eq!(bench.text.as_str(), "launch said no");
    bench.submit(2, 1, ZERO, false).unwrap();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.poll(), [success(2)], "what an earlier task left in the frame must not show");
}

/// L-5, L-34: a refusal is an error in TASK_DONE, and the child goes on serving.
#[test]
fn what_a_child_refuses_comes_back_as_a_failure_that_names_it() {
    let mut bench = bench();
    let bad_config = CallConfig { aicpu_thread_num: 1, ..CallConfig::ZERO };
    bench.submit_with(1, 1, ZERO, false, &UNKNOWN, &CallConfig::ZERO, &NO_ARGS).unwrap();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.poll(), [failed(1)]);
    assert!(bench.text.as_str().contains(&UNKNOWN.short().to_string()), "{}", bench.text);

    bench.submit_with(2, 1, ZERO, false, &KNOWN, &bad_config, &NO_ARGS).unwrap();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.poll(), [failed(2)]);
    assert!(bench.text.as_str().contains("aicpu_thread_num"), "{}", bench.text);

    bench.submit_with(3, 1, ZERO, false, &KNOWN, &CallConfig::ZERO, &[0xff; 8]).unwrap();
    assert_eq!(bench.settle(), Served::Idle);
    assert_eq!(bench.poll(), [failed(3)]);
    assert!(bench.text.as_str().contains("-1 tensors"), "{}", bench.text);
    assert!(bench.device.take_log().is_empty(), "nothing of it may reach the device");
}

/// L-5: the order of the checks; the first failure is the one reported.
#[test]
fn identity_is_judged_before_the_callable_and_the_callable_before_the_config() {
    let bad_config = CallConfig { aicpu_thread_num: 1, ..CallConfig::ZERO };
    let cases: [(usize, u64, &str); 5] = [
        (frame::TRAILER, 3, "protocol 3"),
        (frame::TRAILER + 8, 0, "run id is 0"),
        (frame::TRAILER + 24, 0, "generation is 0"),
        (frame::TRAILER + 16, 2, "pipeline slot 2"),
        (frame::LEASE + 8, 77, "lease says 77"),
    ];
    for (field, value, says) in cases {
        let mut bench = bench();
        bench.submit_with(1, 1, ZERO, false, &UNKNOWN, &bad_config, &[0xff; 8]).unwrap();
        bench.write(ZERO, field, value);
        assert_eq!(bench.settle(), Served::Idle);
        // To the parent the changed identity is a violation, whatever the child says about it.
        let events = bench.poll();
        assert!(matches!(events[..], [Event::Poisoned { reason: Poison::Identity { .. } }]), "{events:?}");
        let mut text = laneway_core::mailbox::LongText::new();
        laneway_core::mailbox::read_message(&bench.words, Frame::task(ZERO), &mut text);
        assert!(text.as_str().contains(says), "{text} does not say {says}");
    }
    let mut bench = bench();
    bench.submit_with(1, 1, ZERO, false, &UNKNOWN, &bad_config, &[0xff; 8]).unwrap();
    bench.settle();
    assert_eq!(bench.poll(), [failed(1)]);
    assert!(bench.text.as_str().contains("is not registered"), "{}", bench.text);
}

/// T-24: the end of a run comes before the word that says so, and results that could not be copied back are no success.
#[test]
fn a_run_whose_results_cannot_be_copied_back_has_failed() {
    let mut bench = bench();
    bench.device.0.borrow_mut().finalize_error = Some(Failure { code: 9, leave: false });
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    assert_eq!(bench.poll(), [completed(1, Outcome::TaskFailure { code: 9 })]);
    assert_eq!(bench.text.as_str(), "finalize said no");
}

/// T-24: after a failed run the first failure is the one reported, whatever the end of it says.
#[test]
fn the_failure_of_the_run_is_not_hidden_by_that_of_its_end() {
    let mut bench = Bench::new(Frames::One, Script::default());
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    bench.device.0.borrow_mut().poll_error = Some(Failure::MESSAGE);
    bench.device.0.borrow_mut().finalize_error = Some(Failure { code: 9, leave: false });
    bench.settle();
    assert!(bench.poll().contains(&failed(1)));
    assert_eq!(bench.text.as_str(), "poll said no");
}

/// L-17, L-18, T-13: acceptance and completion between two looks of the parent.
#[test]
fn acceptance_is_reported_first_even_when_both_came_between_two_polls() {
    let mut bench = Bench::new(Frames::One, Script { polls: Some(1), ..Script::default() });
    bench.submit(1, 1, ZERO, false).unwrap();
    assert_eq!(bench.step(), Served::Worked);
    assert_eq!(bench.poll(), [], "launched, not accepted yet");
    while bench.step() != Served::Idle {}
    assert_eq!(bench.poll(), [Event::Accepted { key: 1 }, success(1)]);
    assert_eq!(bench.poll(), []);
}

/// L-18: where nothing marks it, the word stays 0 and completion has to do.
#[test]
fn a_child_without_a_native_marker_never_sets_the_acceptance_word() {
    let mut bench = bench();
    bench.submit(1, 1, ZERO, false).unwrap();
    bench.settle();
    assert_eq!(Frame::task(ZERO).accepted(&bench.words), 0);
    assert_eq!(bench.poll(), [success(1)]);
}

/// L-17: the word of one dispatch is cleared before the next is published.
#[test]
fn acceptance_of_one_dispatch_is_not_seen_on_the_next() {
    let mut bench = Bench::new(Frames::One, Script { polls: Some(0), ..Script::default() });
    bench.submit(1, 1, ZERO, false).unwrap();
    while bench.step() != Served::Idle {}
    assert_eq!(bench.poll(), [Event::Accepted { key: 1 }, success(1)]);
    bench.device.0.borrow_mut().polls = None;
    bench.device.0.borrow_mut().silent = true;
    bench.submit(2, 1, ZERO, false).unwrap();
    assert_eq!(bench.settle(), Served::Running);
    assert_eq!(bench.poll(), []);
}

/// L-1: the frame changes while the task runs.
#[test]
fn a_child_that_finds_another_identity_at_the_end_names_both_and_leaves() {
    let mut bench = Bench::new(Frames::One, Script::default());
    bench.submit(1, 1, ZERO, false).unwrap();
    assert_eq!(bench.settle(), Served::Running);
    bench.write(ZERO, frame::TRAILER + 32, 99);
    bench.device.0.borrow_mut().finish = true;
    assert_eq!(bench.step(), Served::Exit(laneway_core::lane::EXIT_PROTOCOL));
    assert_eq!(bench.device.take_log(), ["prepare 1", "launch 1", "finalize launched", "shutdown"]);
    assert_eq!(bench.state(ZERO), FrameState::TaskDone.raw(), "no published frame is left without an end");
    let mut text = laneway_core::mailbox::LongText::new();
    laneway_core::mailbox::read_message(&bench.words, Frame::task(ZERO), &mut text);
    assert!(text.as_str().contains("dispatch 1 of run 1") && text.as_str().contains("dispatch 99"), "{text}");
    assert_eq!(bench.step(), Served::Exit(laneway_core::lane::EXIT_PROTOCOL), "and it stays gone");
}
