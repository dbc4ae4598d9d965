//! A device model behind the device-runtime trait of laneway-core.
//!
//! A [`Simulator`] stands in for one chip: it has memory with addresses of its own, uploads callables, builds graphs the
//! way its [`Profile`] does (on the host in prepare, or on the device at launch), computes real results on real tensors,
//! and misbehaves where its [`FaultPlan`] says so. It is deterministic; time passes in the device, on a [`Clock`].
//!
//! What it runs is a [`Program`]: a few [`Kernel`]s over the arguments, packed into the same blob that real callables
//! come in. [`callable`] makes one of a single kernel.
#![deny(unsafe_code)]

mod arena;
mod clock;
mod code;
mod config;
mod device;
mod fault;
mod graph;
mod host_memory;
mod kernel;
mod memory;
mod profile;
mod program;
mod staging;
mod streams;

pub use clock::{Clock, MachineClock, VirtualClock};
pub use code::CodeCounters;
pub use config::{Config, Cost};
pub use device::{Counters, Simulator};
pub use fault::{Action, Fault, FaultPlan, HangSwitch, Point};
pub use host_memory::HostMemory;
pub use kernel::{Kernel, scale_factor};
pub use memory::DEVICE_BASE;
pub use profile::Profile;
pub use program::{Program, Step, callable};
pub use streams::StreamCounters;
