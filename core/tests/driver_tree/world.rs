//! One level: an engine with its driver, children on plain arrays, and a monitor that sees every device.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use laneway_core::driver::{Doorbells, Driver, EndpointSpec, ExitCause, Frames, Label, Step, Wake};
use laneway_core::engine::{Config, Engine, Range, RangeKind, Submission, Target, WorkerClass, WorkerSpec};
use laneway_core::ids::{EndpointIndex, RunId, SubId, WorkerId};
use laneway_core::lane::{Start, poll_start, prepare_region};
use laneway_core::mailbox::{ArrayWords, LongText, Words, extension};
use laneway_core::model::TaskArgs;
use laneway_core::serve::{
    Child, ChildSpec, Failure, Launch, ParentBell, Poll, PrepareError, Report, Runner, Served, Task, publish_ready,
};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::{self, REGION_BYTES};
use laneway_core::wire::{AddressSpace, ChipTensor, Digest, Dtype, Protocol, TaskArgsView, extension as layout};

/// Buffers of a level: they exist by address only.
pub(crate) const BUFFERS: u64 = 3;
const BASE: u64 = 1 << 40;

/// A callable that every child knows; its first byte says how the task behaves.
pub(crate) fn digest(behaviour: u8) -> Digest {
    let mut digest = Digest([7; 32]);
    digest.0[0] = behaviour;
    digest
}

/// Behaviours, in the first byte of the digest.
pub(crate) const QUICK: u8 = 0;
/// Takes three polls.
pub(crate) const SLOW: u8 = 3;
/// Fails when it is launched.
pub(crate) const FAILS: u8 = 200;
/// Is not known to any child.
pub(crate) const UNKNOWN: u8 = 201;
/// Never ends by itself.
pub(crate) const HANGS: u8 = 202;

/// What a child is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Two frames, prepares beside a running one.
    Concurrent,
    /// Two frames, prepares alone.
    Exclusive,
    /// One frame, native.
    Single,
    /// One frame, one call.
    Sub,
}

impl Kind {
    fn frames(self) -> Frames {
        match self {
            Self::Concurrent | Self::Exclusive => Frames::Two,
            Self::Single | Self::Sub => Frames::One,
        }
    }
}

/// Sees every device of the level.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    /// Runs launched and not finalised, by child.
    executing: BTreeMap<usize, RunId>,
    /// The latest run that was ever launched.
    latest: Option<RunId>,
    /// For each buffer: the run that wrote it last, how far it came, and the child that writes it now.
    buffers: BTreeMap<u64, (RunId, u64, Option<usize>)>,
    pub(crate) launches: u64,
    pub(crate) prepared_beside: u64,
}

impl Monitor {
    /// E-3, L-14: two runs never execute at once, and a later run never before an earlier one.
    fn launch(&mut self, child: usize, run: RunId, args: TaskArgsView<'_>) {
        for tensor in args.tensors() {
            // E-14, E-17, E-18: writers of one buffer run one after the other, in the order in which they were submitted.
            let place = args.scalars()[0];
            let (last_run, last, writer) = self.buffers.entry(tensor.byte_range().start).or_insert((run, 0, None));
            assert_eq!(*writer, None, "two tasks write one buffer at once");
            assert!(*last_run < run || *last < place, "task {place} of run {run} after task {last}");
            (*last_run, *last, *writer) = (run, place, Some(child));
        }
        assert!(self.executing.values().all(|other| *other == run), "run {run} launched beside {:?}", self.executing);
        assert!(self.latest.is_none_or(|latest| latest <= run), "run {run} launched after run {:?}", self.latest);
        assert!(self.executing.insert(child, run).is_none(), "child {child} executes two runs");
        self.latest = Some(run);
        self.launches += 1;
    }

    /// The child has no run any more, by its end or by its own.
    fn ended(&mut self, child: usize) {
        self.executing.remove(&child);
        for (_, _, writer) in self.buffers.values_mut() {
            writer.take_if(|writer| *writer == child);
        }
    }
}

/// The device of one child.
#[derive(Debug)]
pub(crate) struct Device {
    child: usize,
    kind: Kind,
    monitor: Rc<RefCell<Monitor>>,
    prepared: Vec<u32>,
    launched: Option<(u32, u32)>,
    next: u32,
}

impl Runner for Device {
    type Token = u32;

    fn knows(&mut self, digest: &Digest) -> bool {
        digest.0[0] != UNKNOWN
    }

    fn prepares_concurrently(&self) -> bool {
        self.kind == Kind::Concurrent
    }

