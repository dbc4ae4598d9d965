//! One level's scheduler: runs and admission, slots, dependencies, rings and scopes, queues.
//!
//! Pure logic behind `&mut self`. It never waits: what cannot be done now is an error value that says so, what has to
//! be done on an endpoint comes out of [`Engine::next_action`], what endpoints report goes into
//! [`Engine::accepted`] and [`Engine::completed`], and what a sleeping owner must be woken for is in
//! [`Engine::take_signals`]. Memory is bought once, in [`Engine::new`].

mod abort;
mod action;
mod admission;
mod arena;
mod backing;
mod check;
mod complete;
mod config;
mod depend;
mod edge;
mod entry;
mod error;
mod extent;
mod group;
mod intern;
mod map;
mod query;
mod ring;
mod run;
mod schedule;
mod scope;
mod signals;
mod slot;
mod spare;
mod stage;
mod stall;
mod submit;
mod text;
mod window;
mod worker;

use crate::ids::PipelineSlot;
use crate::ids::RunId;
use crate::model::SlotPool;

pub use action::{Action, Outcome, Payload, Report, Ticket};
pub use config::{
    Config, MAX_WORKERS, RINGS, Range, RangeKind, RingSpec, SCOPE_DEPTH, SLAB_ALIGN, WorkerClass, WorkerSpec,
};
pub use error::{Argument, EngineError, Resource};
pub use group::{GroupEvent, GroupState};
pub use query::{Dependence, Memory, Usage};
pub use run::{FailureKind, RunEvent, RunOutcome, RunPhase};
pub use signals::Signals;
pub use slot::{TaskEvent, TaskState};
pub use spare::Spare;
pub use stall::{BlockedGroup, BlockedMember};
pub use submit::{Allocated, Submission, Target};
pub use text::TEXT_BYTES;

use arena::ArgsArena;
use backing::BackingTable;
use edge::EdgePool;
use group::MemberPool;
use intern::ConfigTable;
use map::Map;
use run::{LiveRun, RunTable};
use schedule::{Launch, Reservation};
use scope::ScopeStack;
use slot::{NIL, SlotTable};
use stage::StagedAction;
use stall::Stall;
use text::TextPool;
use worker::WorkerTable;

/// The scheduler of one level.
#[derive(Clone, Debug)]
pub struct Engine {
    slots: SlotTable,
    workers: WorkerTable,
    edges: EdgePool,
    map: Map,
    backings: BackingTable,
    members: MemberPool,
    arena: ArgsArena,
    configs: ConfigTable,
    texts: TextPool,
    runs: RunTable,
    /// Open runs, by the pipeline slot of their lease.
    live: [Option<LiveRun>; 2],
    /// Open runs in the order of their admission; the head executes.
    fifo: heapless::Vec<PipelineSlot, 2>,
    /// The run that takes submits.
    building: Option<PipelineSlot>,
    /// The same, if it still takes work: neither aborted nor stopped.
    open: Option<(RunId, PipelineSlot)>,
    leases: SlotPool,
    next_run: Option<RunId>,
    scopes: ScopeStack,
    reservation: Option<Reservation>,
    launching: Option<Launch>,
    staged_action: [Option<StagedAction>; 2],
    staged_actions: u32,
    /// Something has changed since staging found nothing.
    staging_due: bool,
    stall: Stall,
    /// Tasks without references, to be consumed, linked by `queue_next`.
    unreferenced: u32,
    signals: Signals,
    /// Something may be placeable: [`next_action`](Self::next_action) has to look.
    work: bool,
    stopping: bool,
    strict_war: bool,
    /// Single SUB tasks stay in their queue.
    subs_held: bool,
    /// How often a step looked at a worker.
    #[cfg(test)]
    looked_at: u64,
}

impl Engine {
    /// Builds an engine for `workers`, at most `admission_depth` of whose runs are open at once.
    ///
    /// # Errors
    /// A setting out of range, a ring that cannot be, two workers with one id or endpoint, or an admission depth that
    /// is not 1 or 2.
    pub fn new(config: &Config, admission_depth: usize, workers: &[WorkerSpec]) -> Result<Self, EngineError> {
        config.validate()?;
        let leases =
            SlotPool::new(admission_depth).map_err(|_| EngineError::AdmissionDepth { depth: admission_depth })?;
        Ok(Self {
            slots: SlotTable::new(config.task_window),
            workers: WorkerTable::new(workers)?,
            edges: EdgePool::new(config.edges),
            map: Map::new(config.map_entries),
            backings: BackingTable::new(config, workers.len()),
            members: MemberPool::new(config.group_members),
            arena: ArgsArena::new(config.args_bytes),
            configs: ConfigTable::new(config.configs),
            texts: TextPool::new(config.error_texts),
            runs: RunTable::new(config.runs),
            live: [None, None],
            fifo: heapless::Vec::new(),
            building: None,
            open: None,
            leases,
            next_run: Some(RunId::FIRST),
            scopes: ScopeStack::new(),
            reservation: None,
            launching: None,
            staged_action: [None, None],
            staged_actions: 0,
            staging_due: false,
            stall: Stall::default(),
            unreferenced: NIL,
            signals: Signals::default(),
            work: false,
            stopping: false,
            strict_war: config.strict_war,
            subs_held: false,
            #[cfg(test)]
            looked_at: 0,
        })
    }

    /// What has happened since the last call (E-35).
    pub fn take_signals(&mut self) -> Signals {
        core::mem::take(&mut self.signals)
    }

    /// A blocked pool, as an error.
    fn blocked(&self, resource: Resource, needed: u64, size: u64) -> EngineError {
        if needed > size {
            return EngineError::TooLarge { resource, needed, size };
        }
        EngineError::Blocked { resource, needed, size, may_free: self.slots.unfinished_count() > 0 }
    }
}

#[cfg(test)]
mod tests {
    mod cost;
    mod map;
    mod vacant;
    mod worlds;
}
