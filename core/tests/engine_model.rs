//! Random programs, fed to the engine and to a reference that is slow and obvious (`engine_reference`).
//!
//! `ENGINE_PROGRAMS` sets how many programs of each family are run, `ENGINE_SEED` where they start; a failure prints
//! the seed and the smallest program that shows it.

mod engine_reference;
mod engine_support;

use std::collections::BTreeMap;

use engine_reference::{Argument, Model, Place, State, writes};
use engine_support::{BUFFER, BUFFER_BYTES, RING, RING_BYTES, config, worker};
use laneway_core::engine::{
    Action, Config, Engine, EngineError, Memory, Outcome, Range, RangeKind, Report, RunOutcome, Submission, Target,
    Ticket, Usage, WorkerClass, WorkerSpec,
};
use laneway_core::ids::{EndpointIndex, RunId, SubId};
use laneway_core::model::{TaskArgs, overlap};
use laneway_core::wire::{AddressSpace, CallConfig, ChipTensor, Digest, Dtype, TensorTag};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, RngAlgorithm, TestError, TestRng, TestRunner};

const NEXT: u16 = 3;
const SUBS: u16 = 2;

/// What an argument looks at. The tidy half can be decided exactly from both sides.
#[derive(Clone, Copy, Debug)]
enum View {
    /// Contiguous bytes of the buffer, in units of 16.
    Slice { at: u8, len: u8 },
    /// A tile of the 8 × 8 matrix of f32 at the start of the buffer.
    Tile { row: u8, column: u8, rows: u8, columns: u8 },
    /// The whole matrix.
    Whole,
    /// Part of a slab that the run allocated, or once did.
    Slab { which: u8, half: u8 },
    /// Device memory of the task's worker.
    Device { at: u8, len: u8 },
    /// Outputs only: to be allocated.
    Fresh { kib: u8 },
    /// A tile as columns by rows.
    Transposed { row: u8, column: u8, rows: u8, columns: u8 },
    /// Every second or third element.
    Strided { at: u8, count: u8, step: u8 },
    /// A slice whose buffer starts in the middle of the registered one.
    Rebased { at: u8, len: u8 },
    /// Tiles of three dimensions: 2 × 4 × 8 elements of the matrix.
    Cube { plane: u8, row: u8, column: u8, columns: u8 },
}

#[derive(Clone, Debug)]
enum Op {
    Begin,
    Close,
    Fail,
    Cancel { which: u8 },
    ScopeBegin,
    ScopeEnd,
    Alloc { kib: u8 },
    Single { worker: u8, diagnostic: bool, arguments: Vec<(View, u8)> },
    Sub { arguments: Vec<(View, u8)> },
    Group { first: u8, members: Vec<Vec<(View, u8)>> },
    SubGroup { members: Vec<Vec<(View, u8)>> },
    Pump,
    End { which: u8, failure: bool },
    Accept { which: u8 },
    Late,
    Dead { endpoint: u8 },
}

fn tidy() -> impl Strategy<Value = View> {
    prop_oneof![
        3 => (0u8..16, 1u8..6).prop_map(|(at, len)| View::Slice { at, len }),
        4 => (0u8..8, 0u8..8, 1u8..5, 1u8..5)
            .prop_map(|(row, column, rows, columns)| View::Tile { row, column, rows, columns }),
        1 => Just(View::Whole),
        2 => (any::<u8>(), 0u8..3).prop_map(|(which, half)| View::Slab { which, half }),
        1 => (0u8..8, 1u8..4).prop_map(|(at, len)| View::Device { at, len }),
        1 => (1u8..6).prop_map(|kib| View::Fresh { kib }),
    ]
}

fn wild() -> impl Strategy<Value = View> {
    prop_oneof![
        3 => tidy(),
        1 => (0u8..8, 0u8..8, 1u8..5, 1u8..5)
            .prop_map(|(row, column, rows, columns)| View::Transposed { row, column, rows, columns }),
        1 => (0u8..64, 1u8..10, 2u8..4).prop_map(|(at, count, step)| View::Strided { at, count, step }),
        1 => (4u8..16, 1u8..6).prop_map(|(at, len)| View::Rebased { at, len }),
        1 => (0u8..2, 0u8..4, 0u8..8, 1u8..5)
            .prop_map(|(plane, row, column, columns)| View::Cube { plane, row, column, columns }),
    ]
}

