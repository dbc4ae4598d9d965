//! The simulated chip as `libhost_runtime.so`: the interface that a vendor's library has, over a
//! [`laneway_sim::Simulator`].
//!
//! It exists so that whatever binds such a library can be tested from end to end without hardware, and so that other
//! languages can drive the simulator. Which chip it simulates is in the environment: `LANEWAY_SIM_CONFIG` holds a
//! [`laneway_sim::Config`] as JSON, or the path of a file with one.
//!
//! Every function follows the contract of the interface: handles come from `create_device_context`, run storage is
//! zeroed once and stays where it is from prepare to finalize, and one thread at a time calls with one context. A null
//! handle is answered with −1.

mod context;
mod exports;
mod log;
mod raw;
