//! A whole level in one thread: driver, child halves, simulated devices, controls and deaths, under a virtual clock.

mod crashes;
mod refusals;
mod scenarios;
mod schedules;
mod world;
