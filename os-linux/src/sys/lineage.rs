//! Which process a value was made in: a fork copies values that only work where they were made.

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process that a value was made in, as this process and its ancestors tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lineage(u32);

impl Lineage {
    /// This process.
    pub(crate) fn here() -> Self {
        Self(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether the value came through a fork: what it refers to was not given to this process.
    pub(crate) fn is_inherited(self) -> bool {
        self != Self::here()
    }
}

/// In a child, before anything else: everything that is there came through the fork.
pub(crate) fn begin_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
