//! A device that is wrong on purpose: the simulator, with one call changed.

mod memory;
mod wrong;

use std::collections::HashMap;

use laneway_core::chip::{
    Call, CallableSlot, ChipError, Contract, DeviceAddress, DeviceRuntime, HostAddress, Progress, Reason,
    RunDescriptor, RunToken,
};
use laneway_core::ids::PipelineSlot;
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs, PipelineContract, ResourceClass, ResourceKind};
use laneway_sim::Simulator;

use memory::Seen;
pub(crate) use wrong::Wrong;

pub(crate) struct Mutant {
    inner: Simulator,
    wrong: Wrong,
    runs: HashMap<usize, (RunToken, Seen)>,
    /// A launch that was taken too early, to be made good once the other run is over.
    owed: Option<RunToken>,
    last: Option<(DeviceAddress, u64)>,
    /// Bytes of the first result.
    first_size: Option<u64>,
    shut: bool,
}

impl Mutant {
    pub(crate) fn new(inner: Simulator, wrong: Wrong) -> Self {
        Self { inner, wrong, runs: HashMap::new(), owed: None, last: None, first_size: None, shut: false }
    }

    fn is(&self, wrong: Wrong) -> bool {
        self.wrong == wrong
    }

    fn seen(&mut self, run: RunToken) -> Option<&mut Seen> {
        self.runs.get_mut(&run.slot().index()).filter(|(token, _)| *token == run).map(|(_, seen)| seen)
    }

    /// Changes how a failure is called.
    fn call_it<T>(&mut self, result: Result<T, ChipError>) -> Result<T, ChipError> {
        let failed = |call, code| ChipError::Failed { call, code, reason: Reason::from("it did not work") };
        result.map_err(|error| match (self.wrong, error) {
            (Wrong::CallsUnsupportedAFailure, ChipError::Unsupported { call, .. }) => failed(call, -1),
            (Wrong::CallsIncompatibleAFailure, ChipError::Incompatible { call }) => failed(call, -1),
            (Wrong::ForgetsCodes, ChipError::Failed { call, .. }) => failed(call, -1),
            (_, error) => error,
        })
    }
}

impl DeviceRuntime for Mutant {
    fn contract(&self) -> Contract {
        if self.is(Wrong::ClaimsADeeperContract) {
            let arena = [(ResourceKind::GmHeap, ResourceClass::HostPerRun)];
            return PipelineContract::new(2, &arena)
                .and_then(|raw| Contract::check(&raw))
                .unwrap_or(Contract::absent());
        }
        self.inner.contract()
    }

