//! Tensor memory of one worker: four heap rings and one buffer region, mapped before the forks so that every address is
//! valid in the whole tree below (E-38, P-11).

mod buffers;
mod staging;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::error::Error;
use crate::live::Live;
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
pub(crate) struct Space {
    rings: [Region; RINGS],
    buffers: Region,
    spans: Mutex<Spans>,
    /// Ranges of the workers above, which this process inherited; known when the worker starts.
    outer: OnceLock<Vec<Range<u64>>>,
    /// The worker that runs on these regions, from its start on.
    owner: OnceLock<Weak<Live>>,
}

impl Space {
    /// Maps all regions.
    pub(crate) fn map(sizes: Sizes) -> Result<Self, Error> {
        let ring = |i: usize| Region::new(&format!("laneway ring {i}"), sizes.ring as usize, Sharing::Tree);
        Ok(Self {
            rings: [ring(0)?, ring(1)?, ring(2)?, ring(3)?],
            buffers: Region::new("laneway buffers", sizes.buffers as usize, Sharing::Tree)?,
            spans: Mutex::new(Spans::new(sizes.buffers, rustix::param::page_size().max(4096) as u64)),
            outer: OnceLock::new(),
            owner: OnceLock::new(),
        })
    }

    /// Says what the workers above share.
    pub(crate) fn inherit(&self, outer: Vec<Range<u64>>) {
        // Once: a worker starts once.
        let _ = self.outer.set(outer);
    }

    /// Hands the regions to the worker that has just started: what was taken before is made known to it.
    pub(crate) fn adopt(&self, live: &Arc<Live>) -> Result<(), Error> {
        // Whoever gives a buffer back looks at the owner under this lock.
        let spans = self.spans();
        let mut inner = live.lock();
        for (at, bytes) in spans.taken() {
            inner.add_buffer(&(self.base() + at..self.base() + at + bytes))?;
        }
        let _ = self.owner.set(Arc::downgrade(live));
        Ok(())
    }

    /// The worker that runs on these regions.
    pub(crate) fn owner(&self) -> Option<Arc<Live>> {
        self.owner.get().and_then(Weak::upgrade)
    }

    /// Gives a buffer back unless a worker runs on these regions, which has to be asked then.
    pub(crate) fn give_back_unowned(&self, address: u64) -> Option<Arc<Live>> {
        let spans = self.spans();
        let owner = self.owner();
        drop(spans);
        if owner.is_none() {
            self.give_back(address);
        }
        owner
    }

    /// Bytes of all regions that are backed by memory.
    pub(crate) fn committed_bytes(&self) -> u64 {
        let regions = self.rings.iter().chain([&self.buffers]);
        regions.filter_map(|region| region.committed_bytes().ok()).sum()
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Address ranges of the heap rings, by ring.
    pub(crate) fn rings(&self) -> [Range<u64>; RINGS] {
        [0, 1, 2, 3].map(|i| range(&self.rings[i]))
    }

    /// Every range whose addresses mean the same memory in all processes of the tree.
    pub(crate) fn shared(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.rings.iter().chain([&self.buffers]).map(range).chain(self.outer().iter().cloned())
    }

    /// Ranges of the workers above.
    pub(crate) fn outer(&self) -> &[Range<u64>] {
        self.outer.get().map_or(&[], Vec::as_slice)
    }

    /// Takes a buffer of `bytes` zero bytes; its address. Page-aligned.
    pub(crate) fn take(&self, bytes: u64) -> Result<u64, Error> {
        let mut spans = self.spans();
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
        let Some(bytes) = self.spans().len_of(at) else { return };
        // Handed out again only with its pages gone; where they cannot go, the span stays taken. That may take a while for
        // gigabytes, so no lock is held.
        if self.buffers.punch(at as usize..(at + bytes) as usize).is_ok() {
            self.spans().give_back(at);
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
