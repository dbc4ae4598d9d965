//! The run slots of one device: which run is in which phase, and which call may move it (C-6).

use core::mem;

use super::{Call, ChipError, Phase, RunEpoch};
use crate::ids::PipelineSlot;

/// Names one prepared run of one device until it is finalized. Made by [`RunTable::begin_prepare`] alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RunToken {
    slot: PipelineSlot,
    epoch: RunEpoch,
}

impl RunToken {
    /// The run slot, which selects storage, arena bank and handles (C-1).
    #[must_use]
    pub const fn slot(self) -> PipelineSlot {
        self.slot
    }

    /// The identity of the run (C-7).
    #[must_use]
    pub const fn epoch(self) -> RunEpoch {
        self.epoch
    }
}

/// How a launched run ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Completion {
    /// The device is done with it.
    Proven,
    /// The runtime reported an error after the launch: the device may still be at work (C-9).
    Unproven,
}

/// What a finalize has to clean up; takes the payload out of the slot, so it happens once (L-15).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finalizing<P> {
    /// It was never launched: give its resources back, copy nothing.
    Abandoned(P),
    /// It completed: copy its results back, then give its resources back.
    Completed(P),
    /// The device may still write: copy nothing back and reuse nothing that it can reach (T-30).
    Unproven(P),
}

/// One run slot. What a run owns lives only in the phases in which it owns it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Slot<P> {
    Empty,
    Preparing { epoch: RunEpoch },
    Prepared { epoch: RunEpoch, payload: P },
    Launched { epoch: RunEpoch, payload: P },
    Reaped { epoch: RunEpoch, payload: P, completion: Completion },
    Finalizing { epoch: RunEpoch },
}

impl<P> Slot<P> {
    const fn phase(&self) -> Phase {
        match self {
            Self::Empty => Phase::Empty,
            Self::Preparing { .. } => Phase::Preparing,
            Self::Prepared { .. } => Phase::Prepared,
            Self::Launched { .. } => Phase::Launched,
            Self::Reaped { .. } => Phase::Reaped,
            Self::Finalizing { .. } => Phase::Finalizing,
        }
    }

    const fn epoch(&self) -> Option<RunEpoch> {
        match self {
            Self::Empty => None,
            Self::Preparing { epoch }
            | Self::Prepared { epoch, .. }
            | Self::Launched { epoch, .. }
            | Self::Reaped { epoch, .. }
            | Self::Finalizing { epoch } => Some(*epoch),
        }
    }
}

/// The run slots of one device. `P` is what the backend keeps per run, from the end of prepare to finalize.
///
/// A backend asks before it acts and tells what happened: `begin_prepare` … `prepared`, `check_launch` … `launched`,
/// `get_mut(Poll)` … `reaped`, `begin_finalize` … `finalized`. A call in the wrong phase changes nothing.
///
/// ```
/// use laneway_core::chip::{Call, ChipError, Completion, Finalizing, RunTable};
/// use laneway_core::ids::PipelineSlot;
///
/// # fn main() -> Result<(), ChipError> {
/// let mut runs = RunTable::new();
/// let run = runs.begin_prepare(PipelineSlot::Zero)?;
/// runs.prepared(run, "what the run owns")?;
/// assert!(runs.reaped(Call::Poll, run, Completion::Proven).is_err(), "it was not launched");
/// runs.launched(run)?;
/// runs.reaped(Call::Poll, run, Completion::Proven)?;
/// assert_eq!(runs.begin_finalize(run)?, Finalizing::Completed("what the run owns"));
/// runs.finalized(run)?;
/// assert!(runs.launched(run).is_err(), "the token is dead");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RunTable<P> {
    slots: [Slot<P>; PipelineSlot::ALL.len()],
}

