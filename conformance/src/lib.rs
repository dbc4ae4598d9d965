//! Scenarios that any laneway backend must pass.
//!
//! [`chip`] holds those for device runtimes: each case drives a device through the trait alone, so it passes for a
//! simulator in this process, for the same simulator behind the vendor's interface, and for a vendor's library.
//! [`mod@bench`] measures what tasks cost across processes, beside what the machine itself needs.
#![deny(unsafe_code)]

pub mod bench;
pub mod chip;
