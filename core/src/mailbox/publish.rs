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
    match peer {
        Peer::Known => {
            // The reader of an empty prefix looks at its first byte and no further, so nor do we.
            let prefix_is_empty = task.config.output_prefix[0] == 0;
            let config = if prefix_is_empty { CONFIG_HEAD + 8 } else { size_of::<CallConfig>() };
            let put32 = |at: usize, value: i32| {
                if words.load_relaxed(at) != value {
                    words.store_relaxed(at, value);
                }
            };
            fill(frame, task, config, put32, |at, bytes| words.copy_in_changed(at, bytes));
        }
        Peer::Stranger => {
            let put32 = |at: usize, value: i32| words.store_relaxed(at, value);
            fill(frame, task, size_of::<CallConfig>(), put32, |at, bytes| words.copy_in(at, bytes));
        }
    }
    words.store(frame.at(at::STATE), state.raw());
}

/// Puts every field but the state in its place, and `config` bytes of the config.
#[inline(always)]
fn fill(
    frame: Frame,
    task: &Publication<'_>,
    config: usize,
    put32: impl Fn(usize, i32),
    put: impl Fn(usize, &[u8]),
) {
    put32(frame.at(at::ERROR), 0);
    put(frame.at(at::MESSAGE), &[0; 8]);
    put32(frame.at(at::ACCEPTED), 0);
    put32(frame.at(at::PREPARATION), 0);
    // A length that is known saves the loop, and the prefix is nearly always empty.
    let (head, prefix) = task.config.as_bytes().split_at(CONFIG_HEAD + 8);
    put(frame.at(at::CONFIG), head);
    if config > head.len() {
        put(frame.at(at::CONFIG) + head.len(), prefix);
    }
    put(frame.at(at::LEASE), task.stamp.lease.as_bytes());
    put(frame.at(at::DIGEST), task.digest.as_bytes());
    put(frame.at(at::ARGS), task.blob);
    put(frame.at(at::TRAILER), task.stamp.trailer.as_bytes());
}
