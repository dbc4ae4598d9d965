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
pub fn publish<W: Words>(words: &W, frame: Frame, task: &Publication<'_>, peer: Peer, state: FrameState) {
    let put32 = |field: usize, value: i32| {
        if peer == Peer::Stranger || words.load_relaxed(frame.at(field)) != value {
            words.store_relaxed(frame.at(field), value);
        }
    };
    put32(at::ERROR, 0);
    put(words, frame.at(at::MESSAGE), &[0; 8], peer);
    put32(at::ACCEPTED, 0);
    put32(at::PREPARATION, 0);

    let config = task.config.as_bytes();
    // The reader of an empty prefix looks at its first byte and no further, so nor do we.
    let prefix_is_empty = config[CONFIG_HEAD] == 0;
    let written = if prefix_is_empty && peer == Peer::Known { CONFIG_HEAD + 8 } else { config.len() };
    put(words, frame.at(at::CONFIG), &config[..written], peer);
    put(words, frame.at(at::LEASE), task.stamp.lease.as_bytes(), peer);
    put(words, frame.at(at::DIGEST), task.digest.as_bytes(), peer);
    put(words, frame.at(at::ARGS), task.blob, peer);
    put(words, frame.at(at::TRAILER), task.stamp.trailer.as_bytes(), peer);
    words.store(frame.at(at::STATE), state.raw());
}

/// Writes whole words where they differ, or everywhere for a stranger.
fn put<W: Words>(words: &W, start: usize, bytes: &[u8], peer: Peer) {
    if peer == Peer::Stranger {
        return words.copy_in(start, bytes);
    }
    let (chunks, _) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let (here, value) = (start + 8 * index, u64::from_le_bytes(*chunk));
        if words.read(here) != value {
            words.write(here, value);
        }
    }
}
