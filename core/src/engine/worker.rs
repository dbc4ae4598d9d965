//! Workers as the scheduler sees them, and the ready queues (E-29).

use alloc::vec::Vec;

use crate::ids::{EndpointIndex, GroupIndex, PipelineSlot, TaskSlot, WorkerId};

use super::slot::{NIL, Slot, SlotTable};
use super::text::TextRef;
use super::{EngineError, MAX_WORKERS, WorkerClass, WorkerSpec};

/// Position in the worker table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct WorkerIndex(pub(super) u16);

impl WorkerIndex {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A FIFO of ready tasks, linked through the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TaskQueue {
    head: u32,
    tail: u32,
}

impl TaskQueue {
    pub(super) const EMPTY: Self = Self { head: NIL, tail: NIL };

    pub(super) fn head(&self) -> Option<TaskSlot> {
        (self.head != NIL).then_some(TaskSlot(self.head))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    #[inline]
    pub(super) fn push(&mut self, slots: &mut SlotTable, slot: TaskSlot) {
        debug_assert_eq!(slots[slot].queue_next, NIL, "a task is on one list at a time");
        match self.tail {
            NIL => self.head = slot.0,
            tail => slots[TaskSlot(tail)].queue_next = slot.0,
        }
        self.tail = slot.0;
    }

    #[inline]
    pub(super) fn pop<'s>(&mut self, slots: &'s mut SlotTable) -> Option<(TaskSlot, &'s mut Slot)> {
        let slot = self.head()?;
        let record = &mut slots[slot];
        self.head = core::mem::replace(&mut record.queue_next, NIL);
        if self.head == NIL {
            self.tail = NIL;
        }
        Some((slot, record))
    }

    /// Takes out the first task for which `wanted` holds; the others keep their order.
    pub(super) fn take_first(
        &mut self,
        slots: &mut SlotTable,
        mut wanted: impl FnMut(&SlotTable, TaskSlot) -> bool,
    ) -> Option<TaskSlot> {
        let mut before = NIL;
        let mut at = self.head;
        while at != NIL {
            let slot = TaskSlot(at);
            let next = slots[slot].queue_next;
            if wanted(slots, slot) {
                match before {
                    NIL => self.head = next,
                    before => slots[TaskSlot(before)].queue_next = next,
                }
                if self.tail == at {
                    self.tail = before;
                }
                slots[slot].queue_next = NIL;
                return Some(slot);
            }
            before = at;
            at = next;
        }
        None
    }
}

/// A FIFO of workers that have a ready single of one run, linked through the workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReadyList {
    head: u16,
    tail: u16,
}

const NO_WORKER: u16 = u16::MAX;

impl ReadyList {
    pub(super) const EMPTY: Self = Self { head: NO_WORKER, tail: NO_WORKER };

    pub(super) fn first(&self) -> Option<WorkerIndex> {
        (self.head != NO_WORKER).then_some(WorkerIndex(self.head))
    }

    /// Adds a worker unless it is on the list.
    pub(super) fn push(&mut self, workers: &mut [Worker], run: PipelineSlot, worker: WorkerIndex) {
        let partition = &mut workers[worker.index()].partitions[run.index()];
        if partition.listed {
            return;
        }
        partition.listed = true;
        partition.next_listed = NO_WORKER;
        match self.tail {
            NO_WORKER => self.head = worker.0,
            tail => workers[tail as usize].partitions[run.index()].next_listed = worker.0,
        }
        self.tail = worker.0;
    }

    #[inline]
    pub(super) fn pop<'w>(
        &mut self,
        workers: &'w mut [Worker],
        run: PipelineSlot,
    ) -> Option<(WorkerIndex, &'w mut Worker)> {
        let first = self.first()?;
        let worker = &mut workers[first.index()];
        let partition = &mut worker.partitions[run.index()];
        partition.listed = false;
        self.head = partition.next_listed;
        if self.head == NO_WORKER {
            self.tail = NO_WORKER;
        }
        Some((first, worker))
    }

    /// The worker after `worker`.
    pub(super) fn after(workers: &[Worker], run: PipelineSlot, worker: WorkerIndex) -> Option<WorkerIndex> {
        let next = workers[worker.index()].partitions[run.index()].next_listed;
        (next != NO_WORKER).then_some(WorkerIndex(next))
    }
}

/// A worker's ready singles of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    pub(super) queue: TaskQueue,
    listed: bool,
    next_listed: u16,
}

impl Partition {
    const EMPTY: Self = Self { queue: TaskQueue::EMPTY, listed: false, next_listed: NO_WORKER };

