//! Choices from a seed.

/// A xorshift64* generator: the same seed gives the same choices.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        let mut x = self.0;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0 = x;
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `sides`.
    pub(crate) const fn roll(&mut self, sides: u32) -> u32 {
        ((self.next() >> 33) % sides as u64) as u32
    }
}
