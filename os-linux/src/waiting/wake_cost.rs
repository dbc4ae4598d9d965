//! What a wake through the kernel costs on this machine.

use std::time::Duration;

use laneway_core::mailbox::{Peer, Words, extension};
use laneway_core::wire::extension::PARKED;

use crate::sys::clock;
use crate::sys::eventfd::Bell;
use crate::sys::spin::{PauseCost, SpinWindow};
use crate::sys::words::MailboxWords;

/// A wake from deep idleness takes about this long in a virtual machine; whatever was measured above it was an interruption.
pub(crate) const LONGEST_WAKE: Duration = Duration::from_micros(60);

const TRIES: usize = 5;

/// How long a child may take to fall asleep, or to wake, to be counted.
const PATIENCE: Duration = Duration::from_micros(200);

/// For so long it sleeps before it is rung. A CPU that has become idle is kept ready for a while, by hypervisors for up to 0.2 ms;
/// past that a wake costs several times as much, and it is those wakes that are worth some waiting.
const SLEEP: Duration = Duration::from_micros(300);

/// From a ring until the child, which had slept for some time, has stored that it is awake; the median of a few. Zero where that
/// cannot be measured. The child has nothing to do and goes back to sleep.
pub(crate) fn measure_wake(words: &MailboxWords, bell: &Bell) -> Duration {
    if extension::child(words) != Peer::Known {
        return Duration::ZERO;
    }
    let patience = SpinWindow::new(PATIENCE, PauseCost::measured());
    let asleep = SpinWindow::new(SLEEP, PauseCost::measured());
    let mut taken = [Duration::ZERO; TRIES];
    for took in &mut taken {
        if !patience.until(|| words.load_relaxed(PARKED) == 1) {
            return Duration::ZERO;
        }
        asleep.until(|| false);
        let start = clock::now();
        bell.ring();
        if !patience.until(|| words.load_relaxed(PARKED) == 0) {
            return Duration::ZERO;
        }
        *took = clock::now().since(start);
    }
    taken.sort_unstable();
    taken[TRIES / 2].min(LONGEST_WAKE)
}
