//! Conversions that cannot lose a bit, in one place, because `as` is an error everywhere else on this floor.

#![allow(clippy::as_conversions)]

/// A 32-bit number as an index; pointers have 64 bits (asserted in `wire`).
pub(crate) const fn index(value: u32) -> usize {
    value as usize
}

/// A length as a 64-bit number; pointers have 64 bits (asserted in `wire`).
pub(crate) const fn wide(value: usize) -> u64 {
    value as u64
}

/// A 64-bit number as an index; pointers have 64 bits (asserted in `wire`).
pub(crate) const fn narrow(value: u64) -> usize {
    value as usize
}

/// The product of two 32-bit numbers, which always fits 64 bits.
pub(crate) const fn product(a: u32, b: u32) -> u64 {
    (a as u64).wrapping_mul(b as u64)
}
