//! What memory an argument lies in: a slab, a registered range, a device (E-15, E-38, E-42).

use alloc::vec::Vec;

use crate::ids::{PipelineSlot, TaskSlot};
use crate::wire::ByteRange;

use super::map::{Roots, UNLISTED};
use super::ring::{Ring, RingFull};
use super::slot::NIL;
use super::worker::WorkerIndex;
use super::{EngineError, RINGS, Range, RangeKind};

/// The trees of one run on one backing: what its tasks do to the memory that an argument lies in (E-14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TreeIndex(u32);

impl TreeIndex {
    /// Of a node that is not in use.
    pub(super) const NONE: Self = Self(u32::MAX);
}

/// The memory that an argument lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) tree: TreeIndex,
    /// Address of the first byte of the backing; 0 for device memory.
    pub(super) base: u64,
}

#[derive(Clone, Copy, Debug)]
struct RangeEntry {
    range: ByteRange,
    kind: RangeKind,
}

/// Where a host argument lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HostPlace {
    /// In a live slab of this owner.
    Slab { place: Place, ring: usize, owner: TaskSlot, run: PipelineSlot },
    /// In a heap ring, but in no live slab.
    DeadSlab { ring: usize },
    /// In a registered range.
    Range { place: Place, kind: RangeKind },
    /// Nowhere that children share.
    Unknown,
}

/// The registered range that was asked for last and that may be written.
#[derive(Clone, Copy, Debug)]
struct Recent {
    range: ByteRange,
    number: u32,
}

impl Recent {
    const NONE: Self = Self { range: ByteRange { start: 0, end: 0 }, number: 0 };
}

/// All memory that arguments may name.
#[derive(Clone, Debug)]
pub(super) struct BackingTable {
    pub(super) rings: [Ring; RINGS],
    ranges: Vec<RangeEntry>,
    /// First those of the ranges, then those of the workers' devices, then those of the slabs of each ring.
    trees: Vec<Roots>,
    first_device: u32,
    first_slab: [u32; RINGS],
    /// Trees of each run that vacant places may be in, linked by `next`.
    listed: [u32; PipelineSlot::ALL.len()],
    free: Vec<u32>,
    /// Numbers of the registered ranges, by address.
    sorted: Vec<u32>,
    /// From the first byte of any ring to the last.
    rings_span: ByteRange,
    recent: Recent,
}

impl BackingTable {
    pub(super) fn new(config: &super::Config, workers: usize) -> Self {
        let vacant = RangeEntry { range: ByteRange::default(), kind: RangeKind::Buffer };
        let used = config.rings.iter().filter(|ring| ring.bytes > 0);
        let rings_span = ByteRange {
            start: used.clone().map(|ring| ring.base).min().unwrap_or(0),
            end: used.map(|ring| ring.base + ring.bytes).max().unwrap_or(0),
        };
        let rings = config.rings.map(|spec| Ring::new(spec, config.slabs));
        let first_device = config.ranges * 2;
        let mut trees = first_device + workers as u32 * 2;
        let first_slab = core::array::from_fn(|ring| {
            let first = trees;
            trees += rings[ring].records() as u32;
            first
        });
        Self {
            rings_span,
            rings,
            ranges: alloc::vec![vacant; config.ranges as usize],
            trees: alloc::vec![Roots::EMPTY; trees as usize],
            first_device,
            first_slab,
            listed: [NIL; PipelineSlot::ALL.len()],
            free: (0..config.ranges).rev().collect(),
            sorted: Vec::with_capacity(config.ranges as usize),
            recent: Recent::NONE,
        }
    }

    /// Registers a range; it may not touch a ring or another range.
    pub(super) fn add(&mut self, range: Range) -> Result<(), EngineError> {
        let Range { base, bytes, kind } = range;
        let refuse = |reason| Err(EngineError::Range { base, bytes, reason });
        let Some(end) = base.checked_add(bytes).filter(|_| bytes > 0 && base > 0) else {
            return refuse("empty, at address 0, or past the end of the address space");
        };
        let range = ByteRange { start: base, end };
        let in_ring = self.rings.iter().any(|ring| ring.span().overlaps(range));
        if in_ring {
            return refuse("overlaps a heap ring of this worker");
        }
        let place = self.sorted.partition_point(|number| self.ranges[*number as usize].range.end <= base);
        if self.sorted.get(place).is_some_and(|number| self.ranges[*number as usize].range.overlaps(range)) {
            return refuse("overlaps another registered range");
        }
        let Some(number) = self.free.pop() else {
            return refuse("too many registered ranges; enlarge the setting ranges");
        };
        self.ranges[number as usize] = RangeEntry { range, kind };
        self.sorted.insert(place, number);
        Ok(())
    }

    /// The registered range that starts at `base`.
    pub(super) fn registered(&self, base: u64) -> Option<(u32, ByteRange)> {
        let position =
            self.sorted.binary_search_by_key(&base, |number| self.ranges[*number as usize].range.start).ok()?;
        let number = self.sorted[position];
        Some((number, self.ranges[number as usize].range))
    }

