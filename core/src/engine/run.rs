//! Runs: the phases, the records that handles name, and the at most two that are live.

use alloc::vec::Vec;

use crate::ids::{PipelineSlot, RunId};
use crate::wire::PipelineSlotLease;

use super::slot::NIL;
use super::text::TextRef;
use super::worker::{ReadyList, TaskQueue, WorkerIndex};

/// Where a run stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunPhase {
    /// Holds a lease, not yet open for submits.
    Reserved,
    /// Its graph is being built and an earlier run is not terminal.
    Building,
    /// Its graph is closed and an earlier run is not terminal.
    Prepared,
    /// The head of the FIFO: its tasks run, whether or not its graph is closed (E-2).
    Executing,
    /// Terminal, nothing failed.
    Completed,
    /// Terminal, with the run's first error.
    Failed,
}

/// What moves a run from one phase to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunEvent {
    /// The callback starts.
    Open,
    /// The graph closes while an earlier run is not terminal.
    Close,
    /// Every earlier run is terminal.
    Promote,
    /// Closed, nothing alive, no error (E-4).
    Complete,
    /// Closed, nothing alive, with an error; or stuck (L-35).
    Fail,
}

impl RunPhase {
    /// Every phase, in the order of a run's life.
    pub const ALL: [Self; 6] =
        [Self::Reserved, Self::Building, Self::Prepared, Self::Executing, Self::Completed, Self::Failed];

    /// The phase after `event`, `None` where the event is illegal. This is the one place where the machine is declared.
    #[must_use]
    pub const fn on(self, event: RunEvent) -> Option<Self> {
        Some(match (self, event) {
            (Self::Reserved, RunEvent::Open) => Self::Building,
            (Self::Building, RunEvent::Close) => Self::Prepared,
            (Self::Building | Self::Prepared, RunEvent::Promote) => Self::Executing,
            (Self::Executing | Self::Prepared, RunEvent::Complete) => Self::Completed,
            (Self::Building | Self::Prepared | Self::Executing, RunEvent::Fail) => Self::Failed,
            _ => return None,
        })
    }

    /// Whether tasks of the run are handed out.
    #[must_use]
    pub const fn is_executing(self) -> bool {
        matches!(self, Self::Executing)
    }

    /// Whether the run has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

impl RunEvent {
    /// Every event.
    pub const ALL: [Self; 5] = [Self::Open, Self::Close, Self::Promote, Self::Complete, Self::Fail];
}

/// Why a run failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FailureKind {
    /// A task, or the endpoint that ran it, failed.
    Task,
    /// The callback that built it failed (E-6).
    Submission,
    /// It was cancelled (E-9).
    Cancelled,
    /// The worker was closed before everything was dispatched (E-36).
    Closed,
    /// A child that cannot be ended holds one of its tasks (L-35).
    Stuck,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunOutcome<'a> {
    /// Every task succeeded.
    Completed,
    /// The first error of the run.
    Failed {
        /// What kind of failure came first.
        kind: FailureKind,
        /// Its message.
        message: &'a str,
    },
}

/// The first error of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RunFailure {
    pub(super) kind: FailureKind,
    pub(super) text: TextRef,
}

/// What a record knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordState {
    /// Not in use.
    Free,
    /// The run is open and holds this lease; everything else is in [`LiveRun`].
    Live { slot: PipelineSlot, released: bool },
    /// The run has ended; the record is kept for its handle (E-9).
    Ended { failure: Option<RunFailure> },
}

#[derive(Clone, Debug)]
struct Record {
    run: RunId,
    state: RecordState,
    /// Next in the hash chain, or in the free list.
    next: u32,
}

/// Records of open runs and of finished ones whose handle still lives.
#[derive(Clone, Debug)]
pub(super) struct RunTable {
    records: Vec<Record>,
    /// Chains by run id; ids are consecutive, so chains are short.
    buckets: Vec<u32>,
    free: u32,
    used: u32,
}

impl RunTable {
    pub(super) fn new(capacity: u32) -> Self {
        let record = |index: u32| Record {
            run: RunId::FIRST,
            state: RecordState::Free,
            next: if index + 1 < capacity { index + 1 } else { NIL },
        };
        Self {
            records: (0..capacity).map(record).collect(),
            buckets: alloc::vec![NIL; capacity.next_power_of_two() as usize],
            free: 0,
            used: 0,
        }
    }

    pub(super) fn capacity(&self) -> u32 {
        self.records.len() as u32
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn is_full(&self) -> bool {
        self.free == NIL
    }

    fn bucket(&self, run: RunId) -> usize {
        run.get() as usize & (self.buckets.len() - 1)
    }

    /// Adds the record of a run that took lease `slot`; the caller has looked at [`is_full`](Self::is_full).
    pub(super) fn insert(&mut self, run: RunId, slot: PipelineSlot) {
        let index = self.free;
        let bucket = self.bucket(run);
        let record = &mut self.records[index as usize];
        self.free = record.next;
        *record = Record { run, state: RecordState::Live { slot, released: false }, next: self.buckets[bucket] };
        self.buckets[bucket] = index;
        self.used += 1;
    }

    fn find(&self, run: RunId) -> Option<u32> {
        let mut index = self.buckets[self.bucket(run)];
        while index != NIL {
            let record = &self.records[index as usize];
            if record.run == run {
                return Some(index);
            }
            index = record.next;
        }
        None
    }

    pub(super) fn get(&self, run: RunId) -> Option<RecordState> {
        self.find(run).map(|index| self.records[index as usize].state)
    }

    pub(super) fn set(&mut self, run: RunId, state: RecordState) {
        if let Some(index) = self.find(run) {
            self.records[index as usize].state = state;
        }
    }

    /// Frees the record of a run.
    pub(super) fn remove(&mut self, run: RunId) {
        let bucket = self.bucket(run);
        let mut link = NIL;
        let mut index = self.buckets[bucket];
        while index != NIL {
            let next = self.records[index as usize].next;
            if self.records[index as usize].run == run {
                match link {
                    NIL => self.buckets[bucket] = next,
                    before => self.records[before as usize].next = next,
                }
                let record = &mut self.records[index as usize];
                record.state = RecordState::Free;
                record.next = self.free;
                self.free = index;
                self.used -= 1;
                return;
            }
            link = index;
            index = next;
        }
    }
}

/// An open run. There is one per lease, found by the lease's pipeline slot.
#[derive(Clone, Debug)]
pub(super) struct LiveRun {
    pub(super) id: RunId,
    pub(super) lease: PipelineSlotLease,
    pub(super) phase: RunPhase,
    /// The graph is closed.
    pub(super) closed: bool,
    /// Takes no more work and starts none (E-6, E-9, E-36): the kind of the failure that did it.
    pub(super) aborted: bool,
    /// Tasks that are not CONSUMED.
    pub(super) alive: u32,
    /// Launch acceptances that are still owed (E-8).
    pub(super) owed: u32,
    /// Tasks were submitted; an empty run completes at close.
    pub(super) used: bool,
    pub(super) failure: Option<RunFailure>,
    /// Ready NEXT_LEVEL groups.
    pub(super) groups: TaskQueue,
    /// Ready SUB tasks and groups.
    pub(super) subs: TaskQueue,
    /// Workers with a ready single of this run.
    pub(super) ready: ReadyList,
    /// The worker that holds this run's staged task (E-33).
    pub(super) staged: Option<WorkerIndex>,
}
