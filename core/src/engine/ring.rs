//! Heap rings: slabs in the order in which they were handed out, freed from the oldest on (E-25, E-26).

use alloc::vec::Vec;

use crate::ids::{PipelineSlot, TaskSlot};
use crate::wire::ByteRange;

use super::{RingSpec, SLAB_ALIGN};

/// A piece of a ring that one task owns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slab {
    /// Offsets in the ring.
    start: u64,
    end: u64,
    pub(super) owner: TaskSlot,
    pub(super) run: PipelineSlot,
    freed: bool,
}

/// Why a slab cannot be had now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RingFull {
    /// Not enough bytes in a row.
    Bytes,
    /// No slab record.
    Records,
}

/// One heap ring.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    spec: RingSpec,
    /// A circle of records; the length is a power of two.
    slabs: Vec<Slab>,
    limit: u32,
    /// Sequence numbers of the oldest slab and of the next one.
    oldest: u32,
    next: u32,
    /// Offset at which the next slab starts if it fits.
    cursor: u64,
}

impl Ring {
    pub(super) fn new(spec: RingSpec, slabs: u32) -> Self {
        let none = Slab { start: 0, end: 0, owner: TaskSlot(0), run: PipelineSlot::Zero, freed: true };
        let records = alloc::vec![none; slabs.next_power_of_two() as usize];
        Self { spec, slabs: records, limit: slabs, oldest: 0, next: 0, cursor: 0 }
    }

    /// Bytes that requests of these sizes take together, `None` past the number space.
    pub(super) fn footprint(bytes: u64) -> Option<u64> {
        bytes.checked_next_multiple_of(SLAB_ALIGN)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.spec.bytes
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Slabs that are live or wait for an older one.
    pub(super) fn count(&self) -> u32 {
        self.next.wrapping_sub(self.oldest)
    }

    /// All addresses of the ring.
    pub(super) fn span(&self) -> ByteRange {
        ByteRange { start: self.spec.base, end: self.spec.base + self.spec.bytes }
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.spec.base) < self.spec.bytes
    }

    /// Records of slabs, a power of two.
    pub(super) fn records(&self) -> usize {
        self.slabs.len()
    }

    /// The record of a slab.
    pub(super) fn at(&self, sequence: u32) -> usize {
        sequence as usize & (self.slabs.len() - 1)
    }

    pub(super) fn slab(&self, sequence: u32) -> &Slab {
        &self.slabs[self.at(sequence)]
    }

    fn slab_mut(&mut self, sequence: u32) -> &mut Slab {
        let at = self.at(sequence);
        &mut self.slabs[at]
    }

    /// Addresses of a slab.
    pub(super) fn range(&self, sequence: u32) -> ByteRange {
        let slab = self.slab(sequence);
        ByteRange { start: self.spec.base + slab.start, end: self.spec.base + slab.end }
    }

    /// A slab of `bytes`, a multiple of [`SLAB_ALIGN`] of at most the ring's size: its sequence number.
    pub(super) fn take(&mut self, bytes: u64, owner: TaskSlot, run: PipelineSlot) -> Result<u32, RingFull> {
        let start = if self.count() == 0 {
            // Wherever the cursor was, an empty ring takes whatever fits it (E-26).
            0
        } else {
            let floor = self.slab(self.oldest).start;
            let room_above = if self.cursor > floor { self.spec.bytes } else { floor } - self.cursor;
            if bytes <= room_above {
                self.cursor
            } else if self.cursor > floor && bytes <= floor {
                0
            } else {
                return Err(RingFull::Bytes);
            }
        };
        if self.count() >= self.limit {
            return Err(RingFull::Records);
        }
        let sequence = self.next;
        self.next = sequence.wrapping_add(1);
        self.cursor = start + bytes;
        *self.slab_mut(sequence) = Slab { start, end: start + bytes, owner, run, freed: false };
        Ok(sequence)
    }

    /// The slab is not used any more; the frontier moves if it is the oldest (E-25).
    pub(super) fn free(&mut self, sequence: u32) {
        self.slab_mut(sequence).freed = true;
        while self.count() > 0 && self.slab(self.oldest).freed {
            self.oldest = self.oldest.wrapping_add(1);
        }
    }

    /// The live slab that holds all of `range`, in O(log n) (E-42).
    pub(super) fn find(&self, range: ByteRange) -> Option<u32> {
        if self.count() == 0 {
            return None;
        }
        let floor = self.slab(self.oldest).start;
        // Distance from the oldest slab, once around the ring: grows with the sequence number.
        let distance = |offset: u64| if offset >= floor { offset - floor } else { offset + self.spec.bytes - floor };
        let wanted = distance(range.start - self.spec.base);
        let (mut low, mut high) = (0, self.count());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if distance(self.slab(self.oldest.wrapping_add(middle)).start) <= wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        let sequence = self.oldest.wrapping_add(low);
        (!self.slab(sequence).freed && self.range(sequence).contains(range)).then_some(sequence)
    }
}
