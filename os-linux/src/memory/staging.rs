//! Bytes on their way from a parent to its children, in the buffer region that all of them have mapped.
#![allow(unsafe_code)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{BufferPool, Space};
use crate::error::Error;

const WORD: usize = 8;

/// Bytes in the buffer region, given back when this is dropped, whatever happened meanwhile.
pub(crate) struct Staging {
    pool: Arc<BufferPool>,
    address: u64,
    len: u64,
}

impl Staging {
    /// Copies `bytes` into the buffer region of `space`.
    pub(crate) fn new(space: &Arc<Space>, bytes: &[u8]) -> Result<Self, Error> {
        let pool = space.buffers().clone();
        let address = pool.take(bytes.len() as u64)?;
        for (i, chunk) in bytes.chunks(WORD).enumerate() {
            let mut word = [0; WORD];
            word[..chunk.len()].copy_from_slice(chunk);
            let at = (address as usize + i * WORD) as *mut u64;
            // SAFETY: `take` returned at least so many bytes, in whole pages, and the region outlives this value.
            let cell = unsafe { AtomicU64::from_ptr(at) };
            cell.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        Ok(Self { pool, address, len: bytes.len() as u64 })
    }

    /// Where they begin, from the start of the buffer region.
    pub(crate) fn offset(&self) -> u64 {
        self.address - self.pool.range().start
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.pool.give_back(self.address);
    }
}

/// In a child: takes a private copy of staged bytes; `region` is the buffer region of its parent.
pub(crate) fn read_staged(region: &Range<u64>, offset: u64, len: u64) -> Result<Vec<u8>, Error> {
    let size = region.end - region.start;
    let end = offset.checked_add(len).filter(|end| *end <= size && offset.is_multiple_of(WORD as u64));
    if end.is_none() {
        let (start, end) = (offset as usize, offset.saturating_add(len) as usize);
        return Err(Error::OutOfRegion { what: "the buffer region".to_owned(), start, end, len: size as usize });
    }
    let words = (0..len.div_ceil(WORD as u64)).map(|i| {
        let at = (region.start + offset + i * WORD as u64) as *mut u64;
        // SAFETY: inside the region, which is whole pages long and mapped for the child's life; aligned as checked above.
        unsafe { AtomicU64::from_ptr(at) }.load(Ordering::Relaxed)
    });
    let mut bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
    bytes.truncate(len as usize);
    Ok(bytes)
}
