//! The pipeline contract of a runtime, checked (C-1 … C-3).

use super::{Call, ChipError, Reason};
use crate::ids::PipelineSlot;
use crate::wire::{PipelineContract, ResourceClass, ResourceKind, WireError};

/// A contract that passed the check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Contract {
    depth: u32,
    /// The arena kinds are HOST_PER_RUN, so each pipeline slot has a bank of its own.
    bank_per_slot: bool,
}

impl Contract {
    /// What a runtime without a contract gets: depth 1 (C-3).
    #[must_use]
    pub const fn absent() -> Self {
        Self { depth: 1, bank_per_slot: false }
    }

    /// Judges what a runtime published (C-2).
    ///
    /// # Errors
    /// As [`PipelineContract::validate`].
    pub fn check(raw: &PipelineContract) -> Result<Self, WireError> {
        raw.validate()?;
        let is_banked = |(kind, class): (ResourceKind, _)| kind.is_arena() && class == ResourceClass::HostPerRun;
        Ok(Self { depth: raw.pipeline_depth, bank_per_slot: raw.declared().any(is_banked) })
    }

    /// How many runs may be on the way at once, 1 or 2.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.depth as usize
    }

    /// Whether the runtime has a run slot for this pipeline slot.
    #[must_use]
    pub const fn has_slot(&self, slot: PipelineSlot) -> bool {
        slot.index() < self.depth()
    }

    /// Refuses a prepare in a run slot that the runtime does not have.
    ///
    /// # Errors
    /// [`ChipError::Unsupported`] naming the slot and the depth.
    pub fn check_slot(&self, slot: PipelineSlot) -> Result<(), ChipError> {
        if self.has_slot(slot) {
            return Ok(());
        }
        let reason = Reason::new(format_args!("run slot {} of a runtime of depth {}", slot.index(), self.depth));
        Err(ChipError::Unsupported { call: Call::Prepare, reason })
    }

    /// Copies of a resource of this class (C-1).
    #[must_use]
    pub const fn copies(&self, class: ResourceClass) -> usize {
        class.copies(self.depth) as usize
    }

    /// The arena bank of a run: its pipeline slot if each run has a bank of its own, else 0.
    #[must_use]
    pub const fn arena_bank(&self, slot: PipelineSlot) -> u32 {
        if self.bank_per_slot { slot.index() as u32 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use ResourceClass::{DeviceScratch, ExecHandle, HostPerRun};
    use ResourceKind::{AicoreStream, AicpuStream, GmHeap, GmSm, RuntimeImage, TaskArgs};

    const TMR: [(ResourceKind, ResourceClass); 6] = [
        (TaskArgs, HostPerRun),
        (GmHeap, DeviceScratch),
        (GmSm, DeviceScratch),
        (RuntimeImage, DeviceScratch),
        (AicpuStream, ExecHandle),
        (AicoreStream, ExecHandle),
    ];
    const HBG: [(ResourceKind, ResourceClass); 4] =
        [(GmHeap, HostPerRun), (RuntimeImage, HostPerRun), (AicpuStream, ExecHandle), (AicoreStream, ExecHandle)];

    fn contract(depth: u32, resources: &[(ResourceKind, ResourceClass)]) -> Contract {
        Contract::check(&PipelineContract::new(depth, resources).unwrap()).unwrap()
    }

    /// C-1, with the contracts that are seen in the field.
    #[test]
    fn the_arena_bank_is_the_slot_only_where_each_run_has_its_own() {
        let (tmr, hbg) = (contract(2, &TMR), contract(2, &HBG));
        assert_eq!(PipelineSlot::ALL.map(|slot| tmr.arena_bank(slot)), [0, 0]);
        assert_eq!(PipelineSlot::ALL.map(|slot| hbg.arena_bank(slot)), [0, 1]);
        assert_eq!([HostPerRun, DeviceScratch, ExecHandle].map(|class| hbg.copies(class)), [2, 1, 2]);
        let shallow = contract(1, &HBG);
        assert_eq!([HostPerRun, DeviceScratch, ExecHandle].map(|class| shallow.copies(class)), [1, 1, 1]);
        assert!(shallow.has_slot(PipelineSlot::Zero) && !shallow.has_slot(PipelineSlot::One));
    }

    /// C-2: every field out of range, and the arena kinds that must agree.
    #[test]
    fn a_contract_out_of_range_is_refused() {
        let good = PipelineContract::new(2, &TMR).unwrap();
        let changes: [fn(&mut PipelineContract); 10] = [
            |raw| raw.abi_version = 2,
            |raw| raw.resource_count = 9,
            |raw| raw.resource_count = 7, // the seventh is unspecified
            |raw| raw.pipeline_depth = 0,
            |raw| raw.pipeline_depth = 3,
            |raw| raw.resources[5].kind = 7,
            |raw| raw.resources[0].class = 3,
            |raw| raw.resources[4].bytes_per_copy = 8,
            |raw| raw.resources[2].kind = 1,  // GM_HEAP a second time
            |raw| raw.resources[3].class = 0, // two copies where GM_HEAP has one
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut raw = good;
            change(&mut raw);
            assert!(Contract::check(&raw).is_err(), "change {index}");
        }
    }

    /// C-3
    #[test]
    fn a_runtime_without_a_contract_has_depth_one() {
        assert_eq!(Contract::absent().depth(), 1);
        assert_eq!(Contract::absent().arena_bank(PipelineSlot::Zero), 0);
    }
}
