//! A device whose long calls do not keep its child from dying with its parent.

use laneway_core::chip::{
    CallableSlot, ChipError, Contract, DeviceAddress, DeviceRuntime, HostAddress, Progress, RunDescriptor, RunToken,
};
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs};

use crate::sys::lifeline::Lifeline;

/// Lets the lifeline end the process inside every call that may block for long (L-32). Between such calls the child looks
/// for itself, so that it can close its device.
pub(crate) struct Mortal<'a> {
    device: Box<dyn DeviceRuntime>,
    lifeline: &'a Lifeline,
    /// The run that the device has, until it was seen to be complete: finalizing it may wait for as long as it runs.
    launched: Option<RunToken>,
}

impl<'a> Mortal<'a> {
    pub(crate) fn new(device: Box<dyn DeviceRuntime>, lifeline: &'a Lifeline) -> Self {
        Self { device, lifeline, launched: None }
    }
}

impl DeviceRuntime for Mortal<'_> {
    fn contract(&self) -> Contract {
        self.device.contract()
    }

    fn supports_concurrent_prepare(&self) -> bool {
        self.device.supports_concurrent_prepare()
    }

    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError> {
        self.lifeline.mortal(|| self.device.register(slot, callable))
    }

    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError> {
        self.lifeline.mortal(|| self.device.unregister(slot))
    }

    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        self.device.prepare(callable, args, config, run)
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.device.launch(run)?;
        self.launched = Some(run);
        Ok(())
    }

    fn accepted(&self, run: RunToken) -> bool {
        self.device.accepted(run)
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        let progress = self.device.poll(run);
        if progress == Ok(Progress::Complete) {
            self.launched = None;
        }
        progress
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.lifeline.mortal(|| self.device.wait(run))
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        if self.launched != Some(run) {
            return self.device.finalize(run);
        }
        self.launched = None;
        self.lifeline.mortal(|| self.device.finalize(run))
    }

    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        self.lifeline.mortal(|| self.device.malloc(bytes))
    }

    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError> {
        self.lifeline.mortal(|| self.device.free(base))
    }

    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError> {
        self.lifeline.mortal(|| self.device.copy_to(to, from, bytes))
    }

    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        self.lifeline.mortal(|| self.device.copy_from(to, from, bytes))
    }

    fn committed_memory(&self) -> u64 {
        self.device.committed_memory()
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        self.launched = None;
        self.lifeline.last_call(|| self.device.shutdown())
    }
}

impl Drop for Mortal<'_> {
    /// A panic of the child comes here with the run still on the device, and closing that waits for it.
    fn drop(&mut self) {
        if self.launched.is_some() {
            // Nobody is left to hear about it.
            let _ = self.shutdown();
        }
    }
}
