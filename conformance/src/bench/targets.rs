//! What the measurements are held against.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::cases::BUSY;
use super::modes::Mode;
use super::report::Report;
use super::stats::Summary;

/// Whether a target was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Reached.
    Met,
    /// Not reached.
    Missed,
    /// Too little was measured in this mode to say.
    NotEnoughSamples,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::NotEnoughSamples => "not enough samples",
        })
    }
}

/// One target in one mode.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Target {
    /// What is compared with what.
    pub what: String,
    /// The mode; none for what does not depend on it.
    pub mode: Option<Mode>,
    /// What was measured.
    pub value: Option<f64>,
    /// What it must not exceed, or reach at least.
    pub limit: f64,
    /// Whether the limit is the least that is wanted; otherwise it is the most.
    pub at_least: bool,
    /// The unit of both.
    pub unit: String,
    /// How it came out.
    pub verdict: Verdict,
}

/// One mode of a report, as targets look at it.
struct View<'a> {
    report: &'a Report,
    mode: Mode,
    targets: Vec<Target>,
}

impl View<'_> {
    fn p50(&self, case: &str) -> Option<f64> {
        self.report.summary(case, self.mode).map(|summary| summary.p50)
    }

    fn enough_for_p99(&self, case: &str) -> Option<&Summary> {
        self.report.summary(case, self.mode).filter(|summary| summary.is_enough_for_p99())
    }

    fn p99(&self, case: &str) -> Option<f64> {
        self.enough_for_p99(case).map(|summary| summary.p99)
    }

    /// The 99th percentile of the slice in the middle.
    fn slice_p99(&self, case: &str) -> Option<f64> {
        self.enough_for_p99(case).map(|summary| summary.slice_p99)
    }

    fn at_most(&mut self, what: &str, value: Option<f64>, limit: f64, unit: &str) {
        self.targets.push(judge(what, Some(self.mode), value, limit, false, unit));
    }

    fn at_least(&mut self, what: &str, value: Option<f64>, limit: f64, unit: &str) {
        self.targets.push(judge(what, Some(self.mode), value, limit, true, unit));
    }
}

fn judge(what: &str, mode: Option<Mode>, value: Option<f64>, limit: f64, at_least: bool, unit: &str) -> Target {
    let verdict = match value {
        None => Verdict::NotEnoughSamples,
        Some(value) if (value >= limit) == at_least || value == limit => Verdict::Met,
        Some(_) => Verdict::Missed,
    };
    Target { what: what.to_owned(), mode, value, limit, at_least, unit: unit.to_owned(), verdict }
}

fn ratio(value: Option<f64>, floor: Option<f64>) -> Option<f64> {
    Some(value? / floor?)
}

/// All targets, by mode, for the modes that were seen.
pub(super) fn of(report: &Report) -> Vec<Target> {
    let mut all: Vec<_> = report.modes_seen().into_iter().flat_map(|mode| in_mode(report, mode)).collect();
    all.extend(of_loads(report));
    all
}

