//! What a run owns, and its way through the device: build, look, complete, lose.

use std::time::Duration;

use laneway_core::chip::{Call, CallableSlot, ChipError, Completion, DeviceAddress, Reason, RunToken, RuntimeKind};
use laneway_core::ids::PipelineSlot;
use laneway_core::time::Instant;
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs};

use super::{Health, Simulator};
use crate::graph::Graph;
use crate::kernel::View;
use crate::staging::Staging;

/// How a run's graph comes about.
#[derive(Debug)]
pub(super) enum Plan {
    /// It lies in the arena bank since prepare (HBG).
    Built,
    /// It is built at launch, from these (TMR).
    OnDevice { callable: CallableSlot, views: Vec<View>, scalars: Vec<u64> },
}

/// What a run owns from prepare to finalize.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) staging: Staging,
    /// A staging block of this run alone (HBG); TMR uses the retained buffer of the slot.
    pub(super) block: Option<DeviceAddress>,
    pub(super) bank: DeviceAddress,
    pub(super) plan: Plan,
    pub(super) diagnostic: bool,
    pub(super) accepted: bool,
    /// When the device is done, from launch on.
    pub(super) due: Instant,
    pub(super) hangs: bool,
    pub(super) executed: bool,
    /// The completion is reported without leaving LAUNCHED, once.
    pub(super) completes_twice: bool,
}

impl Simulator {
    /// Everything of a prepare that can fail. Leaves nothing behind then.
    pub(super) fn build(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        slot: PipelineSlot,
    ) -> Result<Run, ChipError> {
        config.validate().map_err(ChipError::ConfigRefused)?;
        let program = self.code.program(callable)?;
        let (tensors, scalars) = program.arity().judge(program.name(), args)?;
        let mut staging = Staging::plan(tensors, program.tensor_directions(), &self.host, |address, bytes| {
            self.user_range(Call::Prepare, address, bytes).map(|_| ())
        })?;
        // The operands are judged before anything is allocated; their shapes do not depend on where they will be.
        Graph::build(program, &staging.views(), scalars)?;
        let bank = self.banks.commit(&mut self.memory, self.contract.arena_bank(slot), self.config.arena_bytes)?;
        let (block, plan) = match self.config.profile.runtime() {
            RuntimeKind::HostBuildGraph => {
                let block = match staging.bytes() {
                    0 => None,
                    bytes => Some(self.memory.allocate(bytes)?),
                };
                staging.place(block.unwrap_or(DeviceAddress(0)));
                let built = Graph::build(program, &staging.views(), scalars)
                    .and_then(|graph| graph.store(&mut self.memory, bank))
                    .and_then(|()| staging.copy_in(&mut self.memory, &self.host));
                if let (Err(error), Some(block)) = (&built, block) {
                    self.memory.free(block)?;
                    return Err(error.clone());
                }
                built?;
                (block, Plan::Built)
            }
            RuntimeKind::TensormapAndRingbuffer => {
                if staging.bytes() > 0 {
                    staging.place(self.temps.reserve(&mut self.memory, slot, staging.bytes())?);
                }
                staging.copy_in(&mut self.memory, &self.host)?;
                (None, Plan::OnDevice { callable, views: staging.views(), scalars: scalars.to_vec() })
            }
        };
        Ok(Run {
            staging,
            block,
            bank,
            plan,
            diagnostic: config.is_diagnostic(),
            accepted: false,
            due: Instant::default(),
            hangs: false,
            executed: false,
            completes_twice: false,
        })
    }

    /// Ends a launched run without a proof that the device is done with it: the device is lost.
    pub(super) fn lose(&mut self, call: Call, run: RunToken, error: &ChipError) -> ChipError {
        // The caller has just found the run in a phase in which this call is legal.
        let _ = self.runs.reaped(call, run, Completion::Unproven);
        self.streams.retire(run.epoch(), false);
        self.health = Health::Lost;
        self.counters.unproven += 1;
        let reason = match error {
            ChipError::Failed { reason, .. } => reason.clone(),
            other => Reason::new(format_args!("{other}")),
        };
        ChipError::Unproven { call, epoch: run.epoch(), code: error.code(), reason }
    }

    /// Lets the device do the work of a run that is due. The completion is taken unless the plan says to report it twice.
    pub(super) fn complete(&mut self, call: Call, run: RunToken) -> Result<(), ChipError> {
        let (bank, executed) = {
            let run = self.runs.get(call, run)?;
            (run.bank, run.executed)
        };
        if !executed {
            let done = Graph::load(&self.memory, bank).and_then(|graph| graph.execute(&mut self.memory));
            if let Err(error) = done {
                return Err(self.lose(call, run, &error));
            }
        }
        let state = self.runs.get_mut(call, run)?;
        state.executed = true;
        if std::mem::take(&mut state.completes_twice) {
            return Ok(());
        }
        self.runs.reaped(call, run, Completion::Proven)?;
        self.streams.retire(run.epoch(), true);
        self.counters.completions += 1;
        Ok(())
    }

    /// Applies to a launched run what struck the call that looks at it.
    pub(super) fn look(&mut self, call: Call, run: RunToken) -> Result<(), ChipError> {
        self.runs.get(call, run)?;
        match self.strike(call) {
            Ok(struck) => {
                let state = self.runs.get_mut(call, run)?;
                state.due = state.due.saturating_add(Duration::from_nanos(struck.delay));
                state.hangs |= struck.hang;
                state.completes_twice |= struck.complete_twice;
                Ok(())
            }
            Err(error) => Err(self.lose(call, run, &error)),
        }
    }
}
