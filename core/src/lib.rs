//! The part of laneway that knows no operating system: the bytes of a mailbox, the machines on both of its sides,
//! and the engine that orders tasks. No clock, no lock, no thread, and nothing here waits.
//!
//! Floors, lowest first; a module imports only floors below its own:
//!
//! | floor | holds |
//! | --- | --- |
//! | [`ids`], [`time`] | new types for every number that names something |
//! | [`wire`] | the byte layouts: plain values, parse and build |
//! | [`model`] | tensor views and overlap, argument lists, callable identity, slot pool, replay filter |
//! | [`chip`] | the device-runtime trait and the phases of a native run |
//! | [`mailbox`] | one frame through [`mailbox::Words`] |
//! | [`lane`] | the parent's half of a mailbox |
//! | [`serve`] | the child's half of a mailbox |
//! | `engine` | runs, dependencies, rings, queues |
//! | `driver` | engine and lanes in one step |
#![no_std]
#![deny(unsafe_code)]

#[cfg(feature = "engine")]
extern crate alloc;

pub mod ids;
pub mod time;

pub mod wire;

pub mod model;

pub mod chip;

pub mod mailbox;

pub mod lane;

pub mod serve;

#[cfg(feature = "engine")]
pub mod engine;

#[cfg(feature = "engine")]
pub mod driver;

mod error;
pub use error::Error;
