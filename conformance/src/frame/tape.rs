//! A mailbox that remembers what the child wrote.

use std::cell::RefCell;

use laneway_core::mailbox::{ArrayWords, Words};
use laneway_core::wire::frame::REGION_BYTES;

/// One word that the child wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deed {
    /// Its offset in the region, in bytes.
    pub at: usize,
    /// What it wrote; of a 32-bit word the low half.
    pub value: u64,
}

/// A mailbox in private memory. As [`Words`] it is the child's: every word that is written through it is noted in order. The
/// parent uses the array behind it.
#[derive(Debug)]
pub struct Tape {
    words: ArrayWords,
    deeds: RefCell<Vec<Deed>>,
}

impl Tape {
    /// A zeroed mailbox.
    pub(crate) fn new() -> Self {
        Self { words: ArrayWords::new(REGION_BYTES), deeds: RefCell::default() }
    }

    /// The mailbox as the parent has it.
    #[must_use]
    pub const fn parent(&self) -> &ArrayWords {
        &self.words
    }

    /// Everything that the child wrote since the last call.
    pub(crate) fn take(&self) -> Vec<Deed> {
        self.deeds.take()
    }

    fn note(&self, at: usize, value: u64) {
        self.deeds.borrow_mut().push(Deed { at, value });
    }
}

impl Words for Tape {
    fn load(&self, at: usize) -> i32 {
        self.words.load(at)
    }

    fn load_relaxed(&self, at: usize) -> i32 {
        self.words.load_relaxed(at)
    }

    fn store(&self, at: usize, value: i32) {
        self.note(at, value.cast_unsigned().into());
        self.words.store(at, value);
    }

    fn store_relaxed(&self, at: usize, value: i32) {
        self.note(at, value.cast_unsigned().into());
        self.words.store_relaxed(at, value);
    }

    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.words.compare_exchange(at, expected, new)?;
        self.note(at, new.cast_unsigned().into());
        Ok(())
    }

    fn fence(&self) {
        self.words.fence();
    }

    fn read(&self, at: usize) -> u64 {
        self.words.read(at)
    }

    fn write(&self, at: usize, value: u64) {
        self.note(at, value);
        self.words.write(at, value);
    }
}
