//! The buffer region, and what of it is taken.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::buffers::Spans;
use crate::error::Error;
use crate::live::Live;
use crate::sys::region::{Region, Sharing};

/// The region that tensors live in. Every tensor holds it, so it goes when the worker and the last tensor are gone.
pub(crate) struct BufferPool {
    region: Region,
    spans: Mutex<Spans>,
    /// The worker that runs on it, from its start on.
    owner: OnceLock<Weak<Live>>,
    /// Whether a child that was given up on may still use any of it: nothing is given back then (L-35).
    kept: AtomicBool,
}

impl BufferPool {
    pub(super) fn map(bytes: u64) -> Result<Self, Error> {
        Ok(Self {
            region: Region::new("laneway buffers", bytes as usize, Sharing::Tree)?,
            spans: Mutex::new(Spans::new(bytes, rustix::param::page_size().max(4096) as u64)),
            owner: OnceLock::new(),
            kept: AtomicBool::new(false),
        })
    }

    pub(super) fn adopt(&self, live: &Arc<Live>) -> Result<(), Error> {
        // Whoever gives a buffer back looks at the owner under this lock.
        let spans = self.spans();
        let mut inner = live.lock();
        for (at, bytes) in spans.taken() {
            inner.add_buffer(&(self.base() + at..self.base() + at + bytes))?;
        }
        let _ = self.owner.set(Arc::downgrade(live));
        Ok(())
    }

    /// Gives nothing back from here on.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// The worker that runs on it.
    pub(crate) fn owner(&self) -> Option<Arc<Live>> {
        self.owner.get().and_then(Weak::upgrade)
    }

    /// Gives a buffer back unless a worker runs on the region, which has to be asked then.
    pub(crate) fn give_back_unowned(&self, address: u64) -> Option<Arc<Live>> {
        let spans = self.spans();
        let owner = self.owner();
        drop(spans);
        if owner.is_none() {
            self.give_back(address);
        }
        owner
    }

    /// Takes a buffer of `bytes` zero bytes; its address. Page-aligned.
    pub(crate) fn take(&self, bytes: u64) -> Result<u64, Error> {
        let mut spans = self.spans();
        let at = spans.take(bytes).ok_or_else(|| Error::BuffersFull {
            asked: bytes,
            largest_free: spans.largest_free(),
            region: self.region.len() as u64,
        })?;
        Ok(self.base() + at)
    }

    /// Gives a buffer back: its pages return to the system and read as zero when they are taken again.
    pub(crate) fn give_back(&self, address: u64) {
        if self.kept.load(Ordering::Relaxed) {
            return;
        }
        let at = address - self.base();
        let Some(bytes) = self.spans().len_of(at) else { return };
        // Handed out again only with its pages gone; where they cannot go, the span stays taken. That may take a while for
        // gigabytes, so no lock is held.
        if self.region.punch(at as usize..(at + bytes) as usize).is_ok() {
            self.spans().give_back(at);
        }
    }

    pub(crate) fn range(&self) -> Range<u64> {
        super::range(&self.region)
    }

    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    fn base(&self) -> u64 {
        self.range().start
    }

    fn spans(&self) -> MutexGuard<'_, Spans> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
