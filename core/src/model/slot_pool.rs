//! The pool that mints pipeline slot leases (C-4).

use crate::ids::{Generation, PipelineSlot};
use crate::wire::PipelineSlotLease;

use super::ModelError;

/// The deepest pipeline there is: one run executes, one more is prepared.
pub const MAX_PIPELINE_DEPTH: usize = PipelineSlot::ALL.len();

/// One slot of the pool. The generation counts how often the slot was leased and never goes back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Slot {
    /// Can be leased; `last` is the generation of the previous lease, `None` before the first one.
    Free { last: Option<Generation> },
    /// Leased under `generation`.
    Leased { generation: Generation },
    /// The run that held it may still touch its resources, so it is never leased again (L-35).
    Retired { last: Generation },
}

impl Slot {
    const fn generation(self) -> Option<Generation> {
        match self {
            Self::Free { last } => last,
            Self::Leased { generation } | Self::Retired { last: generation } => Some(generation),
        }
    }
}

/// The only place where a lease comes from (C-4).
///
/// A lease is a slot plus the generation under which it was handed out. Giving a lease back twice is harmless; giving
/// back an older one never frees the slot under its successor.
///
/// ```
/// use laneway_core::model::SlotPool;
///
/// # fn main() -> Result<(), laneway_core::model::ModelError> {
/// let mut pool = SlotPool::new(1)?;
/// let first = pool.try_acquire()?.expect("one slot is free");
/// assert!(pool.try_acquire()?.is_none());
/// assert!(pool.release(&first) && pool.release(&first), "twice is harmless");
/// let second = pool.try_acquire()?.expect("it is free again");
/// assert!(!pool.owns(&first) && pool.owns(&second));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SlotPool {
    /// Slots at or above `depth` do not exist.
    slots: [Slot; MAX_PIPELINE_DEPTH],
    depth: usize,
}

impl SlotPool {
    /// A pool of `depth` free slots.
    ///
    /// # Errors
    /// [`ModelError::PipelineDepth`] unless `depth` is 1 or 2.
    pub const fn new(depth: usize) -> Result<Self, ModelError> {
        if depth == 0 || depth > MAX_PIPELINE_DEPTH {
            return Err(ModelError::PipelineDepth { depth });
        }
        Ok(Self { slots: [Slot::Free { last: None }; MAX_PIPELINE_DEPTH], depth })
    }

    /// How many slots the pool was built with.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// How many slots can still be leased, now or after a release; 0 means that no lease will ever be free again.
    #[must_use]
    pub fn usable(&self) -> usize {
        self.slots[..self.depth].iter().filter(|slot| !matches!(slot, Slot::Retired { .. })).count()
    }

    /// How many leases are out.
    #[must_use]
    pub fn leased(&self) -> usize {
        self.slots[..self.depth].iter().filter(|slot| matches!(slot, Slot::Leased { .. })).count()
    }

    /// Leases the lowest free slot under its next generation, or `None` while there is no free one.
    ///
    /// # Errors
    /// [`ModelError::GenerationExhausted`] if that slot was leased 2⁶⁴ − 1 times; nothing changes.
    pub fn try_acquire(&mut self) -> Result<Option<PipelineSlotLease>, ModelError> {
        for (slot, state) in PipelineSlot::ALL.into_iter().zip(&mut self.slots[..self.depth]) {
            let Slot::Free { last } = *state else { continue };
            let generation = match last {
                None => Generation::FIRST,
                Some(last) => last.next().ok_or(ModelError::GenerationExhausted { slot })?,
            };
            *state = Slot::Leased { generation };
            return Ok(Some(PipelineSlotLease::new(slot, generation)));
        }
        Ok(None)
    }

    /// Whether `lease` is the current one of its slot and still out.
    #[must_use]
    pub fn owns(&self, lease: &PipelineSlotLease) -> bool {
        match self.current(lease) {
            Some((index, generation)) => self.slots[index] == Slot::Leased { generation },
            None => false,
        }
    }

    /// Takes a lease back. `true` if it is the current lease of its slot, also when it was given back before.
    ///
    /// `false`, and nothing changes, for an older generation, one that was never handed out, generation 0, a reserved
    /// word that is not 0, or a slot that the pool does not have.
    pub fn release(&mut self, lease: &PipelineSlotLease) -> bool {
        let Some((index, generation)) = self.current(lease) else { return false };
        if self.slots[index] == (Slot::Leased { generation }) {
            self.slots[index] = Slot::Free { last: Some(generation) };
        }
        true
    }

    /// Takes the slot of a lease that is out for ever out of circulation: whatever held it may still write (L-35).
    /// `false`, and nothing changes, if the pool does not own `lease`.
    pub fn retire(&mut self, lease: &PipelineSlotLease) -> bool {
        match self.current(lease) {
            Some((index, generation)) if self.slots[index] == (Slot::Leased { generation }) => {
                self.slots[index] = Slot::Retired { last: generation };
                true
            }
            _ => false,
        }
    }

    /// The slot's index and generation, if `lease` is well formed and the latest one of its slot.
    fn current(&self, lease: &PipelineSlotLease) -> Option<(usize, Generation)> {
        let slot = PipelineSlot::new(u64::from(lease.slot_id))?;
        let generation = Generation::new(lease.generation)?;
        let index = slot.index();
        if lease.reserved != 0 || index >= self.depth || self.slots[index].generation() != Some(generation) {
            return None;
        }
        Some((index, generation))
    }
}

#[cfg(test)]
mod tests;
