//! The end of a set of children: they were asked to leave, have one budget of time between them, and are then killed
//! (P-6, P-12).

use std::os::fd::BorrowedFd;
use std::time::Duration;

use laneway_core::time::Instant;
use rustix::event::{PollFd, PollFlags, poll};

use super::clock;

/// A kernel that tells of no death is asked this often (L-25).
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A child that is to leave.
pub trait Leaving {
    /// Whether it and all that it ever started are gone. Reaps what can be reaped; never blocks.
    fn is_gone(&mut self) -> bool;

    /// Kills it, and its group if it heads one.
    fn kill(&mut self);

    /// What becomes readable when it may be gone; `None` if it has to be asked again and again.
    fn watch(&self) -> Option<BorrowedFd<'_>>;
}

/// How long the whole set may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// To leave by itself: one time for all, so that a stuck child does not use up the others' (T-36).
    pub leave: Duration,
    /// To be gone after it was killed.
    pub die: Duration,
}

/// Where a set of children stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Some are still there: ask again when one may be gone, at this time at the latest.
    Leaving {
        /// The end of the present step.
        until: Instant,
    },
    /// All are gone.
    Gone,
    /// Some are there although they were killed (P-25): their memory must be kept, and they are to be reported.
    Stuck,
}

/// The steps of a farewell. It reads no clock and waits for nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Farewell {
    step: Step,
    die: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Asked { until: Instant },
    Killed { until: Instant },
}

impl Farewell {
    /// Begins when the children were asked to leave.
    #[must_use]
    pub const fn new(now: Instant, budget: Budget) -> Self {
        Self { step: Step::Asked { until: now.saturating_add(budget.leave) }, die: budget.die }
    }

    /// Looks at every child; kills those that are left when their time is over.
    pub fn step<L: Leaving>(&mut self, children: &mut [L], now: Instant) -> Standing {
        // Every one is looked at, since looking is what reaps.
        let left = children.iter_mut().filter_map(|child| (!child.is_gone()).then_some(())).count();
        if left == 0 {
            return Standing::Gone;
        }
        match self.step {
            Step::Asked { until } if now >= until => {
                for child in children.iter_mut() {
                    if !child.is_gone() {
                        child.kill();
                    }
                }
                let until = now.saturating_add(self.die);
                self.step = Step::Killed { until };
                Standing::Leaving { until }
            }
            Step::Killed { until } if now >= until => Standing::Stuck,
            Step::Asked { until } | Step::Killed { until } => Standing::Leaving { until },
        }
    }

    /// Takes the steps and sleeps between them. `remind` is called before every sleep, at least every 10 ms: a request to
    /// stop is repeated until it is followed (L-30).
    pub fn run<L: Leaving>(mut self, children: &mut [L], mut remind: impl FnMut(&mut [L])) -> Standing {
        loop {
            let now = clock::now();
            let until = match self.step(children, now) {
                Standing::Leaving { until } => until,
                end => return end,
            };
            remind(children);
            let watched = children.iter().filter_map(Leaving::watch);
            let mut watched: Vec<_> = watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            let time = until.since(now).min(LOOK_EVERY);
            // Interrupted or not, the next step looks at every child.
            let _ = poll(&mut watched, Some(&clock::timespec(time)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    struct Fake {
        gone: bool,
        mortal: bool,
        kills: u32,
    }

    impl Fake {
        fn new(mortal: bool) -> Self {
            Self { gone: false, mortal, kills: 0 }
        }
    }

    impl Leaving for Fake {
        fn is_gone(&mut self) -> bool {
            self.gone
        }
        fn kill(&mut self) {
            self.kills += 1;
            self.gone |= self.mortal;
        }
        fn watch(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    /// P-12
    #[test]
    fn children_that_leave_in_time_are_not_killed() {
        let mut children = [Fake::new(true), Fake::new(true)];
        let mut farewell = Farewell::new(at(0), Budget { leave: 5 * SECOND, die: 2 * SECOND });
        assert_eq!(farewell.step(&mut children, at(1)), Standing::Leaving { until: at(5) });
        children[0].gone = true;
        assert_eq!(farewell.step(&mut children, at(4)), Standing::Leaving { until: at(5) });
        children[1].gone = true;
        assert_eq!(farewell.step(&mut children, at(5)), Standing::Gone);
        assert_eq!((children[0].kills, children[1].kills), (0, 0));
    }

    /// P-12, T-36
    #[test]
    fn one_that_stays_is_killed_once_when_the_shared_time_is_over() {
        let mut children = [Fake::new(true), Fake::new(true)];
        children[1].gone = true;
        let mut farewell = Farewell::new(at(0), Budget { leave: 5 * SECOND, die: 2 * SECOND });
        assert_eq!(farewell.step(&mut children, at(5)), Standing::Leaving { until: at(7) });
        assert_eq!(farewell.step(&mut children, at(5)), Standing::Gone);
        assert_eq!((children[0].kills, children[1].kills), (1, 0));
    }

    /// P-25
    #[test]
    fn one_that_cannot_be_killed_does_not_hold_up_the_end_for_ever() {
        let mut children = [Fake::new(false)];
        let mut farewell = Farewell::new(at(0), Budget { leave: Duration::ZERO, die: 2 * SECOND });
        assert_eq!(farewell.step(&mut children, at(0)), Standing::Leaving { until: at(2) });
        assert_eq!(farewell.step(&mut children, at(1)), Standing::Leaving { until: at(2) });
        assert_eq!(farewell.step(&mut children, at(2)), Standing::Stuck);
        assert_eq!(children[0].kills, 1);
    }

    /// P-25
    #[test]
    fn a_run_ends_even_where_no_descriptor_tells_of_a_death() {
        let mut children = [Fake::new(false)];
        let budget = Budget { leave: Duration::from_millis(20), die: Duration::from_millis(20) };
        let mut reminders = 0;
        let farewell = Farewell::new(clock::now(), budget);
        assert_eq!(farewell.run(&mut children, |_| reminders += 1), Standing::Stuck);
        assert!(reminders >= 2, "{reminders}");
    }
}
