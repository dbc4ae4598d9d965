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
}

impl From<TensorFault> for ModelError {
    fn from(fault: TensorFault) -> Self {
        Self::Wire(fault.into())
    }
}
