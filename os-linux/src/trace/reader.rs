//! Reading the log while it is being written.

use std::collections::HashMap;
use std::sync::Arc;

use super::log::{RECORDS, TraceLog};
use super::record::{RECORD_BYTES, Record, Source};

/// A record and who wrote it, as an index into [`Reader::sources`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) source: u32,
    pub(crate) record: Record,
}

/// A chunk that may still get records.
#[derive(Clone, Copy, Debug)]
struct Open {
    chunk: usize,
    /// Records of it that were read.
    read: usize,
}

/// Reads each record once. What one writer wrote comes in the order in which it wrote it.
#[derive(Debug)]
pub(crate) struct Reader {
    log: Arc<TraceLog>,
    /// Requests for chunks that were looked at.
    seen: u32,
    /// In the order in which they were asked for.
    open: Vec<Open>,
    /// By chunk: whether it is among them, or was read and is kept.
    known: Vec<bool>,
    sources: Vec<Source>,
    numbers: HashMap<Source, u32>,
}

impl Reader {
    pub(crate) fn new(log: Arc<TraceLog>) -> Self {
        let known = vec![false; log.chunks() as usize];
        Self { log, seen: 0, open: Vec::new(), known, sources: Vec::new(), numbers: HashMap::new() }
    }

    /// Every writer that was met.
    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Hands over what was written since the last time; how much it was.
    ///
    /// A writer fills one chunk before it asks for the next. Chunks that are asked for from here on are left to the next
    /// call, so that none of their records comes before an earlier one.
    pub(crate) fn read(&mut self, mut each: impl FnMut(Told)) -> usize {
        let asked = self.log.asked();
        // Any process can have stored any number there.
        let fresh = asked.wrapping_sub(self.seen).min(self.log.chunks());
        for position in (0..fresh).rev().map(|back| asked.wrapping_sub(1 + back)) {
            let known = &mut self.known[(position % self.log.chunks()) as usize];
            if !std::mem::replace(known, true) {
                self.open.push(Open { chunk: self.log.offset(position), read: 0 });
            }
        }
        self.seen = asked;
        let (mut count, mut open) = (0, std::mem::take(&mut self.open));
        open.retain_mut(|open| {
            let (before, mut source) = (open.read, None);
            while open.read < RECORDS
                && let Some(record) = self.log.get(open.chunk + (1 + open.read) * RECORD_BYTES)
            {
                let source = *source.get_or_insert_with(|| self.number(open.chunk));
                each(Told { source, record });
                open.read += 1;
            }
            count += open.read - before;
            let full = open.read == RECORDS;
            if full && self.log.recycles() {
                self.known[open.chunk / super::record::CHUNK_BYTES - 1] = false;
                self.log.give_back(open.chunk);
            }
            !full
        });
        self.open = open;
        count
    }

    /// The number of whoever writes a chunk.
    fn number(&mut self, chunk: usize) -> u32 {
        let source = self.log.source(chunk);
        *self.numbers.entry(source).or_insert_with(|| {
            self.sources.push(source);
            (self.sources.len() - 1) as u32
        })
    }
}
