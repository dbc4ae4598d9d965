//! Scopes of the run that is being built (E-28).

use crate::ids::{RunId, TaskSlot};

use super::slot::{NIL, SlotTable};
use super::{Engine, EngineError, RINGS, SCOPE_DEPTH};

/// The stack of open scopes; each holds one reference on every task that was submitted in it.
#[derive(Clone, Debug)]
pub(super) struct ScopeStack {
    /// First task of each open scope, linked by `scope_next`.
    tasks: [u32; SCOPE_DEPTH],
    depth: usize,
}

impl ScopeStack {
    pub(super) const fn new() -> Self {
        Self { tasks: [NIL; SCOPE_DEPTH], depth: 0 }
    }

    /// Opens the automatic outer scope of a run.
    pub(super) fn open(&mut self) {
        self.depth = 1;
        self.tasks[0] = NIL;
    }

    /// Index of the heap ring for the innermost scope: its depth, the outer one being 0, but at most the last ring.
    pub(super) fn ring(&self) -> usize {
        self.depth.saturating_sub(1).min(RINGS - 1)
    }

    /// The innermost scope takes a task.
    pub(super) fn add(&mut self, slots: &mut SlotTable, slot: TaskSlot) {
        let first = &mut self.tasks[self.depth.saturating_sub(1)];
        slots[slot].scope_next = core::mem::replace(first, slot.0);
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
            self.drop_reference(slot);
        }
        self.consume_unreferenced();
    }
}
