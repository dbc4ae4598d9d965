//! How the background thread notices that a callback has fallen silent: it comes when a timer fires, and compares counts.

use std::time::Duration;

use laneway_core::time::Instant;

/// From a submit to the first look at whether the callback has fallen silent.
const SILENCE: Duration = Duration::from_micros(200);

/// The same for one that has been submitting for a while: looking more often would take CPU time from its tasks.
const LONGEST_PERIOD: Duration = Duration::from_micros(3_200);

/// Guarded by the worker's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SilenceWatch {
    /// Submits of callbacks that owned progress, ever.
    submits: u32,
    /// The count at the last look.
    seen: Option<u32>,
    looked_at: Instant,
    /// From one look to the next: twice as long whenever there was no silence.
    period: Duration,
    /// Whether the timer is armed, or has fired and nobody has looked yet. It is not armed once more before that: a timer costs
    /// more than a task, and a callback may take and leave the right with each one.
    armed: bool,
}

impl SilenceWatch {
    pub(super) const fn new() -> Self {
        Self { submits: 0, seen: None, looked_at: Instant::from_nanos(0), period: SILENCE, armed: false }
    }

    /// A callback has submitted something.
    pub(super) const fn stirred(&mut self) {
        self.submits = self.submits.wrapping_add(1);
    }

    /// Arms the timer, unless it is armed; after what time it shall fire.
    pub(super) fn arm(&mut self, now: Instant) -> Option<Duration> {
        if std::mem::replace(&mut self.armed, true) {
            return None;
        }
        if now.since(self.looked_at) > LONGEST_PERIOD * 2 {
            self.period = SILENCE;
        }
        Some(self.period)
    }

    /// Whether a look will come without being asked for.
    pub(super) const fn is_armed(&self) -> bool {
        self.armed
    }

    /// The timer has fired: whether there was silence for a whole period. Only a second look at the same count has seen that.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        self.armed = false;
        self.looked_at = now;
        let silent = self.seen.replace(self.submits) == Some(self.submits);
        self.period = if silent { SILENCE } else { (self.period * 2).min(LONGEST_PERIOD) };
        silent
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn silence_is_a_whole_period_without_a_submit() {
        let mut watch = SilenceWatch::new();
        watch.stirred();
        assert_eq!(watch.arm(at(0)), Some(SILENCE));
        watch.stirred();
        assert_eq!(watch.arm(at(1)), None, "one timer at a time");
        assert!(!watch.look(at(200)), "the last submit may have been just before");
        assert!(watch.arm(at(200)).is_some());
        assert!(watch.look(at(600)));
    }

    #[test]
    fn looks_at_a_callback_that_keeps_submitting_become_rare_and_a_pause_forgets_that() {
        let mut watch = SilenceWatch::new();
        let mut now = 0;
        let periods: Vec<_> = (0..7)
            .map(|_| {
                watch.stirred();
                let period = watch.arm(at(now)).unwrap();
                now += period.as_micros() as u64;
                assert!(!watch.look(at(now)));
                period.as_micros()
            })
            .collect();
        assert_eq!(periods, [200, 400, 800, 1_600, 3_200, 3_200, 3_200]);
        watch.stirred();
        assert_eq!(watch.arm(at(now + 10_000)), Some(SILENCE));
        watch.look(at(now + 10_200));
        assert!(watch.arm(at(now + 10_200)).is_some_and(|period| period > SILENCE));
        assert!(watch.look(at(now + 11_000)), "silent");
        assert_eq!(watch.arm(at(now + 11_000)), Some(SILENCE));
    }
}
