//! How long a side spins before it sleeps in the kernel, and what it says about itself meanwhile.
//!
//! Both sides spin for a short window, since a round trip through two kernel wakes costs many times a cache line's. The window
//! is none for a peer that runs on the own CPU, small where more want to run than CPUs are allowed, and longer once after a
//! wake was paid for. A child that computes for long gives way to whoever wakes. Hints about CPUs are the peer's and are never
//! believed further than that.

mod child;
mod paid;
mod parent;
mod slices;
mod status;
mod wake_cost;

pub(crate) use child::ChildWait;
pub(crate) use parent::ParentWait;
pub(crate) use slices::Slices;
pub(crate) use status::{Reporting, Status};
pub(crate) use wake_cost::{LONGEST_WAKE, measure_wake};
