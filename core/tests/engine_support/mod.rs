//! A small world around an engine: workers that do as the test says, tasks named by numbers.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part of it")]

use std::collections::BTreeMap;

use laneway_core::engine::{
    Action, Allocated, Config, Engine, EngineError, Outcome, Range, RangeKind, Report, RingSpec, Submission, Target,
    Ticket, WorkerClass, WorkerSpec,
};
use laneway_core::ids::{EndpointIndex, RunId, SubId, WorkerId};
use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, CallConfig, ChipTensor, Digest, Dtype};

/// Start and size of the buffer that every world registers.
pub const BUFFER: u64 = 0x10_0000;
pub const BUFFER_BYTES: u64 = 1 << 20;

/// Start and size of ring 0; the others follow.
pub const RING: u64 = 0x100_0000;
pub const RING_BYTES: u64 = 64 << 10;

pub fn worker(id: i32) -> WorkerId {
    WorkerId::new(id).expect("not negative")
}

/// Small pools and four rings.
pub fn config() -> Config {
    let ring = |index: u64| RingSpec { base: RING + index * 0x10_0000, bytes: RING_BYTES };
    Config {
        task_window: 64,
        edges: 512,
        map_entries: 512,
        group_members: 64,
        runs: 8,
        args_bytes: 256 << 10,
        configs: 4,
        error_texts: 16,
        slabs: 64,
        ranges: 8,
        rings: [ring(0), ring(1), ring(2), ring(3)],
        strict_war: false,
    }
}

/// A row-major u8 tensor of `bytes` at offset `at` of the buffer.
pub fn bytes(at: u64, bytes: u32) -> ChipTensor {
    ChipTensor::contiguous(BUFFER + at, bytes.into(), Dtype::U8, &[bytes], AddressSpace::Host).expect("valid")
}

/// A row-major u8 tensor at any address.
pub fn at(address: u64, bytes: u32) -> ChipTensor {
    ChipTensor::contiguous(address, bytes.into(), Dtype::U8, &[bytes], AddressSpace::Host).expect("valid")
}

/// An output of `bytes` that the submit allocates.
pub fn fresh(bytes: u32) -> ChipTensor {
    at(0, bytes)
}

/// Rows × columns f32 tile of a matrix with `pitch` columns at the start of the buffer.
pub fn tile(pitch: u32, row: u32, column: u32, rows: u32, columns: u32) -> ChipTensor {
    let start = u64::from(row * pitch + column);
    ChipTensor::strided(BUFFER, BUFFER_BYTES, Dtype::F32, &[rows, columns], &[pitch, 1], start, AddressSpace::Host)
        .expect("inside the buffer")
}

pub fn args(fill: impl FnOnce(&mut TaskArgs)) -> TaskArgs {
    let mut args = TaskArgs::new();
    fill(&mut args);
    args
}

/// What a dispatch was for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    pub ticket: Ticket,
    pub endpoint: u16,
    pub staged: bool,
}

pub struct World {
    pub engine: Engine,
    next_task: u64,
    /// Dispatches that have not been completed, by (task, member).
    pub running: BTreeMap<(u64, u16), Dispatch>,
    /// Every action in order, as text.
    pub log: Vec<String>,
    pub deadline: Option<core::time::Duration>,
}

impl World {
    /// `next` NEXT_LEVEL workers with ids and endpoints 0.. that can stage, then `subs` SUB workers.
    pub fn new(next: u16, subs: u16) -> Self {
        Self::with(&config(), 2, next, subs)
    }

    pub fn with(config: &Config, depth: usize, next: u16, subs: u16) -> Self {
        let mut specs = Vec::new();
        for id in 0..next {
            let class = WorkerClass::NextLevel(worker(id.into()));
            specs.push(WorkerSpec { class, endpoint: EndpointIndex(id), staging: true });
        }
        for id in 0..subs {
            let class = WorkerClass::Sub(SubId(id.into()));
            specs.push(WorkerSpec { class, endpoint: EndpointIndex(next + id), staging: false });
        }
        let mut engine = Engine::new(config, depth, &specs).expect("a valid config");
        if config.ranges > 0 {
            engine.add_range(Range { base: BUFFER, bytes: BUFFER_BYTES, kind: RangeKind::Buffer }).expect("free");
        }
        Self { engine, next_task: 1, running: BTreeMap::new(), log: Vec::new(), deadline: None }
    }

    pub fn begin(&mut self) -> RunId {
        self.engine.begin_run().expect("a lease is free")
    }

    pub fn close(&mut self, run: RunId) {
        self.engine.close_submission(run).expect("open");
    }

