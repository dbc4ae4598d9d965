//! Runs without a lease, on a device in the caller's own process (C-17, C-18).

use alloc::collections::BTreeMap;

use super::{CallableSlot, ChipError, DeviceRuntime, Progress, RunDescriptor, RunToken};
use crate::ids::PipelineSlot;
use crate::wire::{CallConfig, ChipStorageTaskArgs};

/// Names a submitted run of a [`DirectLane`] until its result is taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DirectTicket(u64);

/// The answer to a submit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Submitted {
    /// It is on its way.
    Accepted(DirectTicket),
    /// The lane has no room: [`DirectLane::step`] until it has, then submit again.
    Full,
}

/// A run on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    ticket: DirectTicket,
    token: RunToken,
    diagnostic: bool,
    /// Nobody will ask for its result.
    forgotten: bool,
}

/// The run lane of a level-2 worker: at most one run executes, and where the runtime allows it one more is prepared.
///
/// It holds no lease and never meets a generation filter (C-18). It does not own the device; every call is given the same
/// one.
#[derive(Debug, Default)]
pub struct DirectLane {
    executing: Option<Entry>,
    /// Only while another executes.
    prepared: Option<Entry>,
    /// Results that nobody has taken yet.
    results: BTreeMap<DirectTicket, Result<(), ChipError>>,
    submitted: u64,
}

impl DirectLane {
    /// A lane without runs.
    #[must_use]
    pub const fn new() -> Self {
        Self { executing: None, prepared: None, results: BTreeMap::new(), submitted: 0 }
    }

    /// Runs on their way, at most 2.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        usize::from(self.executing.is_some()) + usize::from(self.prepared.is_some())
    }

    /// Prepares a run, and launches it if the device is free.
    ///
    /// [`Submitted::Full`], and nothing happens, while two are on their way, or while one executes beside which the
    /// runtime cannot prepare this one (L-12, L-16).
    ///
    /// # Errors
    /// Why it could not be prepared or launched; it is not on its way then.
    pub fn submit(
        &mut self,
        device: &mut dyn DeviceRuntime,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
    ) -> Result<Submitted, ChipError> {
        let slot = match self.executing {
            None => PipelineSlot::Zero,
            Some(before) if self.prepared.is_some() || !can_stand_beside(device, before, config) => {
                return Ok(Submitted::Full);
            }
            Some(before) => other(before.token.slot()),
        };
        let token = match device.prepare(callable, args, config, RunDescriptor::Direct(slot)) {
            Ok(token) => token,
            Err(ChipError::Incompatible { .. }) if self.executing.is_some() => return Ok(Submitted::Full),
            Err(error) => return Err(error),
        };
        let diagnostic = config.is_diagnostic();
        let entry = Entry { ticket: DirectTicket(self.submitted), token, diagnostic, forgotten: false };
        if self.executing.is_some() {
            self.prepared = Some(entry);
        } else {
            launch(device, token)?;
            self.executing = Some(entry);
        }
        self.submitted += 1;
        Ok(Submitted::Accepted(entry.ticket))
    }

    /// Looks at the executing run; if it is complete, ends it and launches the prepared one. Returns whether anything
    /// changed.
    pub fn step(&mut self, device: &mut dyn DeviceRuntime) -> bool {
        let Some(entry) = self.executing else { return false };
        match device.poll(entry.token) {
            Ok(Progress::NotReady) => return false,
            Ok(Progress::Complete) => self.end(device, entry, Ok(())),
            Err(error) => self.end(device, entry, Err(error)),
        }
        true
    }

    /// Waits for a run and takes its result. Runs before it are driven to their ends (C-18). `None` for a run whose
    /// result was taken.
    pub fn wait(&mut self, device: &mut dyn DeviceRuntime, ticket: DirectTicket) -> Option<Result<(), ChipError>> {
        while let Some(entry) = self.executing
            && entry.ticket <= ticket
        {
            let ended = device.wait(entry.token);
            self.end(device, entry, ended);
        }
        self.take(ticket)
    }

    /// Takes the result of a run; `None` if it is on its way or was taken.
    pub fn take(&mut self, ticket: DirectTicket) -> Option<Result<(), ChipError>> {
        self.results.remove(&ticket)
    }

    /// Nobody will ask for this result: it is dropped, now or when the run has ended.
    pub fn forget(&mut self, ticket: DirectTicket) {
        self.results.remove(&ticket);
        for entry in [&mut self.executing, &mut self.prepared].into_iter().flatten() {
            entry.forgotten |= entry.ticket == ticket;
        }
    }

    /// Whether a run is on its way.
    #[must_use]
    pub fn is_in_flight(&self, ticket: DirectTicket) -> bool {
        [self.executing, self.prepared].into_iter().flatten().any(|entry| entry.ticket == ticket)
    }

    /// Ends everything: waits for the executing run and abandons the prepared one, whose result is
    /// [`ChipError::DeviceGone`]. Then the device may be closed.
    pub fn stop(&mut self, device: &mut dyn DeviceRuntime) {
        if let Some(entry) = self.prepared.take() {
            self.abandon(device, entry);
        }
        if let Some(entry) = self.executing {
            let ended = device.wait(entry.token);
            self.end(device, entry, ended);
        }
    }

    /// Finalizes the executing run, keeps its result, and lets the prepared one follow.
    fn end(&mut self, device: &mut dyn DeviceRuntime, entry: Entry, ended: Result<(), ChipError>) {
        let lost = ended.as_ref().is_err_and(ChipError::is_unproven);
        let finalized = device.finalize(entry.token);
        self.executing = None;
        self.keep(entry, ended.and(finalized));
        let Some(next) = self.prepared.take() else { return };
        if lost {
            self.abandon(device, next);
            return;
        }
        match launch(device, next.token) {
            Ok(()) => self.executing = Some(next),
            Err(error) => self.keep(next, Err(error)),
        }
    }

    /// Finalizes a run that will not be launched.
    fn abandon(&mut self, device: &mut dyn DeviceRuntime, entry: Entry) {
        let gone = Err(ChipError::DeviceGone { call: super::Call::Launch });
        let result = device.finalize(entry.token).and(gone);
        self.keep(entry, result);
    }

    fn keep(&mut self, entry: Entry, result: Result<(), ChipError>) {
        if !entry.forgotten {
            self.results.insert(entry.ticket, result);
        }
    }
}

/// L-12: the runtime advertises it, and neither of the two is diagnostic.
fn can_stand_beside(device: &dyn DeviceRuntime, before: Entry, config: &CallConfig) -> bool {
    device.supports_concurrent_prepare() && !before.diagnostic && !config.is_diagnostic()
}

const fn other(slot: PipelineSlot) -> PipelineSlot {
    match slot {
        PipelineSlot::Zero => PipelineSlot::One,
        PipelineSlot::One => PipelineSlot::Zero,
    }
}

/// Launches a prepared run, or finalizes it (L-15).
fn launch(device: &mut dyn DeviceRuntime, token: RunToken) -> Result<(), ChipError> {
    device.launch(token).inspect_err(|_| {
        // The error of the launch is the one to report.
        let _ = device.finalize(token);
    })
}
