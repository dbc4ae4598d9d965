//! One level over one mailbox: the parent's path with its frame, the lane alone, and the child's side.

use std::hint::black_box;

use laneway_core::driver::{Doorbells, Driver, EndpointSpec, Frames, Label};
use laneway_core::ids::{EndpointIndex, Generation, PipelineSlot, RunId};
use laneway_core::lane::{Event, Job, Lane, Start, poll_start, prepare_region};
use laneway_core::mailbox::{Frame, LongText};
use laneway_core::model::TaskArgs;
use laneway_core::serve::{Blocking, Child, ChildSpec, Failure, Leaf, NoBell, Report, Served, Task, publish_ready};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{CallConfig, Digest, FrameState, Protocol, args};

use super::Case;
use super::engine::{TASKS, engine};
use super::load::{DIGEST, arguments, arguments_from, submission, worker};
use super::words::AtomicWords;

pub(crate) const CASES: &[Case] = &[
    Case { name: "parent with frame, no arguments", times: TASKS, run: || parent(0) },
    Case { name: "parent with frame, four tensors", times: TASKS, run: || parent(4) },
    Case { name: "lane publishes, no arguments", times: TASKS, run: || publish(0) },
    Case { name: "lane publishes, four tensors", times: TASKS, run: || publish(4) },
    Case { name: "lane polls a frame that is unchanged", times: TASKS, run: poll_idle },
    Case { name: "lane takes in a frame that is done", times: TASKS, run: take_done },
    Case { name: "child, no arguments", times: TASKS, run: || child([&arguments(0); 2]) },
    Case { name: "child, four tensors", times: TASKS, run: || child([&arguments(4); 2]) },
    Case { name: "child, four tensors, other than before", times: TASKS, run: child_of_changing_lists },
];

const NOW: Instant = Instant::from_nanos(1);

/// Knows every callable, and does nothing.
struct Anything;

impl Leaf for Anything {
    fn knows(&mut self, _: &Digest) -> bool {
        true
    }
    fn run(&mut self, task: &Task<'_>, _: &mut Report) -> Result<(), Failure> {
        black_box(task.args.tensors().as_ptr());
        Ok(())
    }
    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        Ok(0)
    }
    fn shutdown(&mut self) {}
}

type Served1 = Child<&'static AtomicWords, Blocking<Anything>>;

struct Nobody;

impl Doorbells for Nobody {
    fn ring(&mut self, _: EndpointIndex) {}
}

/// A mailbox with a child that has shown itself and is ready, and what its parent knows of it.
fn mailbox() -> (&'static AtomicWords, Box<Served1>, EndpointSpec) {
    let words: &'static AtomicWords = Box::leak(Box::new(AtomicWords::new()));
    prepare_region(words);
    publish_ready(words, 0);
    assert!(matches!(poll_start(words, &mut LongText::new()), Start::Ready { .. }));
    let spec = ChildSpec { frames: Frames::One, protocol: Protocol::ChipTensors, depth: 0 };
    let child = Box::new(Child::new(words, Blocking::new(Anything), spec));
    let endpoint = EndpointSpec {
        label: Label::Worker(worker(0)),
        pid: None,
        frames: Frames::One,
        protocol: Protocol::ChipTensors,
        marks_acceptance: false,
        waitable: true,
        poison_grace: EndpointSpec::POISON_GRACE,
    };
    (words, child, endpoint)
}

struct Level {
    driver: Driver<&'static AtomicWords>,
    child: Box<Served1>,
}

impl Level {
    fn new() -> Self {
        let (words, child, spec) = mailbox();
        Self { driver: Driver::new(engine(), [(spec, words)]).expect("an endpoint of protocol 2"), child }
    }

    fn warm_up(&mut self, args: &TaskArgs) {
        for _ in 0..3 {
            let run = begin(&mut self.driver);
            for _ in 0..TASKS {
                send(&mut self.driver, run, args);
                assert_eq!(self.child.step(&mut NoBell), Served::Worked);
                take_in(&mut self.driver);
            }
            end(&mut self.driver, run);
        }
    }
}

#[inline]
fn begin(driver: &mut Driver<&'static AtomicWords>) -> RunId {
    driver.engine_mut().begin_run().expect("a lease")
}

#[inline]
fn send(driver: &mut Driver<&'static AtomicWords>, run: RunId, args: &TaskArgs) {
    driver.engine_mut().submit(run, &submission(0, &[args]), &mut |_| {}).expect("room");
    black_box(driver.step(NOW, &mut Nobody));
}

#[inline]
fn take_in(driver: &mut Driver<&'static AtomicWords>) {
    black_box(driver.step(NOW, &mut Nobody));
    black_box(driver.engine_mut().take_signals());
}

