//! What can be wrong above the bytes.

use crate::ids::{Generation, PipelineSlot};
use crate::wire::{TensorFault, WireError};

/// A view, an argument list, a lease or a digest that is not legal. The caller is to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Bytes or a tensor that are not legal.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// C-2: a pipeline holds one or two runs.
    #[error("pipeline depth {depth}, legal are 1 and 2")]
    PipelineDepth {
        /// The depth asked for.
        depth: usize,
    },
    /// C-4: the slot was leased 2⁶⁴ − 1 times; a generation never wraps.
    #[error("pipeline slot {} has used up its generations; the worker must be started anew", .slot.index())]
    GenerationExhausted {
        /// The slot.
        slot: PipelineSlot,
    },
    /// C-5: a replay. A later lease of the slot has been admitted.
    #[error("generation {generation} of pipeline slot {} is stale: {seen} has been seen", .slot.index())]
    StaleGeneration {
        /// The slot.
        slot: PipelineSlot,
        /// The generation that came.
        generation: Generation,
        /// The latest one admitted.
        seen: Generation,
    },
    /// A view that reaches past the tensor that it is taken of.
    #[error("dimension {dim}: {len} elements from {offset} on leave the {extent} that there are")]
    OutOfShape {
        /// The dimension.
        dim: usize,
        /// First element.
        offset: u32,
        /// Elements wanted.
        len: u32,
        /// Elements there are.
        extent: u32,
    },
    /// A dimension that the tensor does not have.
    #[error("dimension {dim} of a tensor of {ndims}")]
    NoSuchDimension {
        /// The dimension asked for.
        dim: usize,
        /// Dimensions there are.
        ndims: usize,
    },
    /// An order that names a dimension twice.
    #[error("the order names dimension {dim} twice: it must name each of the {ndims} once")]
    NotAPermutation {
        /// The dimension.
        dim: usize,
        /// Dimensions there are.
        ndims: usize,
    },
    /// A slice that starts behind its end.
    #[error("slice of dimension {dim} starts at {start}, behind its end {end}")]
    SliceReversed {
        /// The dimension.
        dim: usize,
        /// First element.
        start: u32,
        /// One past the last.
        end: u32,
    },
    /// A slice that does not advance.
    #[error("slice of dimension {dim} with step 0")]
    ZeroStep {
        /// The dimension.
        dim: usize,
    },
    /// A reshape of a tensor whose elements do not lie back to back.
    #[error("only a contiguous tensor can be reshaped: copy it first")]
    NotContiguous,
    /// A reshape to another number of elements.
    #[error("reshape from {from} elements to {to}")]
    ElementCount {
        /// Elements there are.
        from: u128,
        /// Elements the new shape has (saturated).
        to: u128,
    },
    /// More tensors than a task can carry.
    #[error("{tensors} tensors in one task, at most {max}")]
    TooManyTensors {
        /// Tensors given.
        tensors: usize,
        /// The cap.
        max: usize,
    },
    /// More scalars than a task can carry.
    #[error("{scalars} scalars in one task, at most {max}")]
    TooManyScalars {
        /// Scalars given.
        scalars: usize,
        /// The cap.
        max: usize,
    },
    /// A tensor after a scalar: all tensors come first.
    #[error("tensor {index} comes after {scalars} scalars: add all tensors before the first scalar")]
    TensorAfterScalar {
        /// Position that the tensor would have had.
        index: usize,
        /// Scalars before it.
        scalars: usize,
    },
    /// A platform name that no target architecture belongs to.
    #[error("platform names no architecture: known are a2a3, a5, a2a3sim and a5sim")]
    UnknownPlatform,
}

impl From<TensorFault> for ModelError {
    fn from(fault: TensorFault) -> Self {
        Self::Wire(fault.into())
    }
}
