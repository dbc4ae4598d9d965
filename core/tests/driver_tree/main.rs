//! A whole level in one thread: driver, child halves, simulated devices, controls and deaths, under a virtual clock.

mod crashes;
mod device;
#[path = "../device/kind.rs"]
mod kind;
mod mailbox;
mod refusals;
#[path = "../device/runs.rs"]
mod runs;
mod scenarios;
mod schedules;
mod world;
