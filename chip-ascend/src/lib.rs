//! Binds an Ascend host runtime, `libhost_runtime.so`, to the device-runtime trait of laneway-core.
//!
//! An [`Installation`] names the files of one platform and runtime. [`HostRuntime::bind`] loads them, once per process
//! and for its life (C-11); [`HostRuntime::open`] brings one device up as an [`AscendDevice`], which implements
//! [`laneway_core::chip::DeviceRuntime`].
//!
//! This crate holds the vendor's interface and nothing else. It must be used in the process that drives the chip, never
//! in the parent of a chip child.
#![deny(unsafe_code)]

mod abi;
mod binding;
mod device;
mod elf;
mod error;
mod installation;
mod storage;
mod symbols;

pub use abi::LogThreshold;
pub use binding::HostRuntime;
pub use device::{AscendDevice, LibraryCounters};
pub use error::AscendError;
pub use installation::Installation;
pub use symbols::OptionalSymbols;
