//! Which SUB child gets the next task: one that is awake, as long as that is soon enough.

use core::time::Duration;

use super::{Driver, Observer};
use crate::mailbox::{Peer, Words, extension};
use crate::time::Instant;

/// When a sleeping SUB child is worth its wake. The default always wakes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SubPool {
    /// About what a wake costs: a task that is done in less is left to a child that is awake, for about that time.
    pub window: Duration,
    /// Threads that can run at the same time. Where the driver and the children at work are as many, a short task waits for as
    /// long as the driver spins, but no longer than a few windows: news of other endpoints may keep a driver awake for ever.
    pub cpus: usize,
}

/// So many windows a task is held at most.
const PATIENCE: u64 = 8;

/// What is known for deciding; nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thrift {
    window: u64,
    cpus: usize,
    /// What a task took lately; a moving average.
    recent: u64,
    /// Since when a task waits for a child that is awake.
    held_since: Option<Instant>,
}

impl Thrift {
    pub(super) fn set(&mut self, pool: SubPool) {
        self.window = u64::try_from(pool.window.as_nanos()).unwrap_or(u64::MAX);
        self.cpus = pool.cpus;
    }

    pub(super) const fn recent_task(&self) -> Duration {
        Duration::from_nanos(self.recent)
    }

    /// A task took that long. A quarter of the way each time: what the tasks are now shows after a few.
    #[inline]
    pub(super) const fn took(&mut self, sent: Instant, ended: Instant) {
        let took = ended.as_nanos().saturating_sub(sent.as_nanos());
        self.recent = self.recent - self.recent / 4 + took / 4;
    }

    /// Whether a task waits, that would wake a child otherwise, with `busy` children at work.
    fn holds(&mut self, busy: usize, now: Instant) -> bool {
        let since = *self.held_since.get_or_insert(now);
        let windows = if busy + 1 >= self.cpus { PATIENCE } else { 1 };
        now.as_nanos().saturating_sub(since.as_nanos()) < self.window.saturating_mul(windows)
    }
}

impl<W: Words, O: Observer> Driver<W, O> {
    /// Whether the next SUB task would wake a child that sleeps although one that is at work is about to be done.
    #[inline]
    pub(super) fn spares_a_wake(&mut self, now: Instant) -> bool {
        if self.subs.recent >= self.subs.window {
            return false;
        }
        let spare = self.engine().spare_sub().filter(|spare| {
            let port = &self.ports[spare.endpoint.index()];
            port.lane.child() == Peer::Known && extension::sleeps(&port.words)
        });
        match spare {
            Some(spare) => self.subs.holds(spare.busy, now),
            None => {
                self.subs.held_since = None;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 6_000;

    fn thrift(cpus: usize) -> Thrift {
        let mut thrift = Thrift::default();
        thrift.set(SubPool { window: Duration::from_nanos(WINDOW), cpus });
        thrift
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn with_a_cpu_to_spare_a_task_waits_for_about_a_window_and_else_for_a_few() {
        let mut thrift = thrift(4);
        assert!(thrift.holds(1, at(10)));
        assert!(thrift.holds(2, at(WINDOW)));
        assert!(!thrift.holds(1, at(WINDOW + 10)), "since it was first held");
        thrift.held_since = None;
        assert!(thrift.holds(1, at(WINDOW + 10)));
        assert!(thrift.holds(3, at(WINDOW + 10)), "every CPU has something to do");
        assert!(!thrift.holds(3, at(PATIENCE * WINDOW + WINDOW + 10)), "but what keeps one busy may take long");
    }

    #[test]
    fn what_tasks_take_is_learnt_after_a_few_of_them() {
        let mut thrift = thrift(2);
        (0..8).for_each(|_| thrift.took(at(0), at(100_000)));
        assert!(thrift.recent > WINDOW, "{}", thrift.recent);
        (0..12).for_each(|_| thrift.took(at(0), at(400)));
        assert!(thrift.recent < WINDOW, "{}", thrift.recent);
        assert_eq!(Thrift::default().recent_task(), Duration::ZERO);
    }
}
