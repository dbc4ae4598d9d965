//! A parent, a child and a scripted device on one plain array.

#[path = "../device/runs.rs"]
mod runs;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use laneway_core::ids::{Generation, PipelineSlot, RunId, WorkerId};
use laneway_core::lane::{
    EndpointSpec, Event, Frames, Job, Label, Lane, LaneError, Outcome, Start, poll_start, prepare_region,
};
use laneway_core::mailbox::{ArrayWords, Frame, LongText, Words};
use laneway_core::serve::{
    Child, ChildSpec, Failure, Launch, NoBell, Poll, PrepareError, Report, Runner, Served, Task, publish_ready,
};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::{self, REGION_BYTES};
use laneway_core::wire::{CallConfig, Digest, FrameState, Protocol};

use runs::Runs;

pub(crate) const KNOWN: Digest = Digest([1; 32]);
pub(crate) const UNKNOWN: Digest = Digest([9; 32]);
pub(crate) const ZERO: PipelineSlot = PipelineSlot::Zero;
pub(crate) const ONE: PipelineSlot = PipelineSlot::One;

/// An empty argument blob.
pub(crate) const NO_ARGS: [u8; 8] = [0; 8];

/// A device that follows a script, keeps a log, and panics when the child half breaks a rule of the run lane.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) log: Vec<String>,
    /// Whether a run may be prepared beside a launched one (L-12).
    pub(crate) concurrent: bool,
    /// Whether launches run to their end inside the call.
    pub(crate) blocking: bool,
    /// Whether launches are accepted at once; else on the first poll.
    pub(crate) accepts_at_launch: bool,
    /// Never accept.
    pub(crate) silent: bool,
    /// Answers to prepare, in turn; after that, success.
    pub(crate) prepares: VecDeque<Result<(), PrepareError>>,
    /// Answers to launch, in turn; after that, success.
    pub(crate) launches: VecDeque<Result<(), Failure>>,
    /// How many polls a run takes; `None` runs until it is finished by hand.
    pub(crate) polls: Option<u32>,
    pub(crate) finish: bool,
    pub(crate) poll_error: Option<Failure>,
    pub(crate) finalize_error: Option<Failure>,
    pub(crate) controls: VecDeque<Result<u64, Failure>>,
    pub(crate) text: String,
    pub(crate) runs: Runs,
    /// Polls that the launched run still takes.
    pub(crate) left: u32,
    pub(crate) accepted: bool,
    pub(crate) shut: bool,
}

/// The device, shared with the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Device(pub(crate) Rc<RefCell<Script>>);

impl Device {
    fn note(&self, what: std::fmt::Arguments<'_>) {
        self.0.borrow_mut().log.push(what.to_string());
    }

    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.0.borrow_mut().log)
    }
}

impl Runner for Device {
    type Token = u32;

    fn knows(&mut self, digest: &Digest) -> bool {
        *digest != UNKNOWN
    }

    fn prepares_concurrently(&self) -> bool {
        self.0.borrow().concurrent
    }

    fn prepare(&mut self, task: &Task<'_>, report: &mut Report) -> Result<u32, PrepareError> {
        let dispatch = task.identity.dispatch;
        let answer = self.0.borrow_mut().prepares.pop_front().unwrap_or(Ok(()));
        if let Err(error) = answer {
            report.push_str("prepare said no");
            self.note(format_args!("prepare {dispatch} refused"));
            return Err(error);
        }
        let mut script = self.0.borrow_mut();
        let concurrent = script.concurrent;
        let token = script.runs.prepare(concurrent);
        script.log.push(format!("prepare {dispatch}"));
        Ok(token)
    }

    fn launch(&mut self, token: u32, task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        let mut script = self.0.borrow_mut();
        script.runs.check_launch(token);
        let dispatch = task.identity.dispatch;
        if let Some(Err(failure)) = script.launches.pop_front() {
            script.log.push(format!("launch {dispatch} failed"));
            report.push_str("launch said no");
            return Err(failure);
        }
        script.runs.launch(token);
        script.accepted = script.accepts_at_launch && !script.silent;
        script.left = script.polls.unwrap_or(u32::MAX);
        script.log.push(format!("launch {dispatch}"));
        Ok(if script.blocking { Launch::Complete } else { Launch::Running })
    }

    fn accepted(&mut self, _: u32) -> bool {
        self.0.borrow().accepted
    }

    fn poll(&mut self, token: u32, report: &mut Report) -> Result<Poll, Failure> {
        let mut script = self.0.borrow_mut();
        script.accepted = !script.silent;
        if let Some(failure) = script.poll_error.take() {
            report.push_str("poll said no");
            return Err(failure);
        }
        let finish = std::mem::take(&mut script.finish);
        script.runs.check_poll(token);
        if script.left == 0 || finish {
            return Ok(Poll::Complete);
        }
        script.left -= 1;
        Ok(Poll::NotReady)
    }

    fn finalize(&mut self, token: u32, report: &mut Report) -> Result<(), Failure> {
        let mut script = self.0.borrow_mut();
        let was_launched = script.runs.finalize(token);
        script.accepted = false;
        script.log.push(format!("finalize {}", if was_launched { "launched" } else { "prepared" }));
        match script.finalize_error.take() {
            Some(failure) => {
                report.push_str("finalize said no");
                Err(failure)
            }
            None => Ok(()),
        }
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        let mut script = self.0.borrow_mut();
        script.log.push(format!("control {:?}", request.command()));
        let _ = write!(report, "{}", script.text);
        script.controls.pop_front().unwrap_or(Ok(0))
    }

    fn shutdown(&mut self) {
        let mut script = self.0.borrow_mut();
        assert!(script.runs.is_empty(), "L-15: a run leaks at shutdown");
        assert!(!script.shut, "the device is closed twice");
        script.shut = true;
        script.log.push("shutdown".into());
    }
}