    fn prepare(&mut self, _: &Task<'_>, _: &mut Report) -> Result<u32, PrepareError> {
        let others = self.prepared.len() + usize::from(self.launched.is_some());
        assert!(others <= usize::from(self.kind == Kind::Concurrent), "L-12");
        self.monitor.borrow_mut().prepared_beside += u64::from(self.launched.is_some());
        self.next += 1;
        self.prepared.push(self.next);
        Ok(self.next)
    }

    fn launch(&mut self, token: u32, task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        assert!(self.prepared.contains(&token) && self.launched.is_none(), "L-14");
        let behaviour = task.digest.0[0];
        if behaviour == FAILS {
            let _ = write!(report, "{} said no", task.identity);
            return Err(Failure::MESSAGE);
        }
        self.prepared.retain(|prepared| *prepared != token);
        self.launched = Some((token, if behaviour == HANGS { u32::MAX } else { behaviour.into() }));
        self.monitor.borrow_mut().launch(self.child, task.identity.run, task.args);
        Ok(if self.kind == Kind::Sub { Launch::Complete } else { Launch::Running })
    }

    fn accepted(&mut self, _: u32) -> bool {
        self.kind != Kind::Sub && self.launched.is_some()
    }

    fn poll(&mut self, token: u32, _: &mut Report) -> Result<Poll, Failure> {
        let Some((launched, left)) = &mut self.launched else { panic!("poll without a launched run") };
        assert_eq!(*launched, token);
        if *left == 0 {
            return Ok(Poll::Complete);
        }
        *left -= u32::from(*left != u32::MAX);
        Ok(Poll::NotReady)
    }

    fn finalize(&mut self, token: u32, _: &mut Report) -> Result<(), Failure> {
        let launched = self.launched.is_some_and(|(launched, _)| launched == token);
        if launched {
            self.launched = None;
            self.monitor.borrow_mut().ended(self.child);
        } else {
            assert!(self.prepared.contains(&token), "L-15: run {token} finalised twice");
            self.prepared.retain(|prepared| *prepared != token);
        }
        Ok(())
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        match request {
            ControlRequest::Malloc { bytes: 0 } => {
                report.push_str("zero bytes");
                Err(Failure::MESSAGE)
            }
            ControlRequest::Malloc { bytes } => Ok(bytes * 2),
            _ => Ok(0),
        }
    }

    fn shutdown(&mut self) {
        assert!(self.prepared.is_empty() && self.launched.is_none(), "L-15: a run leaks at shutdown");
    }
}

/// A mailbox as its child sees it, in which the child dies after a number of writes: SIGKILL between two instructions.
#[derive(Debug)]
pub(crate) struct Tripwire {
    words: &'static ArrayWords,
    left: Rc<Cell<u64>>,
}

/// Thrown where a child dies.
struct Died;

impl Tripwire {
    fn count(&self) {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => std::panic::resume_unwind(Box::new(Died)),
        }
    }
}

impl Words for Tripwire {
    fn load(&self, at: usize) -> i32 {
        self.words.load(at)
    }
    fn load_relaxed(&self, at: usize) -> i32 {
        self.words.load_relaxed(at)
    }
    fn store(&self, at: usize, value: i32) {
        self.count();
        self.words.store(at, value);
    }
    fn store_relaxed(&self, at: usize, value: i32) {
        self.count();
        self.words.store_relaxed(at, value);
    }
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.count();
        self.words.compare_exchange(at, expected, new)
    }
    fn fence(&self) {}
    fn read(&self, at: usize) -> u64 {
        self.words.read(at)
    }
    fn write(&self, at: usize, value: u64) {
        self.count();
        self.words.write(at, value);
    }
}

/// How far a child has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    Serving,
    /// It left or was killed; the driver was not told.
    Ended(ExitCause),
    /// The driver knows; its subtree is still there.
    Reported,
    Gone,
}

pub(crate) struct Member {
    pub(crate) child: Child<Tripwire, Device>,
    /// Writes that the child can still make.
    pub(crate) left: Rc<Cell<u64>>,
    pub(crate) kind: Kind,
    pub(crate) life: Life,
    /// Sleeps until it is rung.
    pub(crate) parked: bool,
}

/// Rings seen in one step.
#[derive(Default)]
pub(crate) struct Rings(pub(crate) Vec<EndpointIndex>);

impl Doorbells for Rings {
    fn ring(&mut self, endpoint: EndpointIndex) {
        self.0.push(endpoint);
    }
}

struct Quiet;

impl ParentBell for Quiet {
    fn published(&mut self) {}
}

/// A level and its clock.
pub(crate) struct World {
    pub(crate) driver: Driver<&'static ArrayWords>,
    pub(crate) members: Vec<Member>,
    pub(crate) monitor: Rc<RefCell<Monitor>>,
    pub(crate) now: Instant,
    /// How many updates were submitted.
    place: u64,
    words: Vec<&'static ArrayWords>,
}

