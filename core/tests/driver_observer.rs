//! What a driver tells its observer, over a whole level in one thread.

use laneway_core::driver::{Doorbells, Driver, EndpointSpec, Fact, Frames, Label, Observer};
use laneway_core::engine::{Config, Dependence, Engine, Submission, Target, WorkerClass, WorkerSpec};
use laneway_core::ids::{EndpointIndex, RunId, SubId, WorkerId};
use laneway_core::lane::{Outcome, Start, poll_start, prepare_region};
use laneway_core::mailbox::{ArrayWords, LongText};
use laneway_core::model::TaskArgs;
use laneway_core::serve::{Blocking, Child, ChildSpec, Failure, Leaf, NoBell, Report, Served, Task, publish_ready};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::REGION_BYTES;
use laneway_core::wire::{AddressSpace, ChipTensor, Digest, Dtype, Protocol};

/// Keeps what it hears, without what only its reader could read.
#[derive(Debug, Default)]
struct Heard {
    rounds: u64,
    facts: Vec<(EndpointIndex, &'static str)>,
}

impl Observer for Heard {
    fn begin_round(&mut self, now: Instant) {
        assert!(now >= Instant::from_nanos(self.rounds), "rounds go forward");
        self.rounds += 1;
    }

    fn note(&mut self, endpoint: EndpointIndex, fact: Fact<'_>) {
        let name = match fact {
            Fact::Dispatched { prepare_only: true, .. } => "staging",
            Fact::Dispatched { digest, .. } if *digest == Digest([3; 32]) => "dispatched",
            Fact::Staged { .. } => "staged",
            Fact::Activated { .. } => "activated",
            Fact::Completed { outcome: Outcome::Success, .. } => "completed",
            Fact::Completed { outcome: Outcome::TaskFailure { code: 1 }, .. } => "failed",
            Fact::Completed { outcome: Outcome::Skipped, .. } => "skipped",
            Fact::ControlSent { .. } => "control sent",
            Fact::ControlEnded { succeeded: true } => "control ended",
            Fact::ControlEnded { .. } => "control failed",
            Fact::Refused { .. } => "refused",
            Fact::Rung => "rung",
            _ => "something else",
        };
        self.facts.push((endpoint, name));
    }
}

/// Fails tasks with a scalar.
struct Sub;

impl Leaf for Sub {
    fn knows(&mut self, _: &Digest) -> bool {
        true
    }
    fn run(&mut self, task: &Task<'_>, _: &mut Report) -> Result<(), Failure> {
        if task.args.scalars().is_empty() { Ok(()) } else { Err(Failure::MESSAGE) }
    }
    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        Ok(0)
    }
    fn shutdown(&mut self) {}
}

struct Nobody;

impl Doorbells for Nobody {
    fn ring(&mut self, _: EndpointIndex) {}
}

type Level<'w> = (Driver<&'w ArrayWords, Heard>, Box<Child<&'w ArrayWords, Blocking<Sub>>>);

/// A driver with one child.
fn level(words: &ArrayWords, frames: Frames) -> Level<'_> {
    prepare_region(words);
    publish_ready(words, 0);
    assert!(matches!(poll_start(words, &mut LongText::new()), Start::Ready { .. }));
    let child = Child::new(words, Blocking::new(Sub), ChildSpec { frames, protocol: Protocol::ChipTensors, depth: 0 });
    let (class, label) = match frames {
        Frames::One => (WorkerClass::Sub(SubId(0)), Label::Sub(SubId(0))),
        Frames::Two => (WorkerClass::NextLevel(worker()), Label::Worker(worker())),
    };
    let worker = WorkerSpec { class, endpoint: EndpointIndex(0), staging: frames == Frames::Two };
    let engine = Engine::new(&Config::default(), 2, &[worker]).unwrap();
    let spec = EndpointSpec {
        label,
        pid: None,
        frames,
        protocol: Protocol::ChipTensors,
        marks_acceptance: false,
        waitable: false,
        poison_grace: EndpointSpec::POISON_GRACE,
    };
    (Driver::observed(engine, [(spec, words)], Heard::default()).unwrap(), Box::new(child))
}

fn worker() -> WorkerId {
    WorkerId::new(0).unwrap()
}

fn submit(engine: &mut Engine, run: RunId, target: Target<'_>, args: &TaskArgs) {
    let submission = Submission { target, digest: &Digest([3; 32]), config: None, members: &[args], deadline: None };
    engine.submit(run, &submission, &mut |_| {}).unwrap();
}

