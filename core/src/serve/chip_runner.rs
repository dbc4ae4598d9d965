//! A device runtime as a chip child's runner.

use core::fmt::Write as _;

use super::leaf::{Failure, Launch, Poll, PrepareError, Report, Runner, Task};
use crate::chip::{
    CallableSlot, ChipError, DeviceAddress, DeviceRuntime, HostAddress, Progress, RunDescriptor, RunToken,
};
use crate::model::{GenerationFilter, ModelError};
use crate::wire::control::{ControlCommand, ControlRequest, CopySpan};
use crate::wire::{ChipStorageTaskArgs, Digest};

/// A callable on the device, and how often it was registered.
#[derive(Clone, Copy)]
struct Installed {
    digest: Digest,
    count: u32,
}

/// Drives a [`DeviceRuntime`]: resolves digests to its private callable slots, keeps replayed leases out (C-5), and
/// turns its errors into reports.
///
/// About 40 KiB; keep it where it was built.
pub struct ChipRunner<'d> {
    device: &'d mut dyn DeviceRuntime,
    /// Which callable sits in which slot (C-8). No slot number ever leaves this child.
    callables: [Option<Installed>; CallableSlot::COUNT],
    filter: GenerationFilter,
    /// The arguments of the run that is being prepared; the device copies them.
    storage: ChipStorageTaskArgs,
}

impl<'d> ChipRunner<'d> {
    /// A runner for an open device without callables.
    #[must_use]
    pub fn new(device: &'d mut dyn DeviceRuntime) -> Self {
        Self {
            device,
            callables: [None; CallableSlot::COUNT],
            filter: GenerationFilter::new(),
            storage: ChipStorageTaskArgs::new(),
        }
    }

    /// Installs a callable in the smallest free slot; of one that is there already the count goes up, and nothing is
    /// uploaded.
    ///
    /// # Errors
    /// [`RunnerError::SlotsExhausted`] for the 65th; else what the device says, and nothing is installed then.
    pub fn register(&mut self, digest: Digest, blob: &[u8]) -> Result<(), RunnerError> {
        if let Some(known) = self.callables.iter_mut().flatten().find(|known| known.digest == digest) {
            known.count = known.count.saturating_add(1);
            return Ok(());
        }
        let free = self.callables.iter().position(Option::is_none).and_then(CallableSlot::new);
        let slot = free.ok_or(RunnerError::SlotsExhausted { slots: CallableSlot::COUNT })?;
        self.device.register(slot, blob)?;
        self.callables[slot.index()] = Some(Installed { digest, count: 1 });
        Ok(())
    }

    /// Lowers the count of a callable; the last one removes it: from the device first, from the table only if that went well
    /// . An unknown one is no error.
    ///
    /// # Errors
    /// What the device says; the callable stays registered once.
    pub fn unregister(&mut self, digest: &Digest) -> Result<(), ChipError> {
        let Some(slot) = self.slot(digest) else { return Ok(()) };
        if let Some(known) = self.callables[slot.index()].as_mut().filter(|known| known.count > 1) {
            known.count -= 1;
            return Ok(());
        }
        self.device.unregister(slot)?;
        self.callables[slot.index()] = None;
        Ok(())
    }

    fn slot(&self, digest: &Digest) -> Option<CallableSlot> {
        self.callables
            .iter()
            .position(|known| known.is_some_and(|known| known.digest == *digest))
            .and_then(CallableSlot::new)
    }

    fn try_prepare(&mut self, task: &Task<'_>) -> Result<RunToken, RunnerError> {
        let slot = self.slot(task.digest).ok_or(RunnerError::NotRegistered { digest: *task.digest })?;
        let identity = task.identity;
        self.filter.check(identity.slot, identity.generation)?;
        self.storage.load(task.args);
        let token = self.device.prepare(slot, &self.storage, task.config, RunDescriptor::Leased(identity))?;
        // Raised only now: a prepare that was refused comes again with the same generation (T-28).
        self.filter.admit(identity.slot, identity.generation)?;
        Ok(token)
    }

