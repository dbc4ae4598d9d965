//! Cases that are files: a device as data, and what its runs and calls must come to.

use std::fmt::Write as _;

use laneway_core::chip::{ChipError, DeviceRuntime};
use laneway_sim::{Config, Kernel};
use serde::Deserialize;

use super::{Bench, Callables, PLAIN, VectorAdd, ZERO, register};

/// A case of a file: JSON with these fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What it shows, as a sentence.
    pub about: String,
    /// The device, fault plan included.
    pub device: Config,
    /// One blocking vector add each, on a registered callable, and what it must come to.
    pub runs: Vec<Ending>,
}

/// What a run comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The sum is there.
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

    /// Runs the script on a fresh device that was made as it says.
    ///
    /// # Panics
    /// When a run comes to something else, or leaves something behind.
    pub fn check(&self, device: &mut dyn DeviceRuntime, callables: &dyn Callables) {
        let bench = &mut Bench { device, callables };
        let add = register(bench, 0, Kernel::Add);
        let mut report = String::new();
        for (number, &expected) in self.runs.iter().enumerate() {
            let work = VectorAdd::new();
            let result = bench.run(add, &work.args, &PLAIN, ZERO);
            let ending = Ending::of(&result);
            // Writing to a string does not fail.
            let _ = writeln!(report, "run {number}: {result:?}");
            assert_eq!(ending, expected, "{}: run {number}\n{report}", self.about);
            assert_eq!((work.is_done(), work.is_untouched()), (ending == Ending::Done, ending != Ending::Done));
        }
        bench.shutdown().expect("the device can be closed");
        assert_eq!(bench.committed_memory(), 0, "{}", self.about);
    }
}
