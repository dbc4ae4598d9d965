//! What came of the cases.

use std::fmt;
use std::iter::Sum;
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::expect::Violation;

/// What came of one case.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// Everything was as expected.
    Passed,
    /// A rule was not kept.
    Failed(Violation),
    /// The backend cannot do what the case is about; says what that is.
    NotApplicable(String),
    /// The backend could not be opened; says why.
    NotOpened(String),
}

impl Outcome {
    /// One word for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed(_) => "FAILED",
            Self::NotApplicable(_) => "not applicable",
            Self::NotOpened(_) => "NOT OPENED",
        }
    }
}

/// One case with what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The name of the case.
    pub case: String,
    /// The rules that it shows.
    pub rules: Vec<String>,
    /// What must be true.
    pub says: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    #[serde(rename = "seconds", serialize_with = "as_seconds")]
    pub took: Duration,
}

fn as_seconds<S: serde::Serializer>(took: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(took.as_secs_f64())
}

impl Entry {
    pub(crate) fn new(case: &Case, outcome: Outcome, took: Duration) -> Self {
        let (case, rules, says) = (case.name().to_owned(), case.rules().to_vec(), case.says().to_owned());
        Self { case, rules, says, outcome, took }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {} ... {} [{}]", self.case, self.outcome.word(), self.rules.join(" "))?;
        match &self.outcome {
            Outcome::Passed => Ok(()),
            Outcome::NotApplicable(reason) | Outcome::NotOpened(reason) => write!(f, ": {reason}"),
            Outcome::Failed(Violation { what, expected, seen }) => {
                write!(f, "\n  rule:     {}\n  at:       {what}\n  expected: {expected}\n  seen:     {seen}", self.says)
            }
        }
    }
}

/// Every case that was run against one backend.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The backend.
    pub backend: String,
    /// The seed of what was random; the same seed runs the same again.
    pub seed: u64,
    /// In the order in which they were run.
    pub entries: Vec<Entry>,
}

/// How many cases ended how.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// As expected.
    pub passed: usize,
    /// Not as expected.
    pub failed: usize,
    /// About something that the backend cannot do.
    pub not_applicable: usize,
    /// The backend could not be opened.
    pub not_opened: usize,
}

impl Report {
    /// How many cases ended how.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for entry in &self.entries {
            *match entry.outcome {
                Outcome::Passed => &mut counts.passed,
                Outcome::Failed(_) => &mut counts.failed,
                Outcome::NotApplicable(_) => &mut counts.not_applicable,
                Outcome::NotOpened(_) => &mut counts.not_opened,
            } += 1;
        }
        counts
    }

    /// What failed.
    pub fn failures(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| matches!(entry.outcome, Outcome::Failed(_)))
    }

    /// As [`Counts::exit_status`].
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        self.counts().exit_status()
    }

    /// [`Report::exit_status`] for the end of `main`.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_status())
    }
}

impl Counts {
    /// 0 if something passed and nothing failed, 1 if a case failed, 2 if the backend could not be opened or no case was
    /// about anything that it can do.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            Self { failed: 1.., .. } => 1,
            Self { passed: 1.., not_opened: 0, .. } => 0,
            _ => 2,
        }
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            passed: sum.passed + one.passed,
            failed: sum.failed + one.failed,
            not_applicable: sum.not_applicable + one.not_applicable,
            not_opened: sum.not_opened + one.not_opened,
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, not_applicable, not_opened } = self;
        write!(f, "{passed} passed, {failed} failed, {not_applicable} not applicable")?;
        if *not_opened > 0 { write!(f, ", {not_opened} not opened") } else { Ok(()) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        writeln!(f, "{}: {} (seed {})", self.backend, self.counts(), self.seed)
    }
}
