//! Parent: one task into one frame, in the order of L-4.

use zerocopy::IntoBytes as _;

use super::{Frame, Peer, Stamp, Words};
use crate::wire::frame as at;
use crate::wire::{CallConfig, Digest, FrameState, OUTPUT_PREFIX_BYTES};

/// Everything that a task frame carries.
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// Whose task it is.
    pub stamp: Stamp,
    /// Which callable.
    pub digest: &'a Digest,
    /// How it is to run.
    pub config: &'a CallConfig,
    /// Its encoded arguments: whole words, no longer than the args region (judged when it was encoded).
    pub blob: &'a [u8],
}

/// Bytes of a config in front of the output prefix.
const CONFIG_HEAD: usize = size_of::<CallConfig>() - OUTPUT_PREFIX_BYTES;

/// Writes a task and then hands it over with one release store of `state`.
///
/// A known child promised to write nothing here but what belongs to it, so what already stands in the frame is compared
/// and left alone: a steady dispatch without arguments moves the line of the state and the line of the trailer, nothing
/// else. A frame that was scribbled over is repaired by the same comparison. For a stranger everything is written.
#[inline]
pub fn publish<W: Words>(words: &W, frame: Frame, task: &Publication<'_>, peer: Peer, state: FrameState) {
    match peer {
        Peer::Known => fill::<W, true>(words, frame, task),
        Peer::Stranger => fill_all(words, frame, task),
    }
    words.store(frame.at(at::STATE), state.raw());
}

#[inline(never)]
fn fill_all<W: Words>(words: &W, frame: Frame, task: &Publication<'_>) {
    fill::<W, false>(words, frame, task);
}

/// Puts every field but the state in its place.
#[inline]
fn fill<W: Words, const KNOWN: bool>(words: &W, frame: Frame, task: &Publication<'_>) {
    put32::<W, KNOWN>(words, frame.at(at::ERROR), 0);
    put::<W, KNOWN>(words, frame.at(at::MESSAGE), &[0; 8]);
    put32::<W, KNOWN>(words, frame.at(at::ACCEPTED), 0);
    put32::<W, KNOWN>(words, frame.at(at::PREPARATION), 0);
    let (config, prefix) = task.config.as_bytes().split_at(CONFIG_HEAD + 8);
    put::<W, KNOWN>(words, frame.at(at::CONFIG), config);
    // The reader of an empty prefix looks at its first byte and no further, so nor do we.
    if !KNOWN || task.config.output_prefix[0] != 0 {
        put::<W, KNOWN>(words, frame.at(at::CONFIG) + config.len(), prefix);
    }
    put::<W, KNOWN>(words, frame.at(at::LEASE), task.stamp.lease.as_bytes());
    put::<W, KNOWN>(words, frame.at(at::DIGEST), task.digest.as_bytes());
    put::<W, KNOWN>(words, frame.at(at::ARGS), task.blob);
    put::<W, KNOWN>(words, frame.at(at::TRAILER), task.stamp.trailer.as_bytes());
}

/// Writes where bytes differ, or everywhere for a stranger. Inlined, so that fields of known length need no loop.
#[inline(always)]
fn put<W: Words, const KNOWN: bool>(words: &W, start: usize, bytes: &[u8]) {
    if KNOWN { words.copy_in_changed(start, bytes) } else { words.copy_in(start, bytes) }
}

#[inline(always)]
fn put32<W: Words, const KNOWN: bool>(words: &W, at: usize, value: i32) {
    if !KNOWN || words.load_relaxed(at) != value {
        words.store_relaxed(at, value);
    }
}
