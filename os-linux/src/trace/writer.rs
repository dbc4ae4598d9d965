//! Writing records.

use std::sync::Arc;

use super::log::{RECORDS, TraceLog};
use super::record::{RECORD_BYTES, Record, Source};
use crate::sys::clock;

/// After so many records without room a writer asks for a chunk again.
const ASK_AGAIN: u32 = 64;

/// Writes the records of one half of one mailbox. Neither waits nor allocates.
#[derive(Debug)]
pub(crate) struct Writer {
    log: Arc<TraceLog>,
    source: Source,
    /// Where the next record goes; `end` if there is no room.
    at: usize,
    end: usize,
    /// Records that found no room since the last one that did.
    missed: u32,
}

impl Writer {
    pub(super) fn new(log: Arc<TraceLog>, source: Source) -> Self {
        Self { log, source, at: 0, end: 0, missed: 0 }
    }

    /// Writes a record; its time is now unless it has one.
    #[inline]
    pub(crate) fn put(&mut self, mut record: Record) {
        if record.time == 0 {
            record.time = clock::now().as_nanos();
        }
        if self.at == self.end && !self.next_chunk() {
            return;
        }
        self.log.put(self.at, &record);
        self.at += RECORD_BYTES;
    }

    #[cold]
    fn next_chunk(&mut self) -> bool {
        if self.missed.is_multiple_of(ASK_AGAIN)
            && let Some(chunk) = self.log.claim(&self.source)
        {
            self.missed = 0;
            self.at = chunk + RECORD_BYTES;
            self.end = self.at + RECORDS * RECORD_BYTES;
            return true;
        }
        self.missed = self.missed.wrapping_add(1);
        self.log.count_dropped();
        false
    }
}
