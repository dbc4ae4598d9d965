//! The cache modes of a machine whose virtual CPUs move: told apart by floor B, measured right before and after each slice.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How far two CPUs are from each other at the moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A bare exchange takes about as long as two threads of one core need.
    VeryFast,
    /// The two CPUs share a cache.
    Fast,
    /// They do not.
    Slow,
}

impl Mode {
    /// All of them, the fastest first.
    pub const ALL: [Self; 3] = [Self::VeryFast, Self::Fast, Self::Slow];

    /// As it stands in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::VeryFast => "very fast",
            Self::Fast => "fast",
            Self::Slow => "slow",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Floor B in nanoseconds at which one mode ends and the next begins.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Thresholds {
    /// Below: very fast.
    pub very_fast: f64,
    /// Below, and not very fast: fast. From here on: slow.
    pub fast: f64,
}

/// Where the borders are looked for, and how far around.
const ANCHORS: [f64; 2] = [165.0, 480.0];
const REACH: f64 = 1.35;

impl Thresholds {
    /// The borders that cut these measurements where they are thinnest, near where this class of machine has its borders.
    #[must_use]
    pub fn of(probes: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<_> = probes.into_iter().filter(|probe| *probe > 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let [very_fast, fast] = ANCHORS.map(|anchor| widest_gap(&sorted, anchor / REACH, anchor * REACH));
        Self { very_fast, fast }
    }

    /// The mode of one measurement.
    #[must_use]
    pub fn mode(&self, probe: f64) -> Mode {
        if probe < self.very_fast {
            Mode::VeryFast
        } else if probe < self.fast {
            Mode::Fast
        } else {
            Mode::Slow
        }
    }

    /// The mode of a slice; none if it changed meanwhile.
    #[must_use]
    pub fn of_slice(&self, before: f64, after: f64) -> Option<Mode> {
        let mode = self.mode(before);
        (mode == self.mode(after)).then_some(mode)
    }
}

/// The middle, in ratios, of the widest gap between `low` and `high`.
fn widest_gap(sorted: &[f64], low: f64, high: f64) -> f64 {
    let inside = sorted.iter().copied().filter(|probe| low < *probe && *probe < high);
    let mut edges = vec![low];
    edges.extend(inside);
    edges.push(high);
    let gaps = edges.windows(2).map(|pair| (pair[1] / pair[0], (pair[0] * pair[1]).sqrt()));
    gaps.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(low, |(_, middle)| middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_lie_in_the_gaps_of_what_was_measured() {
        let probes = [110.0, 120.0, 150.0, 210.0, 250.0, 400.0, 420.0, 820.0, 900.0];
        let thresholds = Thresholds::of(probes);
        assert!((150.0..210.0).contains(&thresholds.very_fast), "{thresholds:?}");
        assert!((420.0..648.1).contains(&thresholds.fast), "{thresholds:?}");
        let modes = probes.map(|probe| thresholds.mode(probe));
        assert_eq!(modes[2], Mode::VeryFast);
        assert_eq!(modes[3..7], [Mode::Fast; 4]);
        assert_eq!(modes[7..], [Mode::Slow; 2]);
    }

    #[test]
    fn a_slice_during_which_the_mode_changed_belongs_to_none() {
        let thresholds = Thresholds::of([]);
        assert_eq!(thresholds.of_slice(200.0, 210.0), Some(Mode::Fast));
        assert_eq!(thresholds.of_slice(200.0, 900.0), None);
    }
}
