//! Every interleaving of every access to a protocol word, by both halves of a mailbox, in small worlds: up to two
//! dispatches, one control, a stop, a death.
//!
//! The halves are the ones that run in production. A side is cut at each access: it is re-executed from the start of its
//! step with the answers that it has had so far, makes one new access, and is set aside at the next. Payload counts as one
//! token, the dispatch id in the trailer; what never changes in a world is no access. The order of memory is that of one
//! thread here; what weaker orders allow is for the loom models.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use laneway_core::ids::{Generation, PipelineSlot, RunId, WorkerId};
use laneway_core::lane::{EndpointSpec, Event, ExitCause, Frames, Job, Label, Lane, Outcome};
use laneway_core::mailbox::{LongText, Peer, Words};
use laneway_core::serve::{
    ChildSpec, Failure, Launch, Machine, Memory, NoBell, Poll, PrepareError, Report, Runner, Served, Task,
};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::{self, FRAME_BYTES};
use laneway_core::wire::{CallConfig, Digest, Protocol, extension};

/// The words that are modelled: state, error, shutdown of the base frame; state, error, accepted, preparation and dispatch of
/// each task frame.
const WORDS: usize = 13;

type Model = [i64; WORDS];

/// Which modelled word lies at a region offset.
fn modelled(at: usize) -> Option<usize> {
    let (index, offset) = (at / FRAME_BYTES, at % FRAME_BYTES);
    const DISPATCH: usize = frame::TRAILER + 32;
    match (index, offset) {
        (0, frame::STATE) => Some(0),
        (0, frame::ERROR) => Some(1),
        (0, frame::SHUTDOWN) => Some(2),
        (0, _) => None,
        (_, frame::STATE) => Some(5 * index - 2),
        (_, frame::ERROR) => Some(5 * index - 1),
        (_, frame::ACCEPTED) => Some(5 * index),
        (_, frame::PREPARATION) => Some(5 * index + 1),
        (_, DISPATCH) => Some(5 * index + 2),
        _ => None,
    }
}

/// What every other word holds for the whole life of a world.
fn constant(at: usize, world: &World) -> u64 {
    let (index, offset) = (at / FRAME_BYTES, at % FRAME_BYTES);
    let slot = index.saturating_sub(1) as u64;
    const RUN: usize = frame::TRAILER + 8;
    const SLOT: usize = frame::TRAILER + 16;
    const GENERATION: usize = frame::TRAILER + 24;
    const LEASED: usize = frame::LEASE + 8;
    match (index, offset) {
        (0, extension::PARENT) => extension::PARENT_MAGIC,
        (0, extension::CHILD) => extension::CHILD_MAGIC,
        (0, frame::SUBCOMMAND) => world.request().command().raw(),
        (0, _) => 0,
        (_, frame::TRAILER) => 2,
        (_, RUN) => slot + 1,
        (_, SLOT) | (_, frame::LEASE) => slot,
        (_, GENERATION) | (_, LEASED) => 1,
        _ => 0,
    }
}

/// Thrown where a side is set aside.
struct SetAside;

/// One side's view of the words: old answers first, then one new access, then the end.
struct Probe<'a> {
    world: &'a World,
    model: &'a RefCell<Model>,
    log: &'a RefCell<Vec<i64>>,
    at: Cell<usize>,
    fresh: Cell<bool>,
}

impl Probe<'_> {
    fn access(&self, perform: impl FnOnce(&mut Model) -> i64) -> i64 {
        let at = self.at.replace(self.at.get() + 1);
        if let Some(answer) = self.log.borrow().get(at) {
            return *answer;
        }
        if self.fresh.replace(true) {
            resume_unwind(Box::new(SetAside));
        }
        let answer = perform(&mut self.model.borrow_mut());
        self.log.borrow_mut().push(answer);
        answer
    }
}

