//! Spinning for a short, measured time before a sleep.

use std::hint::spin_loop;
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

use super::clock;

/// How long one PAUSE takes on this machine: 1 to 45 ns, it differs between makers and between generations.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct PauseCost {
    picos: u64,
}

impl PauseCost {
    /// Measured once per process tree: a child inherits what its parent measured.
    #[must_use]
    pub fn measured() -> Self {
        static COST: OnceLock<PauseCost> = OnceLock::new();
        *COST.get_or_init(Self::measure)
    }

    /// The best of a few runs, since an interruption only ever makes one longer.
    fn measure() -> Self {
        const TURNS: u64 = 1_000;
        let best = (0..8)
            .map(|_| {
                let start = clock::now();
                (0..TURNS).for_each(|_| spin_loop());
                clock::now().since(start).as_nanos() as u64
            })
            .min();
        Self { picos: best.map_or(1_000, |nanos| nanos * 1_000 / TURNS).max(1) }
    }

    /// Nanoseconds, rounded down.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.picos / 1_000
    }

    /// Nanoseconds of `turns` turns; what a turn does besides its PAUSE is not counted.
    #[must_use]
    pub const fn nanos(self, turns: u32) -> u64 {
        self.picos.saturating_mul(turns as u64) / 1_000
    }
}

/// A spin of bounded length, counted in turns so that no turn reads the clock. Zero turns: look once and give up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SpinWindow {
    turns: u32,
}

impl SpinWindow {
    /// A window that never spins: for a peer on the own CPU, or where CPUs are scarcer than participants.
    pub const NONE: Self = Self { turns: 0 };

    /// A window of about `budget`.
    #[must_use]
    pub fn new(budget: Duration, cost: PauseCost) -> Self {
        let turns = budget.as_nanos() * 1_000 / u128::from(cost.picos);
        Self { turns: u32::try_from(turns).unwrap_or(u32::MAX) }
    }

    /// Turns of the loop at most.
    #[must_use]
    pub const fn turns(self) -> u32 {
        self.turns
    }

    /// This window and `more`; one that never spins stays so.
    #[must_use]
    pub fn longer(self, more: Duration, cost: PauseCost) -> Self {
        if self == Self::NONE {
            return self;
        }
        Self { turns: self.turns.saturating_add(Self::new(more, cost).turns) }
    }

    /// A fraction of this window.
    #[must_use]
    pub const fn divided(self, by: NonZeroU32) -> Self {
        Self { turns: self.turns / by.get() }
    }

    /// Looks, and between two looks pauses, until `ready` says yes or the window is over; returns the last answer.
    #[inline]
    pub fn until(self, ready: impl FnMut() -> bool) -> bool {
        self.spin(ready).ready
    }

    /// As [`SpinWindow::until`]; also says how long it spun.
    #[inline]
    pub fn spin(self, mut ready: impl FnMut() -> bool) -> Spun {
        for turn in 0..self.turns {
            if ready() {
                return Spun { ready: true, turns: turn };
            }
            spin_loop();
        }
        Spun { ready: ready(), turns: self.turns }
    }
}

/// What a spin came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spun {
    /// The last answer.
    pub ready: bool,
    /// Pauses made.
    pub turns: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_window_looks_exactly_once() {
        let mut looks = 0;
        let answer = SpinWindow::NONE.until(|| {
            looks += 1;
            false
        });
        assert_eq!((answer, looks), (false, 1));
    }

    /// T-51
    #[test]
    fn a_window_ends_and_lasts_about_as_long_as_it_was_asked_to() {
        let window = SpinWindow::new(Duration::from_micros(200), PauseCost::measured());
        let best = (0..50)
            .map(|_| {
                let start = clock::now();
                assert!(!window.until(|| false));
                clock::now().since(start)
            })
            .min()
            .unwrap();
        assert!(best >= Duration::from_micros(100) && best <= Duration::from_millis(2), "{best:?}");
    }

    #[test]
    fn a_window_ends_as_soon_as_the_answer_is_yes() {
        let mut left = 3;
        assert!(SpinWindow { turns: u32::MAX }.until(|| {
            left -= 1;
            left == 0
        }));
    }
}
