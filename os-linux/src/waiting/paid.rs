//! How much longer a driver waits when a wake was paid for.

use std::time::Duration;

use laneway_core::ids::EndpointIndex;
use laneway_core::time::Instant;

/// For so long after a wake no CPU has been idle for long enough for the next one to take its full time.
const SOON: Duration = Duration::from_micros(300);

/// The extra wait for a child alone that was rung so soon after another wake. If it is not awake then it was put behind the driver,
/// and runs when that sleeps.
const SOON_WAKE: Duration = Duration::from_micros(8);

/// The extra wait for a child that was rung in a crowd and slept on another CPU: that is busy, so nobody has to wake it, and whoever
/// runs there gives way. A driver that slept meanwhile would have to be woken itself.
const CROWDED_WAKE: Duration = Duration::from_micros(20);

/// A wake that was paid for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wake {
    /// The child that was rung last; none if it was the driver that slept.
    pub(super) rung: Option<EndpointIndex>,
    /// Whether another one came soon before it.
    is_soon: bool,
}

/// The wakes since the last window.
#[derive(Debug)]
pub(super) struct Paid {
    wake: Option<Wake>,
    last: Instant,
}

impl Paid {
    pub(super) const fn nothing() -> Self {
        Self { wake: None, last: Instant::from_nanos(0) }
    }

    /// A wake was paid for: that of the child that was `rung`, or the driver's own.
    pub(super) fn add(&mut self, rung: Option<EndpointIndex>, now: Instant) {
        let is_soon = now.since(std::mem::replace(&mut self.last, now)) < SOON;
        self.wake = Some(Wake { rung, is_soon: is_soon && self.wake.is_none_or(|wake| wake.is_soon) });
    }

    pub(super) const fn take(&mut self) -> Option<Wake> {
        self.wake.take()
    }
}

impl Wake {
    /// The extra wait where a CPU is free for it. `full` is what a wake takes, `is_alone` says that no other child can answer.
    pub(super) fn extra(self, full: Duration, is_alone: bool) -> Duration {
        if self.is_soon && is_alone { full.min(SOON_WAKE) } else { full }
    }

    /// The extra wait in a crowd. `is_elsewhere` says that this child slept on another CPU than the driver's.
    pub(super) fn extra_in_crowd(self, full: Duration, is_elsewhere: impl FnOnce(EndpointIndex) -> bool) -> Duration {
        if self.rung.is_some_and(is_elsewhere) { full.min(CROWDED_WAKE) } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Duration = Duration::from_micros(40);
    const CHILD: Option<EndpointIndex> = Some(EndpointIndex(3));

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + micros * 1_000)
    }

    #[test]
    fn a_wake_soon_after_another_one_is_waited_for_shortly_by_whoever_can_only_wait_for_it() {
        let mut paid = Paid::nothing();
        assert_eq!(paid.take(), None);
        paid.add(CHILD, at(0));
        assert_eq!(paid.take().unwrap().extra(FULL, true), FULL, "the first one for long");
        paid.add(CHILD, at(100));
        let soon = paid.take().unwrap();
        assert_eq!((soon.extra(FULL, true), soon.extra(FULL, false)), (SOON_WAKE, FULL));
        paid.add(CHILD, at(500));
        assert_eq!(paid.take().unwrap().extra(FULL, true), FULL);
        paid.add(CHILD, at(510));
        assert_eq!(paid.take().unwrap().extra(Duration::ZERO, true), Duration::ZERO, "where wakes are not known");
    }

    #[test]
    fn of_several_wakes_in_one_round_the_longest_counts() {
        let mut paid = Paid::nothing();
        paid.add(None, at(0));
        paid.add(CHILD, at(1));
        let wake = paid.take().unwrap();
        assert_eq!((wake.rung, wake.extra(FULL, true)), (CHILD, FULL));
    }

    #[test]
    fn in_a_crowd_only_a_child_that_was_rung_elsewhere_is_waited_for() {
        let mut paid = Paid::nothing();
        paid.add(CHILD, at(0));
        let wake = paid.take().unwrap();
        assert_eq!(wake.extra_in_crowd(FULL, |child| Some(child) == CHILD), CROWDED_WAKE);
        assert_eq!(wake.extra_in_crowd(FULL, |_| false), Duration::ZERO);
        paid.add(None, at(1));
        assert_eq!(paid.take().unwrap().extra_in_crowd(FULL, |_| true), Duration::ZERO, "its own wake");
    }
}