impl Words for Probe<'_> {
    fn load(&self, at: usize) -> i32 {
        match modelled(at) {
            Some(word) => self.access(|model| model[word]) as i32,
            None => 0,
        }
    }

    fn load_relaxed(&self, at: usize) -> i32 {
        self.load(at)
    }

    fn store(&self, at: usize, value: i32) {
        if let Some(word) = modelled(at) {
            self.access(|model| {
                model[word] = value.into();
                0
            });
        }
    }

    fn store_relaxed(&self, at: usize, value: i32) {
        self.store(at, value);
    }

    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        let word = modelled(at).expect("only modelled words are exchanged");
        let found = self.access(|model| {
            let found = model[word];
            if found == i64::from(expected) && !self.world.exchanges_nothing {
                model[word] = new.into();
            }
            found
        }) as i32;
        if found == expected { Ok(()) } else { Err(found) }
    }

    fn fence(&self) {}

    fn read(&self, at: usize) -> u64 {
        match modelled(at) {
            Some(word) => self.access(|model| model[word]) as u64,
            None => constant(at, self.world),
        }
    }

    fn write(&self, at: usize, value: u64) {
        if let Some(word) = modelled(at) {
            self.access(|model| {
                model[word] = value as i64;
                0
            });
        }
    }
}

/// A small world: what may happen in it.
#[derive(Clone, Copy, Debug)]
struct World {
    frames: Frames,
    /// Frame and whether it is staged, for dispatch 1 and 2.
    tasks: &'static [(PipelineSlot, bool)],
    concurrent: bool,
    control: bool,
    registry: bool,
    stop: bool,
    death: bool,
    withdraw: bool,
    /// The parent may die between two accesses; its child learns of it between two steps.
    parent_death: bool,
    /// A fault of the memory itself: compare-exchange never writes.
    exchanges_nothing: bool,
}

impl World {
    const fn request(&self) -> ControlRequest {
        if self.registry {
            ControlRequest::Unregister { digest: Digest([5; 32]) }
        } else {
            ControlRequest::Malloc { bytes: 0 }
        }
    }
}

/// A device that accepts and completes when the world says so.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Rig {
    concurrent: bool,
    next: u8,
    /// Token and dispatch.
    prepared: Vec<(u8, u64)>,
    launched: Option<(u8, u64)>,
    accepted: bool,
    done: bool,
    /// Dispatches that ran to their end and were finalised.
    finished: Vec<u64>,
    shut: bool,
}

impl Rig {
    fn holds(&self, dispatch: u64) -> bool {
        self.prepared.iter().chain(&self.launched).any(|(_, held)| *held == dispatch)
    }
}

impl Runner for Rig {
    type Token = u8;

    fn knows(&mut self, _: &Digest) -> bool {
        true
    }

    fn prepares_concurrently(&self) -> bool {
        self.concurrent
    }

    fn prepare(&mut self, task: &Task<'_>, _: &mut Report) -> Result<u8, PrepareError> {
        let others = self.prepared.len() + usize::from(self.launched.is_some());
        assert!(others <= usize::from(self.concurrent), "L-12: {others} runs are there already");
        self.next += 1;
        self.prepared.push((self.next, task.identity.dispatch.get()));
        Ok(self.next)
    }

    fn launch(&mut self, token: u8, task: &Task<'_>, _: &mut Report) -> Result<Launch, Failure> {
        assert!(self.launched.is_none(), "L-14");
        assert!(self.prepared.contains(&(token, task.identity.dispatch.get())), "launch of what is not prepared");
        assert!(!self.finished.contains(&task.identity.dispatch.get()), "a dispatch runs twice");
        self.prepared.retain(|(prepared, _)| *prepared != token);
        self.launched = Some((token, task.identity.dispatch.get()));
        (self.accepted, self.done) = (false, false);
        Ok(Launch::Running)
    }

    fn accepted(&mut self, _: u8) -> bool {
        self.accepted
    }

    fn poll(&mut self, token: u8, _: &mut Report) -> Result<Poll, Failure> {
        assert!(self.launched.is_some_and(|(launched, _)| launched == token));
        Ok(if self.done { Poll::Complete } else { Poll::NotReady })
    }

    fn finalize(&mut self, token: u8, _: &mut Report) -> Result<(), Failure> {
        match self.launched {
            Some((launched, dispatch)) if launched == token => {
                if self.done {
                    self.finished.push(dispatch);
                }
                self.launched = None;
            }
            _ => {
                let before = self.prepared.len();
                self.prepared.retain(|(prepared, _)| *prepared != token);
                assert_eq!(self.prepared.len() + 1, before, "L-15: run {token} finalised twice");
            }
        }
        Ok(())
    }

