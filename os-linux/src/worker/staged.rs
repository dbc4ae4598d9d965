//! A chip child's runner with what a device cannot do for itself: fetching the bytes of a callable that is registered while
//! it serves.

use std::fmt::Write;
use std::ops::Range;

use laneway_core::serve::{ChipRunner, Failure, Launch, Poll, PrepareError, Report, Runner, Task};
use laneway_core::wire::Digest;
use laneway_core::wire::control::{ControlRequest, Staged};

use crate::memory::read_staged;
use crate::registry::check_chip_blob;

/// A [`ChipRunner`] that finds staged bytes in the buffer region of the parent.
pub(super) struct StagedRunner<'d> {
    chip: ChipRunner<'d>,
    region: Range<u64>,
}

impl<'d> StagedRunner<'d> {
    pub(super) fn new(chip: ChipRunner<'d>, region: Range<u64>) -> Self {
        Self { chip, region }
    }
}

/// Takes a private copy of staged bytes, or says in the report why not.
pub(crate) fn fetch(region: &Range<u64>, staged: Staged, bytes: u64, report: &mut Report) -> Result<Vec<u8>, Failure> {
    let fetched = match staged {
        Staged::Region(offset) => read_staged(region, offset, bytes).map_err(|error| error.to_string()),
        Staged::Shm(name) => Err(format!("bytes staged under the name {name:?} are for children of another make")),
    };
    fetched.map_err(|text| fail(report, &text))
}

/// A failure with this text.
pub(crate) fn fail(report: &mut Report, text: &dyn std::fmt::Display) -> Failure {
    // A report that is full cuts what comes after; writing to it cannot fail.
    let _ = write!(report, "{text}");
    Failure::MESSAGE
}

impl<'d> Runner for StagedRunner<'d> {
    type Token = <ChipRunner<'d> as Runner>::Token;

    fn knows(&mut self, digest: &Digest) -> bool {
        self.chip.knows(digest)
    }

    fn prepares_concurrently(&self) -> bool {
        self.chip.prepares_concurrently()
    }

    fn prepare(&mut self, task: &Task<'_>, report: &mut Report) -> Result<Self::Token, PrepareError> {
        self.chip.prepare(task, report)
    }

    fn launch(&mut self, token: Self::Token, task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        self.chip.launch(token, task, report)
    }

    fn accepted(&mut self, token: Self::Token) -> bool {
        self.chip.accepted(token)
    }

    fn poll(&mut self, token: Self::Token, report: &mut Report) -> Result<Poll, Failure> {
        self.chip.poll(token, report)
    }

    fn finalize(&mut self, token: Self::Token, report: &mut Report) -> Result<(), Failure> {
        self.chip.finalize(token, report)
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        let ControlRequest::Register { staged, bytes, digest } = *request else {
            return self.chip.control(request, report);
        };
        let blob = fetch(&self.region, staged, bytes, report)?;
        check_chip_blob(&digest, &blob).map_err(|error| fail(report, &error))?;
        self.chip.register(digest, &blob).map(|()| 0).map_err(|error| error.report(report))
    }

    fn shutdown(&mut self) {
        self.chip.shutdown();
    }
}
