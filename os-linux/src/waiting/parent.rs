//! The waits of a driver.

use std::num::NonZeroU32;
use std::time::Duration;

use laneway_core::driver::{SubPool, Watch};
use laneway_core::ids::EndpointIndex;
use laneway_core::mailbox::extension::{self, Side};
use laneway_core::time::Instant;

use super::LONGEST_WAKE;
use super::paid::Paid;
use crate::board::Facts;
use crate::sys::cpu::{self, CpuBudget};
use crate::sys::spin::{PauseCost, SpinWindow};
use crate::sys::words::MailboxWords;

/// The window may follow the time that tasks take, up to this many plain windows.
const FOLLOW: u32 = 8;

/// Where more want to run than CPUs are there, a spinner keeps one of them from running: the window is this part of the plain
/// one, for answers that are all but there.
pub(super) const CROWDED: NonZeroU32 = NonZeroU32::new(4).unwrap();

/// Once in so many waits a driver spins for children on its own CPU all the same: only one that is kept from running is moved by
/// the kernel to a CPU that has become idle meanwhile.
const PROBE: u32 = 64;

/// How the drivers of one worker wait for its children. Guarded by the worker's lock.
pub(crate) struct ParentWait {
    plain: Duration,
    window: SpinWindow,
    cost: PauseCost,
    /// Threads that can run at the same time, when the worker started.
    usable: usize,
    /// What a wake through the kernel costs here; zero if that is not known.
    wake: Duration,
    /// Drivers that may spin at the same time: this one, and that of a worker above that waits for it.
    drivers: usize,
    /// What each child was last told: the CPU that its parent runs on, and whether more want to run than can.
    told: Box<[(Option<u16>, bool)]>,
    /// Wakes since the last window.
    paid: Paid,
    /// How often every child was on the driver's own CPU.
    together: u32,
}

impl ParentWait {
    /// How a worker with so many children waits; `is_nested` if another worker waits for it.
    pub(crate) fn new(plain: Duration, window: SpinWindow, wake: Duration, children: usize, is_nested: bool) -> Self {
        let (cost, usable) = (PauseCost::measured(), CpuBudget::read().usable());
        // Sums and multiples of it are taken; nobody spins for that long.
        let plain = plain.min(Duration::from_secs(3600));
        let (drivers, told) = (1 + usize::from(is_nested), vec![(None, false); children].into());
        Self { plain, window, cost, usable, wake, drivers, told, paid: Paid::nothing(children), together: 0 }
    }

    /// When a sleeping SUB child is worth its wake. Where nobody spins, nobody is awake to leave a task to.
    pub(crate) fn sub_pool(&self) -> SubPool {
        // However long a user lets a driver spin: a wake costs no more than this, and a task that takes longer is worth it.
        let window = if self.window == SpinWindow::NONE { Duration::ZERO } else { self.plain.min(LONGEST_WAKE) };
        SubPool { window, wake: self.wake, cpus: self.usable }
    }

    /// What the status board says of the waits of a worker at `level`.
    pub(crate) fn facts(&self, level: u32) -> Facts {
        let window = if self.window == SpinWindow::NONE { Duration::ZERO } else { self.plain };
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Facts { level, window: nanos(window), wake: nanos(self.wake) }
    }

    /// This child was rung, whose words these are: a wake through the kernel.
    pub(crate) fn rang(&mut self, child: EndpointIndex, words: &MailboxWords, now: Instant) {
        self.paid.child(child, is_elsewhere(words, cpu::current()), now);
    }

    /// The driver itself was woken.
    pub(crate) fn woke(&mut self, now: Instant) {
        self.paid.own(now);
    }

    /// Nanoseconds of `turns` turns.
    pub(crate) const fn nanos(&self, turns: u32) -> u64 {
        self.cost.nanos(turns)
    }