    fn supports_concurrent_prepare(&self) -> bool {
        self.is(Wrong::PreparesBesideAtDepthOne)
            || !self.is(Wrong::PreparesBesideWhereItMayNot) && self.inner.supports_concurrent_prepare()
    }

    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError> {
        let result = self.inner.register(slot, callable);
        match (self.wrong, &result) {
            (Wrong::RegistersDuringARun, Err(ChipError::RunInFlight { .. })) => Ok(()),
            (Wrong::TakesAnyCallable, Err(ChipError::CallableRefused { .. })) => Ok(()),
            (Wrong::OverwritesACallable, Err(ChipError::CallableTaken { .. })) => {
                self.inner.unregister(slot)?;
                self.inner.register(slot, callable)
            }
            _ => self.call_it(result),
        }
    }

    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError> {
        let result = self.inner.unregister(slot);
        match (self.wrong, &result) {
            (Wrong::UnregistersDuringARun, Err(ChipError::RunInFlight { .. })) => Ok(()),
            (Wrong::LeaksCode, Ok(())) => self.inner.malloc(4096).map(drop),
            _ => self.call_it(result),
        }
    }

    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        let plain = CallConfig::ZERO;
        if self.is(Wrong::CrashesOnDiagnostics) && config.is_diagnostic() {
            std::process::abort();
        }
        let config = if self.is(Wrong::PreparesDiagnosticsBeside) { &plain } else { config };
        let run = match self.wrong {
            Wrong::UsesASlotBeyondTheDepth if run.slot() == PipelineSlot::One => {
                RunDescriptor::Direct(PipelineSlot::Zero)
            }
            _ => run,
        };
        let seen = self.look_at(args);
        let nothing = seen.tensors.iter().any(|tensor| tensor.extent() == 0);
        if self.is(Wrong::LeaksABank) {
            let _ = self.inner.malloc(4096);
        }
        let mut result = self.inner.prepare(callable, args, config, run);
        if let (Wrong::RunsAnotherCallable, Err(ChipError::CallableUnknown { .. }), Some(first)) =
            (self.wrong, &result, CallableSlot::new(0))
        {
            result = self.inner.prepare(first, args, config, run);
        }
        if self.is(Wrong::LeaksRefusedArguments) && result.is_err() {
            let _ = self.inner.malloc(4096);
        }
        let token = self.call_it(result).inspect_err(|error| {
            if self.wrong == Wrong::LosesTheDeviceOnAnyFailure && matches!(error, ChipError::Failed { .. }) {
                self.shut = true;
            }
        });
        if self.is(Wrong::LosesTheDeviceOnAnyFailure) && self.shut && token.is_ok() {
            let _ = self.inner.finalize(token.clone()?);
            return Err(ChipError::DeviceGone { call: Call::Prepare });
        }
        let token = token?;
        self.runs.insert(token.slot().index(), (token, seen));
        if self.is(Wrong::LaunchesEarly) {
            self.inner.launch(token)?;
        }
        if self.is(Wrong::HangsOnNothing) && nothing {
            loop {
                std::thread::park();
            }
        }
        Ok(token)
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        let early = self.is(Wrong::LaunchesEarly) && self.seen(run).is_some_and(|seen| !seen.launched);
        let result = if early { Ok(()) } else { self.inner.launch(run) };
        match (self.wrong, &result) {
            (Wrong::OverlapsTwoRuns, Err(ChipError::LaunchOrder { .. })) => {
                self.owed = Some(run);
                return Ok(());
            }
            (Wrong::TakesStaleTokens, Err(ChipError::StaleToken { .. })) => return Ok(()),
            (Wrong::GivesUpARefusedLaunch, Err(ChipError::Failed { .. })) => {
                let _ = self.inner.finalize(run);
            }
            _ => {}
        }
        let failed = result.is_err();
        if let Some(seen) = self.seen(run) {
            seen.launched |= !failed;
            seen.failed |= failed;
        }
        if self.is(Wrong::HidesFailuresOfTheDevice) && result.as_ref().is_err_and(ChipError::is_unproven) {
            return Ok(());
        }
        self.call_it(result)
    }

    fn accepted(&self, run: RunToken) -> bool {
        let known = self.runs.get(&run.slot().index()).filter(|(token, _)| *token == run);
        match self.wrong {
            Wrong::ForgetsAcceptance => false,
            Wrong::AcceptsFromPrepareOn => known.is_some(),
            Wrong::KeepsAcceptance => self.inner.accepted(run) || known.is_some_and(|(_, seen)| seen.launched),
            _ => self.inner.accepted(run),
        }
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        let result = self.inner.poll(run);
        if let Some(seen) = self.seen(run) {
            seen.failed |= result.is_err();
            seen.reaped |= result == Ok(Progress::Complete);
        }
        match (self.wrong, &result) {
            (Wrong::CompletesEarly, Ok(Progress::NotReady)) => Ok(Progress::Complete),
            (Wrong::TakesStaleTokens, Err(ChipError::StaleToken { .. })) => Ok(Progress::Complete),
            (Wrong::HidesFailuresOfTheDevice, Err(error)) if error.is_unproven() => Ok(Progress::Complete),
            _ => result,
        }
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        let result = self.inner.wait(run);
        if let Some(seen) = self.seen(run) {
            seen.failed |= result.is_err();
            seen.reaped = true;
        }
        match (self.wrong, &result) {
            (Wrong::TakesStaleTokens, Err(ChipError::StaleToken { .. })) => Ok(()),
            (Wrong::HidesFailuresOfTheDevice, Err(error)) if error.is_unproven() => Ok(()),
            _ => result,
        }
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        let result = self.inner.finalize(run);
        if self.runs.get(&run.slot().index()).is_some_and(|(token, _)| *token == run)
            && !self.is(Wrong::KeepsAcceptance)
            && let Some((_, seen)) = self.runs.remove(&run.slot().index())
        {
            self.spoil(&seen);
        }
        if let Some(owed) = self.owed.take_if(|owed| *owed != run) {
            self.inner.launch(owed)?;
        }
        match (self.wrong, &result) {
            (Wrong::FinalizesTwice | Wrong::TakesStaleTokens, Err(ChipError::StaleToken { .. })) => Ok(()),
            (Wrong::HidesFailuresOfTheDevice, Err(error)) if error.is_unproven() => Ok(()),
            _ => self.call_it(result),
        }
    }

    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        if self.is(Wrong::AllocatesNothing) && bytes == 0 {
            return self.inner.malloc(1);
        }
        if let (Wrong::OverlapsAllocations, Some((base, room))) = (self.wrong, self.last)
            && bytes <= room
        {
            return Ok(base);
        }
        let slack = if self.is(Wrong::RoundsAllocationsUp) && bytes > 0 { 64 } else { 0 };
        let result = self.inner.malloc(bytes + slack);
        if let Ok(base) = result {
            self.last = Some((base, bytes));
        }
        match (self.wrong, &result) {
            (Wrong::MakesUpMemory, Err(ChipError::OutOfMemory { .. })) => Ok(laneway_sim::DEVICE_BASE),
            (Wrong::MakesUpAddresses, Err(ChipError::Failed { .. })) => Ok(laneway_sim::DEVICE_BASE),
            (Wrong::AllocatesAfterTheLoss, Err(ChipError::DeviceGone { .. })) if !self.shut => {
                Ok(laneway_sim::DEVICE_BASE)
            }
            (Wrong::AllocatesAfterTheEnd, Err(ChipError::DeviceGone { .. })) if self.shut => {
                Ok(laneway_sim::DEVICE_BASE)
            }
            _ => result,
        }
    }

    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError> {
        if self.is(Wrong::ForgetsToFree) {
            return Ok(());
        }
        self.last = self.last.filter(|(last, _)| *last != base);
        let result = self.inner.free(base);
        match (self.wrong, &result) {
            (Wrong::FreesTwice, Err(ChipError::NotDeviceMemory { .. })) if base.0 >= laneway_sim::DEVICE_BASE.0 => {
                Ok(())
            }
            (Wrong::FreesFromInside, Err(ChipError::NotABase { base, .. })) => self.inner.free(*base),
            (Wrong::TakesHostPointers, Err(ChipError::NotDeviceMemory { address, .. }))
                if address.0 < laneway_sim::DEVICE_BASE.0 =>
            {
                Ok(())
            }
            _ => result,
        }
    }

    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError> {
        let bytes = if self.is(Wrong::CopiesAByteTooFew) { bytes.saturating_sub(1) } else { bytes };
        let result = self.inner.copy_to(to, from, bytes);
        self.copied(result, to, bytes)
    }

    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        let result = self.inner.copy_from(to, from, bytes);
        if self.is(Wrong::CopiesAByteTooMany) && result.is_ok() {
            self.poke(to.0 + bytes, &[0x5a]);
        }
        if self.is(Wrong::ReadsDeadMemory) && matches!(result, Err(ChipError::NotDeviceMemory { .. })) {
            return Ok(());
        }
        self.copied(result, from, bytes)
    }

    fn committed_memory(&self) -> u64 {
        let leaked = if self.shut && self.is(Wrong::LeaksAtShutdown) { 64 } else { 0 };
        self.inner.committed_memory() + leaked
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        if self.is(Wrong::FailsASecondShutdown) && self.shut {
            return Err(ChipError::DeviceGone { call: Call::Shutdown });
        }
        self.shut = true;
        self.inner.shutdown()
    }
}

impl Mutant {
    /// What a copy that was refused comes to.
    fn copied(&self, result: Result<(), ChipError>, at: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        match (self.wrong, &result) {
            (Wrong::IsOffByOneAtTheEnd, Err(ChipError::OutOfBounds { base, size, .. }))
                if at.0.checked_add(bytes) == Some(base.0 + size + 1) =>
            {
                Ok(())
            }
            (Wrong::TakesHostPointers, Err(ChipError::NotDeviceMemory { .. })) if at.0 < laneway_sim::DEVICE_BASE.0 => {
                Ok(())
            }
            _ => result,
        }
    }
}
