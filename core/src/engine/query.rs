//! Questions that callers ask: who still names these bytes, and how full everything is.

use crate::ids::{PipelineSlot, RunId, TaskSlot, WorkerId};
use crate::model::overlap;
use crate::wire::{AddressSpace, ByteRange, ChipTensor, Digest, args};

use super::action::Ticket;
use super::backing::range_tree;
use super::slot::{Kind, NIL, TaskState};
use super::{Engine, EngineError, Range};

/// Which memory an address is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Memory {
    /// Shared host memory.
    Host,
    /// The device memory of this worker: equal numbers on two workers are two places.
    Device(WorkerId),
}

/// How much of each pool is in use. All of it is back at [`Usage::is_idle`] when no run is open and no handle is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Live tasks and allocations.
    pub tasks: u32,
    /// Tasks that have been published and have not ended.
    pub unfinished: u32,
    /// Edges and lifetime references.
    pub edges: u32,
    /// Map entries.
    pub map_entries: u32,
    /// Group members.
    pub group_members: u32,
    /// Bytes of encoded arguments.
    pub args_bytes: usize,
    /// Call configs besides the all-zero one.
    pub configs: u32,
    /// Error messages.
    pub error_texts: u32,
    /// Slabs in all rings.
    pub slabs: u32,
    /// Run records.
    pub runs: u32,
}

impl Usage {
    /// Whether nothing is in use but messages of dead endpoints.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == Self { error_texts: self.error_texts, ..Self::default() }
    }
}

/// Why a task comes after another one, or keeps something of it; the strongest reason where there are several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dependence {
    /// It reads what the other one writes: it waits, and fails if that does.
    Data,
    /// It writes what the other one reads or writes: it waits, whatever becomes of that (E-19).
    Order,
    /// It names bytes that the other one allocated: it keeps them and does not wait (E-27).
    Lifetime,
}

impl Engine {
    /// Registers an address range that arguments may name (E-38).
    ///
    /// # Errors
    /// [`EngineError::Range`] with the reason.
    pub fn add_range(&mut self, range: Range) -> Result<(), EngineError> {
        self.backings.add(range)
    }

    /// Forgets the range that starts at `base`: later arguments that name it are refused.
    ///
    /// # Errors
    /// [`EngineError::RangeInUse`] while an unfinished task names it or still orders others on it; try again when one
    /// has ended. [`EngineError::Range`] if no range starts there.
    pub fn remove_range(&mut self, base: u64) -> Result<(), EngineError> {
        let Some((number, range)) = self.backings.registered(base) else {
            return Err(EngineError::Range { base, bytes: 0, reason: "no range is registered there" });
        };
        if self.unfinished_names(Memory::Host, range) {
            return Err(EngineError::RangeInUse { base, bytes: range.len() });
        }
        for run in PipelineSlot::ALL {
            let tree = range_tree(number, run);
            if self.map.any(&self.backings.roots(tree), |slot| self.is_unended(slot)) {
                return Err(EngineError::RangeInUse { base, bytes: range.len() });
            }
            self.map.remove_all(self.backings.roots_mut(tree));
        }
        self.backings.remove(number);
        Ok(())
    }

    /// Whether a task that has not ended names a byte of `range`, whatever its tag. Looks at unfinished tasks only.
    #[must_use]
    pub fn unfinished_names(&self, memory: Memory, range: ByteRange) -> bool {
        let mut from = 0;
        while let Some(slot) = self.slots.next_unfinished(from) {
            from = slot.0 + 1;
            let hit = self.names(slot, |worker, tensor| {
                let same = match memory {
                    Memory::Host => tensor.address_space() == AddressSpace::Host,
                    Memory::Device(owner) => tensor.address_space() == AddressSpace::Device && worker == Some(owner),
                };
                same && tensor.byte_range().overlaps(range)
            });
            if hit {
                return true;
            }
        }
        false
    }

    /// Whether a task that has not ended calls `digest`. Looks at unfinished tasks only.
    #[must_use]
    pub fn unfinished_calls(&self, digest: &Digest) -> bool {
        let mut from = 0;
        while let Some(slot) = self.slots.next_unfinished(from) {
            from = slot.0 + 1;
            if self.slots[slot].kind != Kind::Slab && self.slots[slot].digest == *digest {
                return true;
            }
        }
        false
    }