    /// Submits and returns the task's number and what was allocated.
    pub fn try_submit(
        &mut self,
        run: RunId,
        target: Target<'_>,
        config: Option<&CallConfig>,
        members: &[&TaskArgs],
    ) -> Result<(u64, Vec<Allocated>), EngineError> {
        let task = self.next_task;
        let mut digest = Digest([0; 32]);
        digest.0[..8].copy_from_slice(&task.to_le_bytes());
        let mut allocated = Vec::new();
        let submission = Submission { target, digest: &digest, config, members, deadline: self.deadline };
        self.engine.submit(run, &submission, &mut |output| allocated.push(output))?;
        self.next_task += 1;
        Ok((task, allocated))
    }

    /// A task for NEXT_LEVEL worker `id`.
    pub fn task(&mut self, run: RunId, id: i32, fill: impl FnOnce(&mut TaskArgs)) -> u64 {
        self.try_submit(run, Target::NextLevel(worker(id)), None, &[&args(fill)]).expect("room").0
    }

    /// A SUB task.
    pub fn sub(&mut self, run: RunId, fill: impl FnOnce(&mut TaskArgs)) -> u64 {
        self.try_submit(run, Target::Sub, None, &[&args(fill)]).expect("room").0
    }

    /// A group without arguments.
    pub fn group(&mut self, run: RunId, ids: &[i32]) -> u64 {
        let targets: Vec<_> = ids.iter().map(|id| worker(*id)).collect();
        let empty = TaskArgs::new();
        let members = vec![&empty; ids.len()];
        self.try_submit(run, Target::NextLevelGroup(&targets), None, &members).expect("room").0
    }

    pub fn sub_group(&mut self, run: RunId, count: usize) -> u64 {
        let empty = TaskArgs::new();
        self.try_submit(run, Target::SubGroup, None, &vec![&empty; count]).expect("room").0
    }

    /// The number of the task behind a ticket.
    pub fn name(&self, ticket: Ticket) -> u64 {
        let payload = self.engine.payload(ticket).expect("running");
        u64::from_le_bytes(payload.digest.0[..8].try_into().expect("8 bytes"))
    }

    /// Takes every action there is; returns what was dispatched, as (task, endpoint).
    pub fn pump(&mut self) -> Vec<(u64, u16)> {
        let mut started = Vec::new();
        while let Some(action) = self.engine.next_action() {
            match action {
                Action::Dispatch { ticket, endpoint, prepare_only } => {
                    let task = self.name(ticket);
                    let verb = if prepare_only { "stage" } else { "start" };
                    self.log.push(format!("{verb} {task}.{} on {endpoint}", ticket.member()));
                    let dispatch = Dispatch { ticket, endpoint: endpoint.0, staged: prepare_only };
                    let before = self.running.insert((task, ticket.member().0), dispatch);
                    assert_eq!(before, None, "dispatched once");
                    started.push((task, endpoint.0));
                }
                Action::Activate { endpoint, ticket, .. } => {
                    let task = self.name(ticket);
                    self.log.push(format!("activate {task} on {endpoint}"));
                    let dispatch = self.running.get_mut(&(task, ticket.member().0)).expect("staged before");
                    assert!(dispatch.staged);
                    dispatch.staged = false;
                }
                Action::Withdraw { endpoint, ticket } => {
                    let task = self.name(ticket);
                    self.log.push(format!("withdraw {task} on {endpoint}"));
                }
            }
        }
        started
    }

    /// Ends a member of a running task.
    pub fn end_member(&mut self, task: u64, member: u16, outcome: Outcome<'_>) {
        let dispatch = self.running.remove(&(task, member)).expect("running");
        assert_eq!(self.engine.completed(dispatch.ticket, outcome), Report::Counted);
    }

    /// Ends every member of a running task well.
    pub fn finish(&mut self, task: u64) {
        let members: Vec<u16> = self.running.keys().filter(|(t, _)| *t == task).map(|(_, m)| *m).collect();
        assert!(!members.is_empty(), "task {task} is not running");
        for member in members {
            self.end_member(task, member, Outcome::Success);
        }
    }

    /// Ends a running single with an error.
    pub fn fail(&mut self, task: u64, message: &str) {
        self.end_member(task, 0, Outcome::TaskFailure(message));
    }

    pub fn ticket(&self, task: u64) -> Ticket {
        self.running[&(task, 0)].ticket
    }

    /// Runs everything to its end, in the order of the tasks' numbers.
    pub fn drain(&mut self) {
        loop {
            self.pump();
            let Some((task, member)) = self.running.keys().next().copied() else { return };
            self.end_member(task, member, Outcome::Success);
        }
    }

    /// Names of the running tasks.
    pub fn running(&self) -> Vec<u64> {
        let mut tasks: Vec<u64> = self.running.keys().map(|(task, _)| *task).collect();
        tasks.dedup();
        tasks
    }
}
