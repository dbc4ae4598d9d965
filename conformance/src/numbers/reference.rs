//! Arithmetic of each element type, on bits.

use half::{bf16, f16};
use laneway_core::wire::Dtype;

/// An element as its bits.
pub(crate) type Bits = u32;

/// What the kernels promise for one element type. Every type is computed by rules of its own; none is a cast of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers(pub(crate) Dtype);

impl Numbers {
    const fn is_whole(self) -> bool {
        matches!(self.0, Dtype::I32)
    }

    pub(crate) fn float(self, bits: Bits) -> f32 {
        match self.0 {
            Dtype::F16 => f16::from_bits(bits as u16).to_f32(),
            Dtype::Bf16 => bf16::from_bits(bits as u16).to_f32(),
            _ => f32::from_bits(bits),
        }
    }

    pub(crate) fn bits(self, value: f32) -> Bits {
        match self.0 {
            Dtype::F16 => u32::from(f16::from_f32(value).to_bits()),
            Dtype::Bf16 => u32::from(bf16::from_f32(value).to_bits()),
            Dtype::I32 => (value as i32).cast_unsigned(),
            _ => value.to_bits(),
        }
    }

    pub(crate) fn add(self, a: Bits, b: Bits) -> Bits {
        if self.is_whole() { a.wrapping_add(b) } else { self.bits(self.float(a) + self.float(b)) }
    }

    pub(crate) fn mul(self, a: Bits, b: Bits) -> Bits {
        if self.is_whole() { a.wrapping_mul(b) } else { self.bits(self.float(a) * self.float(b)) }
    }

    pub(crate) fn scale(self, a: Bits, factor: i16) -> Bits {
        if self.is_whole() {
            a.wrapping_mul(i32::from(factor).cast_unsigned())
        } else {
            self.bits(self.float(a) * f32::from(factor))
        }
    }

    pub(crate) fn dot(self, pairs: impl Iterator<Item = (Bits, Bits)>) -> Bits {
        if self.is_whole() {
            return pairs.fold(0, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(b)));
        }
        self.bits(pairs.fold(0.0, |sum, (a, b)| sum + self.float(a) * self.float(b)))
    }

    pub(crate) fn sum(self, values: impl Iterator<Item = Bits>) -> Bits {
        if self.is_whole() {
            return values.fold(0, u32::wrapping_add);
        }
        self.bits(values.fold(0.0, |sum, value| sum + self.float(value)))
    }

    /// A number that is no NaN, from any 64 bits.
    pub(crate) fn sample(self, random: u64) -> Bits {
        if self.is_whole() { random as u32 } else { self.bits(f32::from(random as i16) / 64.0) }
    }

    pub(crate) fn to_bytes(self, elements: &[Bits]) -> Vec<u8> {
        let width = self.0.element_bytes() as usize;
        elements.iter().flat_map(|bits| bits.to_le_bytes().into_iter().take(width)).collect()
    }

    pub(crate) fn elements(self, bytes: &[u8]) -> Vec<Bits> {
        let element = |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, &byte| bits << 8 | Bits::from(byte));
        bytes.chunks(self.0.element_bytes() as usize).map(element).collect()
    }
}
