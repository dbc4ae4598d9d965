//! The kernels of the device: what they are called, what they take, and what they compute.

mod element;
mod run;
mod strided;
mod view;

use std::fmt;

use laneway_core::wire::ArgDirection;
use serde::{Deserialize, Serialize};

pub use element::scale_factor;
pub(crate) use run::{execute, judge};
pub(crate) use view::View;

/// Most operands of a kernel.
pub(crate) const MAX_OPERANDS: usize = 3;

/// What the device can compute. Operands are tensors of one element type, f32, f16, bf16 or i32, strided as they like.
///
/// Floating-point results of f16 and bf16 are computed in f32 and rounded once, except that matmul and reduce round
/// their f32 sum; sums run in index order. i32 wraps. Every input is read before any output is written, so an output
/// may be one of the inputs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kernel {
    /// `out[i] = a[i] + b[i]`; operands a, b, out, all of one shape.
    Add,
    /// `out[i] = a[i] · b[i]`; operands a, b, out, all of one shape.
    Mul,
    /// `out[i] = a[i] · factor`; operands a, out of one shape; the scalar is a [`scale_factor`].
    Scale,
    /// `out[m, n] = Σ a[m, k] · b[k, n]`; operands a, b, out of two dimensions each.
    MatMul,
    /// `out[…, 0] = Σ a[…, i]`; operands a, out; the last dimension of out is 1.
    Reduce,
    /// `out[i] = a[i]`; operands a, out of one shape.
    Copy,
    /// Nothing.
    Noop,
    /// Nothing, for a while; the scalar is the time in nanoseconds.
    Wait,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Add, Self::Mul, Self::Scale, Self::MatMul, Self::Reduce, Self::Copy, Self::Noop, Self::Wait];

    /// The name in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Mul => "mul",
            Self::Scale => "scale",
            Self::MatMul => "matmul",
            Self::Reduce => "reduce",
            Self::Copy => "copy",
            Self::Noop => "noop",
            Self::Wait => "wait",
        }
    }

    /// The directions of its tensor operands, in order; outputs come last.
    #[must_use]
    pub const fn operands(self) -> &'static [ArgDirection] {
        match self {
            Self::Add | Self::Mul | Self::MatMul => &[ArgDirection::In, ArgDirection::In, ArgDirection::Out],
            Self::Scale | Self::Reduce | Self::Copy => &[ArgDirection::In, ArgDirection::Out],
            Self::Noop | Self::Wait => &[],
        }
    }

    /// Whether it takes a scalar.
    #[must_use]
    pub const fn takes_scalar(self) -> bool {
        matches!(self, Self::Scale | Self::Wait)
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
