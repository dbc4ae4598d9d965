//! Small worlds, every one of them: up to three tasks, two workers, two runs, in every order of events.
//!
//! Two things are checked in every state that can be reached: no action comes without a signal before it, and when
//! there is no action, nothing is placeable (E-35). Larger worlds are walked at random. `ENGINE_WALKS` sets how many.

extern crate std;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use std::collections::HashSet;
use std::println;
use std::time::{Duration, Instant};

use crate::engine::{
    Action, Config, Engine, Outcome, Range, RangeKind, Submission, Target, Ticket, WorkerClass, WorkerSpec,
};
use crate::ids::{EndpointIndex, RunId, SubId, WorkerId};
use crate::model::TaskArgs;
use crate::wire::{AddressSpace, ChipTensor, Digest, Dtype};

const BUFFER: u64 = 0x10_0000;

fn worker(id: i32) -> WorkerId {
    WorkerId::new(id).expect("not negative")
}

fn bytes() -> ChipTensor {
    ChipTensor::contiguous(BUFFER, 64, Dtype::U8, &[64], AddressSpace::Host).expect("valid")
}

/// Where a task of a small world goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Kind {
    First,
    Second,
    Both,
    Sub,
    SubPair,
}

/// One task: its place, which of two buffers it names and how, and its run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Task {
    kind: Kind,
    argument: Argument,
    run: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Argument {
    None,
    Reads,
    Writes,
    Updates,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// Begin the next run, submit its next task, or close it: whatever the program does next.
    Program,
    Cancel(u8),
    Dead,
    End {
        task: u8,
        member: u16,
        failure: bool,
    },
}

/// What may go wrong in a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Faults {
    fail: bool,
    cancel: bool,
    death: bool,
}

const NO_FAULTS: Faults = Faults { fail: false, cancel: false, death: false };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Held {
    ticket: Ticket,
    task: u8,
    member: u16,
    endpoint: u16,
    staged: bool,
    withdrawn: bool,
}

#[derive(Clone)]
struct World {
    engine: Engine,
    tasks: Vec<Task>,
    runs: u8,
    /// Program counter: tasks submitted, runs begun, runs closed.
    submitted: usize,
    ids: Vec<RunId>,
    building: Option<u8>,
    held: Vec<Held>,
    ended: u8,
    cancelled: bool,
    dead: bool,
    /// What has happened, as it tells two states apart.
    history: Vec<u32>,
}

impl World {
    fn new(tasks: &[Task], runs: u8, workers: u16, subs: u16) -> Self {
        let mut specs = Vec::new();
        for id in 0..workers {
            let class = WorkerClass::NextLevel(worker(id.into()));
            specs.push(WorkerSpec { class, endpoint: EndpointIndex(id), staging: true });
        }
        for id in 0..subs {
            let class = WorkerClass::Sub(SubId(id.into()));
            specs.push(WorkerSpec { class, endpoint: EndpointIndex(workers + id), staging: false });
        }
        let small = Config {
            task_window: 8,
            edges: 16,
            map_entries: 8,
            group_members: 8,
            runs: 4,
            args_bytes: 4096,
            configs: 1,
            error_texts: 2,
            slabs: 2,
            ranges: 1,
            ..Config::default()
        };
        let mut engine = Engine::new(&small, 2, &specs).expect("valid");
        engine.add_range(Range { base: BUFFER, bytes: 4096, kind: RangeKind::Buffer }).expect("free");
        Self {
            engine,
            tasks: tasks.to_vec(),
            runs,
            submitted: 0,
            ids: Vec::new(),
            building: None,
            held: Vec::new(),
            ended: 0,
            cancelled: false,
            dead: false,
            history: Vec::new(),
        }
    }