pub(crate) type Events = Vec<Event<u32, u32>>;

/// Parent and child around one mailbox.
pub(crate) struct Bench {
    pub(crate) words: &'static ArrayWords,
    pub(crate) lane: Lane<u32, u32>,
    pub(crate) child: Child<&'static ArrayWords, Device>,
    pub(crate) device: Device,
    pub(crate) now: Instant,
    pub(crate) text: LongText,
}

pub(crate) fn spec(frames: Frames) -> EndpointSpec {
    EndpointSpec {
        label: Label::Worker(WorkerId::new(3).unwrap()),
        pid: Some(4711),
        frames,
        protocol: Protocol::ChipTensors,
        marks_acceptance: true,
        waitable: true,
        poison_grace: EndpointSpec::POISON_GRACE,
    }
}

/// Two frames, and a device that prepares beside a running task.
pub(crate) fn two() -> Bench {
    Bench::new(Frames::Two, Script { concurrent: true, ..Script::default() })
}

impl Bench {
    pub(crate) fn new(frames: Frames, script: Script) -> Self {
        Self::with_spec(spec(frames), script)
    }

    pub(crate) fn with_spec(spec: EndpointSpec, script: Script) -> Self {
        Self::with_region(REGION_BYTES, spec, script)
    }

    /// On a region of `bytes` bytes, which says nothing to anyone.
    pub(crate) fn with_region(bytes: usize, spec: EndpointSpec, script: Script) -> Self {
        let words: &'static ArrayWords = Box::leak(Box::new(ArrayWords::new(bytes)));
        prepare_region(&words);
        let device = Device(Rc::new(RefCell::new(script)));
        let depth = if spec.frames == Frames::Two { 2 } else { 0 };
        publish_ready(&words, depth);
        let child_spec = ChildSpec { frames: spec.frames, protocol: spec.protocol, depth };
        let child = Child::new(words, device.clone(), child_spec);
        let mut text = LongText::new();
        assert!(matches!(poll_start(&words, &mut text), Start::Ready { .. }));
        Self { words, lane: Lane::new(spec, &words), child, device, now: Instant::from_nanos(1_000), text }
    }

    pub(crate) fn later(&mut self, by: Duration) {
        self.now = self.now.saturating_add(by);
    }

    /// Submits with the default config, no arguments, run id = generation = `run`.
    pub(crate) fn submit(
        &mut self,
        key: u32,
        run: u64,
        slot: PipelineSlot,
        prepare_only: bool,
    ) -> Result<(), LaneError> {
        self.submit_with(key, run, slot, prepare_only, &KNOWN, &CallConfig::ZERO, &NO_ARGS)
    }

    #[expect(clippy::too_many_arguments, reason = "a test names what it varies")]
    pub(crate) fn submit_with(
        &mut self,
        key: u32,
        run: u64,
        slot: PipelineSlot,
        prepare_only: bool,
        digest: &Digest,
        config: &CallConfig,
        blob: &[u8],
    ) -> Result<(), LaneError> {
        let (run, generation) = (RunId::new(run).unwrap(), Generation::new(run).unwrap());
        let job = Job { key, run, slot, generation, digest, config, blob, limit: None, prepare_only };
        self.lane.submit(&self.words, &job, self.now).map(drop)
    }

    /// Run 1 executes in the first frame, run 2 is staged behind it in the second.
    pub(crate) fn fill(&mut self) {
        self.submit(1, 1, ZERO, false).unwrap();
        self.settle();
        self.submit(2, 2, ONE, true).unwrap();
        self.settle();
    }

    pub(crate) fn activate(&mut self, run: u64) -> Result<(), LaneError> {
        self.lane.activate(&self.words, RunId::new(run).unwrap(), self.now)
    }

    pub(crate) fn control(&mut self, key: u32, request: &ControlRequest) -> Result<(), LaneError> {
        self.lane.control(&self.words, key, request, None, self.now)
    }

    /// Everything that the parent sees now.
    pub(crate) fn poll(&mut self) -> Events {
        let mut events = Vec::new();
        while let Some(event) = self.lane.poll(&self.words, self.now, &mut self.text) {
            events.push(event);
            assert!(events.len() < 32, "a lane that reports for ever: {events:?}");
        }
        events
    }

    pub(crate) fn step(&mut self) -> Served {
        self.child.step(&mut NoBell)
    }

    /// Steps the child until it has nothing to do, runs on the device, or leaves.
    pub(crate) fn settle(&mut self) -> Served {
        for _ in 0..64 {
            match self.step() {
                Served::Worked => {}
                other => return other,
            }
        }
        panic!("a child that works for ever");
    }

    pub(crate) fn state(&self, slot: PipelineSlot) -> i32 {
        Frame::task(slot).state(&self.words)
    }

    pub(crate) fn set_state(&self, slot: PipelineSlot, state: FrameState) {
        Frame::task(slot).publish_state(&self.words, state);
    }

    pub(crate) fn write(&self, slot: PipelineSlot, field: usize, value: u64) {
        self.words.write(Frame::task(slot).at(field), value);
    }

    pub(crate) fn dispatch_id_at(slot: PipelineSlot) -> usize {
        Frame::task(slot).at(frame::TRAILER + 32)
    }
}

pub(crate) fn completed(key: u32, outcome: Outcome) -> Event<u32, u32> {
    Event::Completed { key, outcome }
}

pub(crate) fn success(key: u32) -> Event<u32, u32> {
    completed(key, Outcome::Success)
}

pub(crate) fn failed(key: u32) -> Event<u32, u32> {
    completed(key, Outcome::TaskFailure { code: 1 })
}
