//! Scopes of the run that is being built (E-28).

use crate::ids::{RunId, TaskSlot};

use super::slot::{NIL, Slot, SlotTable, TaskState};
use super::{Engine, EngineError, RINGS, Resource, SCOPE_DEPTH};

/// The stack of open scopes; each holds one reference on every task that was submitted in it.
#[derive(Clone, Debug)]
pub(super) struct ScopeStack {
    /// First task of each open scope, linked by `scope_next`.
    tasks: [u32; SCOPE_DEPTH],
    depth: usize,
    /// Ended tasks that the last sweep had to keep.
    kept: u32,
    /// Sweeps since the engine was built.
    sweeps: u64,
}

impl ScopeStack {
    pub(super) const fn new() -> Self {
        Self { tasks: [NIL; SCOPE_DEPTH], depth: 0, kept: 0, sweeps: 0 }
    }

    /// Opens the automatic outer scope of a run.
    pub(super) fn open(&mut self) {
        self.depth = 1;
        self.tasks[0] = NIL;
        self.kept = 0;
    }

    /// Index of the heap ring for the innermost scope: its depth, the outer one being 0, but at most the last ring.
    pub(super) fn ring(&self) -> usize {
        self.depth.saturating_sub(1).min(RINGS - 1)
    }

    /// What the innermost scope took last.
    pub(super) fn newest(&self) -> Option<TaskSlot> {
        let first = self.tasks[self.depth.checked_sub(1)?];
        (first != NIL).then_some(TaskSlot(first))
    }

    /// The innermost scope takes the task whose record `slot` is.
    #[inline]
    pub(super) fn add(&mut self, record: &mut Slot, slot: TaskSlot) {
        let first = &mut self.tasks[self.depth.saturating_sub(1)];
        record.scope_next = core::mem::replace(first, slot.0);
    }

    /// The outer scope takes over a task of one that ends: a failure must be found for as long as its run is built, by those
    /// who submit behind it (E-12) and those who wait for it (E-2).
    fn keep(&mut self, slots: &mut SlotTable, slot: TaskSlot) {
        slots[slot].scope_next = core::mem::replace(&mut self.tasks[0], slot.0);
    }

    fn begin(&mut self) -> Result<(), EngineError> {
        if self.depth >= SCOPE_DEPTH {
            return Err(EngineError::ScopeTooDeep { limit: SCOPE_DEPTH });
        }
        self.tasks[self.depth] = NIL;
        self.depth += 1;
        Ok(())
    }

    /// Closes the innermost scope and returns its first task.
    fn end(&mut self) -> Option<u32> {
        self.depth = self.depth.checked_sub(1)?;
        Some(core::mem::replace(&mut self.tasks[self.depth], NIL))
    }
}

impl Engine {
    /// Opens an inner scope.
    ///
    /// # Errors
    /// [`EngineError::ScopeTooDeep`]; [`EngineError::NotBuilding`] or [`EngineError::UnknownRun`].
    pub fn scope_begin(&mut self, run: RunId) -> Result<(), EngineError> {
        self.building_slot(run)?;
        self.scopes.begin()
    }

    /// Ends the innermost scope: its tasks and allocations are released, each once (E-28). Never blocks.
    ///
    /// # Errors
    /// [`EngineError::ScopeUnderflow`] when only the automatic outer scope is open; otherwise as
    /// [`scope_begin`](Self::scope_begin).
    pub fn scope_end(&mut self, run: RunId) -> Result<(), EngineError> {
        let slot = self.building_slot(run)?;
        if self.scopes.depth <= 1 {
            return Err(EngineError::ScopeUnderflow);
        }
        self.end_scope();
        self.settle_run(slot);
        Ok(())
    }

    /// How many scopes are open, the automatic outer one included.
    #[must_use]
    pub fn scope_depth(&self) -> usize {
        self.scopes.depth
    }

    pub(super) fn end_all_scopes(&mut self) {
        while self.scopes.depth > 0 {
            self.end_scope();
        }
    }

    fn end_scope(&mut self) {
        let mut at = self.scopes.end().unwrap_or(NIL);
        while at != NIL {
            let slot = TaskSlot(at);
            at = core::mem::replace(&mut self.slots[slot].scope_next, NIL);
            if self.scopes.depth > 0 && self.slots[slot].state == TaskState::Failed {
                self.scopes.keep(&mut self.slots, slot);
            } else {
                self.drop_reference(slot);
            }
        }
        self.consume_unreferenced();
    }

    /// How often a full pool made open scopes let go of tasks that had completed: where this grows fast, a pool is small for
    /// the runs that go through it.
    #[must_use]
    pub fn sweeps(&self) -> u64 {
        self.scopes.sweeps
    }

    /// A pool is full: open scopes let go early of tasks that have COMPLETED and own no slab, which nobody can observe (a
    /// CONSUMED producer orders nothing, a COMPLETED one is not waited for, E-18). Says whether it did, so that another try is
    /// worth while.
    ///
    /// A run in one scope so passes any number of tasks through a small window. A sweep looks at every task of the scopes, so
    /// the next one waits until an eighth of the window has ended, or nothing is left that could end.
    #[cold]
    pub(super) fn let_go_of_completed(&mut self, resource: Resource) -> bool {
        // What a ring holds, slabs hold: their owners are kept.
        if matches!(resource, Resource::Ring(_) | Resource::Slabs(_)) {
            return false;
        }
        let unfinished = self.slots.unfinished_count();
        let ended = self.slots.used() - unfinished;
        self.scopes.kept = self.scopes.kept.min(ended);
        let due = self.scopes.kept + (self.slots.capacity() / 8).max(1);
        if ended < due && unfinished > 0 {
            return false;
        }
        self.scopes.sweeps += 1;
        let mut any = false;
        for depth in 0..self.scopes.depth {
            let mut kept = NIL;
            let mut at = core::mem::replace(&mut self.scopes.tasks[depth], NIL);
            while at != NIL {
                let slot = TaskSlot(at);
                at = core::mem::replace(&mut self.slots[slot].scope_next, NIL);
                let record = &self.slots[slot];
                if record.state == TaskState::Completed && record.block.is_none() {
                    self.drop_reference(slot);
                    any = true;
                    continue;
                }
                match kept {
                    NIL => self.scopes.tasks[depth] = slot.0,
                    before => self.slots[TaskSlot(before)].scope_next = slot.0,
                }
                kept = slot.0;
            }
        }
        self.consume_unreferenced();
        self.scopes.kept = self.slots.used() - self.slots.unfinished_count();
        any
    }
}
