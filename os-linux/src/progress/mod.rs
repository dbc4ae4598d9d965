//! Progress: who drives the lanes, how they sleep, and how the right to drive is handed over without a gap.
//!
//! There is one owner of progress at a time, and it is a right, not a thread. Whoever blocks for the worker takes it and
//! drives the lanes itself. The callback that builds the executing run holds it from one submit to the next and runs a round
//! with each; one that falls silent loses it. A background thread holds it only while work is open and nobody else has it.
//! [`Right`] names the owners. The hand-over:
//!
//! - a driver inside stores [`Ring::Awake`]; children ring nobody;
//! - about to sleep it announces [`Ring::Waiter`], looks once more, and sleeps in the kernel;
//! - leaving with work open it wakes a sleeping waiter, who takes the right; if there is none it announces
//!   [`Ring::Owner`], looks once more and returns, and the background thread is rung by the next publication.
//!
//! [`HandOver`] is that protocol, [`Live`](crate::live::Live) takes part in it, and a loom model explores it:
//! `RUSTFLAGS="--cfg loom" cargo test -p laneway-linux --release --lib progress`.

mod background;
mod bell_word;
mod drive;
mod hand_over;
mod inbox;
#[cfg(all(test, loom))]
mod model;
mod right;
mod seat;
mod silence;

pub(crate) use background::Background;
pub(crate) use bell_word::{BellWord, ParentRing, Ring};
pub(crate) use hand_over::{HandOver, Standing};
pub(crate) use inbox::{Inbox, News};
pub(crate) use right::{Look, Progress, Right};
