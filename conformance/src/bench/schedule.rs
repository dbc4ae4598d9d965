//! Interleaving: all cases take turns in short slices, with a look at the cache mode between any two.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_linux::sys::clock;
use laneway_linux::sys::cpu::CpuBudget;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::Failure;
use super::case::{Case, Place};
use super::floors::Floors;
use super::modes::{Mode, Thresholds};
use super::slice::{Samples, Slice};
use super::stats::{Gathered, Summary};

/// How long floor B is measured between two slices.
const PROBE: Duration = Duration::from_micros(500);

/// Where the main process may run.
pub(super) struct Cpus {
    /// All that are allowed.
    pub(super) all: Vec<usize>,
    /// Its own in pinned cases.
    pub(super) main: usize,
    /// That of the other side.
    pub(super) other: usize,
}

impl Cpus {
    /// The first and the last that are allowed.
    pub(super) fn allowed() -> Self {
        let all = CpuBudget::read().cpus;
        let (main, other) = (all.first().copied().unwrap_or(0), all.last().copied().unwrap_or(0));
        Self { all, main, other }
    }
}

/// Keeps this thread on these CPUs. Unlike the pinning of children it can be taken back.
pub(super) fn stay_on(cpus: &[usize]) -> Result<(), Failure> {
    let mut set = CpuSet::new();
    cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// How long everything takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// All slices together.
    pub(super) total: Duration,
    /// One slice.
    pub(super) slice: Duration,
}

/// One slice of one case, between two looks at floor B.
struct Record {
    case: usize,
    before: f64,
    after: f64,
    samples: Samples,
}

/// Everything that was measured.
pub(super) struct Measured {
    /// Floor B between the slices, in nanoseconds.
    pub(super) probes: Vec<f64>,
    pub(super) thresholds: Thresholds,
    /// Slices during which the mode changed.
    pub(super) mixed: usize,
    /// How many times each case had its turn.
    pub(super) rounds: usize,
    /// By case and mode.
    pub(super) summaries: Vec<BTreeMap<Mode, Summary>>,
}

/// Runs all cases in turns until the time is over, each at least once.
pub(super) fn interleave(
    cases: &mut [Case<'_>],
    floors: &Floors,
    cpus: &Cpus,
    pace: Pace,
    clock_cost: Duration,
) -> Result<Measured, Failure> {
    let probe = || -> Result<f64, Failure> {
        stay_on(&[cpus.main])?;
        let mut slice = Slice::new(PROBE, clock_cost);
        floors.exchange.borrow_mut().measure(&mut slice)?;
        Ok(slice.into_samples().median().unwrap_or_default())
    };
    let end = clock::now().saturating_add(pace.total);
    let mut records = Vec::new();
    let mut probes = vec![probe()?];
    let mut rounds = 0;
    while rounds == 0 || clock::now() < end {
        for (index, case) in cases.iter_mut().enumerate() {
            if case.place == Place::Free {
                stay_on(&cpus.all)?;
            }
            let mut slice = Slice::new(pace.slice, clock_cost);
            (case.measure)(&mut slice).map_err(|error| format!("{}: {error}", case.id))?;
            let (before, after) = (probes[probes.len() - 1], probe()?);
            probes.push(after);
            records.push(Record { case: index, before, after, samples: slice.into_samples() });
        }
        rounds += 1;
    }
    stay_on(&cpus.all)?;
    Ok(gather(cases.len(), probes, &records, rounds))
}

fn gather(cases: usize, probes: Vec<f64>, records: &[Record], rounds: usize) -> Measured {
    let thresholds = Thresholds::of(probes.iter().copied());
    let mut mixed = 0;
    let mut gathered: Vec<BTreeMap<Mode, Gathered>> = (0..cases).map(|_| BTreeMap::new()).collect();
    for record in records {
        match thresholds.of_slice(record.before, record.after) {
            Some(mode) => gathered[record.case].entry(mode).or_insert_with(Gathered::new).add(&record.samples),
            None => mixed += 1,
        }
    }
    let summaries = gathered
        .into_iter()
        .map(|modes| modes.into_iter().filter_map(|(mode, all)| Some((mode, all.summary()?))).collect())
        .collect();
    Measured { probes, thresholds, mixed, rounds, summaries }
}