fn op(view: impl Strategy<Value = View> + Clone + 'static) -> impl Strategy<Value = Op> {
    let list = |view, most| prop::collection::vec((view, 0u8..5), 0..most);
    prop_oneof![
        4 => Just(Op::Begin),
        2 => Just(Op::Close),
        1 => prop_oneof![3 => Just(Op::Fail), 2 => any::<u8>().prop_map(|which| Op::Cancel { which })],
        2 => Just(Op::ScopeBegin),
        2 => Just(Op::ScopeEnd),
        2 => (1u8..20).prop_map(|kib| Op::Alloc { kib }),
        16 => (0u8..NEXT as u8, prop::bool::weighted(0.1), list(view.clone(), 4))
            .prop_map(|(worker, diagnostic, arguments)| Op::Single { worker, diagnostic, arguments }),
        4 => list(view.clone(), 3).prop_map(|arguments| Op::Sub { arguments }),
        2 => (0u8..NEXT as u8, prop::collection::vec(list(view.clone(), 3), 1..4))
            .prop_map(|(first, members)| Op::Group { first, members }),
        1 => prop::collection::vec(list(view, 2), 1..3).prop_map(|members| Op::SubGroup { members }),
        8 => Just(Op::Pump),
        16 => (any::<u8>(), prop::bool::weighted(0.08)).prop_map(|(which, failure)| Op::End { which, failure }),
        2 => any::<u8>().prop_map(|which| Op::Accept { which }),
        1 => Just(Op::Late),
        1 => (0u8..30).prop_map(|endpoint| Op::Dead { endpoint }),
    ]
}

/// How much room a program has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    Ample,
    Tiny,
}

#[derive(Clone, Debug)]
struct Program {
    room: Room,
    depth: usize,
    strict_war: bool,
    /// Every view can be decided exactly.
    tidy: bool,
    ops: Vec<Op>,
}

fn program(is_tidy: bool) -> impl Strategy<Value = Program> {
    let view = if is_tidy { tidy().boxed() } else { wild().boxed() };
    let room = prop_oneof![3 => Just(Room::Ample), 1 => Just(Room::Tiny)];
    (room, 1usize..3, prop::bool::weighted(0.2), prop::collection::vec(op(view), 1..70))
        .prop_map(move |(room, depth, strict_war, ops)| Program { room, depth, strict_war, tidy: is_tidy, ops })
}

/// A dispatch that an endpoint holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    ticket: Ticket,
    task: usize,
    endpoint: u16,
    staged: bool,
    withdrawn: bool,
}

#[derive(Clone, Debug)]
struct Run {
    id: RunId,
    scopes: Vec<Vec<usize>>,
    closed: bool,
    aborted: bool,
    executed: bool,
    used: bool,
    failed: bool,
    terminal: bool,
}

struct Sim {
    engine: Engine,
    model: Model,
    tidy: bool,
    runs: Vec<Run>,
    building: Option<usize>,
    held: Vec<Held>,
    /// Members of each running task that have not reported, and its first error.
    left: BTreeMap<usize, (usize, Option<String>)>,
    dead: Vec<u16>,
    last: Option<Ticket>,
    /// Sweeps of the engine that the reference has followed.
    sweeps: u64,
}

fn pools(room: Room, strict_war: bool) -> Config {
    let ample = Config { strict_war, ..config() };
    match room {
        Room::Ample => ample,
        Room::Tiny => {
            let mut tiny = Config {
                task_window: 5,
                edges: 4,
                map_entries: 5,
                group_members: 3,
                args_bytes: 1280,
                configs: 1,
                error_texts: 1,
                slabs: 3,
                ..ample
            };
            tiny.rings[0].bytes = 16 << 10;
            tiny
        }
    }
}

impl Sim {
    fn new(program: &Program) -> Self {
        let mut specs = Vec::new();
        for id in 0..NEXT {
            let class = WorkerClass::NextLevel(worker(id.into()));
            specs.push(WorkerSpec { class, endpoint: EndpointIndex(id), staging: id != 1 });
        }
        for id in 0..SUBS {
            let class = WorkerClass::Sub(SubId(id.into()));
            specs.push(WorkerSpec { class, endpoint: EndpointIndex(NEXT + id), staging: false });
        }
        let pools = pools(program.room, program.strict_war);
        let mut engine = Engine::new(&pools, program.depth, &specs).expect("a valid config");
        engine.add_range(Range { base: BUFFER, bytes: BUFFER_BYTES, kind: RangeKind::Buffer }).expect("free");
        Self {
            sweeps: 0,
            engine,
            model: Model::new(program.strict_war),
            tidy: program.tidy,
            runs: Vec::new(),
            building: None,
            held: Vec::new(),
            left: BTreeMap::new(),
            dead: Vec::new(),
            last: None,
        }
    }

