//! A report as tables.

use std::fmt::{self, Write};

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use super::modes::Mode;
use super::report::Report;

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header.to_vec());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Nanoseconds with a unit that suits them.
pub(super) fn time(nanos: f64) -> String {
    match nanos {
        _ if nanos < 1_000.0 => format!("{nanos:.0} ns"),
        _ if nanos < 100_000.0 => format!("{:.2} µs", nanos / 1e3),
        _ => format!("{:.0} µs", nanos / 1e3),
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        small if small < 10.0 => format!("{value:.2}"),
        small if small < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        writeln!(f, "{}, {} CPUs, Linux {}, {} build", machine.cpu, machine.cpus, machine.kernel, machine.profile)?;
        writeln!(f, "load average {:.1}", machine.load_average)?;
        let (rounds, slice, clock) = (self.rounds, self.slice_ms, self.clock_ns);
        writeln!(f, "{rounds} rounds of {slice} ms a case; {clock:.0} ns of reading the clock subtracted")?;
        let deciles: Vec<_> = self.probe_deciles.iter().map(|probe| format!("{probe:.0}")).collect();
        writeln!(f, "floor B between slices, ns, in tenths of them: {}", deciles.join(" "))?;
        let (very_fast, fast) = (self.thresholds.very_fast, self.thresholds.fast);
        writeln!(
            f,
            "very fast below {very_fast:.0} ns, fast below {fast:.0} ns, else slow; {} slices mixed",
            self.mixed_slices
        )?;
        for mode in self.modes_seen() {
            self.write_mode(f, mode)?;
        }
        self.write_loads(f)?;
        self.write_targets(f)
    }
}

impl Report {
    fn write_mode(&self, f: &mut fmt::Formatter<'_>, mode: Mode) -> fmt::Result {
        let p50 = |case: &str| self.summary(case, mode).map(|summary| summary.p50);
        let (floor, iox) = (p50("floor_b"), p50("iox_request"));
        let header: &[&str] = &["case", "p50", "p90", "p99", "/ B", "/ iox", "slices"];
        let mut table = table(header);
        for case in &self.cases {
            let Some(summary) = case.modes.get(&mode) else { continue };
            let over = |floor: Option<f64>| floor.map(|floor| number(summary.p50 / floor)).unwrap_or_default();
            let title = if case.pinned { case.title.clone() } else { format!("{} *", case.title) };
            let times = [summary.p50, summary.p90, summary.p99].map(time);
            let mut row = vec![title];
            row.extend(times);
            row.extend([over(floor), over(iox), summary.slices.to_string()]);
            table.add_row(row);
        }
        writeln!(f, "\nMode: {mode} (* not pinned)\n\n{table}")
    }

    fn write_loads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.loads.is_empty() {
            return Ok(());
        }
        let mut table = table(&["situation", "seconds", "CPU", "spinning", "voluntary switches", "involuntary"]);
        for load in &self.loads {
            let (quiet, busy): (Vec<_>, Vec<_>) =
                load.processes.iter().partition(|usage| usage.voluntary + usage.involuntary == 0 && usage.cpu == 0.0);
            for usage in &busy {
                let mut title = load.title.clone();
                write!(title, ": {}", usage.process)?;
                let cpu = format!("{:.3} %", usage.cpu * 100.0);
                let row = [
                    title,
                    format!("{:.1}", load.seconds),
                    cpu,
                    usage.spinning.map(|share| format!("{:.3} %", share * 100.0)).unwrap_or_default(),
                    usage.voluntary.to_string(),
                    usage.involuntary.to_string(),
                ];
                table.add_row(row);
            }
            if !quiet.is_empty() {
                let title = format!("{}: {} processes without any", load.title, quiet.len());
                table.add_row([
                    title,
                    format!("{:.1}", load.seconds),
                    "0 %".to_owned(),
                    String::new(),
                    "0".to_owned(),
                    "0".to_owned(),
                ]);
            }
        }
        writeln!(f, "\nCPU time\n\n{table}")
    }

    fn write_targets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = table(&["target", "mode", "measured", "wanted", "verdict"]);
        for target in &self.targets {
            let with_unit = |value: f64| format!("{} {}", number(value), target.unit).trim().to_owned();
            let sign = if target.at_least { "≥" } else { "≤" };
            table.add_row([
                target.what.clone(),
                target.mode.map_or("any".to_owned(), |mode| mode.to_string()),
                target.value.map(with_unit).unwrap_or_default(),
                format!("{sign} {}", with_unit(target.limit)),
                target.verdict.to_string(),
            ]);
        }
        writeln!(f, "\nTargets\n\n{table}")
    }
}
