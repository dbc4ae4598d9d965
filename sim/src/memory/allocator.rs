//! Which addresses of the device are taken.

use std::collections::BTreeMap;

/// Allocations start on this boundary, as on the hardware; a size is rounded up to it.
pub(crate) const GRAIN: u64 = 512;

/// A best-fit allocator over offsets `0..total`. Neighbouring free pieces are merged at once, so two live allocations
/// always have at most one free piece between them.
#[derive(Clone, Debug)]
pub(crate) struct Allocator {
    total: u64,
    committed: u64,
    /// Free pieces, offset → bytes.
    free: BTreeMap<u64, u64>,
    /// Live allocations, offset → size.
    live: BTreeMap<u64, Size>,
}

/// The size of an allocation.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// What was asked for: a range past this is out of bounds, although the grain is larger.
    asked: u64,
    /// What it takes up.
    taken: u64,
}

/// Why there is no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NoRoom {
    pub(crate) free: u64,
    pub(crate) largest: u64,
}

impl Allocator {
    /// An allocator over `total` bytes, rounded down to the grain.
    pub(crate) fn new(total: u64) -> Self {
        let total = total / GRAIN * GRAIN;
        let mut free = BTreeMap::new();
        if total > 0 {
            free.insert(0, total);
        }
        Self { total, committed: 0, free, live: BTreeMap::new() }
    }

    /// Bytes there are.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes taken up by live allocations.
    pub(crate) fn committed(&self) -> u64 {
        self.committed
    }

    /// The offset of `bytes` fresh bytes; `bytes` is at least 1.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<u64, NoRoom> {
        let taken = bytes.max(1).checked_next_multiple_of(GRAIN).unwrap_or(u64::MAX);
        let best =
            self.free.iter().filter(|&(_, &piece)| piece >= taken).min_by_key(|&(&offset, &piece)| (piece, offset));
        let Some((&offset, &piece)) = best else {
            let largest = self.free.values().copied().max().unwrap_or(0);
            return Err(NoRoom { free: self.total - self.committed, largest });
        };
        self.free.remove(&offset);
        if piece > taken {
            self.free.insert(offset + taken, piece - taken);
        }
        self.live.insert(offset, Size { asked: bytes, taken });
        self.committed += taken;
        Ok(offset)
    }

    /// Frees the allocation that starts at `offset`; `false` if none does.
    pub(crate) fn release(&mut self, offset: u64) -> bool {
        let Some(Size { taken, .. }) = self.live.remove(&offset) else { return false };
        self.committed -= taken;
        let (mut start, mut end) = (offset, offset + taken);
        if let Some((&before, &bytes)) = self.free.range(..offset).next_back()
            && before + bytes == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(after) = self.free.remove(&end) {
            end += after;
        }
        self.free.insert(start, end - start);
        true
    }

    /// The allocation around `offset`: where it starts and how many bytes were asked for.
    pub(crate) fn find(&self, offset: u64) -> Option<(u64, u64)> {
        let (&base, size) = self.live.range(..=offset).next_back()?;
        (offset - base < size.taken).then_some((base, size.asked))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain list of live ranges: no overlap, exact accounting, and everything merges back.
        #[test]
        fn allocations_never_overlap_and_everything_comes_back(steps in prop::collection::vec((0u64..6, 1u64..5000), 1..120)) {
            let mut allocator = Allocator::new(64 * GRAIN);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (choice, size) in steps {
                if choice < 4 || live.is_empty() {
                    let taken = size.next_multiple_of(GRAIN);
                    match allocator.allocate(size) {
                        Ok(offset) => {
                            prop_assert_eq!(offset % GRAIN, 0);
                            prop_assert!(offset + taken <= allocator.total());
                            prop_assert!(live.iter().all(|&(at, bytes)| offset + taken <= at || at + bytes.next_multiple_of(GRAIN) <= offset));
                            live.push((offset, size));
                        }
                        Err(NoRoom { free, largest }) => {
                            prop_assert_eq!(free, allocator.total() - allocator.committed());
                            prop_assert!(largest < taken);
                        }
                    }
                } else {
                    let (offset, size) = live.remove(size as usize % live.len());
                    prop_assert_eq!(allocator.find(offset + size - 1), Some((offset, size)));
                    prop_assert!(!allocator.release(offset + 1));
                    prop_assert!(allocator.release(offset));
                    prop_assert!(!allocator.release(offset));
                }
                prop_assert_eq!(allocator.committed(), live.iter().map(|&(_, bytes)| bytes.next_multiple_of(GRAIN)).sum::<u64>());
            }
            for (offset, _) in live {
                prop_assert!(allocator.release(offset));
            }
            prop_assert_eq!(allocator.allocate(64 * GRAIN), Ok(0));
        }
    }

    #[test]
    fn the_smallest_piece_that_fits_is_taken() {
        let mut allocator = Allocator::new(10 * GRAIN);
        let pieces: Vec<u64> = (0..5).map(|_| allocator.allocate(2 * GRAIN).unwrap()).collect();
        assert_eq!(allocator.allocate(1), Err(NoRoom { free: 0, largest: 0 }));
        allocator.release(pieces[0]);
        allocator.release(pieces[1]);
        allocator.release(pieces[3]);
        assert_eq!(allocator.allocate(GRAIN), Ok(pieces[3]));
        assert_eq!(allocator.allocate(5 * GRAIN), Err(NoRoom { free: 5 * GRAIN, largest: 4 * GRAIN }));
    }

    #[test]
    fn a_size_near_the_end_of_the_numbers_is_no_room() {
        let mut allocator = Allocator::new(GRAIN + 1);
        assert_eq!(allocator.total(), GRAIN);
        assert_eq!(allocator.allocate(u64::MAX), Err(NoRoom { free: GRAIN, largest: GRAIN }));
    }
}