    fn live_subs(&self) -> usize {
        (NEXT..NEXT + SUBS).filter(|endpoint| !self.dead.contains(endpoint)).count()
    }

    /// Open runs, oldest first.
    fn fifo(&self) -> Vec<usize> {
        (0..self.runs.len()).filter(|run| !self.runs[*run].terminal).collect()
    }

    fn index_of(&self, run: RunId) -> usize {
        self.runs.iter().position(|candidate| candidate.id == run).expect("begun")
    }

    fn tensor(&self, view: View, tag: TensorTag) -> Option<ChipTensor> {
        let f32s = |shape: &[u32], strides: &[u32], start: u64| {
            ChipTensor::strided(BUFFER, 256, Dtype::F32, shape, strides, start, AddressSpace::Host).ok()
        };
        let flat = |address: u64, bytes: u64, space| {
            ChipTensor::contiguous(address, bytes, Dtype::U8, &[bytes as u32], space).ok()
        };
        match view {
            View::Slice { at, len } => flat(BUFFER + u64::from(at) * 16, u64::from(len) * 16, AddressSpace::Host),
            View::Tile { row, column, rows, columns } => {
                let (rows, columns) = (rows.min(8 - row), columns.min(8 - column));
                f32s(&[rows.into(), columns.into()], &[8, 1], u64::from(row) * 8 + u64::from(column))
            }
            View::Whole => f32s(&[8, 8], &[8, 1], 0),
            View::Slab { which, half } => {
                let slabs: Vec<_> = self.model.tasks.iter().filter_map(|task| task.slab).collect();
                let (start, end) = *slabs.get(usize::from(which) % slabs.len().max(1))?;
                match half {
                    0 => flat(start, end - start, AddressSpace::Host),
                    1 => flat(start, 512, AddressSpace::Host),
                    _ => flat(start + 512, 512, AddressSpace::Host),
                }
            }
            View::Device { at, len } => flat(0x9000 + u64::from(at) * 16, u64::from(len) * 16, AddressSpace::Device),
            View::Fresh { kib } if tag == TensorTag::Output => flat(0, u64::from(kib) * 1000, AddressSpace::Host),
            View::Fresh { .. } => None,
            View::Transposed { row, column, rows, columns } => {
                let (rows, columns) = (rows.min(8 - row), columns.min(8 - column));
                f32s(&[columns.into(), rows.into()], &[1, 8], u64::from(row) * 8 + u64::from(column))
            }
            View::Strided { at, count, step } => f32s(&[count.into()], &[step.into()], at.into()),
            View::Rebased { at, len } => {
                let base = BUFFER + 64;
                let start = u64::from(at) * 16 - 64;
                let len = u32::from(len) * 16;
                ChipTensor::strided(base, 4096, Dtype::U8, &[len], &[1], start, AddressSpace::Host).ok()
            }
            View::Cube { plane, row, column, columns } => {
                let columns = columns.min(8 - column);
                let start = u64::from(plane) * 32 + u64::from(row) * 8 + u64::from(column);
                f32s(&[2 - u32::from(plane), 4 - u32::from(row), columns.into()], &[32, 8, 1], start)
            }
        }
    }

    fn list(&self, arguments: &[(View, u8)]) -> Vec<(ChipTensor, TensorTag)> {
        const TAGS: [TensorTag; 5] =
            [TensorTag::Input, TensorTag::Output, TensorTag::InOut, TensorTag::OutputExisting, TensorTag::NoDep];
        let tagged = arguments.iter().map(|(view, tag)| (view, TAGS[usize::from(*tag) % 5]));
        tagged.filter_map(|(view, tag)| Some((self.tensor(*view, tag)?, tag))).collect()
    }

