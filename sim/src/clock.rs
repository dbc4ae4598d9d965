//! Where a simulated device takes its time from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use laneway_core::time::Instant;

/// A clock that a device computes its virtual durations with.
pub trait Clock: Send {
    /// The time now.
    fn now(&self) -> Instant;

    /// Returns once [`now`](Self::now) has reached `deadline`.
    fn sleep_until(&self, deadline: Instant);
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineClock {
    origin: std::time::Instant,
}

impl MachineClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: std::time::Instant::now() }
    }
}

impl Default for MachineClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MachineClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, deadline: Instant) {
        loop {
            let left = deadline.since(self.now());
            if left == Duration::ZERO {
                return;
            }
            std::thread::sleep(left);
        }
    }
}

/// A clock that stands still until it is told to move; whoever sleeps on it moves it. Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    nanos: Arc<AtomicU64>,
}

impl VirtualClock {
    /// A clock at its origin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the time on by `by`.
    pub fn advance(&self, by: Duration) {
        self.sleep_until(self.now().saturating_add(by));
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, deadline: Instant) {
        self.nanos.fetch_max(deadline.as_nanos(), Ordering::Relaxed);
    }
}
