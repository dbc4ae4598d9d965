//! The arithmetic of each element type.

use bytemuck::Pod;
use half::{bf16, f16};

/// A factor of the scale kernel as the scalar that carries it: the bits of an f64, for every element type.
#[must_use]
pub const fn scale_factor(factor: f64) -> u64 {
    factor.to_bits()
}

/// The factor in a scalar.
pub(crate) const fn factor_of(scalar: u64) -> f64 {
    f64::from_bits(scalar)
}

/// An element type that the kernels know.
pub(crate) trait Element: Pod {
    /// The type that sums and products are formed in.
    type Wide: Copy;

    /// The sum of nothing.
    const ZERO: Self::Wide;

    fn widen(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn mul(a: Self::Wide, b: Self::Wide) -> Self::Wide;

    /// The factor of the scale kernel, `None` if this type cannot express it.
    fn factor(factor: f64) -> Option<Self::Wide>;
}

macro_rules! float {
    ($type:ty, $widen:expr, $narrow:expr) => {
        impl Element for $type {
            type Wide = f32;
            const ZERO: f32 = 0.0;

            fn widen(self) -> f32 {
                $widen(self)
            }
            fn narrow(wide: f32) -> Self {
                $narrow(wide)
            }
            fn add(a: f32, b: f32) -> f32 {
                a + b
            }
            fn mul(a: f32, b: f32) -> f32 {
                a * b
            }
            fn factor(factor: f64) -> Option<f32> {
                Some(factor as f32)
            }
        }
    };
}

float!(f32, |value| value, |wide| wide);
float!(f16, f16::to_f32, f16::from_f32);
float!(bf16, bf16::to_f32, bf16::from_f32);

impl Element for i32 {
    type Wide = i32;
    const ZERO: i32 = 0;

    fn widen(self) -> i32 {
        self
    }
    fn narrow(wide: i32) -> Self {
        wide
    }
    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
    fn mul(a: i32, b: i32) -> i32 {
        a.wrapping_mul(b)
    }
    fn factor(factor: f64) -> Option<i32> {
        let whole = factor as i32;
        (f64::from(whole) == factor).then_some(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_i32_takes_whole_factors_alone() {
        let factor = |value| <i32 as Element>::factor(factor_of(scale_factor(value)));
        assert_eq!(factor(-3.0), Some(-3));
        for value in [0.5, f64::NAN, f64::INFINITY, 2_147_483_648.0] {
            assert_eq!(factor(value), None, "{value}");
        }
    }
}