    fn run_op(&mut self, op: &Op) {
        match op {
            Op::Begin => self.begin(),
            Op::Close => self.close(None),
            Op::Fail => self.close(Some("callback failed")),
            Op::Cancel { which } => self.cancel(*which),
            Op::ScopeBegin => {
                if let Some(run) = self.building {
                    self.engine.scope_begin(self.runs[run].id).expect("not too deep");
                    self.runs[run].scopes.push(Vec::new());
                }
            }
            Op::ScopeEnd => self.end_scope(),
            Op::Alloc { kib } => self.alloc(u64::from(*kib) * 1000),
            Op::Single { worker: id, diagnostic, arguments } => {
                let members = [self.list(arguments)];
                self.submit(Place::Next(vec![(*id).into()]), *diagnostic, &members);
            }
            Op::Sub { arguments } => {
                let members = [self.list(arguments)];
                self.submit(Place::Sub(1), false, &members);
            }
            Op::Group { first, members } => {
                let targets = (0..members.len()).map(|index| (u16::from(*first) + index as u16) % NEXT).collect();
                let members: Vec<_> = members.iter().map(|list| self.list(list)).collect();
                self.submit(Place::Next(targets), false, &members);
            }
            Op::SubGroup { members } => {
                let members: Vec<_> = members.iter().map(|list| self.list(list)).collect();
                self.submit(Place::Sub(members.len()), false, &members);
            }
            Op::Pump => self.pump(),
            Op::End { which, failure } => self.end(usize::from(*which), *failure),
            Op::Accept { which } => {
                if let Some(held) = self.held.get(usize::from(*which) % self.held.len().max(1))
                    && !held.staged
                {
                    self.engine.accepted(held.ticket);
                }
            }
            Op::Late => {
                if let Some(ticket) = self.last {
                    assert_eq!(self.engine.completed(ticket, Outcome::TaskFailure("late")), Report::Late);
                    assert_eq!(self.engine.accepted(ticket), Report::Late);
                }
            }
            Op::Dead { endpoint } => self.kill(u16::from(*endpoint)),
        }
        self.settle();
        self.compare();
    }

    fn begin(&mut self) {
        let open = self.fifo().len();
        match self.engine.begin_run() {
            Ok(id) => {
                assert!(self.building.is_none() && open < self.engine.leases().depth());
                self.building = Some(self.runs.len());
                self.runs.push(Run {
                    id,
                    scopes: vec![Vec::new()],
                    closed: false,
                    aborted: false,
                    executed: false,
                    used: false,
                    failed: false,
                    terminal: false,
                });
            }
            Err(EngineError::BuildingAlready { .. }) => assert!(self.building.is_some()),
            Err(EngineError::NoLease { .. }) => assert_eq!(open, self.engine.leases().depth()),
            Err(EngineError::RunRecords { .. }) => assert_eq!(self.runs.len(), 8),
            Err(error) => panic!("begin: {error}"),
        }
    }

    fn close(&mut self, failure: Option<&str>) {
        let Some(run) = self.building.take() else { return };
        let id = self.runs[run].id;
        if let Some(reason) = failure {
            self.engine.fail_submission(id, reason).expect("open");
            self.abort(run, reason);
        } else {
            self.engine.close_submission(id).expect("open");
        }
        self.runs[run].closed = true;
        while let Some(tasks) = self.runs[run].scopes.pop() {
            self.model.end_scope(&tasks, false);
        }
    }

    fn abort(&mut self, run: usize, reason: &str) {
        self.runs[run].aborted = true;
        self.runs[run].failed = true;
        let id = self.runs[run].id;
        self.model.fail_unstarted(reason, true, |task| task.run == id);
    }

    fn cancel(&mut self, which: u8) {
        let open = self.fifo();
        let Some(run) = open.get(usize::from(which) % open.len().max(1)).copied() else { return };
        self.engine.cancel(self.runs[run].id).expect("known");
        if !self.runs[run].aborted {
            self.abort(run, "cancelled");
        }
    }

    fn end_scope(&mut self) {
        let Some(run) = self.building else { return };
        let ended = self.engine.scope_end(self.runs[run].id);
        if self.runs[run].scopes.len() == 1 {
            assert_eq!(ended, Err(EngineError::ScopeUnderflow));
            return;
        }
        ended.expect("a scope is open");
        let tasks = self.runs[run].scopes.pop().expect("open");
        let kept = self.model.end_scope(&tasks, true);
        self.runs[run].scopes[0].extend(kept);
    }

    /// A new slab may not touch one that is alive.
    fn check_slab(&self, start: u64, end: u64) {
        for (index, task) in self.model.tasks.iter().enumerate() {
            if let Some((other, other_end)) = task.slab
                && !task.consumed
                && (self.tidy || matches!(task.state, State::Unstarted | State::Running))
            {
                assert!(end <= other || other_end <= start, "slab {start:#x}..{end:#x} over that of task {index}");
            }
        }
        let ring = (start - RING) / 0x10_0000;
        assert!(ring < 4 && end <= RING + ring * 0x10_0000 + RING_BYTES);
    }

