//! Once a level is built, submit → dispatch → completion allocates nothing on the parent's side.

mod counting;

use counting::allocations;
use laneway_core::driver::{Doorbells, Driver, EndpointSpec, Frames, Label};
use laneway_core::engine::{Config, Engine, Submission, Target, WorkerClass, WorkerSpec};
use laneway_core::ids::{EndpointIndex, SubId};
use laneway_core::lane::{poll_start, prepare_region};
use laneway_core::mailbox::{ArrayWords, LongText};
use laneway_core::model::TaskArgs;
use laneway_core::serve::{Blocking, Child, ChildSpec, Failure, Leaf, NoBell, Report, Served, Task, publish_ready};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::REGION_BYTES;
use laneway_core::wire::{Digest, Protocol};

/// Runs whatever it is given.
struct Anything;

impl Leaf for Anything {
    fn knows(&mut self, _: &Digest) -> bool {
        true
    }
    fn run(&mut self, _: &Task<'_>, _: &mut Report) -> Result<(), Failure> {
        Ok(())
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

/// Architecture, memory is bought once.
#[test]
fn a_dispatch_allocates_nothing() {
    let words = ArrayWords::new(REGION_BYTES);
    prepare_region(&words);
    publish_ready(&words, 0);
    assert!(matches!(poll_start(&words, &mut LongText::new()), laneway_core::lane::Start::Ready { .. }));
    let child_spec = ChildSpec { frames: Frames::One, protocol: Protocol::ChipTensors, depth: 0 };
    let mut child = Box::new(Child::new(&words, Blocking::new(Anything), child_spec));
    let worker = WorkerSpec { class: WorkerClass::Sub(SubId(0)), endpoint: EndpointIndex(0), staging: false };
    let engine = Engine::new(&Config::default(), 2, &[worker]).unwrap();
    let spec = EndpointSpec {
        label: Label::Sub(SubId(0)),
        pid: None,
        frames: Frames::One,
        protocol: Protocol::ChipTensors,
        marks_acceptance: false,
        waitable: false,
        poison_grace: EndpointSpec::POISON_GRACE,
    };
    let mut driver = Driver::new(engine, [(spec, &words)]).unwrap();
    let (args, digest) = (TaskArgs::new(), Digest([3; 32]));
    let mut watches = Vec::with_capacity(8);
    let mut runs = |driver: &mut Driver<&ArrayWords>, count: u32| {
        let before = allocations();
        for _ in 0..count {
            let run = driver.engine_mut().begin_run().unwrap();
            for _ in 0..4 {
                let submission = Submission {
                    target: Target::Sub,
                    digest: &digest,
                    config: None,
                    members: &[&args],
                    deadline: None,
                };
                driver.engine_mut().submit(run, &submission, &mut |_| {}).unwrap();
            }
            driver.engine_mut().close_submission(run).unwrap();
            while !driver.engine().is_terminal(run) {
                driver.step(Instant::from_nanos(1), &mut Nobody);
                driver.watches(&mut watches);
                while child.step(&mut NoBell) == Served::Worked {}
            }
            driver.engine_mut().release(run).unwrap();
        }
        allocations() - before
    };
    runs(&mut driver, 10);
    assert_eq!(runs(&mut driver, 1_000), 0, "allocations in 4,000 dispatches");
}
