//! The benchmark: the floors of the machine, laneway and, for scale, other people's IPC, interleaved in one run.
//!
//! Machines like the ones that this is developed on flip between a fast and a slow cache mode within seconds, and other
//! tenants come and go. Absolute numbers of different runs therefore mean little: every case takes its turn in slices of at
//! most 100 ms, the mode is told by floor B right before and after each, and ratios are formed within one mode of one run.
//!
//! The whole cast is forked before anything is measured and sleeps but in its own slices; an idle tree costs nothing, which
//! is itself one of the things that are measured.

mod bare;
mod case;
mod cases;
mod cpu;
mod floors;
mod modes;
mod options;
mod partner;
#[cfg(feature = "peers")]
mod peers;
mod picture;
mod report;
mod schedule;
mod slice;
mod stats;
mod tables;
mod targets;
mod trees;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

pub use cpu::{Load, Usage};
pub use modes::{Mode, Thresholds};
pub use report::{CaseReport, Machine, Report};
pub use stats::Summary;
pub use targets::{Target, Verdict};

use cases::Stage;
use floors::Floors;
use options::{Options, USAGE};
use schedule::Cpus;
use trees::Trees;

/// What makes a run of the benchmark end early.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The command, with what stands behind its name on the command line.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(sentence) => {
            eprintln!("laneway-conformance bench: {sentence}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let report = match &options.from {
        Some(file) => read(file),
        None => run(&options),
    };
    let shown = report.and_then(|report| {
        if let Some(file) = &options.svg {
            fs::write(file, picture::svg(&report)?)?;
        }
        if options.json { Ok(serde_json::to_string_pretty(&report)?) } else { Ok(report.to_string()) }
    });
    match shown {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("laneway-conformance bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A report that was made earlier, held against the targets of today.
fn read(file: &Path) -> Result<Report, Failure> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut report: Report = serde_json::from_str(&text)?;
    report.targets = targets::of(&report);
    Ok(report)
}

fn run(options: &Options) -> Result<Report, Failure> {
    let cpus = Cpus::allowed();
    let stage = Stage {
        floors: Floors::start(cpus.other)?,
        #[cfg(feature = "peers")]
        peers: peers::Peers::start([cpus.main, cpus.other])?,
        trees: Trees::start(cpus.other)?,
    };
    let clock_cost = slice::clock_cost();
    let mut cases = cases::all(&stage);
    if !options.filters.is_empty() {
        let ids: Vec<_> = cases.iter().map(|case| case.id.clone()).collect();
        let fits = |id: &str, filter: &String| if ids.contains(filter) { id == filter } else { id.contains(filter) };
        cases
            .retain(|case| case.id.starts_with("floor") || options.filters.iter().any(|filter| fits(&case.id, filter)));
    }
    let measured = schedule::interleave(&mut cases, &stage.floors, &cpus, options.pace, clock_cost)?;
    let loads =
        if options.filters.is_empty() { cpu::measure(&stage.trees, &cpus, options.load_time)? } else { Vec::new() };
    let reports = cases.iter().zip(measured.summaries).map(|(case, modes)| CaseReport {
        id: case.id.clone(),
        title: case.title.clone(),
        pinned: case.place == case::Place::Pinned,
        modes,
    });
    let mut report = Report {
        machine: machine(&cpus),
        rounds: measured.rounds,
        slice_ms: options.pace.slice.as_secs_f64() * 1e3,
        clock_ns: clock_cost.as_nanos() as f64,
        probe_deciles: report::deciles(&measured.probes),
        thresholds: measured.thresholds,
        mixed_slices: measured.mixed,
        cases: reports.collect(),
        loads,
        targets: Vec::new(),
    };
    report.targets = targets::of(&report);
    Ok(report)
}

fn machine(cpus: &Cpus) -> Machine {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let name =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map(|(_, name)| name.trim());
    let load = read("/proc/loadavg");
    Machine {
        cpu: name.unwrap_or(std::env::consts::ARCH).to_owned(),
        cpus: cpus.all.len(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        load_average: load.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0),
    }
}
