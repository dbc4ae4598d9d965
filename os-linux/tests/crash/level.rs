//! A parent with its children: the driver of the product over mapped mailboxes, woken by bells, pidfds and subtree pipes.

use std::rc::Rc;
use std::time::Duration;

use laneway_core::driver::{ControlTicket, Doorbells, Driver, EndpointSpec, ExitCause, Frames};
use laneway_core::engine::{Config, Engine, RunOutcome, Submission, Target, WorkerClass, WorkerSpec};
use laneway_core::ids::{EndpointIndex, RunId, SubId, WorkerId};
use laneway_core::lane::{Start, poll_start};
use laneway_core::mailbox::{LongText, Words};
use laneway_core::model::TaskArgs;
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::FRAME_BYTES;
use laneway_linux::sys::clock;
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::words::MappedWords;

use crate::child::{Device, serve};
use crate::kind::{Kind, digest};
use crate::seat::{HANGS, Seat, sleep, spec_of};
use crate::tripwire::Tripwire;
use crate::wire::Wire;

/// A behaviour: complete at the first poll.
pub(crate) const QUICK: u8 = 0;
/// A behaviour: complete at the fourth.
pub(crate) const SLOW: u8 = 3;

struct Rings<'a>(&'a [Seat]);

impl Doorbells for Rings<'_> {
    fn ring(&mut self, endpoint: EndpointIndex) {
        self.0[endpoint.index()].bell.ring();
    }
}

/// A level that is up.
pub(crate) struct Level<W> {
    pub(crate) driver: Driver<W>,
    pub(crate) seats: Vec<Seat>,
    pub(crate) bell: Bell,
    /// When everything that child 0 was asked for had its answer, after its end.
    pub(crate) told_at: Option<Instant>,
}

/// A level whose child 0 died before it was ready: how, and when that was known.
pub(crate) struct Stillborn {
    pub(crate) cause: ExitCause,
    pub(crate) told_at: Instant,
}

pub(crate) const fn endpoint(index: usize) -> EndpointIndex {
    EndpointIndex(index as u16)
}

impl<W: Words> Level<W> {
    /// Forks a child of each kind; child 0 dies at its place number `places` (never if that is out of reach).
    pub(crate) fn open(
        kinds: &[Kind],
        page: MappedWords,
        places: u64,
        wrap: impl Fn(MappedWords) -> W,
    ) -> Result<Self, Stillborn> {
        let bell = Bell::new().expect("a bell");
        let mut seats: Vec<Seat> = Vec::new();
        for (index, &kind) in kinds.iter().enumerate() {
            let seat = Seat::fork(kind, &bell, |words, own, lifeline| {
                let wire = Wire::new(words, page, if index == 0 { places } else { u64::MAX });
                serve(Tripwire(Rc::clone(&wire)), Device::new(kind, wire), own, &bell, lifeline)
            });
            seats.push(seat);
        }
        let mut words: Vec<_> = seats.iter().map(|seat| wrap(seat.words)).collect();
        let mut ready = vec![false; seats.len()];
        let limit = clock::now().saturating_add(HANGS);
        while ready.iter().any(|ready| !ready) {
            let mut progressed = false;
            for (ready, words) in ready.iter_mut().zip(&mut words).filter(|(ready, _)| !**ready) {
                match poll_start(words, &mut LongText::new()) {
                    Start::Starting => {}
                    Start::Ready { .. } => (*ready, progressed) = (true, true),
                    other => panic!("a child that cannot start: {other:?}"),
                }
            }
            if progressed {
                continue;
            }
            assert!(clock::now() < limit, "a child that is never ready");
            sleep(&bell, seats.iter(), limit);
            for seat in &mut seats {
                seat.look();
            }
            if let (Some(cause), false) = (seats[0].exit, ready[0]) {
                let told_at = clock::now();
                for seat in &mut seats {
                    seat.kill();
                    while !seat.gone {
                        seat.look();
                        sleep(&bell, std::iter::once(&*seat), clock::now().saturating_add(Duration::from_millis(1)));
                    }
                }
                return Err(Stillborn { cause, told_at });
            }
        }
        let workers: Vec<_> = (0..)
            .zip(&seats)
            .map(|(index, seat)| {
                let class = match seat.kind {
                    Kind::Sub => WorkerClass::Sub(SubId(index)),
                    _ => WorkerClass::NextLevel(WorkerId::new(index as i32).expect("a small number")),
                };
                let staging = seat.kind.frames() == Frames::Two;
                WorkerSpec { class, endpoint: endpoint(index as usize), staging }
            })
            .collect();
        let config =
            Config { task_window: 64, edges: 64, map_entries: 64, runs: 16, args_bytes: 1 << 16, ..Config::default() };
        let engine = Engine::new(&config, 2, &workers).expect("an engine");
        let grace = EndpointSpec::POISON_GRACE;
        let specs: Vec<_> = seats.iter().enumerate().map(|(index, seat)| spec_of(index, seat, grace)).collect();
        let driver = Driver::new(engine, specs.into_iter().zip(words)).unwrap();
        Ok(Self { driver, seats, bell, told_at: None })
    }

