//! A task's record and the states it goes through.

use alloc::vec::Vec;

use crate::ids::{PipelineSlot, TaskSlot};
use crate::wire::Digest;

use super::group::GroupState;
use super::text::TextRef;
use super::worker::WorkerIndex;

/// "No such index" in the lists that link records of a pool.
pub(super) const NIL: u32 = u32::MAX;

/// Where a task stands. The numbers are part of the contract (spec of the engine, task slots).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum TaskState {
    /// The record is not in use.
    Free = 0,
    /// Waits for a producer.
    Pending = 1,
    /// In a queue.
    Ready = 2,
    /// Handed to an endpoint (a group: to all of them).
    Running = 3,
    /// Ended well; consumers or its scope still hold it.
    Completed = 4,
    /// Failed, was poisoned or cancelled; consumers or its scope still hold it.
    Failed = 5,
    /// Nothing refers to it any more; its memory is being given back.
    Consumed = 6,
    /// Being submitted; nobody but the submitter sees it.
    Building = 7,
}

/// What moves a task from one state to the next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TaskEvent {
    /// A submit or an allocation takes the record.
    Reserve,
    /// The submit failed half-way; nothing of the task is left (E-11).
    Abandon,
    /// Published with no live producer.
    PublishReady,
    /// Published behind a live producer.
    PublishPending,
    /// Published behind a producer that already failed (E-12).
    PublishPoisoned,
    /// An allocation: there is nothing to run (E-27).
    Materialise,
    /// The last producer has ended (E-21).
    LastProducer,
    /// The scheduler takes it out of its queue (E-20).
    Claim,
    /// Its endpoint, for a group every member's, reported success.
    Succeed,
    /// Its endpoint or a group member reported a failure.
    Fail,
    /// Poisoned, cancelled or unreachable before it ran (E-22, E-41).
    Poison,
    /// The last reference went (E-23).
    Consume,
    /// The record goes back to the free list.
    Recycle,
}

impl TaskState {
    /// Every state, in the order of its number from 0.
    pub const ALL: [Self; 8] = [
        Self::Free,
        Self::Pending,
        Self::Ready,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Consumed,
        Self::Building,
    ];

    /// The state after `event`, `None` where the event is illegal. With [`TaskEvent::leads_to`] this is the one place where the
    /// machine is declared.
    #[must_use]
    pub const fn on(self, event: TaskEvent) -> Option<Self> {
        use TaskEvent as E;
        let legal = match event {
            E::Reserve => matches!(self, Self::Free),
            E::Abandon | E::PublishReady | E::PublishPending | E::PublishPoisoned | E::Materialise => {
                matches!(self, Self::Building)
            }
            E::LastProducer => matches!(self, Self::Pending),
            E::Claim => matches!(self, Self::Ready),
            E::Poison => matches!(self, Self::Pending | Self::Ready),
            E::Succeed | E::Fail => matches!(self, Self::Running),
            E::Consume => matches!(self, Self::Completed | Self::Failed),
            E::Recycle => matches!(self, Self::Consumed),
        };
        if legal { Some(event.leads_to()) } else { None }
    }

    /// Whether a task in this state still has something to do to the bytes that it names.
    #[must_use]
    pub const fn is_unfinished(self) -> bool {
        matches!(self, Self::Building | Self::Pending | Self::Ready | Self::Running)
    }
}

impl TaskEvent {
    /// Every event, in the order of a task's life.
    pub const ALL: [Self; 13] = [
        Self::Reserve,
        Self::Abandon,
        Self::PublishReady,
        Self::PublishPending,
        Self::PublishPoisoned,
        Self::Materialise,
        Self::LastProducer,
        Self::Claim,
        Self::Succeed,
        Self::Fail,
        Self::Poison,
        Self::Consume,
        Self::Recycle,
    ];

    /// The state that it leads to, wherever it is legal.
    #[inline]
    #[must_use]
    pub const fn leads_to(self) -> TaskState {
        match self {
            Self::Reserve => TaskState::Building,
            Self::Abandon | Self::Recycle => TaskState::Free,
            Self::PublishReady | Self::LastProducer => TaskState::Ready,
            Self::PublishPending => TaskState::Pending,
            Self::Claim => TaskState::Running,
            Self::Materialise | Self::Succeed => TaskState::Completed,
            Self::PublishPoisoned | Self::Fail | Self::Poison => TaskState::Failed,
            Self::Consume => TaskState::Consumed,
        }
    }
}