fn drive(driver: &mut Driver<&ArrayWords, Heard>, child: &mut Child<&ArrayWords, Blocking<Sub>>) {
    while driver.step(Instant::from_nanos(1 << 40), &mut Nobody).progressed
        | (child.step(&mut NoBell) == Served::Worked)
    {}
}

fn facts(driver: &mut Driver<&ArrayWords, Heard>) -> Vec<&'static str> {
    let heard = driver.observer_mut();
    assert!(heard.rounds > 0);
    heard.facts.drain(..).map(|(endpoint, fact)| (endpoint == EndpointIndex(0)).then_some(fact).unwrap()).collect()
}

/// L-28: one end for each dispatch, and it says how.
#[test]
fn an_observer_hears_dispatches_ends_and_controls() {
    let words = ArrayWords::new(REGION_BYTES);
    let (mut driver, mut child) = level(&words, Frames::One);
    let run = driver.engine_mut().begin_run().unwrap();
    let mut failing = TaskArgs::new();
    failing.scalar(1);
    submit(driver.engine_mut(), run, Target::Sub, &TaskArgs::new());
    submit(driver.engine_mut(), run, Target::Sub, &failing);
    drive(&mut driver, &mut child);
    assert_eq!(facts(&mut driver), ["dispatched", "completed", "dispatched", "failed"]);
    let request = ControlRequest::PyUnregister { digest: Digest([3; 32]) };
    driver.control(EndpointIndex(0), &request, None, Instant::from_nanos(1 << 40)).unwrap();
    drive(&mut driver, &mut child);
    assert_eq!(facts(&mut driver), ["control sent", "control ended"]);
}

/// E-33, E-34
#[test]
fn an_observer_hears_staging_and_activation() {
    let words = ArrayWords::new(REGION_BYTES);
    let (mut driver, mut child) = level(&words, Frames::Two);
    for _ in 0..2 {
        let run = driver.engine_mut().begin_run().unwrap();
        submit(driver.engine_mut(), run, Target::NextLevel(worker()), &TaskArgs::new());
        driver.engine_mut().close_submission(run).unwrap();
    }
    driver.step(Instant::from_nanos(1 << 40), &mut Nobody);
    assert_eq!(facts(&mut driver), ["dispatched", "staging"]);
    drive(&mut driver, &mut child);
    let heard = facts(&mut driver);
    let at =
        |fact: &str| heard.iter().position(|heard| *heard == fact).unwrap_or_else(|| panic!("{fact} in {heard:?}"));
    assert!(at("completed") < at("activated") && at("staged") < at("activated"), "{heard:?}");
    assert_eq!(heard.iter().filter(|heard| **heard == "completed").count(), 2);
}

/// E-18, E-19, E-27: whom the newest task comes after, and why.
#[test]
fn the_engine_names_the_producers_of_the_newest_task() {
    let words = ArrayWords::new(REGION_BYTES);
    let (mut driver, _) = level(&words, Frames::One);
    let engine = driver.engine_mut();
    let run = engine.begin_run().unwrap();
    let tensor = |address| ChipTensor::contiguous(address, 8, Dtype::I64, &[1], AddressSpace::Host).unwrap();
    let base = 1 << 20;
    engine
        .add_range(laneway_core::engine::Range { base, bytes: 64, kind: laneway_core::engine::RangeKind::Buffer })
        .unwrap();
    let (x, y) = (tensor(base), tensor(base + 8));
    assert_eq!(engine.newest(), None);
    let mut tickets = Vec::new();
    let mut task = |engine: &mut Engine, args: &TaskArgs| {
        submit(engine, run, Target::Sub, args);
        let ticket = engine.newest().unwrap();
        assert!(!engine.has_failed(ticket));
        tickets.push(ticket);
        let place = |producer| tickets.iter().position(|ticket| *ticket == producer).unwrap();
        let mut found: Vec<_> = engine.producers(ticket).map(|(producer, why)| (place(producer), why)).collect();
        found.sort_by_key(|(producer, _)| *producer);
        found
    };
    let args = TaskArgs::new;
    assert_eq!(task(engine, args().output(x)), []);
    assert_eq!(task(engine, args().input(x).output(y)), [(0, Dependence::Data)]);
    assert_eq!(task(engine, args().input(x).input(y)), [(0, Dependence::Data), (1, Dependence::Data)]);
    // A reader that also overwrites comes after the writer, and not after other readers (E-19).
    assert_eq!(task(engine, args().inout(x)), [(0, Dependence::Data)]);
}
