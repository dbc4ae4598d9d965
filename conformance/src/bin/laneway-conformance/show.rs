//! What is printed while cases run: a table under a progress bar on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write, stdout};

use indicatif::{ProgressBar, ProgressStyle};
use laneway_conformance::{Case, Entry, News, Outcome, Report};

/// Where the lines go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Terminal,
    Plain,
    /// Something else is printed.
    Silent,
}

/// How things are shown.
pub(crate) struct Show(Style);

impl Show {
    pub(crate) fn new(silent: bool) -> Self {
        Self(match (silent, stdout().is_terminal()) {
            (true, _) => Style::Silent,
            (false, true) => Style::Terminal,
            (false, false) => Style::Plain,
        })
    }

    pub(crate) fn line(&self, text: &str) {
        if self.0 != Style::Silent {
            print(text);
        }
    }

    pub(crate) fn begin(&self, backend: &str, cases: &[Case]) -> Progress {
        let bar = match self.0 {
            Style::Terminal => ProgressBar::new(cases.len() as u64).with_style(style()),
            Style::Plain | Style::Silent => ProgressBar::hidden(),
        };
        let width = cases.iter().map(|case| case.name().len()).max().unwrap_or_default();
        let progress = Progress { style: self.0, bar, width };
        progress.row(&format!("{backend}: {} cases", cases.len()));
        progress
    }
}

fn style() -> ProgressStyle {
    // The template is legal; if it were not, the default bar would do.
    ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The cases of one backend on their way.
pub(crate) struct Progress {
    style: Style,
    bar: ProgressBar,
    /// Bytes of the longest name.
    width: usize,
}

impl Progress {
    pub(crate) fn tell(&self, news: News<'_>) {
        match news {
            News::Begins(case) => self.bar.set_message(case.name().to_owned()),
            News::Ended(entry) => {
                self.row(&if self.style == Style::Terminal { self.cells(entry) } else { entry.to_string() });
                self.bar.inc(1);
            }
        }
    }

    /// Result, name, rules and time in columns.
    fn cells(&self, entry: &Entry) -> String {
        let colour = match entry.outcome {
            Outcome::Passed => 32,
            Outcome::NotApplicable(_) => 90,
            _ => 31,
        };
        if let Outcome::Failed(_) | Outcome::NotOpened(_) = entry.outcome {
            return format!("\x1b[{colour}m{entry}\x1b[0m");
        }
        let (word, width, rules) = (entry.outcome.word(), self.width, entry.rules.join(" "));
        let more = match &entry.outcome {
            Outcome::NotApplicable(reason) => reason.clone(),
            _ => format!("{:.1} ms", entry.took.as_secs_f64() * 1e3),
        };
        format!("\x1b[{colour}m{word:>14}\x1b[0m  {:<width$}  {rules:<24}  {more}", entry.case)
    }

    fn row(&self, text: &str) {
        match self.style {
            Style::Terminal => self.bar.suspend(|| print(text)),
            Style::Plain => print(text),
            Style::Silent => {}
        }
    }

    /// The last line, and on a terminal a table of the areas.
    pub(crate) fn end(self, report: &Report) {
        self.bar.finish_and_clear();
        if self.style == Style::Terminal {
            self.row(&areas(report));
        }
        self.row(&format!("{}: {} (seed {})", report.backend, report.counts(), report.seed));
    }
}

/// How many cases of each area passed.
fn areas(report: &Report) -> String {
    let mut rows: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for entry in &report.entries {
        let area = entry.case.rsplit_once('/').map_or(entry.case.as_str(), |(area, _)| area);
        let column = match entry.outcome {
            Outcome::Passed => 0,
            Outcome::NotApplicable(_) => 2,
            _ => 1,
        };
        rows.entry(area).or_default()[column] += 1;
    }
    let rows = rows.iter().map(|(area, [passed, failed, not])| {
        format!("  {area:<24} {passed:>4} passed {failed:>4} failed {not:>4} not applicable")
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// One line; whoever closed the other end does not want more.
fn print(text: &str) {
    let _ = writeln!(stdout(), "{text}");
}