    /// The window for the next wait on these words. `tasks` is what a task took lately.
    pub(crate) fn next_window(&mut self, watches: &[Watch], words: &[MailboxWords], tasks: Duration) -> SpinWindow {
        let paid = self.paid.take();
        if self.window == SpinWindow::NONE {
            return self.window;
        }
        let here = cpu::current();
        // The words of one child come one after the other.
        let children = watches.chunk_by(|a, b| a.endpoint == b.endpoint);
        let busy = children.clone().count();
        let crowded = busy + self.drivers > self.usable;
        let mut elsewhere = false;
        for watch in children.filter_map(|of_one| of_one.first()) {
            let (i, words) = (watch.endpoint.index(), &words[watch.endpoint.index()]);
            if self.told[i] != (here, crowded) {
                self.told[i] = (here, crowded);
                here.into_iter().for_each(|cpu| Side::Parent.show_cpu(words, cpu));
                extension::show_crowd(words, crowded);
            }
            elsewhere |= is_elsewhere(words, here);
        }
        // Where a child that was woken now runs is not known yet.
        if !elsewhere && paid.is_none() {
            self.together = self.together.wrapping_add(1);
            if !self.together.is_multiple_of(PROBE) {
                return SpinWindow::NONE;
            }
        }
        if crowded {
            // The CPU that a spin takes is one that a child could use for its task.
            if tasks > self.plain {
                return SpinWindow::NONE;
            }
            let extra = paid.map_or(Duration::ZERO, |wake| wake.extra_in_crowd(self.wake));
            return self.window.divided(CROWDED).longer(extra, self.cost);
        }
        let window = if tasks > self.plain && tasks < self.plain * FOLLOW {
            self.window.longer(tasks - self.plain * 3 / 4, self.cost)
        } else {
            self.window
        };
        // A long task is not over when its child is awake.
        match paid {
            Some(wake) if tasks < self.plain * FOLLOW => window.longer(wake.extra(self.wake, busy == 1), self.cost),
            _ => window,
        }
    }
}

