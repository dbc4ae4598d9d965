//! Both halves of a mailbox under loom: what the order of memory, weaker than program order, lets them see.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p laneway-core --release --test loom_mailbox`. The halves are those of production.
//! Modelled are the hand-over words, the dispatch id as the one token for payload, the first word of an error text, and the
//! parked word; every other word is a constant. Explored is every execution of up to two dispatches, one control or one stop,
//! without a bound on preemptions. Not explored here: both frames at once, deaths; those are enumerated, in program order, in
//! `lane_exhaustive`. loom treats SeqCst accesses as acquire and release, so the hand-shake of sleeping uses fences, which it
//! does model.
#![cfg(loom)]

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use laneway_core::ids::{Generation, PipelineSlot, RunId, WorkerId};
use laneway_core::lane::{ControlOutcome, EndpointSpec, Event, Frames, Job, Label, Lane, Outcome};
use laneway_core::mailbox::{LongText, Peer, Words, extension};
use laneway_core::serve::{
    ChildSpec, Failure, Launch, Machine, Memory, NoBell, Poll, PrepareError, Report, Runner, Served, Task,
};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::{self, FRAME_BYTES};
use laneway_core::wire::{CallConfig, Digest, Protocol, extension as at};

const NOW: Instant = Instant::from_nanos(1);
const COUNT: usize = 12;

/// The modelled words: base state, shutdown, parked, control result and error; the first task frame's state, error,
/// acceptance, preparation, dispatch id, message and detail.
struct Shared {
    words: [AtomicU64; COUNT],
    /// Whether fences do anything; without them the hand-shake of sleeping must be found broken.
    fences: bool,
    /// Whether stores release; without that published payload must be found missing.
    releases: bool,
}

fn modelled(offset: usize) -> Option<usize> {
    const TASK: usize = FRAME_BYTES;
    [
        frame::STATE,
        frame::SHUTDOWN,
        at::PARKED,
        frame::CONTROL_RESULT,
        frame::ERROR,
        TASK + frame::STATE,
        TASK + frame::ERROR,
        TASK + frame::ACCEPTED,
        TASK + frame::PREPARATION,
        TASK + frame::TRAILER + 32,
        TASK + frame::MESSAGE,
        TASK + frame::DETAIL,
    ]
    .iter()
    .position(|word| *word == offset)
}

fn constant(offset: usize) -> u64 {
    match offset {
        at::PARENT => at::PARENT_MAGIC,
        at::CHILD => at::CHILD_MAGIC,
        _ => match offset.checked_sub(FRAME_BYTES) {
            Some(frame::TRAILER) => 2,
            Some(field) if field == frame::TRAILER + 8 || field == frame::TRAILER + 24 || field == frame::LEASE + 8 => {
                1
            }
            _ => 0,
        },
    }
}

impl Shared {
    fn new() -> Self {
        Self { words: std::array::from_fn(|_| AtomicU64::new(0)), fences: true, releases: true }
    }

    fn get(&self, offset: usize, order: Ordering) -> u64 {
        modelled(offset).map_or_else(|| constant(offset), |word| self.words[word].load(order))
    }

    fn set(&self, offset: usize, value: u64, order: Ordering) {
        if let Some(word) = modelled(offset) {
            self.words[word].store(value, order);
        }
    }
}

impl Words for Shared {
    fn load(&self, at: usize) -> i32 {
        self.get(at, Ordering::Acquire) as i32
    }
    fn load_relaxed(&self, at: usize) -> i32 {
        self.get(at, Ordering::Relaxed) as i32
    }
    fn store(&self, at: usize, value: i32) {
        let order = if self.releases { Ordering::Release } else { Ordering::Relaxed };
        self.set(at, value as u64, order);
    }
    fn store_relaxed(&self, at: usize, value: i32) {
        self.set(at, value as u64, Ordering::Relaxed);
    }
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        let word = modelled(at).expect("only modelled words are exchanged");
        self.words[word]
            .compare_exchange(expected as u64, new as u64, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(|found| found as i32)
    }
    fn fence(&self) {
        if self.fences {
            fence(Ordering::SeqCst);
        }
    }
    fn read(&self, at: usize) -> u64 {
        self.get(at, Ordering::Relaxed)
    }
    fn write(&self, at: usize, value: u64) {
        self.set(at, value, Ordering::Relaxed);
    }
}

