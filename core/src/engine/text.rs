//! Error messages, stored once and counted: a failed task and everything that it poisons share one.

use alloc::vec::Vec;

use super::slot::NIL;
use crate::wire::text::fit;

/// Longest message that the engine keeps, in bytes; a longer one is cut on a character boundary, with an ellipsis.
pub const TEXT_BYTES: usize = 4096;

/// What stands in for a message that no longer fitted into the pool.
const DROPPED: &str = "failed; the message was dropped because the pool of messages (setting error_texts) is full";

/// A counted message. Not `Clone`: every holder gives it back exactly once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TextRef(u16);

impl TextRef {
    /// The message that says that a message was dropped; never counted, never freed.
    const DROPPED: Self = Self(u16::MAX);
}

#[derive(Clone, Debug)]
struct Text {
    holders: u32,
    len: u16,
    next_free: u32,
    bytes: [u8; TEXT_BYTES],
}

/// All messages of one engine.
#[derive(Clone, Debug)]
pub(super) struct TextPool {
    texts: Vec<Text>,
    free: u32,
    used: u32,
}

impl TextPool {
    pub(super) fn new(capacity: u32) -> Self {
        let text = |index: u32| Text {
            holders: 0,
            len: 0,
            next_free: if index + 1 < capacity { index + 1 } else { NIL },
            bytes: [0; TEXT_BYTES],
        };
        Self { texts: (0..capacity).map(text).collect(), free: 0, used: 0 }
    }

    /// Stores `message` with one holder. Never fails: when the pool is full, the fact that it is becomes the message.
    pub(super) fn store(&mut self, message: &str) -> TextRef {
        if self.free == NIL {
            return TextRef::DROPPED;
        }
        let index = self.free;
        let text = &mut self.texts[index as usize];
        self.free = text.next_free;
        let (head, mark) = fit(message, TEXT_BYTES);
        let len = head.len() + mark.len();
        text.bytes[..head.len()].copy_from_slice(head.as_bytes());
        text.bytes[head.len()..len].copy_from_slice(mark.as_bytes());
        text.len = len as u16;
        text.holders = 1;
        self.used += 1;
        TextRef(index as u16)
    }

    /// One more holder.
    pub(super) fn hold(&mut self, text: TextRef) -> TextRef {
        if text != TextRef::DROPPED {
            self.texts[text.0 as usize].holders += 1;
        }
        text
    }

    /// One holder less; the last one frees the message.
    pub(super) fn give_back(&mut self, text: TextRef) {
        if text == TextRef::DROPPED {
            return;
        }
        let entry = &mut self.texts[text.0 as usize];
        entry.holders -= 1;
        if entry.holders == 0 {
            entry.next_free = self.free;
            self.free = u32::from(text.0);
            self.used -= 1;
        }
    }

    pub(super) fn get(&self, text: TextRef) -> &str {
        match self.texts.get(text.0 as usize) {
            Some(text) => core::str::from_utf8(&text.bytes[..text.len as usize]).unwrap_or(DROPPED),
            None => DROPPED,
        }
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }
}
