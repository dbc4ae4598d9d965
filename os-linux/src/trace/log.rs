//! The shared log: one region that every process of the tree writes into.
//!
//! It is mapped before the forks, so it costs a child no descriptor, no file and no lock, and what a child wrote stays when
//! the child is killed. A writer claims a whole chunk and is then alone in it; a record counts once its first word is
//! stored. When there is no chunk left, records are counted instead of written.

use std::sync::Arc;

use laneway_core::mailbox::Words;
use zerocopy::{FromZeros, IntoBytes};

use super::record::{CHUNK_BYTES, RECORD_BYTES, Record, Source};
use super::writer::Writer;
use crate::Error;
use crate::sys::region::{Region, Sharing};
use crate::sys::words::MappedWords;

/// Byte offset of the number of chunks that were asked for so far.
const NEXT: usize = 0;

/// Byte offset of the number of records that found no room.
const DROPPED: usize = 64;

/// Records in a chunk, behind its header.
pub(super) const RECORDS: usize = CHUNK_BYTES / RECORD_BYTES - 1;

/// How many chunks a writer looks at before it gives up for now.
const TRIES: u32 = 8;

/// The log of a tree.
#[derive(Debug)]
pub(crate) struct TraceLog {
    /// Keeps `words` mapped.
    _region: Region,
    words: MappedWords,
    /// How many there are, a power of two.
    chunks: u32,
    /// Whether a chunk that was read is used again. Otherwise the log keeps what came first.
    recycles: bool,
}

impl TraceLog {
    /// Maps a log of about `bytes` bytes. Pages are committed as they are written.
    pub(crate) fn new(bytes: u64, recycles: bool) -> Result<Self, Error> {
        let chunks = 1 << (bytes / CHUNK_BYTES as u64).clamp(1, 1 << 30).ilog2();
        let region = Region::new("laneway trace", (chunks as usize + 1) * CHUNK_BYTES, Sharing::Tree)?;
        let words = Self::words_of(&region);
        Ok(Self { _region: region, words, chunks, recycles })
    }

    #[expect(unsafe_code, reason = "the one place where the log's memory becomes words")]
    fn words_of(region: &Region) -> MappedWords {
        // SAFETY: the words are kept in the value that owns the region, and leave it with no method.
        unsafe { MappedWords::new(region) }
    }

    /// A writer of its own for one half of one mailbox.
    pub(crate) fn writer(self: &Arc<Self>, source: Source) -> Writer {
        Writer::new(self.clone(), source)
    }

    pub(super) fn recycles(&self) -> bool {
        self.recycles
    }

    pub(super) fn chunks(&self) -> u32 {
        self.chunks
    }

    /// How many records found no room.
    pub(crate) fn dropped(&self) -> u64 {
        u64::from(self.words.load_relaxed(DROPPED).cast_unsigned())
    }

    /// How many chunks were asked for. Whatever its writers had filled before is visible.
    pub(super) fn asked(&self) -> u32 {
        self.words.load(NEXT).cast_unsigned()
    }

    /// Adds to a counter in the header; what it was.
    fn bump(&self, at: usize, below: Option<u32>) -> Option<u32> {
        let mut seen = self.words.load_relaxed(at);
        loop {
            if below.is_some_and(|below| seen.cast_unsigned() >= below) {
                return None;
            }
            match self.words.compare_exchange(at, seen, seen.wrapping_add(1)) {
                Ok(()) => return Some(seen.cast_unsigned()),
                Err(now) => seen = now,
            }
        }
    }

    pub(super) fn count_dropped(&self) {
        // Stays at the largest number rather than begin anew.
        self.bump(DROPPED, Some(u32::MAX));
    }

    /// Claims a chunk: its offset.
    pub(super) fn claim(&self, source: &Source) -> Option<usize> {
        let limit = (!self.recycles).then_some(self.chunks);
        for _ in 0..TRIES.min(self.chunks) {
            let chunk = self.offset(self.bump(NEXT, limit)?);
            if self.words.compare_exchange(chunk, 0, 1).is_ok() {
                // The first record that is stored publishes this too.
                self.words.store_relaxed(chunk + 4, source.pid);
                self.words.copy_in(chunk + 8, &source.as_bytes()[8..]);
                return Some(chunk);
            }
        }
        None
    }

    /// Where the chunk lies that the `position`-th request got.
    pub(super) fn offset(&self, position: u32) -> usize {
        (1 + (position % self.chunks) as usize) * CHUNK_BYTES
    }

    /// Writes a record, its first word last.
    #[inline]
    pub(super) fn put(&self, at: usize, record: &Record) {
        let bytes = record.as_bytes();
        let (kind, rest) = (word(bytes, 0), word(bytes, 4));
        self.words.copy_in(at + 8, &bytes[8..]);
        self.words.store_relaxed(at + 4, rest);
        self.words.store(at, kind);
    }

    /// The record at an offset, if one is there.
    pub(super) fn get(&self, at: usize) -> Option<Record> {
        if self.words.load(at) == 0 {
            return None;
        }
        let mut record = Record::new_zeroed();
        self.words.copy_out(at, record.as_mut_bytes());
        Some(record)
    }

    /// Who writes a chunk that holds a record.
    pub(super) fn source(&self, chunk: usize) -> Source {
        let mut source = Source::new_zeroed();
        self.words.copy_out(chunk, source.as_mut_bytes());
        source
    }

    /// Gives a chunk back whose records have all been read.
    pub(super) fn give_back(&self, chunk: usize) {
        for record in 0..=RECORDS {
            // The header's word goes last: from then on the chunk is somebody else's.
            self.words.store(chunk + (RECORDS - record) * RECORD_BYTES, 0);
        }
    }
}

fn word(bytes: &[u8], at: usize) -> i32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    i32::from_ne_bytes(word)
}
