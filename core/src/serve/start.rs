//! What a child publishes once, when its set-up is over (P-3, P-4).

use crate::ids::PipelineSlot;
use crate::mailbox::{Frame, Peer, Words, extension, write_failure};
use crate::wire::FrameState;
use crate::wire::frame as at;

/// Publishes INIT_READY, with the pipeline depth of a chip child (0 for every other) and this project's magic.
pub fn publish_ready<W: Words>(words: &W, depth: u32) {
    extension::show_child(words);
    words.write(Frame::BASE.at(at::LEASE), depth.into());
    Frame::BASE.publish_state(words, FrameState::InitReady);
}

/// Publishes INIT_FAILED with `<kind> <i> init: <error>` in the error area. A parent of this make finds the text in the
/// error and detail area of task frame 0 too, which nobody uses yet: it may be as long as several levels make it (W-9).
pub fn publish_failed<W: Words>(words: &W, text: &str) {
    if extension::parent(words) == Peer::Known {
        extension::show_child(words);
        write_failure(words, Frame::task(PipelineSlot::Zero), 1, text, Peer::Known);
    }
    write_failure(words, Frame::BASE, 1, text, Peer::Stranger);
    Frame::BASE.publish_state(words, FrameState::InitFailed);
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::lane::{Start, poll_start, prepare_region};
    use crate::mailbox::{ArrayWords, LongText};

    /// P-3, P-10, W-9
    #[test]
    fn the_text_of_a_failed_start_arrives_whole_between_our_own_and_cut_elsewhere() {
        let text = "level 3: ".repeat(100);
        let head = String::from(&text[..252]) + "…";
        for (ours, expected) in [(true, text.as_str()), (false, &head)] {
            let words = ArrayWords::new(at::REGION_BYTES);
            if ours {
                prepare_region(&words);
            }
            publish_failed(&words, &text);
            let mut read = LongText::new();
            assert_eq!(poll_start(&words, &mut read), Start::Failed);
            assert_eq!(String::from(read.as_str()), expected);
        }
    }
}
