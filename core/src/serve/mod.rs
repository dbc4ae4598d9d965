//! The child's half of a mailbox: staging order, activation, run lane, control, stop.
//!
//! A child is one loop around [`Child::step`]. What it does with a task is its [`Leaf`] (one blocking call) or its
//! [`Runner`] (prepare → launch → poll → finalize); everything between the mailbox and that is here, once.

mod blocking;
mod child;
mod chip_runner;
mod control;
mod hold;
mod leaf;
mod machine;
mod run;
mod stage;
mod start;
mod stop;

pub use blocking::Blocking;
pub use child::Child;
pub use chip_runner::{ChipRunner, RunnerError};
pub use hold::{Deed, News, Stage, news};
pub use leaf::{Failure, Launch, Leaf, NoBell, ParentBell, Poll, PrepareError, Report, Runner, Task};
pub use machine::{ChildSpec, Leave, Machine, Memory, Served};
pub use start::{publish_failed, publish_ready};
