//! The simulated device through its trait, in process.

mod faults;
mod kernels;
mod lifecycle;
mod memory;
mod support;