fn parent_half(words: &Shared, frames: Frames) -> Lane<u8, u8> {
    let spec = EndpointSpec {
        label: Label::Worker(WorkerId::new(0).unwrap()),
        pid: None,
        frames,
        protocol: Protocol::ChipTensors,
        marks_acceptance: true,
        waitable: true,
        poison_grace: EndpointSpec::POISON_GRACE,
    };
    Lane::new(spec, words)
}

fn child_half(frames: Frames) -> Machine<()> {
    Machine::new(ChildSpec { frames, protocol: Protocol::ChipTensors, depth: 2 }, Peer::Known)
}

fn submit(lane: &mut Lane<u8, u8>, words: &Shared, key: u8, prepare_only: bool) {
    let job = Job {
        key,
        run: RunId::FIRST,
        slot: PipelineSlot::Zero,
        generation: Generation::FIRST,
        digest: &Digest::ZERO,
        config: &CallConfig::ZERO,
        blob: &[0; 8],
        limit: None,
        prepare_only,
    };
    lane.submit(words, &job, NOW).unwrap();
}

/// What the device does with the one run, and what it saw.
#[derive(Clone, Copy, Default)]
struct Rig {
    fails: bool,
    accepts: bool,
    launched: bool,
    ended: u64,
    controls: u32,
}

const TEXT: &str = "no";

impl Runner for Rig {
    type Token = ();

    fn knows(&mut self, _: &Digest) -> bool {
        true
    }
    fn prepares_concurrently(&self) -> bool {
        false
    }
    fn prepare(&mut self, task: &Task<'_>, _: &mut Report) -> Result<(), PrepareError> {
        assert_eq!(task.identity.dispatch.get(), self.ended + 1, "the payload of another time was seen");
        Ok(())
    }
    fn launch(&mut self, (): (), _: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        if self.fails {
            report.push_str(TEXT);
            return Err(Failure::MESSAGE);
        }
        self.launched = true;
        Ok(Launch::Running)
    }
    fn accepted(&mut self, (): ()) -> bool {
        self.accepts && self.launched
    }
    fn poll(&mut self, (): (), _: &mut Report) -> Result<Poll, Failure> {
        Ok(Poll::Complete)
    }
    fn finalize(&mut self, (): (), _: &mut Report) -> Result<(), Failure> {
        self.ended += 1;
        self.launched = false;
        Ok(())
    }
    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        self.controls += 1;
        Ok(77)
    }
    fn shutdown(&mut self) {}
}

/// A thread with room for the private memory of a child; loom's own stacks are too small for it.
fn spawn(side: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    const STACK_WORDS: usize = 1 << 16;
    thread::Builder::new().stack_size(STACK_WORDS).spawn(side).unwrap()
}

/// Explores every execution, says how many there were.
fn model(name: &str, check: impl Fn() + Sync + Send + 'static) {
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&count);
    let mut builder = loom::model::Builder::new();
    // None of these needs a bound on preemptions, whatever LOOM_MAX_PREEMPTIONS says.
    builder.preemption_bound = None;
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        check();
    });
    println!("{name}: {} executions", count.load(std::sync::atomic::Ordering::Relaxed));
}

/// Steps the child until `done`.
fn serve(words: &Shared, frames: Frames, mut rig: Rig, done: impl Fn(&Rig, Served) -> bool) -> Rig {
    let (mut machine, mut memory) = (child_half(frames), Memory::new());
    loop {
        let served = machine.step(words, &mut rig, &mut memory, &mut NoBell);
        if done(&rig, served) {
            return rig;
        }
        if served != Served::Worked {
            thread::yield_now();
        }
    }
}

