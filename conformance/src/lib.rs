//! Scenarios that any laneway backend must pass, as a library and as a command.
//!
//! A [`Case`] is one scenario: a sentence that must be true, the rules of the protocol that it shows, and what it does. Some
//! drive a device through the trait alone, some are the parent of a child half and look at every word that it writes, some
//! build whole trees of processes. What they are run against is a [`Backend`]; an own device runtime is one in a few lines:
//!
//! ```no_run
//! use laneway_conformance::{Blobs, Filter, Memory, Own, Setup, run};
//! use laneway_core::chip::{ChipError, Platform, RuntimeKind};
//! # use laneway_sim::Simulator as MyDevice;
//! # fn open(setup: &Setup, memory: Memory<'_>) -> Result<MyDevice, ChipError> {
//! #     laneway_conformance::open_simulator(laneway_sim::Profile::A2a3HostBuildGraph, setup, memory)
//! # }
//! # let add = laneway_sim::callable(laneway_sim::Kernel::Add);
//!
//! let mut mine = Own::new("my device", Platform::A2A3, RuntimeKind::HostBuildGraph, open)
//!     .with_callables(Blobs::new().with(laneway_sim::Kernel::Add, add));
//! let report = run(&mut mine, &Filter::all());
//! print!("{report}");
//! assert_eq!(report.exit_status(), 0);
//! ```
//!
//! A case that is about what a backend cannot do is reported as not applicable, with the reason.
//!
//! [`mod@bench`] measures what tasks cost across processes, beside what the machine itself needs.
#![deny(unsafe_code)]

pub mod bench;

mod backend;
mod case;
mod device;
mod expect;
mod frame;
mod isolate;
mod junit;
mod numbers;
mod ready_made;
mod report;
mod runner;
mod scribble;
mod tree;

pub use backend::{Backend, Blobs, BoxError, Callables, Facts, Memory, Own, Setup, SimulatorCallables};
pub use case::{Case, cases};
pub use device::{Ending, Script, Step};
pub use expect::Violation;
pub use frame::{ChildHalf, CoreChild, Deed, Tape};
pub use junit::junit;
pub use numbers::HostBuffer;
pub use ready_made::{blocking, library, open_simulator, simulator, simulator_config, simulator_in_threads};
pub use report::{Counts, Entry, Outcome, Report};
pub use runner::{Filter, News, Runner, SEED, TIMEOUT, run};
