//! What a child publishes once, when its set-up is over (P-3, P-4).

use crate::mailbox::{Frame, Peer, Words, extension, write_failure};
use crate::wire::FrameState;
use crate::wire::frame as at;

/// Publishes INIT_READY, with the pipeline depth of a chip child (0 for every other) and this project's magic.
pub fn publish_ready<W: Words>(words: &W, depth: u32) {
    extension::show_child(words);
    words.write(Frame::BASE.at(at::LEASE), depth.into());
    Frame::BASE.publish_state(words, FrameState::InitReady);
}

/// Publishes INIT_FAILED with `<kind> <i> init: <error>` in the error area.
pub fn publish_failed<W: Words>(words: &W, text: &str) {
    write_failure(words, Frame::BASE, 1, text, Peer::Stranger);
    Frame::BASE.publish_state(words, FrameState::InitFailed);
}
