//! What a side writes that keeps no rule, and where it hurts.

use laneway_core::wire::frame;

use super::dice::Dice;

/// Halves that matter, by their offset in a frame; the state counts twice.
pub(crate) const NARROW: [usize; 5] = [frame::STATE, frame::ERROR, frame::ACCEPTED, frame::PREPARATION, frame::STATE];

/// Words that matter, by their offset in a frame.
pub(crate) const WIDE: [usize; 14] = [
    frame::SUBCOMMAND,
    frame::CONFIG,
    frame::CONFIG + 120,
    frame::LEASE,
    frame::LEASE + 8,
    frame::DIGEST,
    frame::ARGS,
    frame::ARGS + 8 + 32,
    frame::TRAILER,
    frame::TRAILER + 8,
    frame::TRAILER + 16,
    frame::TRAILER + 24,
    frame::TRAILER + 32,
    frame::DETAIL,
];

/// A state that is legal at some time, or any number.
pub(crate) fn any_half(dice: &Dice) -> i32 {
    if dice.roll(16) == 0 { dice.next() as i32 } else { dice.roll(14) as i32 - 1 }
}

/// A small number, the largest, or any.
pub(crate) fn any_word(dice: &Dice) -> u64 {
    match dice.roll(4) {
        0 => dice.next(),
        1 => u64::MAX,
        _ => dice.roll(4) as u64,
    }
}