fn in_mode(report: &Report, mode: Mode) -> Vec<Target> {
    let mut view = View { report, mode, targets: Vec::new() };
    let (run, independent, chain) = (view.p50("run_1"), view.p50("independent"), view.p50("chain"));
    let floor = view.p50("floor_b");
    let iox = view.p50("iox_request");
    view.at_most("run of 1 task / floor B", ratio(run, floor), 3.5, "×");
    let times = if mode == Mode::Slow { 2.0 } else { 3.0 };
    view.at_most("independent task / floor B", ratio(independent, floor), times, "×");
    let over = chain.zip(floor).map(|(chain, floor)| chain - 1.5 * floor);
    view.at_most("task of a chain − 1.5 floor B", over, 400.0, "ns");
    if report.has_peers() {
        view.at_most("run of 1 task / iceoryx2", ratio(run, iox), 0.4, "×");
        view.at_most("p99 of it / p50 of iceoryx2", ratio(view.p99("run_1"), iox), 0.6, "×");
        view.at_most("the same of the slice in the middle", ratio(view.slice_p99("run_1"), iox), 0.6, "×");
        view.at_most("independent task / iceoryx2", ratio(independent, iox), 0.35, "×");
        view.at_most("task of a chain / iceoryx2", ratio(chain, iox), 0.5, "×");
    }
    let tensors = if mode == Mode::Slow { 800.0 } else { 500.0 };
    for (what, without, with) in [
        ("4 tensors more, run of 1 task", "run_1", "run_1_4t"),
        ("4 tensors more, independent task", "independent", "independent_4t"),
        ("4 tensors more, task of a chain", "chain", "chain_4t"),
    ] {
        let added = view.p50(with).zip(view.p50(without)).map(|(with, without)| with - without);
        view.at_most(what, added, tensors, "ns");
    }
    view.at_most("L4, L3, SUB / floor C", ratio(view.p50("nested"), view.p50("floor_c")), 1.5, "×");
    view.at_most("p99, 8 more children idle / alone", ratio(view.p99("one_of_9"), view.p99("run_1")), 1.5, "×");
    view.at_most("p99, 8 children in turn", view.p99("round_robin").map(|nanos| nanos / 1e3), 60.0, "µs");
    let bare = ratio(view.p99("round_robin"), view.p99("bare_round_robin"));
    view.at_most("the same / processes and bells alone", bare, 1.2, "×");
    view.at_most("p99, 8 answer while one computes", view.p99("one_computes").map(|nanos| nanos / 1e3), 60.0, "µs");
    let bare = ratio(view.p99("one_computes"), view.p99("bare_one_computes"));
    view.at_most("the same / processes and bells alone", bare, 1.2, "×");
    let best = ["pool_1", "pool_2", "pool_4"].into_iter().filter_map(|pool| view.p50(pool)).reduce(f64::min);
    view.at_least("no-op tasks/s, 8 children / best of 1, 2, 4", ratio(best, view.p50("pool_8")), 0.7, "×");
    let cpus = report.machine.cpus.min(2) as f64;
    let share = view.p50("busy_pool_8").map(|nanos| BUSY.as_nanos() as f64 / nanos / cpus);
    view.at_least("100 µs tasks, 8 children, share of two CPUs", share, 0.85, "×");
    let bare = ratio(view.p50("busy_pool_8"), view.p50("bare_pool_8"));
    view.at_most("the same / processes and bells alone", bare, 1.02, "×");
    let wake = view.p50("run_1_idle").zip(view.p50("kernel_wake")).map(|(run, wake)| run - 1.2 * wake);
    view.at_most("first run after idleness − 1.2 K", wake, 2_000.0, "ns");
    view.targets
}

fn of_loads(report: &Report) -> Vec<Target> {
    let load = |id: &str| report.loads.iter().find(|load| load.id == id);
    let sum = |id: &str, value: fn(&super::cpu::Usage) -> f64| {
        load(id).map(|load| load.processes.iter().map(value).sum::<f64>())
    };
    let parent = |id: &str| load(id).and_then(|load| load.processes.first()).map(|parent| parent.cpu * 100.0);
    vec![
        judge(
            "idle trees, context switches",
            None,
            sum("idle", |u| (u.voluntary + u.involuntary) as f64),
            0.0,
            false,
            "",
        ),
        judge("idle trees, CPU", None, sum("idle", |usage| usage.cpu * 100.0), 0.0, false, "%"),
        judge("one long task, CPU of the parent", None, parent("long_task"), 0.2, false, "%"),
        judge("the same, nobody waits", None, parent("long_task_unwatched"), 0.2, false, "%"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_itself_is_met_from_both_sides() {
        for (value, at_least, verdict) in [
            (0.0, false, Verdict::Met),
            (1.0, false, Verdict::Met),
            (1.1, false, Verdict::Missed),
            (1.0, true, Verdict::Met),
            (0.9, true, Verdict::Missed),
            (1.1, true, Verdict::Met),
        ] {
            assert_eq!(judge("", None, Some(value), 1.0, at_least, "").verdict, verdict, "{value} {at_least}");
        }
        assert_eq!(judge("", None, None, 1.0, true, "").verdict, Verdict::NotEnoughSamples);
    }
}
