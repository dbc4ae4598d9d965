//! What a run of the benchmark says, for machines; [`super::tables`] says it to people.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cpu::Load;
use super::modes::{Mode, Thresholds};
use super::stats::Summary;
use super::targets::Target;

/// The machine that it ran on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// As the kernel calls the CPU.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Version of the kernel.
    pub kernel: String,
    /// Release or debug build.
    pub profile: String,
    /// Processes that could run at the end of the run, as an average over a minute, this benchmark's included.
    pub load_average: f64,
}

/// One case.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CaseReport {
    /// What targets name it by.
    pub id: String,
    /// What it is.
    pub title: String,
    /// Whether both sides were pinned to a CPU each.
    pub pinned: bool,
    /// Nanoseconds per task or exchange, by mode.
    pub modes: BTreeMap<Mode, Summary>,
}

/// Everything that a run found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// How often each case had its turn.
    pub rounds: usize,
    /// Milliseconds of a turn.
    pub slice_ms: f64,
    /// Nanoseconds of reading the clock, which were subtracted from each sample.
    pub clock_ns: f64,
    /// Floor B between the slices, in nanoseconds: deciles from the least to the most.
    pub probe_deciles: Vec<f64>,
    /// Where the modes end.
    pub thresholds: Thresholds,
    /// Slices that belong to no mode because it changed meanwhile.
    pub mixed_slices: usize,
    /// The cases.
    pub cases: Vec<CaseReport>,
    /// CPU time of processes.
    pub loads: Vec<Load>,
    /// What the above is held against.
    pub targets: Vec<Target>,
}

impl Report {
    /// What is known of a case in a mode, if that is enough to say anything.
    #[must_use]
    pub fn summary(&self, case: &str, mode: Mode) -> Option<&Summary> {
        let case = self.cases.iter().find(|found| found.id == case)?;
        case.modes.get(&mode).filter(|summary| summary.is_enough())
    }

    /// Modes in which anything was measured.
    #[must_use]
    pub fn modes_seen(&self) -> Vec<Mode> {
        Mode::ALL.into_iter().filter(|mode| self.cases.iter().any(|case| case.modes.contains_key(mode))).collect()
    }

    /// Whether other people's IPC was measured.
    #[must_use]
    pub fn has_peers(&self) -> bool {
        self.cases.iter().any(|case| case.id == "iox_request")
    }
}

/// The least, nine values between, and the most.
pub(super) fn deciles(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    (0..=10).filter_map(|tenth| sorted.get(last * tenth / 10).copied()).collect()
}
