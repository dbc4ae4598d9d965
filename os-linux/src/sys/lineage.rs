//! Where a value was made: a fork copies values that only work in the process that made them, and a thread child is handed
//! values that a process child could not use.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use super::fork;

static GENERATION: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Which thread child this thread serves as; 0 for threads of the host.
    static CHILD: Cell<u32> = const { Cell::new(0) };
}

/// The process that a value was made in, as this process and its ancestors tell them apart, and the thread child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lineage {
    generation: u32,
    child: u32,
}

impl Lineage {
    /// This process, and the thread child that the calling thread serves as.
    pub(crate) fn here() -> Self {
        fork::notice_forks();
        Self { generation: GENERATION.load(Ordering::Relaxed), child: CHILD.get() }
    }

    /// In a thread that the maker of this starts, before anything else: it counts as the same thread child.
    pub(crate) fn adopt(self) {
        CHILD.set(self.child);
    }

    /// Whether the value came through a fork: what it refers to was not given to this process.
    pub(crate) fn is_inherited(self) -> bool {
        self.generation != GENERATION.load(Ordering::Relaxed)
    }

    /// Whether it belongs to a parent of the caller: it came through a fork, or the caller is a thread child and did not make
    /// it. Children of either kind are refused the same things.
    pub(crate) fn is_of_a_parent(self) -> bool {
        self.is_inherited() || ![0, self.child].contains(&CHILD.get())
    }
}

/// In a child, before anything else: everything that is there came through the fork.
pub(crate) fn begin_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// In the thread of a thread child, before anything else.
pub(crate) fn begin_child_thread() {
    static CHILDREN: AtomicU32 = AtomicU32::new(1);
    CHILD.set(CHILDREN.fetch_add(1, Ordering::Relaxed));
}
