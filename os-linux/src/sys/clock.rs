//! The clock.

use std::time::Duration;

use laneway_core::time::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Now, in nanoseconds of CLOCK_MONOTONIC: the same clock in every process of the machine, and no system call.
#[inline]
#[must_use]
pub fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    // The clock starts near zero at boot and is never negative.
    Instant::from_nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
}

/// The CPU time that the calling thread has had. A system call.
#[must_use]
pub fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// `duration` as the kernel takes it; what does not fit is as good as for ever.
pub(super) fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }
}
