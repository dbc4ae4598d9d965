//! Writes of a side that keeps no rule.

use laneway_core::mailbox::Words;
use laneway_core::wire::frame::{self, FRAME_BYTES, REGION_BYTES};
use laneway_linux::sys::words::MappedWords;

use crate::dice::Dice;
use crate::width::is_narrow;
use crate::writes::{NARROW, WIDE, any_half, any_word};

/// Where in the page of a case the writes are counted, behind what [`scratch`](crate::wire::scratch) names.
pub(crate) const WRITES: usize = 64;
/// As [`WRITES`], of a child that was asked to leave and writes on.
pub(crate) const LATE_WRITES: usize = 72;

/// A mailbox in hostile hands. As [`Words`] it is that of an honest half which is possessed: before any access there may be
/// a write of another kind, so that the attack reaches states that noise alone never does.
pub(crate) struct Scribbler {
    pub(crate) words: MappedWords,
    pub(crate) page: MappedWords,
    pub(crate) dice: Dice,
    /// Where its writes are counted.
    pub(crate) counter: usize,
    /// One access in so many is preceded by a write.
    pub(crate) restless: usize,
}

impl Scribbler {
    /// One write: a legal state at some time, another identity, a small number, or anything, somewhere.
    pub(crate) fn scribble(&self) {
        let dice = &self.dice;
        self.page.write(self.counter, self.page.read(self.counter) + 1);
        let start = dice.roll(3) * FRAME_BYTES;
        match dice.roll(10) {
            0..=3 => {
                self.words.store(start + NARROW[dice.roll(NARROW.len())], any_half(dice));
            }
            4..=6 => {
                self.words.write(start + WIDE[dice.roll(WIDE.len())], any_word(dice));
            }
            7 => {
                // Texts without an end, and bytes that are no text.
                let at = start + [frame::MESSAGE, frame::DETAIL][dice.roll(2)];
                for word in 0..dice.roll(33) {
                    self.words.write((at + 8 * word).min(REGION_BYTES - 8), dice.next());
                }
            }
            8 => {
                // Anywhere, in the width that the word has (W-8).
                let at = dice.roll(REGION_BYTES / 8) * 8;
                if is_narrow(at) {
                    self.words.store(at, dice.next() as i32);
                } else {
                    self.words.write(at, dice.next());
                }
            }
            _ => {
                // A word that flips while it is read.
                let at = start + NARROW[dice.roll(NARROW.len())];
                let before = self.words.load(at);
                for turn in 0..dice.roll(64) {
                    self.words.store(at, if turn % 2 == 0 { dice.roll(13) as i32 } else { before });
                }
            }
        }
    }

    fn stir(&self) {
        if self.dice.roll(self.restless) == 0 {
            self.scribble();
        }
    }
}

impl Words for Scribbler {
    fn load(&self, at: usize) -> i32 {
        self.stir();
        self.words.load(at)
    }
    fn load_relaxed(&self, at: usize) -> i32 {
        self.words.load_relaxed(at)
    }
    fn store(&self, at: usize, value: i32) {
        self.stir();
        self.words.store(at, value);
    }
    fn store_relaxed(&self, at: usize, value: i32) {
        self.words.store_relaxed(at, value);
    }
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.words.compare_exchange(at, expected, new)
    }
    fn fence(&self) {
        self.words.fence();
    }
    fn read(&self, at: usize) -> u64 {
        self.words.read(at)
    }
    fn write(&self, at: usize, value: u64) {
        self.stir();
        self.words.write(at, value);
    }
}
