//! The error area of a frame: a code, 256 bytes of text, and between our own processes the long form (W-9).

use super::{Frame, Peer, Text, Words};
use crate::wire::frame as at;
use crate::wire::text::fit;

/// The longest text that crosses a mailbox: the detail area without its length.
pub const LONG_TEXT: usize = at::DETAIL_TEXT_BYTES;

/// A text as long as a mailbox can carry.
pub type LongText = Text<LONG_TEXT>;

/// Child: writes code and text; the store of the terminal state must follow. `code` 0 would be success and is written
/// as 1.
#[cold]
pub fn write_failure<W: Words>(words: &W, frame: Frame, code: i32, text: &str, peer: Peer) {
    words.store_relaxed(frame.at(at::ERROR), if code == 0 { 1 } else { code });
    write_message(words, frame, text);
    if peer == Peer::Known && frame != Frame::BASE {
        write_detail(words, frame, text);
    }
}

/// Writes the 256-byte message: cut on a character boundary with an ellipsis, NUL-terminated, in whole words padded with
/// zeros.
pub fn write_message<W: Words>(words: &W, frame: Frame, text: &str) {
    let mut bytes = [0; at::MESSAGE_BYTES];
    let len = put(text, &mut bytes[..at::MESSAGE_BYTES - 1]);
    words.copy_in(frame.at(at::MESSAGE), &bytes[..(len + 1).next_multiple_of(8)]);
}

/// Length 0 says that the message above is everything.
fn write_detail<W: Words>(words: &W, frame: Frame, text: &str) {
    let mut bytes = [0; at::DETAIL_BYTES];
    let len = put(if text.len() < at::MESSAGE_BYTES { "" } else { text }, &mut bytes[4..]);
    bytes[..4].copy_from_slice(&(len as u32).to_le_bytes());
    words.copy_in(frame.at(at::DETAIL), &bytes[..(4 + len).next_multiple_of(8)]);
}

/// As much of a text as fits; how many bytes that is.
fn put(text: &str, into: &mut [u8]) -> usize {
    let (head, mark) = fit(text, into.len());
    let len = head.len() + mark.len();
    into[..head.len()].copy_from_slice(head.as_bytes());
    into[head.len()..len].copy_from_slice(mark.as_bytes());
    len
}

/// The error word; 0 is success.
#[inline]
pub fn error_code<W: Words>(words: &W, frame: Frame) -> i32 {
    words.load_relaxed(frame.at(at::ERROR))
}

/// Parent: appends the text of a failure: the long form where a known child left a legal one, else the message. What is
/// not UTF-8 is replaced, what has no end is cut.
#[cold]
pub fn read_failure<W: Words, const N: usize>(words: &W, frame: Frame, peer: Peer, into: &mut Text<N>) {
    if peer == Peer::Known && frame != Frame::BASE {
        let mut bytes = [0; at::DETAIL_BYTES];
        words.copy_out(frame.at(at::DETAIL), &mut bytes[..8]);
        // The length is read once, with the first word, and judged before the rest is copied.
        let len = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        if (1..=LONG_TEXT).contains(&len) {
            let end = (4 + len).next_multiple_of(8);
            words.copy_out(frame.at(at::DETAIL) + 8, &mut bytes[8..end.max(8)]);
            into.push_lossy(&bytes[4..4 + len]);
            return;
        }
    }
    read_message(words, frame, into);
}

/// Parent: appends the 256-byte message.
pub fn read_message<W: Words, const N: usize>(words: &W, frame: Frame, into: &mut Text<N>) {
    let mut bytes = [0; at::MESSAGE_BYTES];
    words.copy_out(frame.at(at::MESSAGE), &mut bytes);
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    if len == 0 {
        into.push_str("(no text given)");
    }
    into.push_lossy(&bytes[..len]);
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;
    use crate::ids::PipelineSlot;
    use crate::mailbox::ArrayWords;

    const FRAME: Frame = Frame::task(PipelineSlot::Zero);

    fn round_trip(text: &str, peer: Peer) -> String {
        let words = ArrayWords::new(at::REGION_BYTES);
        // What an earlier failure left behind must not show through.
        write_failure(&words, FRAME, 1, &"x".repeat(5000), peer);
        write_failure(&words, FRAME, 9, text, peer);
        assert_eq!(error_code(&words, FRAME), 9);
        let mut read = LongText::new();
        read_failure(&words, FRAME, peer, &mut read);
        read.as_str().into()
    }

    /// W-9
    #[test]
    fn between_our_own_processes_a_long_text_arrives_whole() {
        for len in [1, 7, 8, 254, 255, 256, 1000, LONG_TEXT] {
            let text = "a".repeat(len);
            assert_eq!(round_trip(&text, Peer::Known), text, "{len} bytes");
        }
        let cut = "a".repeat(LONG_TEXT - 3) + "…";
        assert_eq!(round_trip(&"a".repeat(LONG_TEXT + 1), Peer::Known), cut);
    }

    /// W-9: the 256-byte field keeps the head, cut on a character boundary.
    #[test]
    fn a_stranger_gets_the_head_of_the_text() {
        let text = "é".repeat(200);
        assert_eq!(round_trip(&text, Peer::Stranger), "é".repeat(126) + "…");
        assert_eq!(round_trip("", Peer::Stranger), "(no text given)");
    }

    /// A message without a NUL, a detail length out of range and bytes that are no text are survived.
    #[test]
    fn hostile_bytes_become_some_bounded_text() {
        let words = ArrayWords::new(at::REGION_BYTES);
        words.copy_in(FRAME.at(at::MESSAGE), &[0xff; at::MESSAGE_BYTES]);
        words.copy_in(FRAME.at(at::DETAIL), &[0xff; 16]);
        let mut read = LongText::new();
        read_failure(&words, FRAME, Peer::Known, &mut read);
        assert_eq!(read.as_str(), "\u{fffd}".repeat(256));
        words.copy_in(FRAME.at(at::DETAIL), &[3, 0, 0, 0, b'a', 0xff, b'b', 0xff]);
        read.clear();
        read_failure(&words, FRAME, Peer::Known, &mut read);
        assert_eq!(read.as_str(), "a\u{fffd}b");
    }
}
