//! What can be wrong above the bytes.

use crate::wire::{TensorFault, WireError};

/// A view, an argument list, a lease or a digest that is not legal. The caller is to blame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Bytes or a tensor that are not legal.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl From<TensorFault> for ModelError {
    fn from(fault: TensorFault) -> Self {
        Self::Wire(fault.into())
    }
}