/// Polls the parent until `done` of the events so far.
fn poll_until(
    words: &Shared,
    lane: &mut Lane<u8, u8>,
    text: &mut LongText,
    done: impl Fn(&[Event<u8, u8>]) -> bool,
) -> Vec<Event<u8, u8>> {
    let mut events = Vec::new();
    loop {
        while let Some(event) = lane.poll(words, NOW, text) {
            events.push(event);
        }
        if done(&events) {
            return events;
        }
        thread::yield_now();
    }
}

fn has_ended(events: &[Event<u8, u8>]) -> bool {
    events.iter().any(|event| matches!(event, Event::Completed { .. } | Event::Poisoned { .. }))
}

/// L-4, T-20: the payload is there when the state is seen, and so is the text when the end is seen.
#[test]
fn payload_and_error_text_are_published_by_the_state_word() {
    payload(true);
}

/// The check itself: stores that release nothing are found.
#[test]
#[should_panic]
fn a_state_word_that_publishes_nothing_would_be_found() {
    payload(false);
}

fn payload(releases: bool) {
    model("payload", move || {
        let words = Arc::new(Shared { releases, ..Shared::new() });
        let theirs = Arc::clone(&words);
        let child = spawn(move || {
            serve(&theirs, Frames::One, Rig { fails: true, ..Rig::default() }, |rig, _| rig.ended == 1);
        });
        let parent = spawn(move || {
            let (mut lane, mut text) = (parent_half(&words, Frames::One), LongText::new());
            submit(&mut lane, &words, 1, false);
            let events = poll_until(&words, &mut lane, &mut text, has_ended);
            assert_eq!(events, [Event::Completed { key: 1, outcome: Outcome::TaskFailure { code: 1 } }]);
            assert_eq!(text.as_str(), TEXT);
        });
        parent.join().unwrap();
        child.join().unwrap();
    });
}

/// L-18, T-13: whoever sees the end sees the acceptance that came before it.
#[test]
fn acceptance_is_seen_before_completion() {
    model("acceptance", || {
        let words = Arc::new(Shared::new());
        let theirs = Arc::clone(&words);
        let child = spawn(move || {
            serve(&theirs, Frames::One, Rig { accepts: true, ..Rig::default() }, |rig, _| rig.ended == 1);
        });
        let parent = spawn(move || {
            let (mut lane, mut text) = (parent_half(&words, Frames::One), LongText::new());
            submit(&mut lane, &words, 1, false);
            let events = poll_until(&words, &mut lane, &mut text, has_ended);
            assert_eq!(events, [Event::Accepted { key: 1 }, Event::Completed { key: 1, outcome: Outcome::Success }]);
        });
        parent.join().unwrap();
        child.join().unwrap();
    });
}

/// L-3, L-17: a frame that is used again carries nothing over; its acceptance is of the second dispatch.
#[test]
fn a_frame_that_is_used_again_shows_nothing_of_its_first_task() {
    model("reuse", || {
        let words = Arc::new(Shared::new());
        let theirs = Arc::clone(&words);
        let child = spawn(move || {
            serve(&theirs, Frames::One, Rig { accepts: true, ..Rig::default() }, |rig, _| rig.ended == 2);
        });
        let parent = spawn(move || {
            let (mut lane, mut text) = (parent_half(&words, Frames::One), LongText::new());
            for key in 1..=2 {
                submit(&mut lane, &words, key, false);
                let events = poll_until(&words, &mut lane, &mut text, has_ended);
                assert_eq!(events, [Event::Accepted { key }, Event::Completed { key, outcome: Outcome::Success }]);
            }
        });
        parent.join().unwrap();
        child.join().unwrap();
    });
}

/// L-8: a staged frame that is activated runs; the exchange loses to nobody.
#[test]
fn an_activation_is_not_lost() {
    model("activation", || {
        let words = Arc::new(Shared::new());
        let theirs = Arc::clone(&words);
        let child = spawn(move || {
            serve(&theirs, Frames::Two, Rig::default(), |rig, _| rig.ended == 1);
        });
        let parent = spawn(move || {
            let (mut lane, mut text) = (parent_half(&words, Frames::Two), LongText::new());
            submit(&mut lane, &words, 1, true);
            lane.activate(&*words, RunId::FIRST, NOW).unwrap();
            let events = poll_until(&words, &mut lane, &mut text, has_ended);
            assert!(events.contains(&Event::Completed { key: 1, outcome: Outcome::Success }), "{events:?}");
        });
        parent.join().unwrap();
        child.join().unwrap();
    });
}

