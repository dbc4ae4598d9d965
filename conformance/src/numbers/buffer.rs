//! Memory of this process that a device may touch.

use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::chip::HostAddress;
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};

/// Bytes that other parties may write: atomics, so that no other reference to them exists.
#[derive(Debug)]
pub struct HostBuffer {
    /// One more than the bytes need, and zero: a device that writes behind the end spoils its case, and not the memory of this
    /// process.
    words: Vec<AtomicU64>,
    bytes: usize,
}

impl HostBuffer {
    /// A buffer with these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU64::new(u64::from_ne_bytes(word))
        });
        Self { words: words.chain([AtomicU64::new(0)]).collect(), bytes: bytes.len() }
    }

    /// A buffer with these numbers.
    #[must_use]
    pub fn of_f32(values: &[f32]) -> Self {
        Self::of(&values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>())
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> HostAddress {
        HostAddress(self.words.as_ptr().expose_provenance() as u64)
    }

    /// Its bytes now; more than it was made of if something wrote behind its end.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut all: Vec<u8> = self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        if all[self.bytes..].iter().all(|byte| *byte == 0) {
            all.truncate(self.bytes);
        }
        all
    }

    /// Its numbers now.
    #[must_use]
    pub fn f32s(&self) -> Vec<f32> {
        self.bytes().as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
    }

    /// Makes all of its numbers this one.
    pub fn fill_f32(&self, value: f32) {
        let [a, b, c, d] = value.to_ne_bytes();
        for (i, word) in self.words[..self.bytes.div_ceil(8)].iter().enumerate() {
            let two = 8 * (i + 1) <= self.bytes;
            let word_of = if two { [a, b, c, d, a, b, c, d] } else { [a, b, c, d, 0, 0, 0, 0] };
            word.store(u64::from_ne_bytes(word_of), Ordering::Relaxed);
        }
    }

    /// A dense tensor of f32 over the whole buffer.
    ///
    /// # Panics
    /// If the shape does not fit.
    #[must_use]
    pub fn dense_f32(&self, shape: &[u32]) -> ChipTensor {
        ChipTensor::contiguous(self.address().0, self.bytes as u64, Dtype::F32, shape, AddressSpace::Host)
            .expect("the shape fits the buffer")
    }
}
