//! Scenarios that any laneway backend must pass.
//!
//! [`chip`] holds those for device runtimes: each case drives a device through the trait alone, so it passes for a
//! simulator in this process, for the same simulator behind the vendor's interface, and for a vendor's library.
#![deny(unsafe_code)]

pub mod chip;