    /// Everything that can happen next.
    fn events(&self, faults: Faults) -> Vec<Event> {
        let mut events = Vec::new();
        let begun = self.ids.len() as u8;
        if self.building.is_some() || (begun < self.runs && self.engine.leases().leased() < 2) {
            events.push(Event::Program);
        }
        for held in &self.held {
            events.push(Event::End { task: held.task, member: held.member, failure: false });
            if faults.fail && !held.withdrawn {
                events.push(Event::End { task: held.task, member: held.member, failure: true });
            }
        }
        if faults.cancel && !self.cancelled {
            events.extend(
                (0..begun).filter(|run| !self.engine.is_terminal(self.ids[usize::from(*run)])).map(Event::Cancel),
            );
        }
        if faults.death && !self.dead && begun > 0 {
            events.push(Event::Dead);
        }
        events
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Program => self.program(),
            Event::Cancel(run) => {
                self.cancelled = true;
                self.engine.cancel(self.ids[usize::from(run)]).expect("known");
            }
            Event::Dead => {
                self.dead = true;
                self.engine.endpoint_dead(EndpointIndex(0), "gone").expect("known");
            }
            Event::End { task, member, failure } => {
                let at = self.held.iter().position(|held| (held.task, held.member) == (task, member)).expect("held");
                let held = self.held.remove(at);
                let outcome = if held.withdrawn {
                    Outcome::Skipped
                } else if failure || held.staged {
                    Outcome::TaskFailure("bad")
                } else {
                    Outcome::Success
                };
                self.engine.completed(held.ticket, outcome);
                self.ended += 1;
            }
        }
    }

    fn program(&mut self) {
        let Some(run) = self.building else {
            self.building = Some(self.ids.len() as u8);
            self.ids.push(self.engine.begin_run().expect("a lease is free"));
            return;
        };
        let id = self.ids[usize::from(run)];
        match self.tasks.get(self.submitted) {
            Some(task) if task.run == run => {
                self.submit(id, *task);
                self.submitted += 1;
            }
            _ => {
                self.engine.close_submission(id).expect("open");
                self.building = None;
            }
        }
    }

    fn submit(&mut self, run: RunId, task: Task) {
        let mut args = TaskArgs::new();
        match task.argument {
            Argument::None => &mut args,
            Argument::Reads => args.input(bytes()),
            Argument::Writes => args.output(bytes()),
            Argument::Updates => args.inout(bytes()),
        };
        let digest = Digest([self.submitted as u8; 32]);
        let both = [worker(0), worker(1)];
        let (target, members): (_, &[&TaskArgs]) = match task.kind {
            Kind::First => (Target::NextLevel(worker(0)), &[&args]),
            Kind::Second => (Target::NextLevel(worker(1)), &[&args]),
            Kind::Both => (Target::NextLevelGroup(&both), &[&args, &args]),
            Kind::Sub => (Target::Sub, &[&args]),
            Kind::SubPair => (Target::SubGroup, &[&args, &args]),
        };
        let submission = Submission { target, digest: &digest, config: None, members, deadline: None };
        // A dead target or a cancelled run is refused; the program goes on.
        let _ = self.engine.submit(run, &submission, &mut |_| {});
    }

    /// Takes every action; `Err` says what is wrong with E-35.
    fn pump(&mut self) -> Result<(), String> {
        let mut signalled = self.engine.take_signals().work;
        while let Some(action) = self.engine.next_action() {
            if !signalled {
                return Err(format!("{action:?} without a signal"));
            }
            signalled = true;
            match action {
                Action::Dispatch { ticket, endpoint, prepare_only } => {
                    let task = self.engine.payload(ticket).expect("running").digest.0[0];
                    let (member, endpoint) = (ticket.member().0, endpoint.0);
                    self.held.push(Held { ticket, task, member, endpoint, staged: prepare_only, withdrawn: false });
                }
                Action::Activate { ticket, .. } => {
                    self.held.iter_mut().find(|held| held.ticket == ticket).expect("staged").staged = false;
                }
                Action::Withdraw { ticket, .. } => {
                    self.held.iter_mut().find(|held| held.ticket == ticket).expect("staged").withdrawn = true;
                }
            }
        }
        // An engine that looks although nothing told it to finds nothing either.
        self.engine.work = true;
        if let Some(action) = self.engine.next_action() {
            return Err(format!("{action:?} was placeable and nothing said so"));
        }
        self.held.sort_by_key(|held| (held.task, held.member));
        Ok(())
    }

    /// With nothing running, everything that was begun and closed must have ended.
    fn check_quiet(&self) -> Result<(), String> {
        if !self.held.is_empty() || self.building.is_some() {
            return Ok(());
        }
        match self.ids.iter().find(|run| !self.engine.is_terminal(**run)) {
            Some(run) => Err(format!("nothing runs and run {run} has not ended")),
            None => Ok(()),
        }
    }

    fn finish(&self) -> Result<(), String> {
        for run in &self.ids {
            if !self.engine.is_terminal(*run) {
                return Err(format!("run {run} never ends"));
            }
        }
        let mut engine = self.engine.clone();
        for run in &self.ids {
            engine.release(*run).expect("known");
        }
        if engine.usage().is_idle() { Ok(()) } else { Err(format!("left behind: {:?}", engine.usage())) }
    }
}

/// Walks every order of events; returns how many states were seen.
fn explore(world: &World, faults: Faults, seen: &mut HashSet<Vec<u32>>, until: Instant) -> u64 {
    if !seen.insert(world.history.clone()) {
        return 0;
    }
    assert!(Instant::now() < until, "the worlds have outgrown their time");
    let events = world.events(faults);
    let mut states = 1;
    if events.is_empty() {
        world.finish().unwrap_or_else(|error| panic!("{:?}: {error}", world.tasks));
        return states;
    }
    for event in events {
        let mut next = world.clone();
        next.apply(event);
        next.pump()
            .and_then(|()| next.check_quiet())
            .unwrap_or_else(|error| panic!("{:?} after {:?} then {event:?}: {error}", world.tasks, world.history));
        next.history = next.key(event, faults);
        states += explore(&next, faults, seen, until);
    }
    states
}

