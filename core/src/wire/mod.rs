//! The bytes that two processes agree on: plain `#[repr(C)]` values, their parsers and their writers.
//!
//! Nothing here does anything but say what a byte means and whether it may stand where it stands. Every decoder is
//! total: for any input it returns a value or a [`WireError`] that names the field, its value and the limit. None
//! allocates, none reads past the slice that it was given, and none believes a length that it has not compared.
//!
//! All integers are little-endian, and pointers of the machines that this runs on have 64 bits; both are asserted.
//! Rule ids (W-n) are those of the protocol chapter of the book.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::as_conversions,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

#[cfg(not(all(target_endian = "little", target_pointer_width = "64")))]
compile_error!("the frame layout is little-endian and carries 64-bit addresses");

pub mod args;
pub mod control;
pub mod extension;
pub mod frame;
pub mod remote;

mod buffer;
#[cfg(test)]
mod c_layout;
mod chip_callable;
mod chip_tensor;
mod config;
mod contract;
pub(crate) mod cursor;
mod digest;
mod dtype;
mod error;
mod fault;
mod identity;
mod layout;
mod native_run;
mod num;
mod storage;
mod tags;
mod tensor;
pub(crate) mod text;
mod writer;

pub use args::TaskArgsView;
pub use buffer::{Access, Backend, BufferDescriptor, BufferIdentity, BufferRange};
pub use chip_callable::{ChipCallable, ChipCallableSource, CoreCallable, CoreCallableSource};
pub use chip_tensor::{ByteRange, ChipTensor};
pub use config::{CallConfig, OUTPUT_PREFIX_BYTES, RINGS};
pub use contract::{PipelineContract, PipelineResource, ResourceClass, ResourceKind};
pub use digest::{Digest, ShortDigest};
pub use dtype::{AddressSpace, Dtype};
pub use error::WireError;
pub use fault::{BufferFault, TensorFault};
pub use frame::{FrameState, Preparation};
pub use identity::{DispatchIdentity, PipelineSlotLease, Protocol, SlotRule, Trailer};
pub use layout::MAX_RANK;
pub use native_run::NativeRunDescriptor;
pub use storage::ChipStorageTaskArgs;
pub use tags::{ArgDirection, CallableKind, Namespace, TensorTag};
pub use tensor::Tensor;
