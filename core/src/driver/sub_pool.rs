//! Which SUB child gets the next task: one that is awake, as long as that is soon enough.

use core::time::Duration;

use super::port::Port;
use super::{Driver, Observer};
use crate::mailbox::{Peer, Words, extension};
use crate::time::Instant;

/// When one more SUB child is worth its while. The default always gives a task to whoever is idle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SubPool {
    /// A task that is done in less is left to a child that is at work, for about that time.
    pub window: Duration,
    /// What a wake costs: a child at work may have been asleep when its task came, and is waited for so much longer.
    pub wake: Duration,
    /// Threads that can run at the same time. Where the driver and the children at work are as many, one more only takes turns
    /// with them, so a short task waits longer.
    pub cpus: usize,
}

/// With every CPU taken a short task waits for this many windows, twice as long with every child more: children that do not
/// answer for that long are held up, and the next one may get a turn.
const PATIENCE: u64 = 4;

/// After so many windows a task waits again for as many children as were waited for in vain: one of them had a long task, or was
/// held up.
const FORGIVEN: u64 = 64;

/// What is known for deciding; nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thrift {
    window: u64,
    wake: u64,
    cpus: usize,
    /// What a task took lately; a moving average.
    recent: u64,
    /// How many children were at work when a task began to wait for one of them, and since when it does.
    held: Option<(usize, Instant)>,
    /// So many children at work were waited for in vain; until then nothing waits for as few again.
    slow: Option<(usize, Instant)>,
}

impl Thrift {
    pub(super) fn set(&mut self, pool: SubPool) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        (self.window, self.wake) = (nanos(pool.window), nanos(pool.wake));
        self.cpus = pool.cpus;
    }

    pub(super) const fn recent_task(&self) -> Duration {
        Duration::from_nanos(self.recent)
    }

    /// A task took that long. A quarter of the way each time: what the tasks are now shows after a few.
    #[inline]
    const fn took(&mut self, took: u64) {
        self.recent = self.recent - self.recent / 4 + took / 4;
    }

    /// Whether `busy` children and the driver are as many as the CPUs, or more.
    const fn is_full(&self, busy: usize) -> bool {
        busy + 1 >= self.cpus
    }

    /// Until when a task waits for one of `busy` children at work; `None` if it has waited long enough.
    fn holds(&mut self, busy: usize, now: Instant) -> Option<Instant> {
        if self.slow.is_some_and(|(slow, until)| busy <= slow && now < until) {
            return None;
        }
        let since = match self.held {
            Some((before, since)) if before == busy => since,
            _ => {
                self.held = Some((busy, now));
                now
            }
        };
        let patience = if self.is_full(busy) {
            let more = (busy + 1 - self.cpus).min(8);
            self.window.saturating_mul(PATIENCE << more)
        } else {
            self.window
        };
        let until = Instant::from_nanos(since.as_nanos().saturating_add(patience).saturating_add(self.wake));
        if now < until {
            return Some(until);
        }
        let again = now.as_nanos().saturating_add(self.window.saturating_mul(FORGIVEN));
        self.slow = Some((busy, Instant::from_nanos(again)));
        None
    }

    /// No task waits for a child at work.
    #[inline]
    pub(super) const fn forget_held(&mut self) {
        self.held = None;
    }

    /// A task of `port` has ended, as the driver sees at `now`.
    #[inline]
    pub(super) fn learn<W: Words>(&mut self, port: &mut Port<W>, now: Instant) {
        let took = now.as_nanos().saturating_sub(port.sent.as_nanos());
        if took < self.window {
            self.took(took);
        } else if self.window > 0 {
            self.learn_from_child(port, took);
        }
    }

    /// Most of `elapsed` may have been wakes, of the child and of the driver: short tasks would pass for long ones, be spread over
    /// more children, and cost more wakes. The child knows better. Its counts may be those of a moment ago, and a lie makes no task
    /// longer than it was.
    fn learn_from_child<W: Words>(&mut self, port: &mut Port<W>, elapsed: u64) {
        if port.lane.child() != Peer::Known {
            return self.took(elapsed);
        }
        let counted = extension::tasks(&port.words);
        let before = core::mem::replace(&mut port.counted, counted);
        if let Some(each) = counted.1.wrapping_sub(before.1).checked_div(counted.0.wrapping_sub(before.0)) {
            self.took(each.min(elapsed));
        }
    }
}

impl<W: Words, O: Observer> Driver<W, O> {
    /// Until when the next SUB task is better left to a child that is at work and about to be done than to an idle one: where
    /// that one sleeps, or would take turns with the others on the same CPUs. Spared long enough, it falls asleep.
    #[inline]
    pub(super) fn spares_a_wake(&mut self, now: Instant) -> Option<Instant> {
        if self.subs.recent >= self.subs.window {
            return None;
        }
        let spare = self.engine().spare_sub().filter(|spare| {
            let port = &self.ports[spare.endpoint.index()];
            port.lane.child() == Peer::Known && (self.subs.is_full(spare.busy) || extension::sleeps(&port.words))
        });
        match spare {
            Some(spare) => self.subs.holds(spare.busy, now),
            None => {
                self.subs.forget_held();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 6_000;
    const WAKE: u64 = 7_000;

    fn thrift(cpus: usize) -> Thrift {
        let mut thrift = Thrift::default();
        thrift.set(SubPool { window: Duration::from_nanos(WINDOW), wake: Duration::from_nanos(WAKE), cpus });
        thrift
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn with_a_cpu_to_spare_a_task_waits_for_about_a_window_and_a_wake() {
        const PATIENCE: u64 = WINDOW + WAKE;
        let mut thrift = thrift(4);
        assert_eq!(thrift.holds(1, at(10)), Some(at(PATIENCE + 10)));
        assert_eq!(thrift.holds(1, at(PATIENCE)), Some(at(PATIENCE + 10)));
        assert_eq!(thrift.holds(1, at(PATIENCE + 10)), None, "since it was first held");
        assert_eq!(thrift.holds(2, at(PATIENCE + 10)), Some(at(2 * PATIENCE + 10)), "one more is at work since then");
        assert_eq!(thrift.holds(1, at(2 * PATIENCE)), None, "that one is known to take long");
        let later = PATIENCE + FORGIVEN * WINDOW + 10;
        assert_eq!(thrift.holds(1, at(later)), Some(at(later + PATIENCE)));
    }

    #[test]
    fn with_every_cpu_taken_a_task_waits_longer_and_longer_but_never_for_ever() {
        let mut thrift = thrift(2);
        let mut before = WINDOW;
        for busy in 1..12 {
            let until = thrift.holds(busy, at(0)).unwrap();
            assert!(until.as_nanos() > before || busy > 9, "{busy}");
            assert!(until < at(10_000_000), "{busy}");
            assert_eq!(thrift.holds(busy, until), None, "{busy}");
            before = until.as_nanos();
        }
    }

    #[test]
    fn what_tasks_take_is_learnt_after_a_few_of_them() {
        let mut thrift = thrift(2);
        (0..8).for_each(|_| thrift.took(100_000));
        assert!(thrift.recent > WINDOW, "{}", thrift.recent);
        (0..12).for_each(|_| thrift.took(400));
        assert!(thrift.recent < WINDOW, "{}", thrift.recent);
        assert_eq!(Thrift::default().recent_task(), Duration::ZERO);
    }
}
