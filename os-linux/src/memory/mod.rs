//! Tensor memory of one worker: four heap rings and one buffer region, mapped before the forks so that every address is
//! valid in the whole tree below (E-38, P-11).

mod buffers;
mod staging;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::sys::region::{Region, Sharing};
use buffers::Spans;
pub(crate) use staging::{Staging, read_staged};

/// Heap rings of a worker; which one a slab comes from follows the scope depth (E-25).
pub(crate) const RINGS: usize = 4;

/// Sizes of the regions, in bytes of address space. Pages are committed when they are first touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) ring: u64,
    pub(crate) buffers: u64,
}

/// The mapped regions, and what of the buffer region is taken.
#[derive(Debug)]
pub(crate) struct Space {
    rings: [Region; RINGS],
    buffers: Region,
    spans: Mutex<Spans>,
    /// Ranges of the workers above, which this process inherited.
    outer: Vec<Range<u64>>,
}

impl Space {
    /// Maps all regions.
    pub(crate) fn map(sizes: Sizes, outer: Vec<Range<u64>>) -> Result<Self, Error> {
        let ring = |i: usize| Region::new(&format!("laneway ring {i}"), sizes.ring as usize, Sharing::Tree);
        Ok(Self {
            rings: [ring(0)?, ring(1)?, ring(2)?, ring(3)?],
            buffers: Region::new("laneway buffers", sizes.buffers as usize, Sharing::Tree)?,
            spans: Mutex::new(Spans::new(sizes.buffers, rustix::param::page_size().max(4096) as u64)),
            outer,
        })
    }

    /// Address ranges of the heap rings, by ring.
    pub(crate) fn rings(&self) -> [Range<u64>; RINGS] {
        [0, 1, 2, 3].map(|i| range(&self.rings[i]))
    }

    /// Every range whose addresses mean the same memory in all processes of the tree.
    pub(crate) fn shared(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.rings.iter().chain([&self.buffers]).map(range).chain(self.outer.iter().cloned())
    }

    /// Ranges of the workers above.
    pub(crate) fn outer(&self) -> &[Range<u64>] {
        &self.outer
    }

    /// Takes a buffer of `bytes` zero bytes; its address. Page-aligned.
    pub(crate) fn take(&self, bytes: u64) -> Result<u64, Error> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let at = spans.take(bytes).ok_or_else(|| Error::BuffersFull {
            asked: bytes,
            largest_free: spans.largest_free(),
            region: self.buffers.len() as u64,
        })?;
        Ok(self.base() + at)
    }

    /// Gives a buffer back: its pages return to the system and read as zero when they are taken again.
    pub(crate) fn give_back(&self, address: u64) {
        let at = address - self.base();
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bytes) = spans.len_of(at) else { return };
        // Handed out again only with its pages gone; where they cannot go, the span stays taken.
        if self.buffers.punch(at as usize..(at + bytes) as usize).is_ok() {
            spans.give_back(at);
        }
    }

    /// The buffer region.
    pub(crate) fn buffer_range(&self) -> Range<u64> {
        range(&self.buffers)
    }

    fn base(&self) -> u64 {
        range(&self.buffers).start
    }
}

fn range(region: &Region) -> Range<u64> {
    let base = region.start() as u64;
    base..base + region.len() as u64
}
