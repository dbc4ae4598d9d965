//! The device-runtime trait and the phases of a native run.
//!
//! A backend implements [`DeviceRuntime`]: the binding of the vendor's library and the simulator do, and so can anyone
//! else. The phases of its runs live in a [`RunTable`], which is the only place that knows which call is legal when
//! (C-6) and that one device executes one run at a time (L-12, L-14).

mod arity;
mod callable_slots;
mod contract;
#[cfg(feature = "engine")]
mod direct;
mod error;
#[cfg(feature = "engine")]
mod ledger;
mod names;
mod phase;
mod platform;
mod run_table;
mod runtime;

pub use arity::Arity;
pub use callable_slots::CallableSlots;
pub use contract::Contract;
#[cfg(feature = "engine")]
pub use direct::{DirectLane, DirectTicket, Submitted};
pub use error::{ChipError, Reason};
#[cfg(feature = "engine")]
pub use ledger::{DeviceLedger, FreeRequest};
pub use names::{CallableSlot, DeviceAddress, HostAddress, RunEpoch};
pub use phase::{Call, Phase, TRANSITIONS, Transition};
pub use platform::{Capabilities, Platform, RuntimeKind};
pub use run_table::{Completion, Finalizing, RunTable, RunToken};
pub use runtime::{DeviceRuntime, Progress, RunDescriptor};