    fn control(&mut self, request: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        if matches!(request, ControlRequest::Unregister { .. }) {
            assert!(self.prepared.is_empty() && self.launched.is_none(), "L-21: a registry control beside a run");
        }
        Ok(0)
    }

    fn shutdown(&mut self) {
        assert!(self.prepared.is_empty() && self.launched.is_none(), "L-15: a run leaks at shutdown");
        assert!(!self.shut, "closed twice");
        self.shut = true;
    }
}

/// What the parent does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Op {
    Poll,
    Submit(u8),
    Activate(u8),
    Withdraw(u8),
    Control,
    Stop,
    Died,
    SubtreeGone,
}

/// What the parent side has seen of each dispatch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct History {
    submitted: Vec<u8>,
    accepted: Vec<u8>,
    ended: Vec<u8>,
    control_asked: bool,
    control_ended: bool,
    withdrawn: bool,
    stopped: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Parent {
    lane: Lane<u8, u8>,
    history: History,
    op: Option<Op>,
    log: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Life {
    Serving,
    Left,
    Killed,
    Reported,
    Gone,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Offspring {
    machine: Machine<u8>,
    rig: Rig,
    /// The device as it is inside the step that is under way.
    rig_now: Rig,
    log: Vec<i64>,
    life: Life,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Node {
    model: Model,
    parent: Parent,
    parent_gone: bool,
    child: Offspring,
}

const NOW: Instant = Instant::from_nanos(1);

impl Node {
    fn start(world: &World) -> Self {
        let model = RefCell::new([0; WORDS]);
        let log = RefCell::new(Vec::new());
        let probe = Probe { world, model: &model, log: &log, at: Cell::new(0), fresh: Cell::new(false) };
        let spec = EndpointSpec {
            label: Label::Worker(WorkerId::new(0).unwrap()),
            pid: None,
            frames: world.frames,
            protocol: Protocol::ChipTensors,
            marks_acceptance: true,
            waitable: true,
            poison_grace: EndpointSpec::POISON_GRACE,
        };
        let lane = Lane::new(spec, &probe);
        let spec = ChildSpec { frames: world.frames, protocol: Protocol::ChipTensors, depth: 2 };
        let rig = Rig { concurrent: world.concurrent, ..Rig::default() };
        Self {
            model: [0; WORDS],
            parent: Parent { lane, history: History::default(), op: None, log: Vec::new() },
            parent_gone: false,
            child: Offspring {
                machine: Machine::new(spec, Peer::Known),
                rig_now: rig.clone(),
                rig,
                log: Vec::new(),
                life: Life::Serving,
            },
        }
    }

    /// What the parent may begin now.
    fn ops(&self, world: &World) -> Vec<Op> {
        let (lane, history) = (&self.parent.lane, &self.parent.history);
        let mut ops = vec![Op::Poll];
        let open = lane.poison().is_none() && !history.stopped;
        let next = history.submitted.len();
        if open && let Some((slot, prepare_only)) = world.tasks.get(next) {
            let vacant = if *prepare_only { lane.staged().is_none() } else { lane.active().is_none() };
            let frame_free = history
                .submitted
                .iter()
                .all(|key| history.ended.contains(key) || world.tasks[usize::from(*key) - 1].0 != *slot);
            if vacant && frame_free && !lane.is_held_back(*prepare_only) {
                ops.push(Op::Submit(next as u8 + 1));
            }
        }
        if open
            && lane.active().is_none()
            && let Some(staged) = lane.staged()
            && !history.withdrawn
        {
            ops.push(Op::Activate(staged.key));
        }
        if open
            && world.withdraw
            && !history.withdrawn
            && let Some(staged) = lane.staged()
        {
            ops.push(Op::Withdraw(staged.key));
        }
        if open && world.control && !history.control_asked {
            ops.push(Op::Control);
        }
        if world.stop && !history.stopped && lane.poison().is_none() {
            ops.push(Op::Stop);
        }
        match self.child.life {
            Life::Left | Life::Killed => ops.push(Op::Died),
            Life::Reported => ops.push(Op::SubtreeGone),
            Life::Serving | Life::Gone => {}
        }
        ops
    }

    /// Everything that can happen next.
    fn successors(&self, world: &World, memory: &mut Memory) -> Vec<Self> {
        let mut next = Vec::new();
        if self.parent_gone {
            if self.child.log.is_empty() && self.child.life == Life::Serving {
                let mut node = self.clone();
                node.child.machine.orphaned();
                next.push(node);
            }
        } else if world.parent_death {
            let mut node = self.clone();
            node.parent_gone = true;
            (node.parent.op, node.parent.log) = (None, Vec::new());
            next.push(node);
        }
        match self.parent.op {
            _ if self.parent_gone => {}
            Some(_) => next.push(self.advance_parent(world)),
            None => {
                for op in self.ops(world) {
                    let mut node = self.clone();
                    node.parent.op = Some(op);
                    next.push(node.advance_parent(world));
                }
            }
        }
        if self.child.life == Life::Serving {
            next.push(self.advance_child(world, memory));
            let rig = &self.child.rig;
            // The device moves between steps of its child; inside one nothing would tell the difference.
            if rig.launched.is_some() && self.child.log.is_empty() && !rig.done {
                let mut node = self.clone();
                let rig = &mut node.child.rig;
                (rig.accepted, rig.done) = (true, rig.accepted);
                node.child.rig_now = node.child.rig.clone();
                next.push(node);
            }
            if world.death {
                let mut node = self.clone();
                node.child.life = Life::Killed;
                node.child.log.clear();
                next.push(node);
            }
        }
        next
    }

    fn advance_parent(&self, world: &World) -> Self {
        let mut node = self.clone();
        let model = RefCell::new(self.model);
        let log = RefCell::new(self.parent.log.clone());
        let probe = Probe { world, model: &model, log: &log, at: Cell::new(0), fresh: Cell::new(false) };
        let op = self.parent.op.expect("an operation is under way");
        let (mut lane, mut history) = (self.parent.lane.clone(), self.parent.history.clone());
        let mut life = self.child.life;
        let finished = run(|| perform(op, world, &probe, &mut lane, &mut history, &mut life, &self.child));
        node.model = model.into_inner();
        if finished {
            lane.take_published();
            node.parent = Parent { lane, history, op: None, log: Vec::new() };
            node.child.life = life;
        } else {
            node.parent.log = log.into_inner();
        }
        node
    }

    fn advance_child(&self, world: &World, memory: &mut Memory) -> Self {
        let mut node = self.clone();
        let model = RefCell::new(self.model);
        let log = RefCell::new(self.child.log.clone());
        let probe = Probe { world, model: &model, log: &log, at: Cell::new(0), fresh: Cell::new(false) };
        let (mut machine, mut rig) = (self.child.machine, self.child.rig.clone());
        let mut served = Served::Idle;
        let finished = run(|| served = machine.step(&probe, &mut rig, memory, &mut NoBell));
        node.model = model.into_inner();
        node.child.rig_now = rig.clone();
        if finished {
            node.child = Offspring { machine, rig_now: rig.clone(), rig, log: Vec::new(), life: Life::Serving };
            if let Served::Exit(code) = served {
                assert_eq!(code, 0, "L-31: the child left because of {:?}", node.child.machine);
                node.child.life = Life::Left;
            }
        } else {
            node.child.log = log.into_inner();
        }
        node
    }

    /// Everything that was asked for has come to its end.
    fn is_final(&self, world: &World) -> bool {
        if self.parent_gone {
            return self.child.life == Life::Left && self.child.rig.shut;
        }
        let history = &self.parent.history;
        self.parent.op.is_none()
            && history.ended.len() == history.submitted.len()
            && (history.submitted.len() == world.tasks.len() || history.stopped || self.parent.lane.poison().is_some())
            && history.control_asked == history.control_ended
            && (!history.stopped || self.child.life != Life::Serving)
    }
}

/// Runs a side until its end (`true`) or until it is set aside (`false`).
fn run(side: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(side)) {
        Ok(()) => true,
        Err(thrown) if thrown.is::<SetAside>() => false,
        Err(panic) => resume_unwind(panic),
    }
}

fn perform(
    op: Op,
    world: &World,
    words: &Probe<'_>,
    lane: &mut Lane<u8, u8>,
    history: &mut History,
    life: &mut Life,
    child: &Offspring,
) {
    match op {
        Op::Poll => {
            take_events(words, lane, history, child);
            if lane.wants_shutdown() {
                lane.request_stop(words);
            }
        }
        Op::Submit(key) => {
            let (slot, prepare_only) = world.tasks[usize::from(key) - 1];
            let job = Job {
                key,
                run: RunId::new(slot.index() as u64 + 1).unwrap(),
                slot,
                generation: Generation::FIRST,
                digest: &Digest::ZERO,
                config: &CallConfig::ZERO,
                blob: &[0; 8],
                limit: None,
                prepare_only,
            };
            lane.submit(words, &job, NOW).expect("an open lane with a vacancy takes a task");
            history.submitted.push(key);
        }
        Op::Activate(_) => {
            let run = lane.staged().expect("something is staged").identity.run;
            lane.activate(words, run, NOW).expect("the active lane is free");
        }
        Op::Withdraw(key) => {
            lane.withdraw(words, key, NOW).expect("it is staged");
            history.withdrawn = true;
        }
        Op::Control => {
            lane.control(words, 1, &world.request(), None, NOW).expect("no control is outstanding");
            history.control_asked = true;
        }
        Op::Stop => {
            lane.stop();
            history.stopped = true;
        }
        Op::Died => {
            // What the child published before it ended is taken in first, as the driver does.
            take_events(words, lane, history, child);
            let cause = match life {
                Life::Killed => ExitCause::Signalled { pid: 1, signal: 9, unexpected: true, memory_limit: None },
                _ => ExitCause::Exited { pid: 1, status: 0 },
            };
            lane.child_exited(cause, NOW);
            *life = Life::Reported;
        }
        Op::SubtreeGone => {
            lane.subtree_gone();
            *life = Life::Gone;
        }
    }
}

/// Takes everything in that the lane reports, and holds it against what happened.
fn take_events(words: &Probe<'_>, lane: &mut Lane<u8, u8>, history: &mut History, child: &Offspring) {
    let mut text = LongText::new();
    while let Some(event) = lane.poll(words, NOW, &mut text) {
        match event {
            Event::Staged { .. } => {}
            Event::Accepted { key } => {
                assert!(!history.ended.contains(&key), "L-18: accepted after it ended");
                assert!(!history.accepted.contains(&key), "L-18: accepted twice");
                history.accepted.push(key);
            }
            Event::Completed { key, outcome } => {
                assert!(!history.ended.contains(&key), "L-2: dispatch {key} ended twice");
                let dispatch = u64::from(key);
                match outcome {
                    Outcome::Success => {
                        assert!(child.rig_now.finished.contains(&dispatch), "success of what did not run")
                    }
                    Outcome::TaskFailure { .. } | Outcome::Skipped if child.life == Life::Serving => {
                        assert!(!child.rig_now.holds(dispatch), "L-27: ended while the device has it");
                    }
                    Outcome::TaskFailure { .. } | Outcome::Skipped => {}
                    Outcome::EndpointFailure { .. } => {
                        assert_eq!(child.life, Life::Gone, "L-27: given back before the subtree was gone");
                    }
                }
                history.ended.push(key);
            }
            Event::Control { .. } => {
                assert!(!history.control_ended, "a control ends twice");
                history.control_ended = true;
            }
            Event::Poisoned { reason } => {
                assert!(child.life != Life::Serving, "a living child was poisoned: {reason}");
            }
        }
    }
}

/// Two independent multiply-and-rotate folds: 128 bits, so that among ten million states no two are taken for one.
struct Fold(u64, u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
        self.1 = (self.1.rotate_left(29) ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.1
    }
}

fn fingerprint(node: &Node) -> u128 {
    let mut fold = Fold(1, 2);
    node.hash(&mut fold);
    u128::from(fold.0) | u128::from(fold.1) << 64
}

/// Visits every reachable state; from each of them a final one must be reachable, or something can be lost for good.
fn explore(name: &str, world: &World) -> usize {
    let mut memory = Memory::new();
    let mut known: HashMap<u128, u32> = HashMap::new();
    let mut frontier = vec![(0_u32, Node::start(world))];
    let mut before: Vec<Vec<u32>> = vec![Vec::new()];
    let mut finals = Vec::new();
    known.insert(fingerprint(&frontier[0].1), 0);
    while let Some((id, node)) = frontier.pop() {
        if node.is_final(world) {
            finals.push(id);
        }
        for next in node.successors(world, &mut memory) {
            let fresh = known.len() as u32;
            let to = *known.entry(fingerprint(&next)).or_insert(fresh);
            if to == fresh {
                before.push(Vec::new());
                frontier.push((to, next));
            }
            before[to as usize].push(id);
        }
        assert!(known.len() < 10_000_000, "{name}: more states than were meant");
    }
    let mut ends = vec![false; before.len()];
    let mut work = finals;
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut ends[id as usize], true) {
            work.extend(&before[id as usize]);
        }
    }
    let lost = ends.iter().filter(|end| !**end).count();
    assert_eq!(lost, 0, "{name}: {lost} states from which nothing ends any more");
    println!("{name}: {} states", before.len());
    before.len()
}

