//! Cases that are files: what goes wrong in a device as data, and what its runs must come to.

use laneway_core::chip::ChipError;
use laneway_sim::{Fault, FaultPlan, Kernel};
use serde::Deserialize;

use super::{Bench, PLAIN, VectorAdd, ZERO};
use crate::case::{Body, Case};
use crate::expect::{Must, Verdict, Violation, equal};

/// A file of the folder, as the name of its case and its text.
macro_rules! file {
    ($name:literal) => {
        (concat!("file/", $name), include_str!(concat!("../../cases/", $name, ".json")))
    };
}

/// The files that come with this crate.
const FILES: [(&str, &str); 12] = [
    file!("a_failed_finalize_ends_its_run"),
    file!("a_failed_prepare_leaves_the_device_usable"),
    file!("a_failed_register_registers_nothing"),
    file!("a_failed_unregister_keeps_the_callable"),
    file!("a_failed_wait_loses_the_device"),
    file!("a_refused_launch_fails_its_run_alone"),
    file!("a_skipped_acceptance_changes_no_result"),
    file!("an_incompatible_prepare_is_no_failure"),
    file!("delays_change_no_result"),
    file!("half_a_launch_loses_the_device"),
    file!("several_failures_in_a_row_are_several_failures"),
    file!("a_late_finalize_is_no_failure"),
];

/// A case of a file: JSON with these fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it shows, as a sentence.
    pub about: String,
    /// The rules that it shows.
    pub rules: Vec<String>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// One step each, and what it must come to. An add is registered in callable slot 0 before the first.
    pub steps: Vec<Step>,
}

/// One step of a script.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A blocking vector add.
    Run(Ending),
    /// The add is registered in callable slot 1 as well.
    Register(Ending),
    /// The add is removed from callable slot 1.
    Unregister(Ending),
}

/// What a step comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It succeeded; of a run: the sum is there.
    Done,
    /// It failed with this code; nothing was copied back, and the device goes on.
    Failed(i32),
    /// It could not be prepared beside another.
    Incompatible,
    /// Its completion is unproven, with this code; nothing was copied back.
    Unproven(i32),
    /// The device takes no more work.
    Gone,
}

impl Ending {
    fn of(result: &Result<(), ChipError>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(ChipError::Incompatible { .. }) => Self::Incompatible,
            Err(ChipError::DeviceGone { .. }) => Self::Gone,
            Err(error) if error.is_unproven() => Self::Unproven(error.code()),
            Err(error) => Self::Failed(error.code()),
        }
    }
}

impl Script {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong with it, with line and column.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The case of this name that it describes.
    #[must_use]
    pub fn into_case(self, name: &str) -> Case {
        let plan = FaultPlan { faults: self.faults.clone() };
        let (rules, about) = (self.rules.clone(), self.about.clone());
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        Case::new(name, &rules, &about, Body::Script(Box::new(self))).kernels(&[Kernel::Add]).faults(plan)
    }

    pub(crate) fn check(&self, device: &mut Bench<'_>) -> Verdict {
        let add = device.install(0, Kernel::Add)?;
        let (blob, other) = (device.callable(Kernel::Add)?, super::bench::slot(1)?);
        for (number, step) in self.steps.iter().enumerate() {
            let work = VectorAdd::new();
            let (result, expected) = match *step {
                Step::Run(expected) => (device.run(add, &work.args, &PLAIN, ZERO), expected),
                Step::Register(expected) => (device.register(other, &blob), expected),
                Step::Unregister(expected) => (device.unregister(other), expected),
            };
            let seen = Ending::of(&result);
            if seen != expected {
                let (what, expected) = (format!("step {number}, {step:?}"), format!("{expected:?}"));
                return Err(Violation { what, expected, seen: format!("{seen:?}: {result:?}") });
            }
            if matches!(step, Step::Run(Ending::Done)) { work.is_done()? } else { work.is_untouched()? }
        }
        device.shutdown().must("shutdown")?;
        equal("bytes committed after the shutdown", device.committed_memory(), 0)
    }
}

pub(super) fn cases() -> Vec<Case> {
    let read = |(name, text): (&str, &str)| match Script::from_json(text) {
        Ok(script) => script.into_case(name),
        Err(error) => unreadable(name, &error),
    };
    FILES.into_iter().map(read).collect()
}

/// A file of this crate that cannot be read fails as a case; the unit test below keeps it from being shipped.
fn unreadable(name: &str, error: &serde_json::Error) -> Case {
    Case::device(name, &[], &format!("The file can be read: {error}"), |_| {
        Err(Violation { what: "the file".to_owned(), expected: "a script".to_owned(), seen: "no script".to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_can_be_read_and_every_file_is_a_case() {
        for (name, text) in FILES {
            Script::from_json(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/cases")).unwrap();
        assert_eq!(folder.count(), FILES.len());
    }

    #[test]
    fn a_misspelt_file_is_refused() {
        assert!(Script::from_json(r#"{"about": "", "rules": [], "faults": [], "stepz": []}"#).is_err());
    }
}
