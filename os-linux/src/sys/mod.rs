//! The operating system, one concern a module. All system calls of this crate and nearly all of its `unsafe` live here.
//!
//! | concern | modules |
//! | --- | --- |
//! | memory | [`region`], [`page`], [`words`] |
//! | what children must not keep or use | [`inventory`], `lineage` |
//! | processes | [`fork`], [`signals`], [`child`], [`pidfd`], [`group`], [`exit`], [`farewell`] |
//! | children that are threads | [`child_thread`] |
//! | who is gone | [`lifeline`], [`subtree`], `alarm` |
//! | waiting | [`eventfd`], [`epoll`], [`park`], [`spin`], [`clock`] |
//! | panics | [`panics`] |
//! | the machine | [`cpu`], [`time_slice`], [`limits`], `memory_limit`, [`threads`] |

mod alarm;
pub mod child;
pub mod child_thread;
pub mod clock;
pub mod cpu;
pub mod epoll;
pub mod eventfd;
pub mod exit;
pub mod farewell;
pub mod fork;
pub mod group;
pub mod inventory;
pub mod lifeline;
pub mod limits;
pub(crate) mod lineage;
pub(crate) mod memory_limit;
pub mod page;
pub mod panics;
pub mod park;
pub mod pidfd;
pub mod region;
pub mod signals;
pub mod spin;
pub mod subtree;
pub mod threads;
pub mod time_slice;
pub mod timer;
pub mod words;
