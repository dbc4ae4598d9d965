//! Runs of neighbouring units, allocated and freed in constant time: two-level segregated fit.

use alloc::vec::Vec;

use super::slot::NIL;

/// Sizes below this have a class of their own; above, each power of two is divided into this many classes.
const STEPS: u32 = 16;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const LEVELS: usize = (32 - STEP_BITS + 1) as usize;

/// Extents below this size are kept as they are when they are freed, for the next request of their size.
const KEPT_SIZES: usize = 64;

/// What the first unit of an extent says about it.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// Units of the extent that starts here; 0 inside an extent.
    size: u32,
    /// First unit of the extent before this one.
    before: u32,
    next_free: u32,
    prev_free: u32,
    free: bool,
}

/// An allocator of unit indices. A request that fits into an empty pool succeeds on an empty pool, since neighbours
/// are merged as they are freed.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    units: Vec<Unit>,
    heads: [[u32; STEPS as usize]; LEVELS],
    /// Which classes of a level have a free extent.
    steps: [u32; LEVELS],
    /// Which levels have one.
    levels: u32,
    /// Freed and not yet merged with their neighbours, by size, linked by `next_free`.
    kept: [u32; KEPT_SIZES],
    used: u32,
}

/// Level and step of a size.
const fn class(size: u32) -> (usize, usize) {
    if size < STEPS {
        return (0, size as usize);
    }
    let shift = size.ilog2() - STEP_BITS;
    (shift as usize + 1, (size >> shift) as usize - STEPS as usize)
}

/// The smallest size of the first class whose every extent is at least `size`.
const fn rounded_up(size: u32) -> u32 {
    if size < STEPS { size } else { size.saturating_add((1 << (size.ilog2() - STEP_BITS)) - 1) }
}

impl Extents {
    pub(super) fn new(units: u32) -> Self {
        let empty = Unit { size: 0, before: NIL, next_free: NIL, prev_free: NIL, free: false };
        let mut extents = Self {
            units: alloc::vec![empty; units as usize],
            heads: [[NIL; STEPS as usize]; LEVELS],
            steps: [0; LEVELS],
            levels: 0,
            kept: [NIL; KEPT_SIZES],
            used: 0,
        };
        if units > 0 {
            extents.units[0].size = units;
            extents.link(0);
        }
        extents
    }