    /// Forgets the ready tasks of a run that is aborted; its ready list must be emptied with it.
    pub(super) fn clear(&mut self) {
        *self = Self::EMPTY;
    }
}

/// A dispatch that a lane holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Occupant {
    pub(super) slot: TaskSlot,
    pub(super) member: GroupIndex,
}

/// Whether work can be sent to a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    Alive,
    /// With the reason.
    Dead(TextRef),
}

/// One worker.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub(super) class: WorkerClass,
    pub(super) endpoint: EndpointIndex,
    pub(super) staging: bool,
    pub(super) life: Life,
    /// The head group waits for a busy member and keeps this worker free of singles (E-31).
    pub(super) reserved: bool,
    /// Work of the executing run.
    pub(super) active: Option<Occupant>,
    /// The staged task of the prepared run.
    pub(super) staged: Option<Occupant>,
    pub(super) partitions: [Partition; 2],
}

impl Worker {
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.active.is_none() && matches!(self.life, Life::Alive)
    }

    pub(super) fn is_sub(&self) -> bool {
        matches!(self.class, WorkerClass::Sub(_))
    }
}

/// All workers of one engine.
#[derive(Clone, Debug)]
pub(super) struct WorkerTable {
    pub(super) workers: Vec<Worker>,
    /// NEXT_LEVEL workers by id, sorted.
    by_id: Vec<(WorkerId, WorkerIndex)>,
    /// By endpoint index; [`NO_WORKER`] where an endpoint is not ours.
    by_endpoint: Vec<u16>,
    /// Idle live SUB workers, the one that finished last on top.
    pub(super) idle_subs: Vec<WorkerIndex>,
    pub(super) sub_pool: usize,
    pub(super) live_subs: usize,
    pub(super) last_dead_sub: Option<WorkerIndex>,
}

impl WorkerTable {
    pub(super) fn new(specs: &[WorkerSpec]) -> Result<Self, EngineError> {
        if specs.len() > MAX_WORKERS {
            return Err(EngineError::TooManyWorkers { workers: specs.len(), limit: MAX_WORKERS });
        }
        let endpoints = specs.iter().map(|spec| spec.endpoint.index() + 1).max().unwrap_or(0);
        let mut table = Self {
            workers: Vec::with_capacity(specs.len()),
            by_id: Vec::new(),
            by_endpoint: alloc::vec![NO_WORKER; endpoints],
            idle_subs: Vec::with_capacity(specs.len()),
            sub_pool: 0,
            live_subs: 0,
            last_dead_sub: None,
        };
        for (position, spec) in specs.iter().enumerate() {
            let clash =
                specs[..position].iter().position(|other| other.class == spec.class || other.endpoint == spec.endpoint);
            if let Some(first) = clash {
                return Err(EngineError::DuplicateWorker { first, second: position });
            }
            let index = WorkerIndex(position as u16);
            table.by_endpoint[spec.endpoint.index()] = index.0;
            match spec.class {
                WorkerClass::NextLevel(id) => table.by_id.push((id, index)),
                WorkerClass::Sub(_) => {
                    table.sub_pool += 1;
                    table.live_subs += 1;
                    table.idle_subs.insert(0, index);
                }
            }
            table.workers.push(Worker {
                class: spec.class,
                endpoint: spec.endpoint,
                staging: spec.staging,
                life: Life::Alive,
                reserved: false,
                active: None,
                staged: None,
                partitions: [Partition::EMPTY; 2],
            });
        }
        table.by_id.sort_unstable();
        Ok(table)
    }

    /// The NEXT_LEVEL worker with this id.
    #[inline]
    pub(super) fn next_level(&self, id: WorkerId) -> Option<WorkerIndex> {
        // Ids are usually 0, 1, 2, …: the id is then its own position.
        if let Some((candidate, index)) = self.by_id.get(id.get() as usize)
            && *candidate == id
        {
            return Some(*index);
        }
        let position = self.by_id.binary_search_by_key(&id, |(candidate, _)| *candidate).ok()?;
        Some(self.by_id[position].1)
    }

    pub(super) fn by_endpoint(&self, endpoint: EndpointIndex) -> Option<WorkerIndex> {
        let index = *self.by_endpoint.get(endpoint.index())?;
        (index != NO_WORKER).then_some(WorkerIndex(index))
    }
}

impl core::ops::Index<WorkerIndex> for WorkerTable {
    type Output = Worker;

    fn index(&self, worker: WorkerIndex) -> &Worker {
        &self.workers[worker.index()]
    }
}

impl core::ops::IndexMut<WorkerIndex> for WorkerTable {
    fn index_mut(&mut self, worker: WorkerIndex) -> &mut Worker {
        &mut self.workers[worker.index()]
    }
}