/// What a record stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// One task for one NEXT_LEVEL worker.
    NextLevel(WorkerIndex),
    /// One task for any SUB worker.
    Sub,
    /// A group of NEXT_LEVEL workers (`sub` = false) or of SUB workers; `first` is its member table.
    Group { first: u32, sub: bool },
    /// An allocation: a task that completed when it was made (E-27).
    Slab,
}

/// The encoded arguments of a task or of a group member, in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ArgsRef {
    /// First line; [`NIL`] for "no arguments", which takes no memory.
    pub(super) line: u32,
    /// Length of the encoded blob in bytes.
    pub(super) bytes: u32,
}

impl ArgsRef {
    pub(super) const EMPTY: Self = Self { line: NIL, bytes: 8 };
}

/// The slab block of a task: one per task, carved for all the outputs that it allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockRef {
    pub(super) ring: u8,
    /// Position in the ring's sequence of slabs.
    pub(super) sequence: u32,
}

/// One task. Indices link it to the pools, so that it stays two cache lines.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Slot {
    pub(super) state: TaskState,
    /// The live run it belongs to, by the run's lease.
    pub(super) run: PipelineSlot,
    pub(super) diagnostic: bool,
    /// The launch acceptance that it owed has been counted; a group's members have their own.
    pub(super) accepted: bool,
    /// Its endpoint holds it in the staged lane (E-33).
    pub(super) staged: bool,
    /// Its failure has been spread to its consumers.
    pub(super) spread: bool,
    pub(super) group: GroupState,
    pub(super) kind: Kind,
    /// The SUB worker that runs it, once one does.
    pub(super) runner: WorkerIndex,
    /// How often the record has been used: a late report names an older one and is ignored (E-10).
    pub(super) serial: u32,
    /// Its own end, its scope and every consumer; consumed at 0 (E-23).
    pub(super) references: u32,
    /// Producers that it waits for.
    pub(super) pending: u32,
    /// Edges to its consumers, linked by `next_consumer`.
    pub(super) consumers: u32,
    /// Edges to its producers, linked by `next_producer`.
    pub(super) producers: u32,
    /// The edge that was wired last with this task as producer: one edge per producer (E-18).
    pub(super) last_edge: u32,
    /// Next in a ready queue; while not queued, next in a worklist of failed or consumed tasks.
    pub(super) queue_next: u32,
    /// Next task of the same scope.
    pub(super) scope_next: u32,
    /// Map entries that belong to it, linked.
    pub(super) entries: u32,
    pub(super) args: ArgsRef,
    pub(super) config: u16,
    /// Members, 1 for a task that is no group.
    pub(super) members: u16,
    /// Members that have ended.
    pub(super) ended: u16,
    pub(super) error: Option<TextRef>,
    pub(super) block: Option<BlockRef>,
    /// Nanoseconds that an endpoint may take, 0 = no limit (E-43).
    pub(super) deadline: u64,
    pub(super) digest: Digest,
}

impl Slot {
    /// Moves the task along its machine. An event that the machine refuses would be a fault of this crate.
    #[inline]
    pub(super) fn advance(&mut self, event: TaskEvent) {
        debug_assert!(self.state.on(event).is_some(), "a task in {:?} has no transition on {event:?}", self.state);
        self.state = event.leads_to();
    }

    /// One reference less on the task, whose record `slot` is; one without any goes to the head of `unreferenced`.
    #[inline]
    pub(super) fn drop_reference(&mut self, slot: TaskSlot, unreferenced: &mut u32) {
        self.references -= 1;
        if self.references == 0 {
            self.queue_next = core::mem::replace(unreferenced, slot.0);
        }
    }

    /// Whether an edge ties it to another task.
    #[inline]
    pub(super) fn has_edges(&self) -> bool {
        // Either list is NIL, all ones, where there is none.
        self.consumers & self.producers != NIL
    }