    fn alloc(&mut self, bytes: u64) {
        let Some(run) = self.building else { return };
        let id = self.runs[run].id;
        let before = self.engine.usage();
        match self.engine.alloc(id, bytes) {
            Ok(start) => {
                self.follow_sweep(run, 1);
                assert!(!self.runs[run].aborted);
                let end = start + bytes.next_multiple_of(1024);
                self.check_slab(start, end);
                let task = self.model.submit(id, Place::Slab, Vec::new(), Some((start, end)));
                self.runs[run].scopes.last_mut().expect("open").push(task);
            }
            Err(error) => {
                self.follow_sweep(run, 0);
                self.allowed(run, &error);
                self.left_nothing(&before, &error);
            }
        }
    }

    /// The engine met a full pool and let go of tasks that completed. `added` tasks are new in it.
    fn follow_sweep(&mut self, run: usize, added: usize) {
        if core::mem::replace(&mut self.sweeps, self.engine.sweeps()) != self.engine.sweeps() {
            self.model.let_go_of_completed(self.runs[run].id);
            if self.tidy {
                self.compare_counts(added);
            }
        }
    }

    fn compare_counts(&self, added: usize) {
        let alive = self.model.tasks.iter().filter(|task| !task.consumed).count();
        assert_eq!(self.engine.usage().tasks as usize, alive + added, "live tasks");
    }

    /// E-11: a call that failed leaves nothing. If it met a full pool first it may have let go of tasks that completed.
    fn left_nothing(&self, before: &Usage, error: &EngineError) {
        let after = self.engine.usage();
        let pools = |usage: &Usage| {
            let Usage { tasks, edges, map_entries, group_members, args_bytes, configs, slabs, .. } = *usage;
            [tasks, edges, map_entries, group_members, configs, slabs]
                .map(u64::from)
                .into_iter()
                .chain([args_bytes as u64])
        };
        assert!(
            pools(&after).zip(pools(before)).all(|(after, before)| after <= before),
            "{error}: {before:?}, {after:?}"
        );
        let kept = |usage: &Usage| (usage.unfinished, usage.runs, usage.error_texts);
        assert_eq!(kept(&after), kept(before), "{error}");
    }

    /// Whether an error is one that a correct submit may meet.
    fn allowed(&self, run: usize, error: &EngineError) {
        match error {
            EngineError::RunAborted { .. } => assert!(self.runs[run].aborted),
            EngineError::Blocked { .. } | EngineError::TooLarge { .. } => {}
            // The scope of the slab has ended, and a task that named it may be gone: the reference holds tasks back for an
            // overlap that is none, and lets none go for a full pool before the engine does.
            EngineError::DeadSlab { .. } => {}
            other => panic!("refused: {other}"),
        }
    }

    /// Whether a correct engine refuses the submission for its own sake.
    fn is_refused(&self, id: RunId, place: &Place, members: &[Vec<(ChipTensor, TensorTag)>]) -> bool {
        let unreachable = match place {
            Place::Next(targets) => targets.iter().any(|target| self.dead.contains(target)),
            Place::Sub(count) => *count > self.live_subs(),
            Place::Slab => false,
        };
        let device = matches!(place, Place::Sub(_))
            && members.iter().flatten().any(|(tensor, _)| tensor.address_space() == AddressSpace::Device);
        let homeless = members.iter().flatten().any(|(tensor, _)| {
            let range = tensor.byte_range();
            range.start >= RING
                && tensor.address_space() == AddressSpace::Host
                && !self.model.tasks.iter().any(|task| {
                    !task.consumed
                        && task.run == id
                        && task.slab.is_some_and(|(start, end)| start <= range.start && range.end <= end)
                })
        });
        let aliased = members.iter().any(|list| {
            list.iter().enumerate().any(|(index, (a, tag))| {
                list[..index].iter().any(|(b, other)| {
                    (writes(*tag) || writes(*other)) && a.addr() != 0 && b.addr() != 0 && overlap::overlaps(a, b)
                })
            })
        });
        unreachable || device || homeless || aliased
    }