/// L-30, T-18: SHUTDOWN beside a control that is being answered.
#[test]
fn a_shutdown_is_not_lost_beside_a_control() {
    model("shutdown", || {
        let words = Arc::new(Shared::new());
        let theirs = Arc::clone(&words);
        let child = spawn(move || {
            serve(&theirs, Frames::One, Rig::default(), |_, served| matches!(served, Served::Exit(_)));
        });
        let parent = spawn(move || {
            let (mut lane, mut text) = (parent_half(&words, Frames::One), LongText::new());
            lane.control(&*words, 1, &ControlRequest::Malloc { bytes: 1 }, None, NOW).unwrap();
            lane.stop();
            // Once: nothing may depend on the request being repeated.
            lane.request_stop(&*words);
            let events = poll_until(&words, &mut lane, &mut text, |events| !events.is_empty());
            assert_eq!(events, [Event::Control { key: 1, outcome: ControlOutcome::Stopped }]);
        });
        parent.join().unwrap();
        child.join().unwrap();
    });
}

/// L-20: the result of a control is there when its end is seen.
#[test]
fn the_result_of_a_control_is_published_by_the_state_word() {
    model("control", || {
        let words = Arc::new(Shared::new());
        let theirs = Arc::clone(&words);
        let child = spawn(move || {
            serve(&theirs, Frames::One, Rig::default(), |rig, _| rig.controls == 1);
        });
        let parent = spawn(move || {
            let (mut lane, mut text) = (parent_half(&words, Frames::One), LongText::new());
            lane.control(&*words, 1, &ControlRequest::Malloc { bytes: 1 }, None, NOW).unwrap();
            let events = poll_until(&words, &mut lane, &mut text, |events| !events.is_empty());
            assert_eq!(events, [Event::Control { key: 1, outcome: ControlOutcome::Done(77) }]);
        });
        parent.join().unwrap();
        child.join().unwrap();
    });
}

/// Architecture, waiting: announce, fence, look again, sleep — publish, fence, look, wake. If a wake were lost the child would
/// sleep for ever, which loom reports as a deadlock.
#[test]
fn a_child_that_goes_to_sleep_is_woken_for_what_was_published() {
    sleep(true);
}

/// The check itself: a lost wake is found.
#[test]
#[should_panic(expected = "deadlock")]
fn a_hand_shake_without_its_fences_would_be_found() {
    sleep(false);
}

fn sleep(fences: bool) {
    model("sleep", move || {
        let words = Arc::new(Shared { fences, ..Shared::new() });
        let bell = Arc::new((Mutex::new(false), Condvar::new()));
        let (theirs, rung) = (Arc::clone(&words), Arc::clone(&bell));
        let child = spawn(move || {
            let (mut machine, mut memory, mut rig) = (child_half(Frames::One), Memory::new(), Rig::default());
            while rig.ended == 0 {
                if machine.step(&*theirs, &mut rig, &mut memory, &mut NoBell) != Served::Idle {
                    continue;
                }
                extension::announce_sleep(&*theirs);
                if !machine.has_work(&*theirs) {
                    let mut ringing = rung.0.lock().unwrap();
                    while !*ringing {
                        ringing = rung.1.wait(ringing).unwrap();
                    }
                    *ringing = false;
                }
                extension::announce_awake(&*theirs);
            }
        });
        let parent = spawn(move || {
            let mut lane = parent_half(&words, Frames::One);
            submit(&mut lane, &words, 1, false);
            assert!(lane.take_published());
            if extension::take_sleeper(&*words) {
                *bell.0.lock().unwrap() = true;
                bell.1.notify_one();
            }
        });
        parent.join().unwrap();
        child.join().unwrap();
    });
}
