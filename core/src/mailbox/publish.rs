//! Parent: one task into one frame, in the order of L-4.

use static_assertions::const_assert_eq;
use zerocopy::{Immutable, IntoBytes};

use super::{Frame, Peer, Stamp, Words};
use crate::wire::{CallConfig, Digest, FrameState, OUTPUT_PREFIX_BYTES, PipelineSlotLease, args, frame as at};

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
        Peer::Stranger => fill_all(words, frame, *task),
    }
    words.store(frame.at(at::STATE), state.raw());
}

/// By value: for a reference every publication, to known children as well, would first be put together in memory.
#[inline(never)]
fn fill_all<W: Words>(words: &W, frame: Frame, task: Publication<'_>) {
    fill::<W, false>(words, frame, &task);
}

/// Puts every field but the state in its place.
#[inline]
fn fill<W: Words, const KNOWN: bool>(words: &W, frame: Frame, task: &Publication<'_>) {
    words.store_relaxed(frame.at(at::ERROR), 0);
    if !KNOWN || words.read(frame.at(at::MESSAGE)) != 0 {
        words.write(frame.at(at::MESSAGE), 0);
    }
    let (config, prefix) = task.config.as_bytes().split_at(CONFIG_HEAD + 8);
    put::<W, KNOWN>(words, frame.at(at::CONFIG), config);
    // The reader of an empty prefix looks at its first byte and no further, so nor do we.
    if !KNOWN || task.config.output_prefix[0] != 0 {
        put::<W, KNOWN>(words, frame.at(at::CONFIG) + config.len(), prefix);
    }
    put::<W, KNOWN>(words, frame.at(at::LEASE), Call::of(task).as_bytes());
    if let Some((_, elements)) = task.blob.split_at_checked(args::HEADER_BYTES)
        && !elements.is_empty()
    {
        put_elements::<W, KNOWN>(words, frame.at(at::ARGS) + args::HEADER_BYTES, elements);
    }
    // The line of the trailer moves with every dispatch, as that of the state does: nothing in it is worth a look first.
    words.copy_in(frame.at(at::TRAILER), task.stamp.trailer.as_bytes());
    words.store_relaxed(frame.at(at::ACCEPTED), 0);
    words.store_relaxed(frame.at(at::PREPARATION), 0);
}

/// What stands in a row between the config and the elements of the argument list: put in its place as one.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct Call {
    lease: PipelineSlotLease,
    digest: Digest,
    counts: u64,
}

const_assert_eq!(at::LEASE + core::mem::offset_of!(Call, digest), at::DIGEST);
const_assert_eq!(at::LEASE + core::mem::offset_of!(Call, counts), at::ARGS);
const_assert_eq!(size_of::<u64>(), args::HEADER_BYTES);

impl Call {
    #[inline(always)]
    fn of(task: &Publication<'_>) -> Self {
        let counts = task.blob.first_chunk().map_or(0, |counts| u64::from_le_bytes(*counts));
        Self { lease: task.stamp.lease, digest: *task.digest, counts }
    }
}

/// The one field of any length. A loop of its own: among the rest it would find no free register.
#[inline(never)]
fn put_elements<W: Words, const KNOWN: bool>(words: &W, start: usize, elements: &[u8]) {
    put::<W, KNOWN>(words, start, elements);
}

/// Writes where bytes differ, or everywhere for a stranger. Inlined, so that fields of known length need no loop.
#[inline(always)]
fn put<W: Words, const KNOWN: bool>(words: &W, start: usize, bytes: &[u8]) {
    if KNOWN { words.copy_in_changed(start, bytes) } else { words.copy_in(start, bytes) }
}
