//! Latencies, counted in buckets that grow with what they hold.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets for each doubling: a bound is at most an eighth above what it stands for.
const LINEAR: usize = 8;

/// Enough for every number of nanoseconds.
const BUCKETS: usize = 62 * LINEAR;

/// Which bucket a number of nanoseconds is counted in.
fn bucket(nanos: u64) -> usize {
    if nanos < LINEAR as u64 {
        return nanos as usize;
    }
    let octave = nanos.ilog2() as usize;
    (octave - 2) * LINEAR + ((nanos >> (octave - 3)) as usize & (LINEAR - 1))
}

/// The least number of nanoseconds above a bucket; `None` above the last.
fn bound(bucket: usize) -> Option<u64> {
    let next = bucket + 1;
    if next < LINEAR {
        return Some(next as u64);
    }
    if next >= BUCKETS {
        return None;
    }
    Some(((LINEAR + next % LINEAR) as u64) << (next / LINEAR - 1))
}

/// A histogram that one thread at a time adds to and any reads.
#[derive(Debug)]
pub(crate) struct Recording {
    buckets: Box<[AtomicU64; BUCKETS]>,
    nanos: AtomicU64,
}

impl Recording {
    pub(crate) fn new() -> Self {
        Self { buckets: Box::new([const { AtomicU64::new(0) }; BUCKETS]), nanos: AtomicU64::new(0) }
    }

    /// Counts a duration. The caller holds the lock that makes it the only writer.
    #[inline]
    pub(crate) fn add(&self, nanos: u64) {
        super::counters::grow(&self.buckets[bucket(nanos)], 1);
        super::counters::grow(&self.nanos, nanos);
    }

    pub(crate) fn snapshot(&self) -> Histogram {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        Histogram { counts, nanos: self.nanos.load(Ordering::Relaxed) }
    }
}

/// A distribution of durations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: Box<[u64]>,
    nanos: u64,
}

impl Histogram {
    /// How many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    /// Their mean; `None` of nothing.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        self.nanos.checked_div(self.count()).map(Duration::from_nanos)
    }

    /// A duration that the part `share` (0 to 1) of all does not exceed, at most an eighth too long; `None` of nothing.
    ///
    /// ```
    /// # use laneway_linux::Worker;
    /// # let worker = Worker::builder().build()?;
    /// let p99 = worker.metrics().dispatch_to_completion.quantile(0.99);
    /// assert_eq!(p99, None); // nothing has run yet
    /// # Ok::<(), laneway_linux::Error>(())
    /// ```
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let found = self.counts.iter().position(|count| {
            below += count;
            below >= wanted
        })?;
        Some(Duration::from_nanos(bound(found).unwrap_or(u64::MAX)))
    }

    /// How many were shorter than `limit`, give or take what lies in its bucket.
    #[must_use]
    pub fn below(&self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.counts[..bucket(limit)].iter().sum()
    }

    /// The buckets that hold something: the bound that their durations are shorter than, and how many there are.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(at, count)| (Duration::from_nanos(bound(at).unwrap_or(u64::MAX)), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_lies_below_the_bound_of_its_bucket_and_not_below_the_one_before() {
        let edges = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, (1 << bit) + 1, (1_u64 << bit) / 3 * 2]);
        for nanos in edges.chain(0..5000).chain([u64::MAX]) {
            let at = bucket(nanos);
            assert!(at < BUCKETS);
            assert!(bound(at).is_none_or(|bound| nanos < bound), "{nanos} in {at}");
            assert!(at == 0 || bound(at - 1).is_some_and(|bound| bound <= nanos), "{nanos} in {at}");
            assert!(
                bound(at).is_none_or(|bound| bound as f64 <= (nanos + 1) as f64 * 1.125),
                "{nanos}: {:?}",
                bound(at)
            );
        }
    }

    #[test]
    fn quantiles_are_an_eighth_too_long_at_most() {
        let recording = Recording::new();
        (1..=1000).for_each(|micros| recording.add(micros * 1000));
        let found = recording.snapshot();
        assert_eq!((found.count(), found.sum()), (1000, Duration::from_micros(500_500)));
        assert_eq!(found.mean(), Some(Duration::from_nanos(500_500)));
        for (share, exact) in [(0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000), (0.0, 1000)] {
            let nanos = found.quantile(share).unwrap().as_nanos();
            assert!((exact..=exact * 9 / 8).contains(&nanos), "{share}: {nanos}");
        }
        assert_eq!(found.buckets().map(|(_, count)| count).sum::<u64>(), 1000);
        assert!((450..=501).contains(&found.below(Duration::from_micros(500))));
        assert_eq!(Recording::new().snapshot().quantile(0.5), None);
    }
}