impl World {
    /// What decides the future: program counter, what each lane holds, what has ended and how, in order-free form.
    fn key(&self, event: Event, faults: Faults) -> Vec<u32> {
        let mut key = self.history.clone();
        let word = match event {
            Event::Program => 1 << 24,
            Event::Cancel(run) => 2 << 24 | u32::from(run),
            Event::Dead => 3 << 24,
            Event::End { task, member, failure } => {
                4 << 24 | u32::from(task) << 8 | u32::from(member) << 1 | u32::from(failure)
            }
        };
        key.push(word);
        if faults != NO_FAULTS {
            return key;
        }
        // Without faults the order of what has happened matters only through what is held now.
        let mut state = vec![self.submitted as u32, self.ids.len() as u32, u32::from(self.building.is_some())];
        state.extend(self.held.iter().map(|held| {
            u32::from(held.task) << 16
                | u32::from(held.endpoint) << 8
                | u32::from(held.member) << 1
                | u32::from(held.staged)
        }));
        state.push(u32::from(self.ended) << 24);
        state
    }
}

fn worlds(tasks: usize, kinds: &[Kind], arguments: &[Argument], runs: u8) -> Vec<Vec<Task>> {
    let mut all: Vec<Vec<Task>> = vec![Vec::new()];
    for _ in 0..tasks {
        all = all
            .into_iter()
            .flat_map(|world| {
                let first_run = world.last().map_or(0, |task| task.run);
                let mut longer = Vec::new();
                for kind in kinds {
                    for argument in arguments {
                        for run in first_run..runs {
                            let mut next = world.clone();
                            next.push(Task { kind: *kind, argument: *argument, run });
                            longer.push(next);
                        }
                    }
                }
                longer
            })
            .collect();
    }
    all
}

/// E-35, T-6, T-7, T-9: in every state of every small world, what can start has started, and a signal came before it.
#[test]
fn nothing_placeable_is_ever_left_in_any_small_world() {
    let until = Instant::now() + Duration::from_secs(60);
    let kinds = [Kind::First, Kind::Second, Kind::Both, Kind::Sub, Kind::SubPair];
    let arguments = [Argument::None, Argument::Reads, Argument::Writes, Argument::Updates];
    let (mut programs, mut states) = (0u64, 0u64);
    // All places without arguments, then all arguments in few places: the two do not mix into new waits.
    let plain = worlds(3, &kinds, &arguments[..1], 2);
    let dependent = worlds(3, &kinds[..2], &arguments, 2);
    for tasks in plain.iter().chain(&dependent) {
        // Workers 0 and 1 are alike: the first single goes to worker 0.
        let single = tasks.iter().find(|task| matches!(task.kind, Kind::First | Kind::Second));
        if single.is_some_and(|task| task.kind == Kind::Second) {
            continue;
        }
        let world = World::new(tasks, 2, 2, 2);
        states += explore(&world, NO_FAULTS, &mut HashSet::new(), until);
        programs += 1;
    }
    // With a failure of any task, a cancel or a death at any point: two tasks.
    let each =
        [Faults { fail: true, ..NO_FAULTS }, Faults { cancel: true, ..NO_FAULTS }, Faults { death: true, ..NO_FAULTS }];
    for tasks in worlds(2, &kinds[..4], &arguments[..3], 2) {
        for faults in each {
            let world = World::new(&tasks, 2, 2, 1);
            states += explore(&world, faults, &mut HashSet::new(), until);
            programs += 1;
        }
    }
    println!("{programs} small worlds, {states} states");
    assert!(programs > 1_000 && states > 50_000, "{programs} {states}");
}

/// The same over larger worlds, by seeded walks.
#[test]
fn nothing_placeable_is_ever_left_on_long_walks() {
    let walks: u64 = std::env::var("ENGINE_WALKS").ok().and_then(|value| value.parse().ok()).unwrap_or(2_000);
    let kinds = [Kind::First, Kind::Second, Kind::Both, Kind::Sub, Kind::SubPair];
    let arguments = [Argument::None, Argument::Reads, Argument::Writes, Argument::Updates];
    let mut events = 0u64;
    for seed in 0..walks {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as usize % below
        };
        let mut run = 0;
        let tasks: Vec<Task> = (0..8)
            .map(|_| {
                run = (run + draw(3) as u8 / 2).min(3);
                Task { kind: kinds[draw(5)], argument: arguments[draw(4)], run }
            })
            .collect();
        let mut world = World::new(&tasks, 4, 3, 2);
        let odds = draw(6);
        let faults = Faults { fail: odds == 0, cancel: odds <= 1, death: odds == 2 };
        loop {
            let choices = world.events(faults);
            if choices.is_empty() {
                break;
            }
            let event = choices[draw(choices.len())];
            world.apply(event);
            world
                .pump()
                .and_then(|()| world.check_quiet())
                .unwrap_or_else(|error| panic!("seed {seed}, {tasks:?}, {event:?}: {error}"));
            events += 1;
        }
        world.finish().unwrap_or_else(|error| panic!("seed {seed}, {tasks:?}: {error}"));
    }
    println!("{walks} walks, {events} events");
}