    fn submit(&mut self, place: Place, diagnostic: bool, members: &[Vec<(ChipTensor, TensorTag)>]) {
        let Some(run) = self.building else { return };
        let id = self.runs[run].id;
        let refused = self.is_refused(id, &place, members);
        let lists: Vec<TaskArgs> = members
            .iter()
            .map(|list| {
                let mut args = TaskArgs::new();
                for (tensor, tag) in list {
                    args.push(*tensor, *tag);
                }
                args
            })
            .collect();
        let lists: Vec<&TaskArgs> = lists.iter().collect();
        let targets: Vec<_> = match &place {
            Place::Next(targets) => targets.iter().map(|target| worker((*target).into())).collect(),
            _ => Vec::new(),
        };
        let target = match &place {
            Place::Next(_) if targets.len() == 1 => Target::NextLevel(targets[0]),
            Place::Next(_) => Target::NextLevelGroup(&targets),
            Place::Sub(1) => Target::Sub,
            _ => Target::SubGroup,
        };
        let mut diagnostic_config = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
        diagnostic_config.set_output_prefix(b"/tmp/x").expect("short");
        let mut digest = Digest([0; 32]);
        digest.0[..8].copy_from_slice(&(self.model.tasks.len() as u64).to_le_bytes());
        digest.0[8] = diagnostic.into();
        let submission = Submission {
            target,
            digest: &digest,
            config: diagnostic.then_some(&diagnostic_config),
            members: &lists,
            deadline: None,
        };
        let before = self.engine.usage();
        let mut outputs = Vec::new();
        let submitted = self.engine.submit(id, &submission, &mut |output| outputs.push(output));
        if let Err(error) = &submitted {
            self.left_nothing(&before, error);
            assert!(outputs.is_empty());
            self.follow_sweep(run, 0);
            if !refused {
                self.allowed(run, error);
            }
            return;
        }
        self.follow_sweep(run, 1);
        assert!(!self.runs[run].aborted);
        assert!(!refused || !self.tidy, "accepted what must be refused");
        let mut arguments = Vec::new();
        let mut outputs = outputs.into_iter();
        let mut slab: Option<(u64, u64)> = None;
        for (member, list) in members.iter().enumerate() {
            for (tensor, tag) in list {
                let tensor = if tensor.addr() == 0 {
                    let output = outputs.next().expect("one for each output without an address");
                    assert_eq!(output.member.index(), member);
                    assert!(output.address.is_multiple_of(1024));
                    let end = (output.address + tensor.buffer_bytes()).next_multiple_of(1024);
                    let expected = slab.map_or(output.address, |(_, end)| end);
                    assert_eq!(output.address, expected, "one block, carved in order");
                    slab = Some((slab.map_or(output.address, |(start, _)| start), end));
                    tensor.with_address(output.address).expect("inside the ring")
                } else {
                    *tensor
                };
                let memory = match (&place, tensor.address_space()) {
                    (Place::Next(targets), AddressSpace::Device) => Memory::Device(worker(targets[member].into())),
                    _ => Memory::Host,
                };
                arguments.push(Argument { tensor, tag: *tag, memory });
            }
        }
        assert_eq!(outputs.next(), None);
        if let Some((start, end)) = slab {
            self.check_slab(start, end);
        }
        let task = self.model.submit(id, place, arguments, slab);
        self.runs[run].scopes.last_mut().expect("open").push(task);
        self.runs[run].used = true;
    }

    fn name(&self, ticket: Ticket) -> (usize, bool) {
        let payload = self.engine.payload(ticket).expect("running");
        let task = u64::from_le_bytes(payload.digest.0[..8].try_into().expect("8 bytes")) as usize;
        assert_eq!(payload.run, self.model.tasks[task].run);
        (task, payload.digest.0[8] == 1)
    }

    fn pump(&mut self) {
        let mut signalled = self.engine.take_signals().work;
        while let Some(action) = self.engine.next_action() {
            assert!(signalled, "{action:?} without a signal before it (E-35)");
            signalled = true;
            match action {
                Action::Dispatch { ticket, endpoint, prepare_only } => {
                    self.dispatched(ticket, endpoint.0, prepare_only);
                }
                Action::Activate { run, endpoint, ticket } => {
                    assert_eq!(self.runs[self.fifo()[0]].id, run);
                    let held = self.held.iter_mut().find(|held| held.ticket == ticket).expect("staged before");
                    assert!(held.staged && !held.withdrawn && held.endpoint == endpoint.0);
                    held.staged = false;
                }
                Action::Withdraw { endpoint, ticket } => {
                    let held = self.held.iter_mut().find(|held| held.ticket == ticket).expect("staged before");
                    assert!(held.staged && held.endpoint == endpoint.0);
                    held.withdrawn = true;
                    let run = self.model.tasks[held.task].run;
                    assert!(self.runs[self.index_of(run)].aborted);
                }
            }
        }
        self.settle();
        self.nothing_placeable_is_left();
    }

