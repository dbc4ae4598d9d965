//! Encoded argument lists, as they will stand in a frame.

use alloc::vec::Vec;

use zerocopy::IntoBytes;

use crate::wire::args::Line;

use super::extent::Extents;
use super::slot::{ArgsRef, NIL};

const LINE: usize = size_of::<Line>();

/// Bytes of the first line before the list.
const LEAD: usize = LINE - 8;

/// The list without arguments, which takes no memory.
static EMPTY: Line = Line::BLANK;

/// The argument lists of all live tasks.
#[derive(Clone, Debug)]
pub(super) struct ArgsArena {
    lines: Vec<Line>,
    extents: Extents,
}

impl ArgsArena {
    pub(super) fn new(bytes: usize) -> Self {
        let lines = bytes / LINE;
        Self { lines: alloc::vec![Line::BLANK; lines], extents: Extents::new(lines as u32) }
    }

    pub(super) fn capacity(&self) -> usize {
        self.lines.len() * LINE
    }

    pub(super) fn used(&self) -> usize {
        self.extents.used() as usize * LINE
    }

    /// Keeps a copy of `list`, of which `bytes` from the counts on are the encoded list; `None` if there is no room at
    /// present.
    #[inline]
    pub(super) fn store(&mut self, list: &[Line], bytes: usize) -> Option<ArgsRef> {
        let first = self.extents.take(list.len() as u32)?;
        self.lines[first as usize..][..list.len()].copy_from_slice(list);
        Some(ArgsRef { line: first, bytes: bytes as u32 })
    }

    pub(super) fn free(&mut self, args: ArgsRef) {
        if args.line != NIL {
            self.extents.free(args.line);
        }
    }

    /// The encoded list; the byte at offset 8 is aligned to 64.
    #[inline]
    pub(super) fn blob(&self, args: ArgsRef) -> &[u8] {
        if args.line == NIL {
            return &EMPTY.as_bytes()[LEAD..];
        }
        &self.lines[args.line as usize..].as_bytes()[LEAD..LEAD + args.bytes as usize]
    }

    pub(super) fn blob_mut(&mut self, args: ArgsRef) -> &mut [u8] {
        &mut self.lines[args.line as usize..].as_mut_bytes()[LEAD..LEAD + args.bytes as usize]
    }
}
