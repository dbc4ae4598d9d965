//! What a device runtime must offer (C-6 … C-9).

use super::{CallableSlot, ChipError, Contract, DeviceAddress, HostAddress, RunToken};
use crate::ids::PipelineSlot;
use crate::wire::{CallConfig, ChipStorageTaskArgs, DispatchIdentity};

/// Which run slot a run uses and what brought it. The runtime adds the epoch (C-7) and, from its contract, the arena bank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RunDescriptor {
    /// A dispatch under a lease, in the slot of the lease.
    Leased(DispatchIdentity),
    /// A run without a lease, in a slot that is free (C-18).
    Direct(PipelineSlot),
}

impl RunDescriptor {
    /// The run slot; below the depth of the contract.
    #[must_use]
    pub const fn slot(&self) -> PipelineSlot {
        match self {
            Self::Leased(identity) => identity.slot,
            Self::Direct(slot) => *slot,
        }
    }
}

/// The answer to a poll.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Progress {
    /// The device is still at work.
    NotReady,
    /// It is done; the run may be finalized.
    Complete,
}

/// A device, as its driving process sees it. One thread at a time calls it; no call but [`wait`](Self::wait),
/// [`finalize`](Self::finalize) of a launched run and [`shutdown`](Self::shutdown) may wait for the device.
///
/// Every prepared run must be finalized exactly once, whatever became of it (L-15).
///
/// # Host memory
/// Tensors in HOST space and the host side of copies are plain addresses. A runtime touches exactly the bytes
/// `buffer.addr .. buffer.addr + buffer.size` of the tensors it was handed, between prepare and the return of finalize,
/// and nothing else. That those bytes are mapped is promised once, by whoever builds the runtime (that is where each
/// backend has its unsafe constructor), so that callers of this trait need no unsafe code.
pub trait DeviceRuntime: Send {
    /// The checked contract; depth 1, one run at a time, for a runtime that publishes none (C-3).
    fn contract(&self) -> Contract {
        Contract::absent()
    }

    /// Whether a second run may be prepared while one is launched (L-12).
    fn supports_concurrent_prepare(&self) -> bool {
        false
    }

    /// Uploads a callable, the bytes of a `ChipCallable` blob, from any source.
    ///
    /// # Errors
    /// [`ChipError::RunInFlight`], [`ChipError::CallableTaken`], [`ChipError::CallableRefused`], out of memory, or the
    /// runtime's own failure; nothing is registered then.
    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError>;

    /// Removes a callable and what it holds on the device.
    ///
    /// # Errors
    /// [`ChipError::RunInFlight`], [`ChipError::CallableUnknown`], or the runtime's own failure.
    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError>;

    /// Makes a run ready without telling the device (EMPTY → PREPARED). The arguments and the config are copied.
    ///
    /// # Errors
    /// [`ChipError::Incompatible`] if it cannot be prepared beside the run that is there (L-16); else why it failed. The
    /// slot is EMPTY then.
    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError>;

    /// Hands a prepared run to the device (PREPARED → LAUNCHED).
    ///
    /// # Errors
    /// [`ChipError::Unproven`] if the device may have got a part of it; every other error leaves the run PREPARED.
    fn launch(&mut self, run: RunToken) -> Result<(), ChipError>;

    /// Whether the device accepted the launch: true from the moment both kernels are enqueued until the run is
    /// finalized (L-17). The word behind it belongs to the runtime, so it can never be one of another dispatch.
    fn accepted(&self, run: RunToken) -> bool;

    /// Looks whether a launched run is complete (LAUNCHED → REAPED if it is). Does not wait.
    ///
    /// # Errors
    /// [`ChipError::Unproven`] if the runtime failed; the run is REAPED.
    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError>;

    /// Waits until a launched run is complete (LAUNCHED → REAPED), which may be for ever (C-15).
    ///
    /// # Errors
    /// [`ChipError::Unproven`] if the runtime failed; the run is REAPED.
    fn wait(&mut self, run: RunToken) -> Result<(), ChipError>;

    /// Ends a run (→ EMPTY): copies results back if it completed, waits first if it is launched, gives everything back
    /// if it was never launched. The token is dead afterwards, also after an error.
    ///
    /// # Errors
    /// [`ChipError::StaleToken`]; [`ChipError::Unproven`] if the completion cannot be proven; or why the results could
    /// not be copied back.
    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError>;

    /// Allocates device memory.
    ///
    /// # Errors
    /// [`ChipError::OutOfMemory`]; zero bytes are refused.
    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError>;

    /// Frees the allocation with exactly this base (C-16).
    ///
    /// # Errors
    /// [`ChipError::NotDeviceMemory`] or [`ChipError::NotABase`].
    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError>;

    /// Copies host memory into a live allocation.
    ///
    /// # Errors
    /// [`ChipError::NotDeviceMemory`], [`ChipError::OutOfBounds`] or [`ChipError::NotHostMemory`]; nothing is copied.
    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError>;

    /// Copies from a live allocation into host memory.
    ///
    /// # Errors
    /// As [`copy_to`](Self::copy_to).
    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError>;

    /// Bytes of device memory in use for anything.
    fn committed_memory(&self) -> u64;

    /// Finalizes what runs, removes the callables and closes the device. Every later call is
    /// [`ChipError::DeviceGone`]; a second shutdown does nothing.
    ///
    /// # Errors
    /// The first thing that could not be cleaned up; the rest is attempted all the same.
    fn shutdown(&mut self) -> Result<(), ChipError>;

    /// A blocking run: prepare → launch → wait → finalize.
    ///
    /// # Errors
    /// The first error of the four; a run that was prepared is finalized in every case.
    fn run(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<(), ChipError> {
        let token = self.prepare(callable, args, config, run)?;
        let ended = self.launch(token).and_then(|()| self.wait(token));
        let finalized = self.finalize(token);
        ended.and(finalized)
    }
}

/// One of several devices, chosen when it is opened.
#[cfg(feature = "engine")]
impl<D: DeviceRuntime + ?Sized> DeviceRuntime for alloc::boxed::Box<D> {
    fn contract(&self) -> Contract {
        (**self).contract()
    }

    fn supports_concurrent_prepare(&self) -> bool {
        (**self).supports_concurrent_prepare()
    }

    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError> {
        (**self).register(slot, callable)
    }

    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError> {
        (**self).unregister(slot)
    }

    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        (**self).prepare(callable, args, config, run)
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        (**self).launch(run)
    }

    fn accepted(&self, run: RunToken) -> bool {
        (**self).accepted(run)
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        (**self).poll(run)
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        (**self).wait(run)
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        (**self).finalize(run)
    }

    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        (**self).malloc(bytes)
    }

    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError> {
        (**self).free(base)
    }

    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError> {
        (**self).copy_to(to, from, bytes)
    }

    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        (**self).copy_from(to, from, bytes)
    }

    fn committed_memory(&self) -> u64 {
        (**self).committed_memory()
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        (**self).shutdown()
    }

    fn run(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<(), ChipError> {
        (**self).run(callable, args, config, run)
    }
}
