//! What memory an argument lies in: a slab, a registered range, a device (E-15, E-38, E-42).

use alloc::vec::Vec;

use crate::ids::{PipelineSlot, TaskSlot};
use crate::wire::ByteRange;

use super::map::Roots;
use super::ring::Ring;
use super::worker::WorkerIndex;
use super::{EngineError, RINGS, Range, RangeKind};

/// The memory that an argument lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Backing {
    Slab {
        ring: u8,
        sequence: u32,
    },
    /// By the stable number of the range.
    Range(u32),
    Device(WorkerIndex),
}

#[derive(Clone, Debug)]
struct RangeEntry {
    range: ByteRange,
    kind: RangeKind,
}

/// Where a host argument lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HostPlace {
    /// In a live slab of this owner.
    Slab { backing: Backing, ring: usize, owner: TaskSlot, run: PipelineSlot },
    /// In a heap ring, but in no live slab.
    DeadSlab { ring: usize },
    /// In a registered range.
    Range { backing: Backing, kind: RangeKind },
    /// Nowhere that children share.
    Unknown,
}

/// All memory that arguments may name.
#[derive(Clone, Debug)]
pub(super) struct BackingTable {
    pub(super) rings: [Ring; RINGS],
    ranges: Vec<RangeEntry>,
    /// Per range and run.
    range_roots: Vec<Roots>,
    free: Vec<u32>,
    /// Numbers of the registered ranges, by address.
    sorted: Vec<u32>,
    /// Per worker and run.
    device_roots: Vec<Roots>,
    /// From the first byte of any ring to the last.
    rings_span: ByteRange,
    /// The registered range that was asked for last.
    recent: u32,
}

impl BackingTable {
    pub(super) fn new(config: &super::Config, workers: usize) -> Self {
        let vacant = RangeEntry { range: ByteRange::default(), kind: RangeKind::Buffer };
        let used = config.rings.iter().filter(|ring| ring.bytes > 0);
        let rings_span = ByteRange {
            start: used.clone().map(|ring| ring.base).min().unwrap_or(0),
            end: used.map(|ring| ring.base + ring.bytes).max().unwrap_or(0),
        };
        Self {
            rings_span,
            recent: 0,
            rings: config.rings.map(|spec| Ring::new(spec, config.slabs)),
            ranges: alloc::vec![vacant; config.ranges as usize],
            range_roots: alloc::vec![Roots::EMPTY; config.ranges as usize * 2],
            free: (0..config.ranges).rev().collect(),
            sorted: Vec::with_capacity(config.ranges as usize),
            device_roots: alloc::vec![Roots::EMPTY; workers * 2],
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
    }

    /// The range that was asked for last, if `range` lies in it too: rings and ranges never overlap.
    pub(super) fn recent(&self, range: ByteRange) -> Option<(Backing, RangeKind)> {
        let recent = self.ranges.get(self.recent as usize)?;
        let inside = recent.range.start <= range.start && range.end <= recent.range.end;
        inside.then_some((Backing::Range(self.recent), recent.kind))
    }

    /// Where the bytes of a host argument lie, which are not none.
    pub(super) fn host(&mut self, range: ByteRange) -> HostPlace {
        if self.rings_span.start <= range.start
            && range.start < self.rings_span.end
            && let Some(place) = self.in_ring(range)
        {
            return place;
        }
        let place = self.sorted.partition_point(|number| self.ranges[*number as usize].range.end <= range.start);
        match self.sorted.get(place) {
            Some(number) if self.ranges[*number as usize].range.contains(range) => {
                self.recent = *number;
                HostPlace::Range { backing: Backing::Range(*number), kind: self.ranges[*number as usize].kind }
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
                let backing = Backing::Slab { ring: index as u8, sequence };
                HostPlace::Slab { backing, ring: index, owner: slab.owner, run: slab.run }
            }
            None => HostPlace::DeadSlab { ring: index },
        })
    }

    /// Address of the first byte of a backing; 0 for device memory.
    pub(super) fn base(&self, backing: Backing) -> u64 {
        match backing {
            Backing::Slab { ring, sequence } => self.rings[ring as usize].range(sequence).start,
            Backing::Range(number) => self.ranges[number as usize].range.start,
            Backing::Device(_) => 0,
        }
    }

    /// The trees of what a run's tasks do to a backing (E-14).
    #[inline]
    pub(super) fn roots(&mut self, backing: Backing, run: PipelineSlot) -> &mut Roots {
        match backing {
            Backing::Slab { ring, sequence } => &mut self.rings[ring as usize].slab_mut(sequence).roots,
            Backing::Range(number) => &mut self.range_roots[number as usize * 2 + run.index()],
            Backing::Device(worker) => &mut self.device_roots[worker.index() * 2 + run.index()],
        }
    }
}
