//! Cases that are the parent of one child half around a device: what it makes of each frame, word by word.

mod control;
mod desk;
mod half;
mod one;
mod one_refused;
mod stop;
mod tape;
mod two;
mod two_beside;

pub(crate) use desk::Desk;
pub use half::{ChildHalf, CoreChild};
pub use tape::{Deed, Tape};

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    let mut all = one::cases();
    all.extend(one_refused::cases());
    all.extend(two::cases());
    all.extend(two_beside::cases());
    all.extend(control::cases());
    all.extend(stop::cases());
    all
}
