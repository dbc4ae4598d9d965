//! One slice of one case, and the samples it leaves.

use std::time::Duration;

use laneway_core::time::Instant;
use laneway_linux::sys::clock;

use super::Failure;

/// Samples that one slice keeps at most; of a longer series every second one, every fourth and so on.
pub(super) const KEPT: usize = 4096;

/// What reading the clock twice takes at least: subtracted from every sample.
pub(super) fn clock_cost() -> Duration {
    let once = || {
        let start = clock::now();
        clock::now().since(start)
    };
    (0..10_000).map(|_| once()).min().unwrap_or_default()
}

/// A running slice.
pub(super) struct Slice {
    length: Duration,
    clock_cost: Duration,
    samples: Samples,
}

/// Times in tenths of a nanosecond, spread evenly over the slice.
#[derive(Default)]
pub(super) struct Samples {
    kept: Vec<u32>,
    /// One in so many is kept, as a power of two.
    stride: u32,
    skipped: u32,
}

impl Samples {
    pub(super) fn record(&mut self, tenths: u64) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        if self.kept.len() == KEPT {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride = self.stride.max(1) * 2;
        }
        self.kept.push(u32::try_from(tenths).unwrap_or(u32::MAX));
        self.skipped = self.stride.saturating_sub(1);
    }

    pub(super) fn tenths(&self) -> &[u32] {
        &self.kept
    }

    /// The middle one in nanoseconds; none of an empty slice.
    pub(super) fn median(&self) -> Option<f64> {
        self.after(50)
    }

    /// The one that so many of a hundred come before, in nanoseconds; none of an empty slice.
    pub(super) fn after(&self, percent: usize) -> Option<f64> {
        let mut sorted = self.kept.clone();
        let at = sorted.len() * percent / 100;
        (at < sorted.len()).then(|| f64::from(*sorted.select_nth_unstable(at).1) / 10.0)
    }
}

impl Slice {
    pub(super) fn new(length: Duration, clock_cost: Duration) -> Self {
        Self { length, clock_cost, samples: Samples::default() }
    }

    /// How long the slice shall last.
    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// When a slice that begins now is over.
    pub(super) fn deadline(&self) -> Instant {
        clock::now().saturating_add(self.length)
    }

    /// Does `operation` until the slice is over, at least once; a sample is its time divided by `tasks`. What comes first is
    /// not counted: the sleepers wake.
    pub(super) fn repeat(
        &mut self,
        tasks: u64,
        mut operation: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let deadline = self.deadline();
        let warm = clock::now().saturating_add(self.length / 10);
        while clock::now() < warm {
            operation()?;
        }
        self.until(deadline, tasks, || {}, operation)
    }

    /// As [`Slice::repeat`], with something uncounted before each operation, and nothing to warm.
    pub(super) fn repeat_after(
        &mut self,
        before: impl FnMut(),
        operation: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.until(self.deadline(), 1, before, operation)
    }

    fn until(
        &mut self,
        deadline: Instant,
        tasks: u64,
        mut before: impl FnMut(),
        mut operation: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            before();
            let start = clock::now();
            operation()?;
            let end = clock::now();
            self.record(end.since(start), tasks);
            if end >= deadline {
                return Ok(());
            }
        }
    }

    /// Records one measured time of `tasks` tasks.
    pub(super) fn record(&mut self, time: Duration, tasks: u64) {
        let nanos = time.saturating_sub(self.clock_cost).as_nanos() as u64;
        self.samples.record(nanos * 10 / tasks);
    }

    pub(super) fn into_samples(self) -> Samples {
        self.samples
    }

    /// Takes over what another process measured.
    #[cfg(feature = "peers")]
    pub(super) fn adopt(&mut self, tenths: impl IntoIterator<Item = u64>) {
        tenths.into_iter().for_each(|tenth| self.samples.record(tenth));
    }
}