impl Drop for World {
    fn drop(&mut self) {
        for words in self.words.drain(..) {
            POOL.with_borrow_mut(|pool| pool.push(words));
        }
    }
}

thread_local! {
    /// Mailboxes to be used again: ten thousand worlds would not fit into memory.
    static POOL: RefCell<Vec<&'static ArrayWords>> = const { RefCell::new(Vec::new()) };
}

fn mailbox() -> &'static ArrayWords {
    let pooled = POOL.with_borrow_mut(Vec::pop);
    let words = pooled.unwrap_or_else(|| Box::leak(Box::new(ArrayWords::new(REGION_BYTES))));
    // What these tests write lies in these pieces of each frame.
    for frame in 0..3 {
        let start = frame * 65_536;
        for at in (0..1_400).step_by(8).chain((57_344..57_600).step_by(8)).chain((61_440..61_800).step_by(8)) {
            zero(words, start + at);
        }
        for at in (65_216..65_536).step_by(8) {
            zero(words, start + at);
        }
    }
    words
}

/// W-8: every byte has one access width.
fn zero(words: &ArrayWords, at: usize) {
    let mut narrow = frame::NARROW_WORDS.iter().chain(&layout::NARROW_WORDS);
    if narrow.any(|word| word / 8 * 8 == at % frame::FRAME_BYTES) {
        words.store(at, 0);
        words.store(at + 4, 0);
    } else {
        words.write(at, 0);
    }
}

impl World {
    pub(crate) fn new(kinds: &[Kind]) -> Self {
        let monitor = Rc::new(RefCell::new(Monitor::default()));
        let mut workers = Vec::new();
        let mut endpoints = Vec::new();
        let mut members = Vec::new();
        let mut words_of = Vec::new();
        for (index, &kind) in kinds.iter().enumerate() {
            let endpoint = EndpointIndex(index as u16);
            let (class, label) = match kind {
                Kind::Sub => (WorkerClass::Sub(SubId(index as u32)), Label::Sub(SubId(index as u32))),
                _ => {
                    let id = WorkerId::new(index as i32).unwrap();
                    (WorkerClass::NextLevel(id), Label::Worker(id))
                }
            };
            let words = mailbox();
            prepare_region(&words);
            let depth = if kind.frames() == Frames::Two { 2 } else { 0 };
            let device =
                Device { child: index, kind, monitor: monitor.clone(), prepared: vec![], launched: None, next: 0 };
            publish_ready(&words, depth);
            let spec = ChildSpec { frames: kind.frames(), protocol: Protocol::ChipTensors, depth };
            let left = Rc::new(Cell::new(u64::MAX));
            let child = Child::new(Tripwire { words, left: left.clone() }, device, spec);
            let mut text = LongText::new();
            assert!(matches!(poll_start(&words, &mut text), Start::Ready { .. }));
            workers.push(WorkerSpec { class, endpoint, staging: kind.frames() == Frames::Two });
            endpoints.push((
                EndpointSpec {
                    label,
                    pid: Some(1000 + index as i32),
                    frames: kind.frames(),
                    protocol: Protocol::ChipTensors,
                    marks_acceptance: kind != Kind::Sub,
                    waitable: true,
                    poison_grace: EndpointSpec::POISON_GRACE,
                },
                words,
            ));
            words_of.push(words);
            members.push(Member { child, left, kind, life: Life::Serving, parked: false });
        }
        let config = Config {
            task_window: 64,
            edges: 256,
            map_entries: 256,
            runs: 64,
            args_bytes: 1 << 16,
            ..Config::default()
        };
        let mut engine = Engine::new(&config, 2, &workers).unwrap();
        engine.add_range(Range { base: BASE, bytes: 4096 * BUFFERS, kind: RangeKind::Shared }).unwrap();
        let driver = Driver::new(engine, endpoints).unwrap();
        Self { driver, members, monitor, now: Instant::from_nanos(1), place: 0, words: words_of }
    }

    /// One round of the driver; parked children that were rung wake.
    pub(crate) fn drive(&mut self) -> Step {
        self.drive_on(Wake::All)
    }

    /// As [`World::drive`], with another round after it or not.
    pub(crate) fn drive_on(&mut self, wake: Wake) -> Step {
        let mut rings = Rings::default();
        let step = self.driver.round(self.now, wake, &mut rings);
        for endpoint in rings.0 {
            self.members[endpoint.index()].parked = false;
        }
        step
    }

