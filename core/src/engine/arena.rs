//! Encoded argument lists, as they will stand in a frame.

use alloc::vec::Vec;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::extent::Extents;
use super::slot::{ArgsRef, NIL};

/// The unit of the arena. A list starts 8 bytes before the end of its first unit, so that its tensors are aligned.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Debug)]
#[repr(C, align(64))]
struct Granule([u64; 8]);

const GRANULE: usize = size_of::<Granule>();

/// Bytes of the first granule before the list.
const LEAD: usize = GRANULE - 8;

/// The list without arguments, which takes no memory.
static EMPTY: Granule = Granule([0; 8]);

/// The argument lists of all live tasks.
#[derive(Clone, Debug)]
pub(super) struct ArgsArena {
    granules: Vec<Granule>,
    extents: Extents,
}

impl ArgsArena {
    pub(super) fn new(bytes: usize) -> Self {
        let granules = bytes / GRANULE;
        Self { granules: alloc::vec![EMPTY; granules], extents: Extents::new(granules as u32) }
    }

    /// Bytes that a list of `bytes` takes.
    pub(super) const fn footprint(bytes: usize) -> usize {
        (LEAD + bytes).next_multiple_of(GRANULE)
    }

    pub(super) fn capacity(&self) -> usize {
        self.granules.len() * GRANULE
    }

    pub(super) fn used(&self) -> usize {
        self.extents.used() as usize * GRANULE
    }

    /// Room for a list of `bytes`; `None` if there is none at present.
    pub(super) fn take(&mut self, bytes: usize) -> Option<ArgsRef> {
        let granule = self.extents.take((Self::footprint(bytes) / GRANULE) as u32)?;
        Some(ArgsRef { granule, bytes: bytes as u32 })
    }

    pub(super) fn free(&mut self, args: ArgsRef) {
        if args.granule != NIL {
            self.extents.free(args.granule);
        }
    }

    /// The encoded list; the byte at offset 8 is aligned to 64.
    pub(super) fn blob(&self, args: ArgsRef) -> &[u8] {
        if args.granule == NIL {
            return &EMPTY.as_bytes()[LEAD..];
        }
        &self.granules[args.granule as usize..].as_bytes()[LEAD..LEAD + args.bytes as usize]
    }

    pub(super) fn blob_mut(&mut self, args: ArgsRef) -> &mut [u8] {
        &mut self.granules[args.granule as usize..].as_mut_bytes()[LEAD..LEAD + args.bytes as usize]
    }
}
