//! The error of this crate.

use crate::chip::ChipError;
#[cfg(feature = "engine")]
use crate::driver::DriverError;
#[cfg(feature = "engine")]
use crate::engine::EngineError;
use crate::lane::LaneError;
use crate::model::ModelError;
use crate::wire::{TensorFault, WireError};

/// What can go wrong in core. Each floor has its own enum; this is their sum.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that are not what they claim to be.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A view, an argument list, a lease or a digest that is not legal.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A device runtime refused or failed.
    #[error(transparent)]
    Chip(#[from] ChipError),
    /// The engine refused a call or asks its caller to wait.
    #[cfg(feature = "engine")]
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A lane takes no work.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// A driver refused a call.
    #[cfg(feature = "engine")]
    #[error(transparent)]
    Driver(#[from] DriverError),
}

impl From<TensorFault> for Error {
    fn from(fault: TensorFault) -> Self {
        Self::Wire(fault.into())
    }
}