    /// Forgets a registered range.
    pub(super) fn remove(&mut self, number: u32) {
        self.sorted.retain(|candidate| *candidate != number);
        self.ranges[number as usize].range = ByteRange::default();
        self.free.push(number);
        self.recent = Recent::NONE;
    }

    /// The range that was asked for last, if `range` lies in it too: rings and ranges never overlap.
    #[inline]
    pub(super) fn recent(&self, range: ByteRange, run: PipelineSlot) -> Option<Place> {
        let Recent { range: recent, number } = self.recent;
        let inside = recent.start <= range.start && range.end <= recent.end;
        inside.then_some(Place { tree: range_tree(number, run), base: recent.start })
    }

    /// Where the bytes of a host argument lie, which are not none.
    pub(super) fn host(&mut self, range: ByteRange, run: PipelineSlot) -> HostPlace {
        if self.rings_span.start <= range.start
            && range.start < self.rings_span.end
            && let Some(place) = self.in_ring(range)
        {
            return place;
        }
        let place = self.sorted.partition_point(|number| self.ranges[*number as usize].range.end <= range.start);
        match self.sorted.get(place) {
            Some(number) if self.ranges[*number as usize].range.contains(range) => {
                let RangeEntry { range, kind } = self.ranges[*number as usize];
                if kind != RangeKind::Snapshot {
                    self.recent = Recent { range, number: *number };
                }
                HostPlace::Range { place: Place { tree: range_tree(*number, run), base: range.start }, kind }
            }
            _ => HostPlace::Unknown,
        }
    }

    fn in_ring(&self, range: ByteRange) -> Option<HostPlace> {
        let index = self.rings.iter().position(|ring| ring.contains(range.start))?;
        let ring = &self.rings[index];
        Some(match ring.find(range) {
            Some(sequence) => {
                let slab = ring.slab(sequence);
                let place = Place { tree: self.slab_tree(index, sequence), base: ring.range(sequence).start };
                HostPlace::Slab { place, ring: index, owner: slab.owner, run: slab.run }
            }
            None => HostPlace::DeadSlab { ring: index },
        })
    }

    /// A slab of `bytes` from a ring, with empty trees; see [`Ring::take`].
    pub(super) fn take_slab(
        &mut self,
        ring: usize,
        bytes: u64,
        owner: TaskSlot,
        run: PipelineSlot,
    ) -> Result<u32, RingFull> {
        let sequence = self.rings[ring].take(bytes, owner, run)?;
        let tree = self.slab_tree(ring, sequence);
        debug_assert_eq!(self.roots(tree), Roots::EMPTY, "all that named the slab before is consumed");
        *self.roots_mut(tree) = Roots::EMPTY;
        Ok(sequence)
    }

    /// The trees of a slab, which belongs to one run.
    pub(super) fn slab_tree(&self, ring: usize, sequence: u32) -> TreeIndex {
        TreeIndex(self.first_slab[ring] + self.rings[ring].at(sequence) as u32)
    }

    /// The trees of a run in the memory of a worker's device.
    pub(super) fn device_tree(&self, worker: WorkerIndex, run: PipelineSlot) -> TreeIndex {
        TreeIndex(self.first_device + u32::from(worker.0) * 2 + run.index() as u32)
    }

    /// Whether writers leave their places behind in a tree: not in that of a slab, which is soon gone as a whole.
    #[inline]
    pub(super) const fn outlives_tasks(&self, tree: TreeIndex) -> bool {
        tree.0 < self.first_slab[0]
    }

    /// The tree of writers is about to get a node that may become vacant.
    #[inline]
    pub(super) fn list(&mut self, tree: TreeIndex, run: PipelineSlot) {
        let roots = &mut self.trees[tree.0 as usize];
        if roots.next == UNLISTED {
            roots.next = core::mem::replace(&mut self.listed[run.index()], tree.0);
        }
    }

    /// Gives up the trees of writers of a run that have been [listed](Self::list): nothing in them counts any more.
    pub(super) fn give_up_listed(&mut self, run: PipelineSlot) {
        let mut at = core::mem::replace(&mut self.listed[run.index()], NIL);
        while let Some(roots) = self.trees.get_mut(at as usize) {
            roots.forget_writers();
            at = core::mem::replace(&mut roots.next, UNLISTED);
        }
    }

    #[inline]
    pub(super) fn roots(&self, tree: TreeIndex) -> Roots {
        self.trees[tree.0 as usize]
    }

    #[inline]
    pub(super) fn roots_mut(&mut self, tree: TreeIndex) -> &mut Roots {
        &mut self.trees[tree.0 as usize]
    }
}

/// The trees of a run in a registered range.
pub(super) const fn range_tree(number: u32, run: PipelineSlot) -> TreeIndex {
    TreeIndex(number * 2 + run.index() as u32)
}
