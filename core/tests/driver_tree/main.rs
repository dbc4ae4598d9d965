//! A whole level in one thread: driver, child halves, simulated devices, controls and deaths, under a virtual clock.

mod crashes;
mod device;
#[path = "../noise/dice.rs"]
mod dice;
#[path = "../device/kind.rs"]
mod kind;
mod mailbox;
mod refusals;
#[path = "../device/runs.rs"]
mod runs;
mod scenarios;
mod schedules;
#[path = "../noise/width.rs"]
mod width;
mod world;
