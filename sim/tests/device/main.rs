//! The simulated device through its trait, in process.

mod direct;
mod faults;
mod kernels;
mod lifecycle;
mod memory;
mod support;
