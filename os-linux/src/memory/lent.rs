//! Memory that a tree was lent: by the program that hosts it, or by the workers above.

use std::ops::Range;

use laneway_core::engine::RangeKind;

/// A range of addresses that means the same memory in every process of the tree, and what may be done with it (E-38).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Lent {
    pub(crate) range: Range<u64>,
    pub(crate) kind: RangeKind,
}

impl Lent {
    /// What it is to the workers below: nobody may write a snapshot there either; the rest comes from above.
    pub(crate) fn below(mut self) -> Self {
        if self.kind != RangeKind::Snapshot {
            self.kind = RangeKind::Outer;
        }
        self
    }
}