    /// The first unfinished task of `run`, from record `from` on, that names a byte of one of `tensors` (E-2). Whoever
    /// waits asks again from there when a task has ended, so that a whole wait looks at each task about once.
    #[must_use]
    pub fn unfinished_naming(&self, run: RunId, tensors: &[ChipTensor], from: TaskSlot) -> Option<TaskSlot> {
        let mut from = from.0;
        while let Some(slot) = self.slots.next_unfinished(from) {
            from = slot.0 + 1;
            if self.is_of(slot, run) && self.names_any(slot, tensors) {
                return Some(slot);
            }
        }
        None
    }

    /// The message of a task of `run` that failed and names a byte of one of `tensors`.
    #[must_use]
    pub fn failure_naming(&self, run: RunId, tensors: &[ChipTensor]) -> Option<&str> {
        (0..self.slots.capacity()).map(TaskSlot).find_map(|slot| {
            let record = &self.slots[slot];
            if record.state != TaskState::Failed || !self.is_of(slot, run) || !self.names_any(slot, tensors) {
                return None;
            }
            record.error.map(|text| self.texts.get(text))
        })
    }

    /// How full the pools are.
    #[inline]
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage {
            tasks: self.slots.used(),
            unfinished: self.slots.unfinished_count(),
            edges: self.edges.used(),
            map_entries: self.map.used(),
            group_members: self.members.used(),
            args_bytes: self.arena.used(),
            configs: self.configs.used() - 1,
            error_texts: self.texts.used(),
            slabs: self.backings.rings.iter().map(super::ring::Ring::count).sum(),
            runs: self.runs.used(),
        }
    }

    /// The task or allocation that the innermost scope took last; right after a submit, what was submitted.
    #[must_use]
    pub fn newest(&self) -> Option<Ticket> {
        self.scopes.newest().map(|slot| self.ticket(slot, 0))
    }

    /// Whether a task failed, or was never run because something that it depends on did.
    #[must_use]
    pub fn has_failed(&self, task: Ticket) -> bool {
        let current = self.slots.get(task.slot).filter(|slot| slot.serial == task.serial);
        current.is_some_and(|slot| slot.state == TaskState::Failed)
    }

    /// Whom a task comes after, and why, for as long as it or they have not ended. Looks at the edges of this task only.
    pub fn producers(&self, task: Ticket) -> impl Iterator<Item = (Ticket, Dependence)> + '_ {
        let current = self.slots.get(task.slot).filter(|slot| slot.serial == task.serial);
        let mut at = current.map_or(NIL, |slot| slot.producers);
        core::iter::from_fn(move || {
            (at != NIL).then(|| {
                let edge = &self.edges[at];
                at = edge.next_producer;
                (self.ticket(edge.producer, 0), edge.kind.dependence())
            })
        })
    }

    fn is_of(&self, slot: TaskSlot, run: RunId) -> bool {
        self.live(self.slots[slot].run).is_some_and(|live| live.id == run)
    }

    fn names_any(&self, slot: TaskSlot, tensors: &[ChipTensor]) -> bool {
        self.names(slot, |_, argument| tensors.iter().any(|tensor| overlap::overlaps(argument, tensor)))
    }

    /// Whether `test` holds for an argument of a task; it is given the worker that the argument goes to, if that is
    /// fixed.
    fn names(&self, slot: TaskSlot, test: impl Fn(Option<WorkerId>, &ChipTensor) -> bool) -> bool {
        let record = &self.slots[slot];
        let id = |worker| match self.workers[worker].class {
            super::WorkerClass::NextLevel(id) => Some(id),
            super::WorkerClass::Sub(_) => None,
        };
        let any = |stored, worker| {
            let blob = self.arena.blob(stored);
            // The engine encoded the list itself.
            args::decode(blob, blob.len()).is_ok_and(|view| view.tensors().iter().any(|tensor| test(worker, tensor)))
        };
        match record.kind {
            Kind::Group { first, sub } => {
                let mut members = self.members.of(first, record.members).iter();
                members.any(|member| any(member.args, if sub { None } else { id(member.target) }))
            }
            Kind::NextLevel(worker) => any(record.args, id(worker)),
            Kind::Sub => any(record.args, None),
            Kind::Slab => false,
        }
    }
}