    /// One round of the driver and of what the kernel says about the children; whether anything changed.
    pub(crate) fn round(&mut self) -> (bool, Option<Instant>) {
        let now = clock::now();
        let mut news = false;
        for (index, seat) in self.seats.iter_mut().enumerate() {
            let (exited, gone) = seat.news();
            if let Some(cause) = exited {
                self.driver.child_exited(endpoint(index), cause, now);
            }
            if gone {
                self.driver.subtree_gone(endpoint(index));
            }
            news |= exited.is_some() || gone;
        }
        let step = self.driver.step(now, &mut Rings(&self.seats));
        let kills: Vec<_> = self.driver.take_kills().collect();
        for endpoint in kills {
            self.seats[endpoint.index()].kill();
        }
        if self.seats[0].gone && self.told_at.is_none() && !step.progressed {
            self.told_at = Some(clock::now());
        }
        (news || step.progressed, step.deadline)
    }

    /// Drives until `done`.
    pub(crate) fn drive(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let limit = clock::now().saturating_add(HANGS);
        loop {
            let (progressed, deadline) = self.round();
            if done(self) {
                return;
            }
            if progressed {
                continue;
            }
            assert!(clock::now() < limit, "never happened: {what}; {}", self.describe());
            sleep(&self.bell, self.seats.iter(), deadline.map_or(limit, |at| at.min(limit)));
        }
    }

    /// Where every child stands, for a failure.
    fn describe(&self) -> String {
        let states = |seat: &Seat| [0, 1, 2].map(|frame| seat.words.load(frame * FRAME_BYTES));
        let child = |(index, seat): (usize, &Seat)| {
            let lane = self.driver.lane(endpoint(index));
            format!("child {index}: states {:?}, exit {:?}, gone {}, lane {lane:?}", states(seat), seat.exit, seat.gone)
        };
        self.seats.iter().enumerate().map(child).collect::<Vec<_>>().join("; ")
    }

    /// Submits one task for a child; the refusal as text.
    pub(crate) fn submit(&mut self, run: RunId, target: usize, behaviour: u8) -> Result<(), String> {
        let mut args = TaskArgs::new();
        for scalar in 0..32 {
            args.scalar(scalar);
        }
        let digest = digest(behaviour);
        let target = match self.seats[target].kind {
            Kind::Sub => Target::Sub,
            _ => Target::NextLevel(WorkerId::new(target as i32).expect("a small number")),
        };
        let submission = Submission { target, digest: &digest, config: None, members: &[&args], deadline: None };
        self.driver.engine_mut().submit(run, &submission, &mut |_| {}).map_err(|error| error.to_string())
    }

    /// Begins a run with tasks, (child, behaviour) each, and closes it. Refused tasks are left out.
    pub(crate) fn run(&mut self, tasks: &[(usize, u8)]) -> RunId {
        let run = self.driver.engine_mut().begin_run().expect("a run");
        for &(target, behaviour) in tasks {
            let _ = self.submit(run, target, behaviour);
        }
        self.driver.engine_mut().close_submission(run).expect("an open run");
        run
    }

    pub(crate) fn control(
        &mut self,
        child: usize,
        request: &ControlRequest,
        timeout: Option<Duration>,
    ) -> ControlTicket {
        self.driver.control(endpoint(child), request, timeout, clock::now()).expect("room for a control")
    }

    /// Drives until a control has its answer.
    pub(crate) fn answer(&mut self, ticket: ControlTicket) -> Result<u64, String> {
        let mut answer = None;
        self.drive("a control is answered", |level| {
            answer = level.driver.control_result(ticket);
            answer.is_some()
        });
        answer.expect("it was just seen").map_err(|error| error.to_string())
    }

    pub(crate) fn is_terminal(&self, run: RunId) -> bool {
        self.driver.engine().is_terminal(run)
    }

    pub(crate) fn wait(&mut self, run: RunId) -> String {
        self.drive("a run ends", |level| level.is_terminal(run));
        self.outcome(run)
    }

    pub(crate) fn outcome(&self, run: RunId) -> String {
        match self.driver.engine().outcome(run) {
            None => "open".into(),
            Some(RunOutcome::Completed) => "completed".into(),
            Some(RunOutcome::Failed { message, .. }) => message.into(),
        }
    }

    /// Stops, drains, and waits until every child is gone; how each ended.
    pub(crate) fn close(mut self) -> Vec<ExitCause> {
        self.driver.stop();
        self.drive("all children leave", |level| {
            level.driver.is_drained() && level.seats.iter().all(|seat| seat.gone) && level.told_at.is_some()
        });
        self.seats.iter().map(|seat| seat.exit.expect("it is gone")).collect()
    }
}
