//! One of the three frames of a mailbox, and the words by which it is handed over.

use zerocopy::IntoBytes as _;

use super::{Stamp, Words};
use crate::ids::PipelineSlot;
use crate::wire::frame as at;
use crate::wire::{Digest, FrameState, PipelineSlotLease, Preparation, Trailer};

/// A frame of a mailbox: the base frame for start, control and shutdown, or one of the two task frames (W-3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    start: usize,
}

impl Frame {
    /// The frame of start, control and shutdown.
    pub const BASE: Self = Self { start: 0 };

    /// The task frame of a pipeline slot in a two-frame mailbox (W-2). A one-frame mailbox uses that of slot 0 alone.
    #[must_use]
    pub const fn task(slot: PipelineSlot) -> Self {
        Self { start: at::task(slot) }
    }

    /// The region-relative offset of a field of this frame.
    #[must_use]
    pub const fn at(self, field: usize) -> usize {
        self.start + field
    }

    /// The state word, with acquire order. What it says was not judged.
    pub fn state<W: Words>(self, words: &W) -> i32 {
        words.load(self.at(at::STATE))
    }

    /// Hands the frame over: stores the state word with release order.
    pub fn publish_state<W: Words>(self, words: &W, state: FrameState) {
        words.store(self.at(at::STATE), state.raw());
    }

    /// Parent: permits a staged frame, by compare-exchange from FRAME_STAGED only (L-8).
    ///
    /// # Errors
    /// The state found; nothing was written.
    pub fn activate<W: Words>(self, words: &W) -> Result<(), i32> {
        words.compare_exchange(self.at(at::STATE), FrameState::FrameStaged.raw(), FrameState::Activate.raw())
    }

    /// The sticky acceptance word (L-17), with acquire order.
    pub fn accepted<W: Words>(self, words: &W) -> i32 {
        words.load(self.at(at::ACCEPTED))
    }

    /// Child: the native launch has happened (L-17).
    pub fn accept<W: Words>(self, words: &W) {
        words.store(self.at(at::ACCEPTED), 1);
    }

    /// The preparation word (L-6); it is published by the state word.
    pub fn preparation<W: Words>(self, words: &W) -> i32 {
        words.load_relaxed(self.at(at::PREPARATION))
    }

    /// Child: how far the staged task is prepared (L-6); the state word must follow.
    pub fn set_preparation<W: Words>(self, words: &W, preparation: Preparation) {
        words.store_relaxed(self.at(at::PREPARATION), preparation.raw());
    }

    /// Reads the words that say which dispatch this frame carries.
    #[inline]
    pub fn stamp<W: Words>(self, words: &W) -> Stamp {
        let mut stamp = Stamp { trailer: Trailer::default(), lease: PipelineSlotLease::default() };
        words.copy_out(self.at(at::TRAILER), stamp.trailer.as_mut_bytes());
        words.copy_out(self.at(at::LEASE), stamp.lease.as_mut_bytes());
        stamp
    }

    /// Whether the frame carries this dispatch: the words of [`stamp`](Self::stamp), compared in place. Inlined, the seven words need no loop.
    #[inline(always)]
    pub fn carries<W: Words>(self, words: &W, stamp: &Stamp) -> bool {
        words.holds(self.at(at::TRAILER), stamp.trailer.as_bytes())
            && words.holds(self.at(at::LEASE), stamp.lease.as_bytes())
    }

    /// The callable digest of a task frame.
    pub fn digest<W: Words>(self, words: &W) -> Digest {
        let mut digest = Digest::ZERO;
        words.copy_out(self.at(at::DIGEST), &mut digest.0);
        digest
    }

    /// Parent: takes the dispatch id out of the trailer, which tells the child that the dispatch was withdrawn (L-38).
    pub fn clear_dispatch<W: Words>(self, words: &W) {
        words.write(self.at(at::TRAILER + 32), 0);
    }
}
