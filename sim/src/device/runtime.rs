//! The device as the trait sees it.

use std::time::Duration;

use laneway_core::chip::{
    Call, CallableSlot, ChipError, Contract, DeviceAddress, DeviceRuntime, Finalizing, HostAddress, Phase, Progress,
    Reason, RunDescriptor, RunToken,
};
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs};

use super::run::Plan;
use super::{Health, Simulator};
use crate::code::Registered;
use crate::graph::Graph;

impl DeviceRuntime for Simulator {
    fn contract(&self) -> Contract {
        self.contract
    }

    fn supports_concurrent_prepare(&self) -> bool {
        self.config.profile.capabilities().concurrent_prepare
    }

    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError> {
        self.check_open(Call::Register)?;
        self.runs.check_idle(Call::Register)?;
        self.strike(Call::Register)?;
        if self.code.register(&mut self.memory, slot, callable)? == Registered::Uploaded {
            self.streams.publish_code();
        }
        Ok(())
    }

    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError> {
        self.check_open(Call::Unregister)?;
        self.runs.check_idle(Call::Unregister)?;
        self.strike(Call::Unregister)?;
        self.code.unregister(&mut self.memory, slot)
    }

    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        self.check_open(Call::Prepare)?;
        let slot = run.slot();
        self.contract.check_slot(slot)?;
        let beside = self.runs.runs().map(|(token, _)| token).find(|token| token.slot() != slot);
        let token = self.runs.begin_prepare(slot)?;
        let built = self.strike(Call::Prepare).and_then(|_| {
            if let Some(other) = beside {
                let other_diagnostic = self.runs.find(other).is_some_and(|run| run.diagnostic);
                if !self.supports_concurrent_prepare() || other_diagnostic || config.is_diagnostic() {
                    return Err(ChipError::Incompatible { call: Call::Prepare });
                }
            }
            self.build(callable, args, config, slot)
        });
        match built {
            Ok(run) => {
                self.runs.prepared(token, run)?;
                Ok(token)
            }
            Err(error) => {
                self.runs.prepare_failed(token)?;
                Err(error)
            }
        }
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.runs.check_launch(run)?;
        self.check_open(Call::Launch)?;
        let struck = self.strike(Call::Launch)?;
        let state = self.runs.get(Call::Launch, run)?;
        let bank = state.bank;
        if let Plan::OnDevice { callable, views, scalars } = &state.plan {
            let graph = Graph::build(self.code.program(*callable)?, views, scalars)?;
            graph.store(&mut self.memory, bank)?;
        }
        let duration =
            Graph::load(&self.memory, bank)?.duration(self.config.cost.kernel_nanos, self.config.cost.element_picos);
        if self.counters.kernel_images_registered == 0 {
            self.counters.kernel_images_registered = 1;
        }
        if !self.streams.submit(run.epoch()) {
            let reason = Reason::from("another run is on the streams");
            return Err(ChipError::Failed { call: Call::Launch, code: -1, reason });
        }
        if struck.half_launch {
            let reason = Reason::from("the AICore kernel was not enqueued after the AICPU kernel was");
            return Err(self.lose(Call::Launch, run, &ChipError::Failed { call: Call::Launch, code: -1, reason }));
        }
        let now = self.clock.now();
        let state = self.runs.get_mut(Call::Launch, run)?;
        state.due = now.saturating_add(Duration::from_nanos(duration.saturating_add(struck.delay)));
        state.hangs = struck.hang;
        state.accepted = !struck.skip_acceptance;
        self.counters.launches += 1;
        self.runs.launched(run)
    }

    fn accepted(&self, run: RunToken) -> bool {
        self.runs.find(run).is_some_and(|run| run.accepted)
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        self.look(Call::Poll, run)?;
        let state = self.runs.get(Call::Poll, run)?;
        if (state.hangs && !self.hang.is_released()) || self.clock.now() < state.due {
            return Ok(Progress::NotReady);
        }
        self.complete(Call::Poll, run)?;
        Ok(Progress::Complete)
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.look(Call::Wait, run)?;
        let state = self.runs.get(Call::Wait, run)?;
        if state.hangs {
            self.hang.wait();
        }
        self.clock.sleep_until(state.due);
        self.complete(Call::Wait, run)
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        let waited = match self.runs.find(run) {
            Some(_) if self.runs.phase(run.slot()) == Phase::Launched => self.wait(run),
            _ => Ok(()),
        };
        let finalizing = self.runs.begin_finalize(run)?;
        let struck = self.strike(Call::Finalize).map(|_| ());
        let ended = match finalizing {
            Finalizing::Abandoned(state) => {
                self.counters.abandoned += 1;
                state.block.map_or(Ok(()), |block| self.memory.free(block))
            }
            Finalizing::Completed(state) => {
                let copied = struck.clone().and_then(|()| state.staging.copy_back(&self.memory, &self.host));
                copied.and(state.block.map_or(Ok(()), |block| self.memory.free(block)))
            }
            // The device may still write there: the block stays taken until the device is closed.
            Finalizing::Unproven(state) => {
                self.quarantine.extend(state.block);
                Ok(())
            }
        };
        self.runs.finalized(run)?;
        waited.and(struck).and(ended)
    }

    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        self.check_open(Call::Malloc)?;
        self.strike(Call::Malloc)?;
        if bytes == 0 {
            let reason = Reason::from("an allocation of 0 bytes has no address");
            return Err(ChipError::Failed { call: Call::Malloc, code: -1, reason });
        }
        let base = self.memory.allocate(bytes)?;
        self.user.insert(base);
        Ok(base)
    }

    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError> {
        self.check_open(Call::Free)?;
        self.strike(Call::Free)?;
        self.user_range(Call::Free, base, 0)?;
        self.memory.free(base)?;
        self.user.remove(&base);
        Ok(())
    }

    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError> {
        self.check_open(Call::CopyTo)?;
        self.strike(Call::CopyTo)?;
        self.host.check(Call::CopyTo, from, bytes)?;
        let range = self.user_range(Call::CopyTo, to, bytes)?;
        self.host.read(Call::CopyTo, from, self.memory.bytes_mut(range))
    }

    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        self.check_open(Call::CopyFrom)?;
        self.strike(Call::CopyFrom)?;
        let range = self.user_range(Call::CopyFrom, from, bytes)?;
        self.host.write(Call::CopyFrom, to, self.memory.bytes(range))
    }

    fn committed_memory(&self) -> u64 {
        self.memory.committed()
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        if self.health == Health::Closed {
            return Ok(());
        }
        let mut answer = self.strike(Call::Shutdown).map(|_| ());
        let runs: Vec<RunToken> = self.runs.runs().map(|(run, _)| run).collect();
        for run in runs {
            answer = answer.and(self.finalize(run));
        }
        answer = answer.and(self.code.clear(&mut self.memory));
        answer = answer.and(self.temps.release(&mut self.memory));
        answer = answer.and(self.banks.release(&mut self.memory));
        self.streams.close();
        self.counters.kernel_images_released = self.counters.kernel_images_registered;
        self.counters.leaked_allocations = self.user.len() as u64;
        for base in self.user.drain().chain(self.quarantine.drain(..)) {
            answer = answer.and(self.memory.free(base));
        }
        self.health = Health::Closed;
        answer
    }
}