const ZERO: PipelineSlot = PipelineSlot::Zero;
const ONE: PipelineSlot = PipelineSlot::One;
const ONE_TASK: &[(PipelineSlot, bool)] = &[(ZERO, false)];
const SAME_FRAME: &[(PipelineSlot, bool)] = &[(ZERO, false), (ZERO, false)];
const SUCCESSOR: &[(PipelineSlot, bool)] = &[(ZERO, false), (ONE, true)];
const STAGED_FIRST: &[(PipelineSlot, bool)] = &[(ONE, true), (ZERO, false)];

const QUIET: World = World {
    frames: Frames::One,
    tasks: SAME_FRAME,
    concurrent: false,
    control: false,
    registry: false,
    stop: false,
    death: false,
    withdraw: false,
    parent_death: false,
    exchanges_nothing: false,
};

const TWO: World = World { frames: Frames::Two, tasks: SUCCESSOR, concurrent: true, ..QUIET };

/// L-3, L-17, L-18, L-28 … L-31, L-33
#[test]
fn one_frame_with_a_control_a_stop_and_a_death() {
    let total = explore("one frame, control", &World { control: true, ..QUIET })
        + explore("one frame, control, stop", &World { control: true, stop: true, tasks: ONE_TASK, ..QUIET })
        + explore("one frame, two tasks, stop, death", &World { stop: true, death: true, ..QUIET })
        + explore("one frame, registry control, death", &World { control: true, registry: true, death: true, ..QUIET });
    println!("one frame: {total} states in all");
}