impl<P> Default for RunTable<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> RunTable<P> {
    /// A table without runs.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: [Slot::Empty, Slot::Empty] }
    }

    /// The phase of a run slot.
    #[must_use]
    pub const fn phase(&self, slot: PipelineSlot) -> Phase {
        self.slots[slot.index()].phase()
    }

    /// The runs that are not over, lowest slot first.
    pub fn runs(&self) -> impl Iterator<Item = (RunToken, Phase)> + '_ {
        PipelineSlot::ALL.into_iter().zip(&self.slots).filter_map(|(slot, state)| {
            let epoch = state.epoch()?;
            Some((RunToken { slot, epoch }, state.phase()))
        })
    }

    /// The run that the device has: launched, and not yet finalized (L-12).
    #[must_use]
    pub fn executing(&self) -> Option<(RunToken, Phase)> {
        self.runs().find(|(_, phase)| matches!(phase, Phase::Launched | Phase::Reaped | Phase::Finalizing))
    }

    /// Refuses `call` while a run is anywhere between prepare and the end of its finalize (C-8).
    ///
    /// # Errors
    /// [`ChipError::RunInFlight`] naming it.
    pub fn check_idle(&self, call: Call) -> Result<(), ChipError> {
        match self.runs().next() {
            Some((token, phase)) => Err(ChipError::RunInFlight { call, epoch: token.epoch, phase }),
            None => Ok(()),
        }
    }

    /// EMPTY → PREPARING, under a fresh epoch (C-7).
    ///
    /// # Errors
    /// [`ChipError::WrongPhase`] if the slot holds a run.
    pub fn begin_prepare(&mut self, slot: PipelineSlot) -> Result<RunToken, ChipError> {
        let state = &mut self.slots[slot.index()];
        match state {
            Slot::Empty => {
                let epoch = RunEpoch::mint();
                *state = Slot::Preparing { epoch };
                Ok(RunToken { slot, epoch })
            }
            _ => Err(ChipError::WrongPhase { call: Call::Prepare, slot, phase: state.phase() }),
        }
    }

    /// PREPARING → PREPARED.
    ///
    /// # Errors
    /// [`ChipError::StaleToken`] or [`ChipError::WrongPhase`]; `payload` is dropped.
    pub fn prepared(&mut self, token: RunToken, payload: P) -> Result<(), ChipError> {
        let state = self.current(Call::Prepare, token)?;
        match state {
            Slot::Preparing { epoch } => {
                *state = Slot::Prepared { epoch: *epoch, payload };
                Ok(())
            }
            _ => Err(ChipError::WrongPhase { call: Call::Prepare, slot: token.slot, phase: state.phase() }),
        }
    }

    /// PREPARING → EMPTY: the prepare failed and left nothing behind.
    ///
    /// # Errors
    /// [`ChipError::StaleToken`] or [`ChipError::WrongPhase`].
    pub fn prepare_failed(&mut self, token: RunToken) -> Result<(), ChipError> {
        let state = self.current(Call::Prepare, token)?;
        match state {
            Slot::Preparing { .. } => {
                *state = Slot::Empty;
                Ok(())
            }
            _ => Err(ChipError::WrongPhase { call: Call::Prepare, slot: token.slot, phase: state.phase() }),
        }
    }

    /// Whether `token` may be launched now: it is PREPARED and the device has no other run (L-12, L-14).
    ///
    /// # Errors
    /// [`ChipError::StaleToken`], [`ChipError::WrongPhase`] or [`ChipError::LaunchOrder`].
    pub fn check_launch(&self, token: RunToken) -> Result<(), ChipError> {
        self.get(Call::Launch, token)?;
        match self.executing() {
            Some((before, phase)) => Err(ChipError::LaunchOrder { epoch: token.epoch, before: before.epoch, phase }),
            None => Ok(()),
        }
    }

    /// PREPARED → LAUNCHED.
    ///
    /// # Errors
    /// As [`check_launch`](Self::check_launch).
    pub fn launched(&mut self, token: RunToken) -> Result<(), ChipError> {
        self.check_launch(token)?;
        self.advance(Call::Launch, token, |epoch, payload| Slot::Launched { epoch, payload })
    }

    /// LAUNCHED → REAPED by a poll or a wait, or PREPARED → REAPED by a launch that failed half-way, which is
    /// unproven by nature.
    ///
    /// # Errors
    /// [`ChipError::StaleToken`] or [`ChipError::WrongPhase`].
    pub fn reaped(&mut self, call: Call, token: RunToken, completion: Completion) -> Result<(), ChipError> {
        let completion = if call == Call::Launch { Completion::Unproven } else { completion };
        self.advance(call, token, |epoch, payload| Slot::Reaped { epoch, payload, completion })
    }

    /// The payload of a run on which `call` is legal.
    ///
    /// # Errors
    /// [`ChipError::StaleToken`] or [`ChipError::WrongPhase`].
    pub fn get(&self, call: Call, token: RunToken) -> Result<&P, ChipError> {
        let state = &self.slots[token.slot.index()];
        if state.epoch() != Some(token.epoch) {
            return Err(ChipError::StaleToken { call, epoch: token.epoch, current: state.epoch() });
        }
        match state {
            Slot::Prepared { payload, .. } | Slot::Launched { payload, .. } | Slot::Reaped { payload, .. }
                if state.phase().allows(call) =>
            {
                Ok(payload)
            }
            _ => Err(ChipError::WrongPhase { call, slot: token.slot, phase: state.phase() }),
        }
    }

    /// As [`get`](Self::get), to change it.
    ///
    /// # Errors
    /// [`ChipError::StaleToken`] or [`ChipError::WrongPhase`].
    pub fn get_mut(&mut self, call: Call, token: RunToken) -> Result<&mut P, ChipError> {
        let state = self.current(call, token)?;
        let phase = state.phase();
        match state {
            Slot::Prepared { payload, .. } | Slot::Launched { payload, .. } | Slot::Reaped { payload, .. }
                if phase.allows(call) =>
            {
                Ok(payload)
            }
            _ => Err(ChipError::WrongPhase { call, slot: token.slot, phase }),
        }
    }

    /// The payload of a run in whatever phase has one; `None` if the run is over.
    #[must_use]
    pub fn find(&self, token: RunToken) -> Option<&P> {
        match &self.slots[token.slot.index()] {
            Slot::Prepared { epoch, payload }
            | Slot::Launched { epoch, payload }
            | Slot::Reaped { epoch, payload, .. }
                if *epoch == token.epoch =>
            {
                Some(payload)
            }
            _ => None,
        }
    }

    /// PREPARED or REAPED → FINALIZING; gives the payload out together with what it needs. A LAUNCHED run must be
    /// waited for first.
    ///
    /// # Errors
    /// [`ChipError::StaleToken`] or [`ChipError::WrongPhase`].
    pub fn begin_finalize(&mut self, token: RunToken) -> Result<Finalizing<P>, ChipError> {
        let state = self.current(Call::Finalize, token)?;
        match mem::replace(state, Slot::Finalizing { epoch: token.epoch }) {
            Slot::Prepared { payload, .. } => Ok(Finalizing::Abandoned(payload)),
            Slot::Reaped { payload, completion: Completion::Proven, .. } => Ok(Finalizing::Completed(payload)),
            Slot::Reaped { payload, completion: Completion::Unproven, .. } => Ok(Finalizing::Unproven(payload)),
            other => {
                let phase = other.phase();
                *state = other;
                Err(ChipError::WrongPhase { call: Call::Finalize, slot: token.slot, phase })
            }
        }
    }

    /// FINALIZING → EMPTY.
    ///
    /// # Errors
    /// [`ChipError::StaleToken`] or [`ChipError::WrongPhase`].
    pub fn finalized(&mut self, token: RunToken) -> Result<(), ChipError> {
        let state = self.current(Call::Finalize, token)?;
        match state {
            Slot::Finalizing { .. } => {
                *state = Slot::Empty;
                Ok(())
            }
            _ => Err(ChipError::WrongPhase { call: Call::Finalize, slot: token.slot, phase: state.phase() }),
        }
    }

    fn current(&mut self, call: Call, token: RunToken) -> Result<&mut Slot<P>, ChipError> {
        let state = &mut self.slots[token.slot.index()];
        if state.epoch() == Some(token.epoch) {
            Ok(state)
        } else {
            Err(ChipError::StaleToken { call, epoch: token.epoch, current: state.epoch() })
        }
    }

    /// Moves the payload of a run on which `call` is legal into the state that `into` makes.
    fn advance(
        &mut self,
        call: Call,
        token: RunToken,
        into: impl FnOnce(RunEpoch, P) -> Slot<P>,
    ) -> Result<(), ChipError> {
        self.get(call, token)?;
        let state = self.current(call, token)?;
        *state = match mem::replace(state, Slot::Empty) {
            Slot::Prepared { epoch, payload } | Slot::Launched { epoch, payload } => into(epoch, payload),
            other => other,
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests;