/// Whether this child was last seen on another CPU than `here`, as far as either is known.
fn is_elsewhere(words: &MailboxWords, here: Option<u16>) -> bool {
    let hint = Side::Child.cpu_hint(words);
    hint.is_none() || hint != here
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::region::{Region, Sharing};
    use laneway_core::wire::frame::REGION_BYTES;

    const PLAIN: Duration = Duration::from_micros(6);
    const WAKE: Duration = Duration::from_micros(7);

    struct Rig {
        wait: ParentWait,
        _regions: Vec<Region>,
        words: Vec<MailboxWords>,
        watches: Vec<Watch>,
        here: u16,
    }

    #[expect(unsafe_code, reason = "memory becomes words")]
    fn rig(children: u16, usable: usize) -> Rig {
        let regions: Vec<_> =
            (0..children).map(|_| Region::new("test", REGION_BYTES, Sharing::Given).unwrap()).collect();
        // SAFETY: the regions outlive the words.
        let words = regions
            .iter()
            .map(|region| unsafe { crate::sys::words::MappedWords::new(region) }.of_mailbox().unwrap())
            .collect();
        let watches = (0..children).map(|i| Watch { endpoint: EndpointIndex(i), at: 0, seen: 0 }).collect();
        let here = cpu::current().unwrap();
        cpu::pin(&[usize::from(here)]).unwrap();
        let window = SpinWindow::new(PLAIN, PauseCost::measured());
        let wait = ParentWait { usable, ..ParentWait::new(PLAIN, window, WAKE, children.into(), false) };
        Rig { wait, _regions: regions, words, watches, here }
    }

    impl Rig {
        fn ring(&mut self, child: u16, now: Instant) {
            self.wait.rang(EndpointIndex(child), &self.words[usize::from(child)], now);
        }

        fn next(&mut self, tasks: Duration) -> SpinWindow {
            self.wait.next_window(&self.watches, &self.words, tasks)
        }
    }

    #[test]
    fn a_driver_does_not_spin_for_children_on_its_own_cpu_alone_and_tells_them_where_it_runs() {
        let mut rig = rig(2, 4);
        let plain = rig.wait.window;
        assert_eq!(rig.next(Duration::ZERO), plain, "children that say nothing");
        assert!(rig.words.iter().all(|words| Side::Parent.cpu_hint(words) == Some(rig.here)));
        Side::Child.show_cpu(&rig.words[0], rig.here);
        assert_eq!(rig.next(Duration::ZERO), plain, "one may answer at any moment");
        Side::Child.show_cpu(&rig.words[1], rig.here);
        assert_eq!(rig.next(Duration::ZERO), SpinWindow::NONE);
        rig.wait.woke(Instant::from_nanos(1_000_000_000));
        assert_eq!(rig.next(Duration::ZERO), plain.longer(WAKE, rig.wait.cost), "it was woken, maybe elsewhere");
        assert_eq!(rig.next(Duration::ZERO), SpinWindow::NONE, "once");
        let spins = (0..PROBE).filter(|_| rig.next(Duration::ZERO) != SpinWindow::NONE).count();
        assert_eq!(spins, 1, "so that the kernel may part them");
    }

    #[test]
    fn a_child_alone_that_was_rung_a_moment_ago_is_waited_for_shortly() {
        for (children, window) in [(1, Duration::from_micros(8)), (2, Duration::from_micros(40))] {
            let mut rig = rig(children, 4);
            rig.wait.wake = Duration::from_micros(40);
            let plain = rig.wait.window;
            rig.ring(0, Instant::from_nanos(1_000_000_000));
            assert_eq!(rig.next(Duration::ZERO), plain.longer(Duration::from_micros(40), rig.wait.cost));
            rig.ring(0, Instant::from_nanos(1_000_100_000));
            assert_eq!(rig.next(Duration::ZERO), plain.longer(window, rig.wait.cost), "{children} at work");
        }
    }

    #[test]
    fn the_window_is_smaller_where_more_want_to_run_than_can() {
        let mut rig = rig(3, 3);
        let is_told = |rig: &Rig| extension::is_crowded(&rig.words[0]);
        let small = rig.wait.window.divided(CROWDED);
        for (slept_on, extra) in [(rig.here, Duration::ZERO), (rig.here + 1, WAKE)] {
            Side::Child.show_cpu(&rig.words[1], slept_on);
            rig.ring(1, Instant::from_nanos(1_000_000_000));
            assert_eq!(rig.next(Duration::ZERO), small.longer(extra, rig.wait.cost), "{slept_on}");
            assert_eq!(rig.next(Duration::ZERO), small, "once");
        }
        assert!(is_told(&rig));
        rig.ring(1, Instant::from_nanos(1_000_000_000));
        assert_eq!(rig.next(PLAIN * 2), SpinWindow::NONE, "none for long tasks");
        rig.watches.truncate(2);
        assert_eq!(rig.next(Duration::ZERO), rig.wait.window);
        assert!(!is_told(&rig));
    }

    /// A worker above that spins for a nested one, its driver and its child are three.
    #[test]
    fn a_nested_worker_counts_whoever_waits_for_it() {
        for (is_nested, usable, is_crowded) in [(false, 2, false), (true, 2, true), (true, 3, false)] {
            let mut rig = rig(1, usable);
            rig.wait = ParentWait { usable, ..ParentWait::new(PLAIN, rig.wait.window, WAKE, 1, is_nested) };
            rig.next(Duration::ZERO);
            assert_eq!(extension::is_crowded(&rig.words[0]), is_crowded, "{is_nested} on {usable}");
        }
    }

    #[test]
    fn a_long_spin_window_makes_no_task_wait_longer_for_a_child_than_a_wake_costs() {
        for (plain, counted) in [(PLAIN, PLAIN), (Duration::from_millis(50), LONGEST_WAKE)] {
            let window = SpinWindow::new(plain, PauseCost::measured());
            let wait = ParentWait::new(plain, window, WAKE, 2, false);
            assert_eq!(wait.sub_pool().window, counted);
        }
    }

    /// T-51
    #[test]
    fn the_window_follows_the_time_of_tasks_within_a_bound() {
        let mut rig = rig(1, 2);
        let bound = rig.wait.window.longer(PLAIN * FOLLOW, rig.wait.cost);
        for micros in 0..1_000 {
            let tasks = Duration::from_micros(micros);
            let window = rig.next(tasks);
            assert!(window >= rig.wait.window && window <= bound, "{tasks:?}: {window:?}");
            if (7..48).contains(&micros) {
                assert!(window >= SpinWindow::new(tasks, rig.wait.cost), "{tasks:?}: {window:?}");
            }
        }
    }
}
