//! One mailbox through [`Words`]: typed access to its words, and the rules of who may write what, when.
//!
//! The memory behind a mailbox is shared with a process that may be hostile or dying (W-8). No reference into it exists
//! here: single words go through [`Words::load`] and [`Words::store`], payload is copied once into private memory and
//! the copy is judged.

#[cfg(feature = "engine")]
mod array_words;
mod text;
mod words;

#[cfg(feature = "engine")]
pub use array_words::ArrayWords;
pub use text::Text;
pub use words::Words;
