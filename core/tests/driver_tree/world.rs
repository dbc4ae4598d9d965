//! One level: an engine with its driver, children on plain arrays, and the clock.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use laneway_core::driver::{Doorbells, Driver, EndpointSpec, ExitCause, Label, Step, Wake};
use laneway_core::engine::{Config, Engine, Range, RangeKind, Submission, Target, WorkerClass, WorkerSpec};
use laneway_core::ids::{EndpointIndex, RunId, SubId, WorkerId};
use laneway_core::lane::{Frames, Start, poll_start, prepare_region};
use laneway_core::mailbox::{ArrayWords, LongText, extension};
use laneway_core::model::TaskArgs;
use laneway_core::serve::{Child, ChildSpec, ParentBell, Served, publish_ready};
use laneway_core::time::Instant;
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype, Protocol};

use crate::device::{Device, Monitor};
use crate::kind::{Kind, digest};
use crate::mailbox::{Died, Tripwire, mailbox, put_back};

/// Buffers of a level: they exist by address only.
pub(crate) const BUFFERS: u64 = 3;
const BASE: u64 = 1 << 40;

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
            put_back(words);
        }
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
            let depth = kind.depth();
            let device = Device::new(index, kind, monitor.clone());
            publish_ready(&words, depth);
            let spec = ChildSpec { frames: kind.frames(), protocol: Protocol::ChipTensors, depth };
            let left = Rc::new(Cell::new(u64::MAX));
            let child = Child::new(Tripwire::new(words, left.clone()), device, spec);
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
                extension::announce_sleep(&member.child.words().words());
                if member.child.has_work() {
                    extension::announce_awake(&member.child.words().words());
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
