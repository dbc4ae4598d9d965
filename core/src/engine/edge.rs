//! Edges between producers and consumers, in one pooled array.

use alloc::vec::Vec;

use crate::ids::TaskSlot;

use super::query::Dependence;
use super::slot::{NIL, SlotTable};

/// What an edge means; several may hold at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EdgeKind(u8);

impl EdgeKind {
    /// The consumer reads what the producer writes: it waits, and is poisoned by a failure.
    pub(super) const DATA: Self = Self(1);
    /// The consumer only comes later: it waits, and does not care how the producer ended.
    pub(super) const ORDER: Self = Self(2);
    /// The consumer names bytes of the producer's slab: it keeps the slab until it is consumed, and does not wait.
    pub(super) const LIFETIME: Self = Self(4);

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The strongest meaning.
    pub(super) const fn dependence(self) -> Dependence {
        if self.has(Self::DATA) {
            Dependence::Data
        } else if self.has(Self::ORDER) {
            Dependence::Order
        } else {
            Dependence::Lifetime
        }
    }
}

/// One edge. It is on two lists and is freed when both sides are done with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) producer: TaskSlot,
    pub(super) consumer: TaskSlot,
    /// Next edge of the same producer; next free edge while free.
    pub(super) next_consumer: u32,
    /// Next edge of the same consumer.
    pub(super) next_producer: u32,
    pub(super) kind: EdgeKind,
    /// The consumer still counts this producer as pending.
    pub(super) waiting: bool,
    /// The producer has ended and will not look at the edge again.
    pub(super) producer_done: bool,
    /// The consumer has given its reference on the producer back.
    pub(super) consumer_done: bool,
}

/// All edges of one engine.
#[derive(Clone, Debug)]
pub(super) struct EdgePool {
    edges: Vec<Edge>,
    free: u32,
    used: u32,
}

impl EdgePool {
    pub(super) fn new(capacity: u32) -> Self {
        let edge = |index: u32| Edge {
            producer: TaskSlot(NIL),
            consumer: TaskSlot(NIL),
            next_consumer: if index + 1 < capacity { index + 1 } else { NIL },
            next_producer: NIL,
            kind: EdgeKind::LIFETIME,
            waiting: false,
            producer_done: true,
            consumer_done: true,
        };
        Self { edges: (0..capacity).map(edge).collect(), free: 0, used: 0 }
    }

    pub(super) fn capacity(&self) -> u32 {
        self.edges.len() as u32
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Connects `consumer`, which is being submitted, to `producer`: one edge however often it is asked (E-18). An
    /// unended producer is waited for unless `kind` is a mere lifetime. `false`: no edge is free, nothing changed.
    #[inline(always)]
    pub(super) fn connect(
        &mut self,
        slots: &mut SlotTable,
        producer: TaskSlot,
        consumer: TaskSlot,
        kind: EdgeKind,
        unended: bool,
    ) -> bool {
        let wait = unended && (kind.has(EdgeKind::DATA) || kind.has(EdgeKind::ORDER));
        let last = slots[producer].last_edge;
        if let Some(edge) = self.edges.get_mut(last as usize)
            && edge.producer == producer
            && edge.consumer == consumer
            && !edge.consumer_done
        {
            edge.kind = edge.kind.with(kind);
            if wait && !edge.waiting {
                edge.waiting = true;
                slots[consumer].pending += 1;
            }
            return true;
        }
        let index = self.free;
        if index == NIL {
            return false;
        }
        self.free = self.edges[index as usize].next_consumer;
        self.used += 1;
        self.edges[index as usize] = Edge {
            producer,
            consumer,
            next_consumer: NIL,
            next_producer: slots[consumer].producers,
            kind,
            waiting: wait,
            producer_done: !unended,
            consumer_done: false,
        };
        slots[consumer].producers = index;
        let from = &mut slots[producer];
        from.references += 1;
        from.last_edge = index;
        if unended {
            self.edges[index as usize].next_consumer = core::mem::replace(&mut from.consumers, index);
        }
        if wait {
            slots[consumer].pending += 1;
        }
        true
    }

    /// Undoes a [`connect`](Self::connect) of the submit that is being undone; its edges are still first on the lists
    /// of their producers.
    pub(super) fn retract(&mut self, slots: &mut SlotTable, index: u32) {
        let edge = self.edges[index as usize];
        let from = &mut slots[edge.producer];
        from.references -= 1;
        if !edge.producer_done {
            from.consumers = edge.next_consumer;
        }
        if edge.waiting {
            slots[edge.consumer].pending -= 1;
        }
        self.edges[index as usize].producer_done = true;
        self.edges[index as usize].consumer_done = true;
        self.free_if_done(index);
    }

    /// Turns a producer's list of consumers round; returns its new head.
    pub(super) fn reverse(&mut self, head: u32) -> u32 {
        let (mut at, mut done) = (head, NIL);
        while at != NIL {
            let next = core::mem::replace(&mut self.edges[at as usize].next_consumer, done);
            done = at;
            at = next;
        }
        done
    }

    /// The producer has ended; returns the edge as it was.
    pub(super) fn end_producer(&mut self, index: u32) -> Edge {
        let edge = &mut self.edges[index as usize];
        edge.producer_done = true;
        let before = *edge;
        edge.waiting = false;
        self.free_if_done(index);
        before
    }

    /// The consumer gives its reference on the producer back; returns the edge as it was.
    pub(super) fn end_consumer(&mut self, index: u32) -> Edge {
        let edge = &mut self.edges[index as usize];
        edge.consumer_done = true;
        let before = *edge;
        self.free_if_done(index);
        before
    }

    fn free_if_done(&mut self, index: u32) {
        let edge = &mut self.edges[index as usize];
        if edge.producer_done && edge.consumer_done {
            edge.producer = TaskSlot(NIL);
            edge.consumer = TaskSlot(NIL);
            edge.next_consumer = self.free;
            self.free = index;
            self.used -= 1;
        }
    }
}

impl core::ops::Index<u32> for EdgePool {
    type Output = Edge;

    fn index(&self, edge: u32) -> &Edge {
        &self.edges[edge as usize]
    }
}

impl core::ops::IndexMut<u32> for EdgePool {
    fn index_mut(&mut self, edge: u32) -> &mut Edge {
        &mut self.edges[edge as usize]
    }
}
