//! Tensor memory of one worker: four heap rings and one buffer region, mapped before the forks so that every address is
//! valid in the whole tree below (E-38, P-11).

mod buffers;
mod lent;
mod pool;
mod staging;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::engine::RangeKind;

use crate::error::Error;
use crate::live::Live;
use crate::sys::memory_limit::{memory_limit, swap};
use crate::sys::region::{Region, Sharing};
pub(crate) use lent::Lent;
pub(crate) use pool::BufferPool;
pub(crate) use staging::{Staging, read_staged};

/// Heap rings of a worker; which one a slab comes from follows the scope depth (E-25).
pub(crate) const RINGS: usize = 4;

/// Sizes of the regions, in bytes of address space. Pages are committed when they are first touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) ring: u64,
    pub(crate) buffers: u64,
}

/// The mapped regions. The worker and its children have it for as long as they live; a tensor that outlives them keeps the
/// buffer region alone.
pub(crate) struct Space {
    rings: [Region; RINGS],
    buffers: Arc<BufferPool>,
    /// What is not this worker's own: of the host program, and of the workers above; known when the worker starts.
    lent: Mutex<Vec<Lent>>,
}

impl Space {
    /// Maps all regions.
    pub(crate) fn map(sizes: Sizes) -> Result<Self, Error> {
        let ring = |i: usize| Region::new(&format!("laneway ring {i}"), sizes.ring as usize, Sharing::Tree);
        Ok(Self {
            rings: [ring(0)?, ring(1)?, ring(2)?, ring(3)?],
            buffers: Arc::new(BufferPool::map(sizes.buffers)?),
            lent: Mutex::default(),
        })
    }

    /// Commits all of it now, so that a lack of memory is an error here and not a signal later (P-33).
    pub(crate) fn populate(&self) -> Result<(), Error> {
        // Where a control group has no more the kernel kills rather than refuses; it would be this process.
        let needed = self.regions().map(|region| region.len() as u64).sum();
        let limit = memory_limit().map(|limit| limit.saturating_add(swap()));
        if let Some(limit) = limit.filter(|&limit| needed > limit) {
            let setting = "the control group, or the machine, with all swap";
            return Err(Error::MemoryLimit { what: "populate".to_owned(), needed, setting, limit });
        }
        self.regions().try_for_each(|region| region.populate(0..region.len()))
    }

    /// Takes a range in that is not this worker's own.
    pub(crate) fn lend(&self, lent: Lent) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).push(lent);
    }

    /// Hands the buffer region to the worker that has just started: what was taken before is made known to it.
    pub(crate) fn adopt(&self, live: &Arc<Live>) -> Result<(), Error> {
        self.buffers.adopt(live)
    }

    /// The buffer region.
    pub(crate) fn buffers(&self) -> &Arc<BufferPool> {
        &self.buffers
    }

    /// Gives a buffer back; see [`BufferPool::give_back`].
    pub(crate) fn give_back(&self, address: u64) {
        self.buffers.give_back(address);
    }

    /// Bytes of all regions that are backed by memory.
    pub(crate) fn committed_bytes(&self) -> u64 {
        self.regions().filter_map(|region| region.committed_bytes().ok()).sum()
    }

    /// Address ranges of the heap rings, by ring.
    pub(crate) fn rings(&self) -> [Range<u64>; RINGS] {
        [0, 1, 2, 3].map(|i| range(&self.rings[i]))
    }

    /// Every range whose addresses mean the same memory in all processes of the tree.
    pub(crate) fn shared(&self) -> Vec<Range<u64>> {
        self.below().into_iter().map(|lent| lent.range).collect()
    }

    /// What a worker below is lent: all that this one has.
    pub(crate) fn below(&self) -> Vec<Lent> {
        let own = self.regions().map(|region| Lent { range: range(region), kind: RangeKind::Outer });
        own.chain(self.lent().into_iter().map(Lent::below)).collect()
    }

    /// What is not this worker's own.
    pub(crate) fn lent(&self) -> Vec<Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the buffer region lies.
    pub(crate) fn buffer_range(&self) -> Range<u64> {
        self.buffers.range()
    }

    fn regions(&self) -> impl Iterator<Item = &Region> {
        self.rings.iter().chain([self.buffers.region()])
    }
}

fn range(region: &Region) -> Range<u64> {
    let base = region.start() as u64;
    base..base + region.len() as u64
}