    fn dispatched(&mut self, ticket: Ticket, endpoint: u16, staged: bool) {
        let (task, diagnostic) = self.name(ticket);
        let run = self.index_of(self.model.tasks[task].run);
        let fifo = self.fifo();
        assert!(!self.dead.contains(&endpoint));
        assert!(!self.held.iter().any(|held| held.endpoint == endpoint && held.staged == staged), "the lane is free");
        if let Some(earlier) = self.model.overtaken(task) {
            panic!("task {task} starts before task {earlier} has ended");
        }
        if !self.tidy {
            // The reference poisons what may overlap, the engine what does.
            self.model.revive(task);
        }
        if self.model.tasks[task].state == State::Unstarted {
            assert!(!self.tidy || self.model.is_ready(task), "task {task} starts before its producers have ended");
            self.model.tasks[task].state = State::Running;
            let members = match &self.model.tasks[task].place {
                Place::Next(targets) => targets.len(),
                Place::Sub(count) => *count,
                Place::Slab => panic!("an allocation is never dispatched"),
            };
            self.left.insert(task, (members, None));
        }
        assert_eq!(self.model.tasks[task].state, State::Running);
        match &self.model.tasks[task].place {
            Place::Next(targets) => assert_eq!(targets[ticket.member().index()], endpoint),
            Place::Sub(_) => assert!(endpoint >= NEXT),
            Place::Slab => {}
        }
        if staged {
            assert_eq!(fifo.get(1), Some(&run), "E-33: only the second run");
            assert!(self.runs[run].closed && !self.runs[run].aborted && !diagnostic && endpoint != 1);
            let others =
                self.held.iter().any(|held| held.staged && self.model.tasks[held.task].run == self.runs[run].id);
            assert!(!others, "E-33: one per run");
        } else {
            assert_eq!(fifo.first(), Some(&run), "E-3: only the head");
        }
        self.held.push(Held { ticket, task, endpoint, staged, withdrawn: false });
    }

    /// E-35: whatever could start has started.
    fn nothing_placeable_is_left(&self) {
        let Some(&head) = self.fifo().first() else { return };
        let idle = |endpoint: u16| {
            !self.dead.contains(&endpoint) && !self.held.iter().any(|held| held.endpoint == endpoint && !held.staged)
        };
        let blocked = self.engine.blocked_group();
        let reserved = |endpoint: u16| {
            blocked.is_some_and(|group| group.members().any(|member| member.worker == worker(endpoint.into())))
        };
        if let Some(group) = blocked {
            assert!(group.members().any(|member| member.busy), "a group with idle targets is launched");
        }
        let ready: Vec<usize> = (0..self.model.tasks.len())
            .filter(|task| {
                self.model.tasks[*task].run == self.runs[head].id
                    && self.model.tasks[*task].state == State::Unstarted
                    && self.model.is_ready(*task)
                    && (self.tidy || !self.model.is_behind_poisoned(*task))
            })
            .collect();
        let idle_subs = (NEXT..NEXT + SUBS).filter(|endpoint| idle(*endpoint)).count();
        let mut largest = 0;
        if !self.tidy {
            // The engine may have put a larger group at the head that the reference still holds back.
            let sub = |task: &engine_reference::Task| match &task.place {
                Place::Sub(count) if task.state != State::Completed => *count,
                _ => 0,
            };
            let ready_sub = ready.iter().any(|task| matches!(self.model.tasks[*task].place, Place::Sub(_)));
            largest = if ready_sub { self.model.tasks.iter().map(sub).max().unwrap_or(0) } else { 0 };
        }
        for task in ready {
            match &self.model.tasks[task].place {
                Place::Next(targets) if targets.len() == 1 => {
                    let free = idle(targets[0]) && !reserved(targets[0]);
                    assert!(!free, "task {task} is ready, and worker {} is idle", targets[0]);
                }
                Place::Next(_) => assert!(blocked.is_some(), "group {task} is ready and none is blocked"),
                Place::Sub(count) => largest = largest.max(*count),
                Place::Slab => {}
            }
        }
        assert!(largest == 0 || idle_subs < largest, "SUB work is ready and {idle_subs} SUB workers are idle");
    }

    fn end(&mut self, which: usize, failure: bool) {
        if self.held.is_empty() {
            return;
        }
        let held = self.held.swap_remove(which % self.held.len());
        let task = held.task;
        let run = self.index_of(self.model.tasks[task].run);
        let outcome = if self.dead.contains(&held.endpoint) {
            Outcome::EndpointFailure("endpoint gone")
        } else if held.withdrawn {
            Outcome::Skipped
        } else if failure || held.staged {
            // A staged task cannot succeed before it is activated.
            Outcome::TaskFailure("task failed")
        } else {
            Outcome::Success
        };
        assert_eq!(self.engine.completed(held.ticket, outcome), Report::Counted);
        self.last = Some(held.ticket);
        let (left, error) = self.left.get_mut(&task).expect("running");
        if outcome != Outcome::Success {
            error.get_or_insert_with(|| "failed".to_owned());
        }
        *left -= 1;
        if *left == 0 {
            let (_, error) = self.left.remove(&task).expect("running");
            self.runs[run].failed |= error.is_some();
            self.model.end(task, error.as_deref());
        }
    }

