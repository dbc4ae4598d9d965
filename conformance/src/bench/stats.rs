//! Percentiles of the samples of one case in one mode.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::slice::Samples;

/// What is reported of a set of samples; times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// How many slices contributed.
    pub slices: u32,
    /// How many samples were kept of them.
    pub samples: u64,
    /// The shortest.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// Nine of ten are not longer.
    pub p90: f64,
    /// 99 of 100 are not longer.
    pub p99: f64,
    /// The same of the slice in the middle: half of the slices have a longer one.
    pub slice_p99: f64,
}

/// Samples of many slices, gathered.
pub(super) struct Gathered {
    /// The 99th percentile of each.
    slices: Vec<f64>,
    tenths: Histogram<u64>,
}

impl Gathered {
    pub(super) fn new() -> Self {
        // Three significant digits of whatever a sample can be.
        let tenths = Histogram::new_with_max(u32::MAX.into(), 3).expect("legal bounds");
        Self { slices: Vec::new(), tenths }
    }

    pub(super) fn add(&mut self, samples: &Samples) {
        self.slices.extend(samples.after(99));
        samples.tenths().iter().for_each(|tenths| self.tenths.saturating_record(u64::from(*tenths)));
    }

    pub(super) fn summary(&self) -> Option<Summary> {
        let at = |quantile| self.tenths.value_at_quantile(quantile) as f64 / 10.0;
        let mut slices = self.slices.clone();
        slices.sort_unstable_by(f64::total_cmp);
        Some(Summary {
            slice_p99: *slices.get(slices.len() / 2)?,
            slices: slices.len() as u32,
            samples: self.tenths.len(),
            min: self.tenths.min() as f64 / 10.0,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
        })
    }
}

impl Summary {
    /// Whether there is enough of it to say anything about its median.
    #[must_use]
    pub const fn is_enough(&self) -> bool {
        self.slices >= 3 && self.samples >= 20
    }

    /// Whether there is enough of it to say anything about its 99th percentile.
    #[must_use]
    pub const fn is_enough_for_p99(&self) -> bool {
        self.slices >= 3 && self.samples >= 500
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_samples() {
        let mut samples = Samples::default();
        (1..=1000).for_each(|n| samples.record(n * 10));
        let mut gathered = Gathered::new();
        gathered.add(&samples);
        let summary = gathered.summary().unwrap();
        assert_eq!((summary.slices, summary.samples), (1, 1000));
        for (found, wanted) in [(summary.p50, 500.0), (summary.p90, 900.0), (summary.p99, 990.0)] {
            assert!((found / wanted - 1.0).abs() < 0.002, "{found} for {wanted}");
        }
    }

    #[test]
    fn a_slow_slice_moves_the_percentile_of_all_and_not_that_of_the_slice_in_the_middle() {
        let mut gathered = Gathered::new();
        for time in [500, 9_000, 510] {
            let mut samples = Samples::default();
            (0..100).for_each(|_| samples.record(time));
            gathered.add(&samples);
        }
        let summary = gathered.summary().unwrap();
        assert!(summary.p99 > 890.0, "{summary:?}");
        assert_eq!((summary.slices, summary.slice_p99), (3, 51.0));
        assert_eq!(Gathered::new().summary(), None);
    }

    #[test]
    fn a_long_series_is_thinned_evenly() {
        let mut samples = Samples::default();
        (0..1_000_000).for_each(|n| samples.record(n));
        assert!((1024..=4096).contains(&samples.tenths().len()));
        let median = samples.median().unwrap() * 10.0;
        assert!((median / 500_000.0 - 1.0).abs() < 0.01, "{median}");
    }
}
