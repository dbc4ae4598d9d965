//! A program at work: the engine and the reference, step by step.

use std::collections::BTreeMap;

use laneway_core::engine::{
    Config, Engine, EngineError, Outcome, Range, RangeKind, Report, RunOutcome, Ticket, WorkerClass, WorkerSpec,
};
use laneway_core::ids::{EndpointIndex, RunId, SubId};

use super::engine_support::{BUFFER, BUFFER_BYTES, config, worker};
use super::program::{Family, NEXT, Op, Program, Room, SUBS};
use super::reference::{Model, Place, State};

/// A dispatch that an endpoint holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) ticket: Ticket,
    pub(crate) task: usize,
    pub(crate) endpoint: u16,
    pub(crate) staged: bool,
    pub(crate) withdrawn: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    pub(crate) scopes: Vec<Vec<usize>>,
    pub(crate) closed: bool,
    pub(crate) aborted: bool,
    pub(crate) executed: bool,
    pub(crate) used: bool,
    pub(crate) failed: bool,
    pub(crate) terminal: bool,
}

pub(crate) struct Sim {
    pub(crate) engine: Engine,
    pub(crate) model: Model,
    pub(crate) family: Family,
    /// Of every task of the reference.
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) runs: Vec<Run>,
    pub(crate) building: Option<usize>,
    pub(crate) held: Vec<Held>,
    /// Members of each running task that have not reported, and its first error.
    pub(crate) left: BTreeMap<usize, (usize, Option<String>)>,
    pub(crate) dead: Vec<u16>,
    pub(crate) last: Option<Ticket>,
    /// Sweeps of the engine that the reference has followed.
    pub(crate) sweeps: u64,
}

fn pools(room: Room, strict_war: bool) -> Config {
    let ample = Config { strict_war, ..config() };
    match room {
        Room::Ample => ample,
        Room::FewEntries => Config { map_entries: 12, ..ample },
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
    pub(crate) fn new(program: &Program) -> Self {
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
            family: program.family,
            tickets: Vec::new(),
            runs: Vec::new(),
            building: None,
            held: Vec::new(),
            left: BTreeMap::new(),
            dead: Vec::new(),
            last: None,
        }
    }

    pub(crate) fn live_subs(&self) -> usize {
        (NEXT..NEXT + SUBS).filter(|endpoint| !self.dead.contains(endpoint)).count()
    }

    /// Open runs, oldest first.
    pub(crate) fn fifo(&self) -> Vec<usize> {
        (0..self.runs.len()).filter(|run| !self.runs[*run].terminal).collect()
    }

    pub(crate) fn index_of(&self, run: RunId) -> usize {
        self.runs.iter().position(|candidate| candidate.id == run).expect("begun")
    }

    pub(crate) fn run_op(&mut self, op: &Op) {
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
    pub(crate) fn settle(&mut self) {
        loop {
            let fifo = self.fifo();
            let mut changed = false;
            for (position, run) in fifo.into_iter().enumerate() {
                let alive = self.model.alive(self.runs[run].id);
                let run = &mut self.runs[run];
                run.executed |= position == 0;
                if run.closed && alive == 0 && (run.executed || run.aborted || !run.used) {
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
    pub(crate) fn finish(mut self) {
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