/// L-8 … L-16
#[test]
fn two_frames_with_a_successor() {
    let total = explore("two frames, prepared successor", &TWO)
        + explore("two frames, validated successor", &World { concurrent: false, ..TWO })
        + explore("two frames, one run", &World { tasks: SAME_FRAME, ..TWO })
        + explore("two frames, successor first", &World { tasks: STAGED_FIRST, ..TWO });
    println!("two frames: {total} states in all");
}

/// L-20, L-21, L-38
#[test]
fn two_frames_with_withdrawal_and_controls() {
    let total = explore("two frames, withdrawal", &World { withdraw: true, ..TWO })
        + explore("two frames, control", &World { control: true, tasks: ONE_TASK, ..TWO })
        + explore("two frames, registry control", &World { control: true, registry: true, ..TWO });
    println!("two frames: {total} states in all");
}

/// L-25 … L-31
#[test]
fn two_frames_with_a_stop_and_a_death() {
    let total = explore("two frames, stop", &World { stop: true, ..TWO })
        + explore("two frames, death", &World { death: true, ..TWO });
    println!("two frames: {total} states in all");
}

/// L-31, L-32: wherever its parent dies, the child can leave in order, with every run finalised and the device closed.
#[test]
fn a_child_outlives_its_parent_in_order() {
    let total = explore("one frame, parent dies", &World { control: true, parent_death: true, ..QUIET })
        + explore("two frames, parent dies", &World { parent_death: true, ..TWO });
    println!("parent dies: {total} states in all");
}

/// L-8: the check itself. An activation that never reaches the word is found.
#[test]
#[should_panic(expected = "a living child was poisoned")]
fn a_lost_activation_would_be_found() {
    explore("exchange that writes nothing", &World { exchanges_nothing: true, ..TWO });
}

/// Everything at once.
#[test]
fn two_frames_with_everything() {
    let all = World { control: true, stop: true, death: true, withdraw: true, ..TWO };
    explore("two frames, everything", &all);
}
