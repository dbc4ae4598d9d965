//! Who is handed what, and when.

mod deaths;
#[path = "../engine_support/mod.rs"]
mod engine_support;
mod groups;
mod queues;
mod refusals;
mod staging;
mod subs;
