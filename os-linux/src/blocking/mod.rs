//! Devices whose runs are one call that returns when the work is done.
//!
//! A [`BlockingDevice`] says what it can run and runs it; [`Blocking`] makes a [`DeviceRuntime`](crate::DeviceRuntime) of it
//! and keeps the books: phases, callables, arguments, device memory, what is lost. A chip child must never wait for its
//! device where it could answer its parent instead, so the call is made on a thread of the device's own: a launch hands the
//! run over and returns, a poll looks whether the call has returned.
//!
//! | part | |
//! | --- | --- |
//! | `device` | the trait, and how a run can fail |
//! | `runtime` | the books around it |
//! | `thread` | where the call is made |
//! | `args` | what it is called with |
//! | `memory` | device memory, if it has any |
//! | `bytes` | copies between the two sides |

mod args;
mod bytes;
mod device;
mod memory;
mod runtime;
mod thread;

#[cfg(test)]
mod tests;

pub use args::RunArgs;
pub use bytes::Bytes;
pub use device::{BlockingDevice, RunError};
pub use memory::{Block, DeviceMemory, ProcessMemory};
pub use runtime::Blocking;
