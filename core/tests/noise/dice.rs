//! Choices that a seed repeats.

use std::cell::Cell;

/// Where choices come from: a seed (xorshift64*), or the input of a fuzzer, all zeros when it is used up.
#[derive(Debug)]
#[allow(dead_code, reason = "not every test has a fuzz target")]
pub(crate) enum Dice {
    Seed(Cell<u64>),
    Input { bytes: Vec<u8>, at: Cell<usize> },
}

#[allow(dead_code, reason = "each test chooses in its own way")]
impl Dice {
    /// The choices of a seed.
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self::Seed(Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1))
    }

    /// The choices that an input spells.
    pub(crate) fn of_input(input: &[u8]) -> Self {
        Self::Input { bytes: input.to_vec(), at: Cell::new(0) }
    }

    pub(crate) fn next(&self) -> u64 {
        match self {
            Self::Seed(state) => {
                let mut x = state.get();
                x ^= x >> 12;
                x ^= x << 25;
                x ^= x >> 27;
                state.set(x);
                x.wrapping_mul(0x2545_F491_4F6C_DD1D)
            }
            Self::Input { .. } => (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte())),
        }
    }

    pub(crate) fn byte(&self) -> u8 {
        match self {
            Self::Seed(_) => (self.next() >> 40) as u8,
            Self::Input { bytes, at } => bytes.get(at.replace(at.get() + 1)).copied().unwrap_or(0),
        }
    }

    /// A number below `sides`.
    pub(crate) fn roll(&self, sides: usize) -> usize {
        match self {
            Self::Input { .. } if sides <= 256 => usize::from(self.byte()) % sides,
            _ => (self.next() >> 33) as usize % sides,
        }
    }

    pub(crate) fn one_in(&self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    /// Whether an input has been read to its end.
    pub(crate) fn is_used_up(&self) -> bool {
        matches!(self, Self::Input { bytes, at } if at.get() >= bytes.len())
    }
}
