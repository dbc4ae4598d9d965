//! The parent's side of a child's start (P-3, P-5).

use crate::ids::PipelineSlot;
use crate::mailbox::{Frame, Peer, Text, Words, extension, read_failure, read_message};
use crate::wire::FrameState;
use crate::wire::frame as at;

/// Before the fork: shows the parent's magic in a fresh region.
pub fn prepare_region<W: Words>(words: &W) {
    extension::show_parent(words);
}

/// What a starting child has published.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Start {
    /// Nothing yet.
    Starting,
    /// INIT_READY, now consumed.
    Ready {
        /// The pipeline depth that a chip child published; 0 from every other. Judge it before use.
        depth: u64,
        /// Whether it showed this project's magic.
        child: Peer,
    },
    /// INIT_FAILED; its text was appended where it was asked for.
    Failed,
    /// A state that a starting child cannot publish.
    Illegal {
        /// The word.
        found: i32,
    },
}

/// Looks at a starting child, and consumes INIT_READY: the base frame is IDLE after that.
pub fn poll_start<W: Words, const N: usize>(words: &W, text: &mut Text<N>) -> Start {
    let found = Frame::BASE.state(words);
    match FrameState::from_raw(found) {
        Some(FrameState::Idle) => Start::Starting,
        Some(FrameState::InitReady) => {
            let depth = words.read(Frame::BASE.at(at::LEASE));
            Frame::BASE.publish_state(words, FrameState::Idle);
            Start::Ready { depth, child: extension::child(words) }
        }
        Some(FrameState::InitFailed) => {
            match extension::child(words) {
                Peer::Known => read_failure(words, Frame::task(PipelineSlot::Zero), Peer::Known, text),
                Peer::Stranger => read_message(words, Frame::BASE, text),
            }
            Start::Failed
        }
        _ => Start::Illegal { found },
    }
}
