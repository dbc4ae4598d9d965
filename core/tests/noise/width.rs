//! The width in which each word of a mailbox is accessed (W-8).

use laneway_core::mailbox::Words;
use laneway_core::wire::extension;
use laneway_core::wire::frame::{self, FRAME_BYTES};

/// Whether the eight bytes at an offset are accessed as two halves.
pub(crate) fn is_narrow(at: usize) -> bool {
    let mut narrow = frame::NARROW_WORDS.iter().chain(&extension::NARROW_WORDS);
    narrow.any(|word| word / 8 * 8 == at % FRAME_BYTES)
}

/// Clears the eight bytes at an offset.
#[allow(dead_code, reason = "fresh memory is clear")]
pub(crate) fn clear(words: &impl Words, at: usize) {
    if is_narrow(at) {
        words.store(at, 0);
        words.store(at + 4, 0);
    } else {
        words.write(at, 0);
    }
}
