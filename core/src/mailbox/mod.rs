//! One mailbox through [`Words`]: typed access to its words, and the rules of who may write what, when.
//!
//! The memory behind a mailbox is shared with a process that may be hostile or dying (W-8). No reference into it exists
//! here: single words go through [`Words::load`] and [`Words::store`], payload is copied once into private memory and
//! the copy is judged.

#[cfg(feature = "engine")]
mod array_words;
pub mod atomics;
pub mod control;
pub mod extension;
mod failure;
mod frame;
mod publish;
mod snapshot;
mod stamp;
mod words;

#[cfg(feature = "engine")]
pub use array_words::ArrayWords;
pub use extension::Peer;
pub use failure::{LONG_TEXT, LongText, error_code, read_failure, read_message, write_failure, write_message};
pub use frame::Frame;
pub use publish::{Publication, publish};
pub use snapshot::Snapshot;
pub use stamp::Stamp;
pub use words::Words;

pub use crate::wire::text::Text;