    fn try_control(&mut self, request: &ControlRequest) -> Result<u64, RunnerError> {
        Ok(match *request {
            ControlRequest::Malloc { bytes } => self.device.malloc(bytes)?.0,
            ControlRequest::Free { address } => self.device.free(DeviceAddress(address)).map(|()| 0)?,
            ControlRequest::CopyTo(CopySpan::Addresses { dst, src, nbytes }) => {
                self.device.copy_to(DeviceAddress(dst), HostAddress(src), nbytes).map(|()| 0)?
            }
            ControlRequest::CopyFrom(CopySpan::Addresses { dst, src, nbytes }) => {
                self.device.copy_from(HostAddress(dst), DeviceAddress(src), nbytes).map(|()| 0)?
            }
            ControlRequest::CommittedDeviceMemory => self.device.committed_memory(),
            ControlRequest::Unregister { ref digest } => self.unregister(digest).map(|()| 0)?,
            ControlRequest::Prepare { ref digest } if self.slot(digest).is_some() => 0,
            ControlRequest::Prepare { digest } => return Err(RunnerError::NotRegistered { digest }),
            _ => return Err(RunnerError::Unsupported { command: request.command() }),
        })
    }
}

/// What a chip child refuses by itself, or its device.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The digest is in no slot of this child.
    #[error("callable {} is not registered with this chip", .digest.short())]
    NotRegistered {
        /// The callable.
        digest: Digest,
    },
    /// All slots hold a callable.
    #[error("all {slots} callable slots of this chip are taken: unregister one first")]
    SlotsExhausted {
        /// How many there are.
        slots: usize,
    },
    /// A command that this child does not serve.
    #[error("a chip child does not serve {command:?}")]
    Unsupported {
        /// The command.
        command: ControlCommand,
    },
    /// A lease that a later one has replaced (C-5).
    #[error(transparent)]
    Stale(#[from] ModelError),
    /// The device refused or failed.
    #[error(transparent)]
    Chip(#[from] ChipError),
}

impl RunnerError {
    /// Writes the text into the report; what the task's or the control's failure is. A report cannot fail to be written.
    pub fn report(&self, report: &mut Report) -> Failure {
        let _ = write!(report, "{self}");
        match self {
            Self::Chip(error) => Failure { code: error.code(), leave: error.is_unproven() },
            _ => Failure::MESSAGE,
        }
    }
}

fn reported<T>(result: Result<T, ChipError>, report: &mut Report) -> Result<T, Failure> {
    result.map_err(|error| RunnerError::Chip(error).report(report))
}

impl Runner for ChipRunner<'_> {
    type Token = RunToken;

    fn knows(&mut self, digest: &Digest) -> bool {
        self.slot(digest).is_some()
    }

    fn prepares_concurrently(&self) -> bool {
        self.device.supports_concurrent_prepare()
    }

    fn prepare(&mut self, task: &Task<'_>, report: &mut Report) -> Result<RunToken, PrepareError> {
        self.try_prepare(task).map_err(|error| match error {
            RunnerError::Chip(ChipError::Incompatible { .. }) => PrepareError::Incompatible,
            other => PrepareError::Failed(other.report(report)),
        })
    }

    fn launch(&mut self, token: RunToken, _: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        reported(self.device.launch(token), report).map(|()| Launch::Running)
    }

    fn accepted(&mut self, token: RunToken) -> bool {
        self.device.accepted(token)
    }

    fn poll(&mut self, token: RunToken, report: &mut Report) -> Result<Poll, Failure> {
        reported(self.device.poll(token), report).map(|progress| match progress {
            Progress::NotReady => Poll::NotReady,
            Progress::Complete => Poll::Complete,
        })
    }

    fn finalize(&mut self, token: RunToken, report: &mut Report) -> Result<(), Failure> {
        reported(self.device.finalize(token), report)
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        self.try_control(request).map_err(|error| error.report(report))
    }

    fn shutdown(&mut self) {
        // The child leaves either way, and its exit takes the device with it.
        let _ = self.device.shutdown();
    }
}