    fn kill(&mut self, endpoint: u16) {
        // Most programs lose no endpoint.
        if endpoint >= NEXT + SUBS || self.dead.contains(&endpoint) {
            return;
        }
        self.dead.push(endpoint);
        self.engine.endpoint_dead(EndpointIndex(endpoint), "died").expect("known");
        let live = self.live_subs();
        let lost = |place: &Place| match place {
            Place::Next(targets) => targets.contains(&endpoint),
            Place::Sub(count) => *count > live,
            Place::Slab => false,
        };
        for run in &mut self.runs {
            run.failed |= self
                .model
                .tasks
                .iter()
                .any(|task| task.run == run.id && task.state == State::Unstarted && lost(&task.place));
        }
        self.model.fail_unstarted("died", false, |task| lost(&task.place));
    }

    /// Moves runs along as E-2 and E-4 say.
    fn settle(&mut self) {
        loop {
            let fifo = self.fifo();
            let mut changed = false;
            for (position, run) in fifo.into_iter().enumerate() {
                let alive = self.model.alive(self.runs[run].id);
                let run = &mut self.runs[run];
                run.executed |= position == 0;
                if !self.tidy {
                    // The engine may know better than the reference that two views do not meet.
                    run.terminal = self.engine.is_terminal(run.id);
                    changed |= run.terminal;
                } else if run.closed && alive == 0 && (run.executed || run.aborted || !run.used) {
                    run.terminal = true;
                    changed = true;
                    break;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn compare(&self) {
        let unfinished =
            self.model.tasks.iter().filter(|task| matches!(task.state, State::Unstarted | State::Running)).count();
        let usage = self.engine.usage();
        if !self.tidy {
            return;
        }
        self.compare_counts(0);
        assert_eq!(usage.unfinished as usize, unfinished, "unfinished tasks");
        for run in &self.runs {
            assert_eq!(self.engine.is_terminal(run.id), run.terminal, "run {}", run.id);
            if run.terminal {
                let failed = matches!(self.engine.outcome(run.id), Some(RunOutcome::Failed { .. }));
                assert_eq!(failed, run.failed, "run {}", run.id);
                assert!(self.engine.is_accepted(run.id));
            }
        }
    }

    /// Runs everything to its end: nothing may be left.
    fn finish(mut self) {
        self.close(None);
        self.settle();
        loop {
            self.pump();
            if self.held.is_empty() {
                break;
            }
            self.end(0, false);
            self.settle();
            self.compare();
        }
        for run in &self.runs {
            assert!(self.engine.is_terminal(run.id), "run {} never ends", run.id);
            self.engine.release(run.id).expect("known");
        }
        assert!(self.engine.is_drained());
        let usage = self.engine.usage();
        assert!(usage.is_idle(), "left behind: {usage:?}");
        assert!(usage.error_texts as usize <= self.dead.len());
    }
}

fn run(program: &Program) {
    let mut sim = Sim::new(program);
    for op in &program.ops {
        sim.run_op(op);
    }
    sim.finish();
}

fn programs(is_tidy: bool) {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed: u64 = number("ENGINE_SEED").unwrap_or(1);
    let cases: u64 = number("ENGINE_PROGRAMS").unwrap_or(1500);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Cases { cases: cases as u32, failure_persistence: None, max_shrink_iters: 20_000, ..Cases::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let result = runner.run(&program(is_tidy), |program| {
        run(&program);
        Ok(())
    });
    match result {
        Ok(()) => println!("{cases} programs from seed {seed}"),
        Err(TestError::Fail(reason, program)) => panic!("seed {seed}: {reason}\n{program:#?}"),
        Err(error) => panic!("seed {seed}: {error}"),
    }
}

/// E-1 to E-35 together, over views whose overlap can be decided exactly: every start, every end and every count is
/// what the reference says.
#[test]
fn random_programs_do_what_the_reference_does() {
    programs(true);
}

/// E-15, E-16 over views of all kinds: nothing starts before a task whose bytes it reads has ended, everything starts
/// that the reference would start, and nothing is left behind.
#[test]
fn random_programs_over_wild_views_never_miss_an_edge() {
    programs(false);
}