#[inline]
fn end(driver: &mut Driver<&'static AtomicWords>, run: RunId) {
    driver.engine_mut().close_submission(run).expect("open");
    assert!(driver.engine().is_terminal(run));
    driver.engine_mut().release(run).expect("known");
}

#[inline(never)]
fn counted_begin(driver: &mut Driver<&'static AtomicWords>) -> RunId {
    begin(driver)
}

#[inline(never)]
fn counted_send(driver: &mut Driver<&'static AtomicWords>, run: RunId, args: &TaskArgs) {
    send(driver, run, args);
}

#[inline(never)]
fn counted_take_in(driver: &mut Driver<&'static AtomicWords>) {
    take_in(driver);
}

#[inline(never)]
fn counted_end(driver: &mut Driver<&'static AtomicWords>, run: RunId) {
    end(driver, run);
}

#[inline(never)]
fn counted_serve(child: &mut Served1) -> Served {
    child.step(&mut NoBell)
}

/// Submit, publication, the poll that finds the completion, release, and a 64th of the run.
fn parent(tensors: u64) {
    let (mut level, args) = (Level::new(), arguments(tensors));
    level.warm_up(&args);
    let run = counted_begin(&mut level.driver);
    for _ in 0..TASKS {
        counted_send(&mut level.driver, run, black_box(&args));
        assert_eq!(level.child.step(&mut NoBell), Served::Worked);
        counted_take_in(&mut level.driver);
    }
    counted_end(&mut level.driver, run);
}

/// From the sight of a published frame to the store of its terminal state; the lists take turns.
fn child(lists: [&TaskArgs; 2]) {
    let mut level = Level::new();
    level.warm_up(lists[0]);
    let run = begin(&mut level.driver);
    for args in lists.into_iter().cycle().take(TASKS as usize) {
        send(&mut level.driver, run, args);
        assert_eq!(counted_serve(&mut level.child), Served::Worked);
        take_in(&mut level.driver);
    }
    end(&mut level.driver, run);
}

/// No tensor is the one that stood in its place before, so that each is copied and judged.
fn child_of_changing_lists() {
    child([&arguments(4), &arguments_from(4, 4)]);
}

/// A lane without a driver, and tasks for it.
struct Pair {
    words: &'static AtomicWords,
    lane: Lane<u32, u32>,
    child: Box<Served1>,
    blob: Vec<u8>,
    text: Box<LongText>,
}

impl Pair {
    fn new(tensors: u64) -> Self {
        let (words, child, spec) = mailbox();
        let mut blob = vec![0; args::encoded_len(tensors as usize, 0, Protocol::ChipTensors).expect("few")];
        args::encode(arguments(tensors).tensors(), &[], &mut blob).expect("room");
        let mut pair = Self { words, lane: Lane::new(spec, words), child, blob, text: Box::new(LongText::new()) };
        for _ in 0..3 {
            submit(&mut pair);
            pair.finish();
        }
        pair
    }

    fn serve(&mut self) {
        assert_eq!(self.child.step(&mut NoBell), Served::Worked);
        let done = FrameState::TaskDone.raw();
        assert_eq!(Frame::task(PipelineSlot::Zero).state(self.words), done);
    }

    fn finish(&mut self) {
        self.serve();
        let event = poll(self);
        assert!(matches!(event, Some(Event::Completed { .. })), "{event:?}");
    }
}

#[inline]
fn submit(pair: &mut Pair) {
    let job = Job {
        key: 5,
        run: RunId::FIRST,
        slot: PipelineSlot::Zero,
        generation: Generation::FIRST,
        digest: &DIGEST,
        config: &CallConfig::ZERO,
        blob: &pair.blob,
        limit: None,
        prepare_only: false,
    };
    pair.lane.submit(pair.words, &job, NOW).expect("free");
}

#[inline]
fn poll(pair: &mut Pair) -> Option<Event<u32, u32>> {
    pair.lane.poll(pair.words, NOW, &mut *pair.text)
}

#[inline(never)]
fn counted_submit(pair: &mut Pair) {
    submit(pair);
}

#[inline(never)]
fn counted_poll(pair: &mut Pair) -> bool {
    poll(pair).is_some()
}

/// As the driver looks first.
#[inline(never)]
fn counted_take(pair: &mut Pair) -> bool {
    pair.lane.take_success(&pair.words).is_some()
}

fn publish(tensors: u64) {
    let mut pair = Pair::new(tensors);
    for _ in 0..TASKS {
        counted_submit(&mut pair);
        pair.finish();
    }
}

fn poll_idle() {
    let mut pair = Pair::new(0);
    submit(&mut pair);
    for _ in 0..TASKS {
        assert!(!counted_poll(&mut pair));
    }
}

fn take_done() {
    let mut pair = Pair::new(0);
    for _ in 0..TASKS {
        submit(&mut pair);
        pair.serve();
        assert!(counted_take(&mut pair));
    }
}