    pub(super) fn capacity(&self) -> u32 {
        self.units.len() as u32
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// The first of `size` ≥ 1 units in a row; `None` if no free extent of a fitting class is that long.
    pub(super) fn take(&mut self, size: u32) -> Option<u32> {
        let kept = self.kept.get(size as usize).copied().unwrap_or(NIL);
        let at = if kept != NIL {
            self.kept[size as usize] = self.units[kept as usize].next_free;
            kept
        } else {
            self.carve(size).or_else(|| {
                self.merge_kept();
                self.carve(size)
            })?
        };
        self.used += size;
        Some(at)
    }

    /// Gives back the extent that starts at `at`.
    pub(super) fn free(&mut self, at: u32) {
        let unit = &mut self.units[at as usize];
        self.used -= unit.size;
        match self.kept.get_mut(unit.size as usize) {
            Some(kept) => unit.next_free = core::mem::replace(kept, at),
            None => self.merge(at),
        }
    }

    /// Cuts an extent out of a free one that is at least as long.
    fn carve(&mut self, size: u32) -> Option<u32> {
        let at = self.search(rounded_up(size)).or_else(|| {
            // An extent of the size's own class may fit too; one look keeps a request that fits an empty pool.
            let (level, step) = class(size);
            let at = self.heads[level][step];
            (at != NIL && self.units[at as usize].size >= size).then_some(at)
        })?;
        self.unlink(at);
        let rest = self.units[at as usize].size - size;
        if rest > 0 {
            let next = at + size;
            self.units[at as usize].size = size;
            self.units[next as usize].size = rest;
            self.units[next as usize].before = at;
            self.set_before(next + rest, next);
            self.link(next);
        }
        Some(at)
    }

    /// Merges everything that was kept.
    #[cold]
    fn merge_kept(&mut self) {
        for size in 0..KEPT_SIZES {
            while self.kept[size] != NIL {
                let at = self.kept[size];
                self.kept[size] = self.units[at as usize].next_free;
                self.merge(at);
            }
        }
    }

    /// Joins an extent with the free ones on both sides.
    fn merge(&mut self, mut at: u32) {
        let mut size = self.units[at as usize].size;
        let next = at + size;
        if self.units.get(next as usize).is_some_and(|unit| unit.free) {
            self.unlink(next);
            size += core::mem::take(&mut self.units[next as usize].size);
        }
        let before = self.units[at as usize].before;
        if self.units.get(before as usize).is_some_and(|unit| unit.free) {
            self.unlink(before);
            self.units[at as usize].size = 0;
            size += self.units[before as usize].size;
            at = before;
        }
        self.units[at as usize].size = size;
        self.set_before(at + size, at);
        self.link(at);
    }

    fn set_before(&mut self, at: u32, before: u32) {
        if let Some(unit) = self.units.get_mut(at as usize) {
            unit.before = before;
        }
    }

    /// The first free extent of the class of `size` or a larger one.
    fn search(&self, size: u32) -> Option<u32> {
        let (level, step) = class(size);
        let steps = self.steps.get(level)? & (u32::MAX << step);
        if steps != 0 {
            return Some(self.heads[level][steps.trailing_zeros() as usize]);
        }
        let levels = self.levels & (u32::MAX.checked_shl(level as u32 + 1)?);
        if levels == 0 {
            return None;
        }
        let level = levels.trailing_zeros() as usize;
        Some(self.heads[level][self.steps[level].trailing_zeros() as usize])
    }

    fn link(&mut self, at: u32) {
        let (level, step) = class(self.units[at as usize].size);
        let head = core::mem::replace(&mut self.heads[level][step], at);
        let unit = &mut self.units[at as usize];
        unit.free = true;
        unit.next_free = head;
        unit.prev_free = NIL;
        if let Some(next) = self.units.get_mut(head as usize) {
            next.prev_free = at;
        }
        self.steps[level] |= 1 << step;
        self.levels |= 1 << level;
    }

    fn unlink(&mut self, at: u32) {
        let Unit { size, next_free, prev_free, .. } = self.units[at as usize];
        self.units[at as usize].free = false;
        if let Some(next) = self.units.get_mut(next_free as usize) {
            next.prev_free = prev_free;
        }
        if let Some(prev) = self.units.get_mut(prev_free as usize) {
            prev.next_free = next_free;
            return;
        }
        let (level, step) = class(size);
        self.heads[level][step] = next_free;
        if next_free == NIL {
            self.steps[level] &= !(1 << step);
            if self.steps[level] == 0 {
                self.levels &= !(1 << level);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E-26, for the argument arena and the member table: nothing is lost to fragmentation once all is free.
    #[test]
    fn a_request_that_fits_an_empty_pool_succeeds_on_an_empty_pool() {
        for units in [1, 2, 15, 16, 17, 31, 33, 100, 1000, 4097] {
            let mut extents = Extents::new(units);
            for size in (1..=units).chain((1..units).rev()) {
                let at = extents.take(size).unwrap_or_else(|| panic!("{size} of {units}"));
                assert_eq!(extents.used(), size);
                extents.free(at);
                assert_eq!(extents.used(), 0);
            }
            assert_eq!(extents.take(units + 1), None);
        }
    }

    #[test]
    fn extents_never_overlap_and_merge_again() {
        let mut extents = Extents::new(509);
        let mut owner = [0u32; 509];
        let mut live: Vec<(u32, u32)> = Vec::new();
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        for turn in 1..20_000u32 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = (seed >> 33) as u32;
            if draw.is_multiple_of(3) && !live.is_empty() {
                let (at, size) = live.swap_remove(draw as usize / 3 % live.len());
                owner[at as usize..(at + size) as usize].fill(0);
                extents.free(at);
            } else if let Some(at) = extents.take(1 + draw % 40) {
                let size = 1 + draw % 40;
                let units = &mut owner[at as usize..(at + size) as usize];
                assert!(units.iter().all(|unit| *unit == 0), "turn {turn}: units {at}+{size} handed out twice");
                units.fill(turn);
                live.push((at, size));
            }
        }
        for (at, _) in live {
            extents.free(at);
        }
        assert_eq!(extents.take(509), Some(0));
    }
}