    /// Whether anything but the record has to be given back: edges, entries, arguments, a config, a message, a block, a
    /// member table.
    pub(super) fn holds_memory(&self) -> bool {
        // Every link is NIL, all ones, where there is nothing.
        (self.producers & self.entries & self.args.line) != NIL
            || self.config != 0
            || self.error.is_some()
            || self.block.is_some()
            || matches!(self.kind, Kind::Group { .. })
    }
}

/// All records of one engine.
#[derive(Clone, Debug)]
pub(super) struct SlotTable {
    slots: Vec<Slot>,
    /// Head of the free list, linked by `queue_next`.
    free: u32,
    used: u32,
    /// One bit per record: has been published and has not ended.
    unfinished: Vec<u64>,
    unfinished_count: u32,
}

impl SlotTable {
    pub(super) fn new(capacity: u32) -> Self {
        let slot = |index: u32| Slot {
            state: TaskState::Free,
            run: PipelineSlot::Zero,
            diagnostic: false,
            accepted: false,
            staged: false,
            spread: false,
            group: GroupState::Waiting,
            runner: WorkerIndex(0),
            kind: Kind::Slab,
            serial: 0,
            references: 0,
            pending: 0,
            consumers: NIL,
            producers: NIL,
            last_edge: NIL,
            queue_next: if index + 1 < capacity { index + 1 } else { NIL },
            scope_next: NIL,
            entries: NIL,
            args: ArgsRef::EMPTY,
            config: 0,
            members: 0,
            ended: 0,
            error: None,
            block: None,
            deadline: 0,
            digest: Digest([0; 32]),
        };
        Self {
            slots: (0..capacity).map(slot).collect(),
            free: 0,
            used: 0,
            unfinished: alloc::vec![0; capacity.div_ceil(64) as usize],
            unfinished_count: 0,
        }
    }

    pub(super) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn is_full(&self) -> bool {
        self.free == NIL
    }

    /// Takes a record; the caller fills it in. `None` when the window is full.
    #[inline]
    pub(super) fn reserve(&mut self) -> Option<(TaskSlot, &mut Slot)> {
        let index = self.free;
        if index == NIL {
            return None;
        }
        let slot = &mut self.slots[index as usize];
        self.free = slot.queue_next;
        slot.advance(TaskEvent::Reserve);
        slot.queue_next = NIL;
        self.used += 1;
        Some((TaskSlot(index), slot))
    }

    /// Gives a record back under a new serial.
    #[inline]
    pub(super) fn recycle(&mut self, index: TaskSlot, event: TaskEvent) {
        let slot = &mut self.slots[index.index()];
        debug_assert_eq!(event.leads_to(), TaskState::Free, "{event:?} does not give a record back");
        slot.advance(event);
        slot.serial = slot.serial.wrapping_add(1);
        slot.queue_next = self.free;
        self.free = index.0;
        self.used -= 1;
    }

    pub(super) fn mark_unfinished(&mut self, slot: TaskSlot) {
        self.unfinished[slot.index() / 64] |= 1 << (slot.index() % 64);
        self.unfinished_count += 1;
    }

    pub(super) fn mark_finished(&mut self, slot: TaskSlot) {
        self.unfinished[slot.index() / 64] &= !(1 << (slot.index() % 64));
        self.unfinished_count -= 1;
    }

    pub(super) fn unfinished_count(&self) -> u32 {
        self.unfinished_count
    }

    /// The lowest unfinished task at or after `from`.
    pub(super) fn next_unfinished(&self, from: u32) -> Option<TaskSlot> {
        let mut word = from as usize / 64;
        let mut bits = self.unfinished.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.unfinished.get(word)?;
        }
        Some(TaskSlot(word as u32 * 64 + bits.trailing_zeros()))
    }

    pub(super) fn get(&self, slot: TaskSlot) -> Option<&Slot> {
        self.slots.get(slot.index())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: TaskSlot) -> Option<&mut Slot> {
        self.slots.get_mut(slot.index())
    }
}

impl core::ops::Index<TaskSlot> for SlotTable {
    type Output = Slot;

    fn index(&self, slot: TaskSlot) -> &Slot {
        &self.slots[slot.index()]
    }
}

impl core::ops::IndexMut<TaskSlot> for SlotTable {
    fn index_mut(&mut self, slot: TaskSlot) -> &mut Slot {
        &mut self.slots[slot.index()]
    }
}