    /// One step of a child; one that has nothing to do announces its sleep, looks once more, and parks.
    pub(crate) fn step(&mut self, index: usize) {
        let member = &mut self.members[index];
        if member.life != Life::Serving || member.parked {
            return;
        }
        let served = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| member.child.step(&mut Quiet))) {
            Ok(served) => served,
            Err(thrown) if thrown.is::<Died>() => return self.kill(index),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        match served {
            Served::Worked | Served::Running => {}
            Served::Idle => {
                extension::announce_sleep(&member.child.words().words);
                if member.child.has_work() {
                    extension::announce_awake(&member.child.words().words);
                } else {
                    member.parked = true;
                }
            }
            Served::Exit(code) => {
                member.life = Life::Ended(ExitCause::Exited { pid: 1000 + index as i32, status: code.into() });
            }
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self, index: usize) {
        let member = &mut self.members[index];
        if member.life == Life::Serving {
            let pid = 1000 + index as i32;
            member.life = Life::Ended(ExitCause::Signalled { pid, signal: 9, unexpected: true, memory_limit: None });
        }
    }

    /// The next thing that the kernel has to say about a child.
    pub(crate) fn report(&mut self, index: usize) {
        let endpoint = EndpointIndex(index as u16);
        match self.members[index].life {
            Life::Ended(cause) => {
                self.members[index].life = Life::Reported;
                self.driver.child_exited(endpoint, cause, self.now);
            }
            Life::Reported => {
                self.members[index].life = Life::Gone;
                self.monitor.borrow_mut().ended(index);
                self.driver.subtree_gone(endpoint);
            }
            Life::Serving | Life::Gone => {}
        }
    }

    /// Submits one task without arguments.
    pub(crate) fn submit(&mut self, run: RunId, target: usize, behaviour: u8) -> Result<(), String> {
        self.submit_with(run, target, behaviour, &TaskArgs::new(), None)
    }

    /// Submits a task that updates one of [`BUFFERS`].
    pub(crate) fn submit_update(
        &mut self,
        run: RunId,
        target: usize,
        behaviour: u8,
        buffer: u64,
    ) -> Result<(), String> {
        self.place += 1;
        let mut args = TaskArgs::new();
        let addr = BASE + 4096 * buffer;
        args.inout(ChipTensor::contiguous(addr, 4096, Dtype::F32, &[1024], AddressSpace::Host).unwrap());
        args.scalar(self.place);
        self.submit_with(run, target, behaviour, &args, None)
    }

    pub(crate) fn submit_with(
        &mut self,
        run: RunId,
        target: usize,
        behaviour: u8,
        args: &TaskArgs,
        deadline: Option<Duration>,
    ) -> Result<(), String> {
        let digest = digest(behaviour);
        let target = match self.members[target].kind {
            Kind::Sub => Target::Sub,
            _ => Target::NextLevel(WorkerId::new(target as i32).unwrap()),
        };
        let submission = Submission { target, digest: &digest, config: None, members: &[args], deadline };
        self.driver.engine_mut().submit(run, &submission, &mut |_| {}).map_err(|error| error.to_string())
    }

    /// Submits a group over all NEXT_LEVEL children, or over all SUB children.
    pub(crate) fn submit_group(&mut self, run: RunId, subs: bool, behaviour: u8) -> Result<(), String> {
        let members = self.members.iter().enumerate().filter(|(_, member)| (member.kind == Kind::Sub) == subs);
        let workers: Vec<_> = members.map(|(index, _)| WorkerId::new(index as i32).unwrap()).collect();
        let (args, digest) = (TaskArgs::new(), digest(behaviour));
        let lists = vec![&args; workers.len()];
        let target = if subs { Target::SubGroup } else { Target::NextLevelGroup(&workers) };
        let submission = Submission { target, digest: &digest, config: None, members: &lists, deadline: None };
        self.driver.engine_mut().submit(run, &submission, &mut |_| {}).map_err(|error| error.to_string())
    }

    /// Drives everything in turn until nothing moves.
    pub(crate) fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..10_000 {
            let progressed = self.drive().progressed;
            for index in 0..self.members.len() {
                self.step(index);
                self.report(index);
            }
            let serving = self.members.iter().any(|member| member.life == Life::Serving && !member.parked);
            quiet = if progressed || serving { 0 } else { quiet + 1 };
            if quiet == 3 {
                return;
            }
        }
        panic!("a level that never comes to rest");
    }

    /// Drives everything in turn for `rounds` rounds.
    pub(crate) fn rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.drive();
            for index in 0..self.members.len() {
                self.step(index);
                self.report(index);
            }
        }
    }

    pub(crate) fn outcome(&self, run: RunId) -> String {
        match self.driver.engine().outcome(run) {
            None => "open".into(),
            Some(laneway_core::engine::RunOutcome::Completed) => "completed".into(),
            Some(laneway_core::engine::RunOutcome::Failed { message, .. }) => message.into(),
        }
    }
}
