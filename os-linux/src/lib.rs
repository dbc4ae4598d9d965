//! Processes, shared memory, waiting and the Worker that drives laneway-core on Linux.
#![deny(unsafe_code)]

pub mod child_entry;
pub mod sys;

mod error;
pub use error::{Errno, Error};
