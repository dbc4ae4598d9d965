//! A mailbox in plain private memory.

use alloc::boxed::Box;
use core::cell::Cell;
use core::hash::{Hash, Hasher};

use super::Words;

/// A mailbox region as a plain array: one thread plays both sides. A value can be cloned, compared and hashed, which is
/// what exhaustive checks and the simulation of a whole tree need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayWords {
    words: Box<[Cell<u64>]>,
}

impl ArrayWords {
    /// A zeroed region of `bytes` bytes.
    ///
    /// # Panics
    /// If `bytes` is not a multiple of 8.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        assert!(bytes.is_multiple_of(8), "a region is whole words of 8 bytes, not {bytes} bytes");
        Self { words: (0..bytes / 8).map(|_| Cell::new(0)).collect() }
    }

    fn cell(&self, at: usize) -> &Cell<u64> {
        assert!(at.is_multiple_of(8), "offset {at} is not a multiple of 8");
        &self.words[at / 8]
    }

    /// The cell that holds the `i32` at `at`, and how far it is shifted in it.
    fn half(&self, at: usize) -> (&Cell<u64>, u32) {
        assert!(at.is_multiple_of(4), "offset {at} is not a multiple of 4");
        (&self.words[at / 8], if at.is_multiple_of(8) { 0 } else { 32 })
    }
}

impl Hash for ArrayWords {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in &self.words {
            word.get().hash(state);
        }
    }
}

impl Words for ArrayWords {
    fn load(&self, at: usize) -> i32 {
        let (cell, shift) = self.half(at);
        (cell.get() >> shift) as i32
    }

    fn load_relaxed(&self, at: usize) -> i32 {
        self.load(at)
    }

    fn store(&self, at: usize, value: i32) {
        let (cell, shift) = self.half(at);
        let kept = cell.get() & !(0xffff_ffff << shift);
        cell.set(kept | (u64::from(value.cast_unsigned()) << shift));
    }

    fn store_relaxed(&self, at: usize, value: i32) {
        self.store(at, value);
    }

    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        let found = self.load(at);
        if found != expected {
            return Err(found);
        }
        self.store(at, new);
        Ok(())
    }

    fn fence(&self) {}

    fn read(&self, at: usize) -> u64 {
        self.cell(at).get()
    }

    fn write(&self, at: usize, value: u64) {
        self.cell(at).set(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W-8
    #[test]
    fn halves_of_a_word_are_independent_and_lie_where_the_bytes_say() {
        let words = ArrayWords::new(16);
        words.store(8, -2);
        words.store(12, 7);
        assert_eq!((words.load(8), words.load(12)), (-2, 7));
        let mut bytes = [0; 8];
        words.copy_out(8, &mut bytes);
        assert_eq!(bytes, [0xfe, 0xff, 0xff, 0xff, 7, 0, 0, 0]);
    }

    #[test]
    fn a_failed_exchange_reports_what_it_found_and_writes_nothing() {
        let words = ArrayWords::new(8);
        words.store(0, 8);
        assert_eq!(words.compare_exchange(0, 9, 11), Err(8));
        assert_eq!(words.load(0), 8);
        assert_eq!(words.compare_exchange(0, 8, 11), Ok(()));
        assert_eq!(words.load(0), 11);
    }

    #[test]
    fn copies_round_trip_and_clones_are_apart() {
        let words = ArrayWords::new(64);
        words.copy_in(16, b"sixteen bytes ok");
        let before = words.clone();
        words.write(16, 0);
        let mut bytes = [0; 16];
        before.copy_out(16, &mut bytes);
        assert_eq!(&bytes, b"sixteen bytes ok");
        assert_ne!(before, words);
    }
}
