//! The simulated device through its trait, in process.

mod kernels;
mod support;
