//! The simulated device through its trait, in process.

mod child;
mod direct;
mod faults;
mod kernels;
mod lifecycle;
mod memory;
#[path = "../reference/mod.rs"]
mod reference;
mod support;
