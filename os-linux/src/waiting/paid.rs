//! How much longer a driver waits when a wake was paid for.

use std::time::Duration;

use laneway_core::ids::EndpointIndex;
use laneway_core::time::Instant;

/// The CPU of a child that was rung so short a time ago has not been idle for long enough for another wake to take its full time.
const SOON: Duration = Duration::from_micros(300);

/// The extra wait for such a child alone. If it is not awake then it was put behind the driver, and runs when that sleeps.
const SOON_WAKE: Duration = Duration::from_micros(8);

/// The extra wait for a child that was rung in a crowd and slept on another CPU: that is busy, so nobody has to wake it, and whoever
/// runs there gives way. A driver that slept meanwhile would have to be woken itself.
const CROWDED_WAKE: Duration = Duration::from_micros(20);

/// Wakes that were paid for in one round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wake {
    /// Whether each came soon after one of the same sleeper.
    is_soon: bool,
    /// Whether a child that slept on another CPU than the driver's is among the sleepers.
    is_elsewhere: bool,
}

/// The wakes since the last window, and when which sleeper was last woken.
#[derive(Debug)]
pub(super) struct Paid {
    wake: Option<Wake>,
    children: Box<[Instant]>,
    driver: Instant,
}

impl Paid {
    pub(super) fn nothing(children: usize) -> Self {
        let never = Instant::from_nanos(0);
        Self { wake: None, children: vec![never; children].into(), driver: never }
    }

    /// That of a child, which slept on another CPU than the driver's or on the same.
    pub(super) fn child(&mut self, child: EndpointIndex, is_elsewhere: bool, now: Instant) {
        let before = std::mem::replace(&mut self.children[child.index()], now);
        self.add(Wake { is_soon: now.since(before) < SOON, is_elsewhere });
    }

    /// The driver's own.
    pub(super) fn own(&mut self, now: Instant) {
        let before = std::mem::replace(&mut self.driver, now);
        self.add(Wake { is_soon: now.since(before) < SOON, is_elsewhere: false });
    }

    fn add(&mut self, wake: Wake) {
        let before = self.wake.unwrap_or(wake);
        let (is_soon, is_elsewhere) = (before.is_soon && wake.is_soon, before.is_elsewhere || wake.is_elsewhere);
        self.wake = Some(Wake { is_soon, is_elsewhere });
    }

    pub(super) const fn take(&mut self) -> Option<Wake> {
        self.wake.take()
    }
}

impl Wake {
    /// The extra wait where a CPU is free for it. `full` is what a wake takes, `is_alone` says that one child at most can answer.
    pub(super) fn extra(self, full: Duration, is_alone: bool) -> Duration {
        if self.is_soon && is_alone { full.min(SOON_WAKE) } else { full }
    }

    /// The extra wait in a crowd.
    pub(super) fn extra_in_crowd(self, full: Duration) -> Duration {
        if self.is_elsewhere { full.min(CROWDED_WAKE) } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Duration = Duration::from_micros(40);
    const CHILD: EndpointIndex = EndpointIndex(3);
    const OTHER: EndpointIndex = EndpointIndex(1);

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + micros * 1_000)
    }

    #[test]
    fn a_child_that_was_rung_a_moment_ago_is_waited_for_shortly_by_whoever_can_only_wait_for_it() {
        let mut paid = Paid::nothing(4);
        assert_eq!(paid.take(), None);
        paid.child(CHILD, true, at(0));
        assert_eq!(paid.take().unwrap().extra(FULL, true), FULL, "the first one for long");
        paid.child(CHILD, true, at(100));
        let soon = paid.take().unwrap();
        assert_eq!((soon.extra(FULL, true), soon.extra(FULL, false)), (SOON_WAKE, FULL));
        assert_eq!(soon.extra(Duration::ZERO, true), Duration::ZERO, "where wakes are not known");
        paid.child(OTHER, true, at(150));
        assert_eq!(paid.take().unwrap().extra(FULL, true), FULL, "its CPU may have been idle for long");
        paid.child(CHILD, true, at(500));
        assert_eq!(paid.take().unwrap().extra(FULL, true), FULL);
    }

    #[test]
    fn of_several_wakes_in_one_round_the_longest_counts() {
        let mut paid = Paid::nothing(4);
        paid.child(CHILD, true, at(0));
        paid.take();
        paid.child(CHILD, true, at(1));
        paid.own(at(1));
        paid.child(CHILD, false, at(2));
        let wake = paid.take().unwrap();
        assert_eq!((wake.extra(FULL, true), wake.extra_in_crowd(FULL)), (FULL, CROWDED_WAKE));
    }

    #[test]
    fn in_a_crowd_only_children_that_slept_elsewhere_are_waited_for() {
        let mut paid = Paid::nothing(4);
        paid.child(CHILD, true, at(0));
        assert_eq!(paid.take().unwrap().extra_in_crowd(FULL), CROWDED_WAKE);
        paid.child(CHILD, false, at(0));
        paid.own(at(1));
        assert_eq!(paid.take().unwrap().extra_in_crowd(FULL), Duration::ZERO);
    }
}
