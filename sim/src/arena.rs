//! Device memory that outlives a run: arena banks, and the retained temporary buffer of each run slot.

use laneway_core::chip::{ChipError, DeviceAddress};
use laneway_core::ids::PipelineSlot;

use crate::memory::DeviceMemory;

/// The arena banks: heap, shared block and runtime image of a run, committed together when a run first needs them.
#[derive(Debug, Default)]
pub(crate) struct ArenaBanks {
    banks: [Option<DeviceAddress>; PipelineSlot::ALL.len()],
}

impl ArenaBanks {
    /// The base of a bank, committing it first if need be.
    pub(crate) fn commit(
        &mut self,
        memory: &mut DeviceMemory,
        bank: u32,
        bytes: u64,
    ) -> Result<DeviceAddress, ChipError> {
        let bank = &mut self.banks[bank as usize];
        match *bank {
            Some(base) => Ok(base),
            None => Ok(*bank.insert(memory.allocate(bytes)?)),
        }
    }

    /// The base of a bank that has been committed.
    pub(crate) fn base(&self, bank: u32) -> Option<DeviceAddress> {
        self.banks.get(bank as usize).copied().flatten()
    }

    pub(crate) fn release(&mut self, memory: &mut DeviceMemory) -> Result<(), ChipError> {
        self.banks.iter_mut().filter_map(Option::take).try_for_each(|base| memory.free(base))
    }
}

/// One retained buffer: it grows by free-then-allocate, only when a run needs more, and is given back at shutdown.
#[derive(Clone, Copy, Debug)]
struct Buffer {
    base: DeviceAddress,
    bytes: u64,
}

/// The retained temporary buffers, one per run slot.
#[derive(Debug, Default)]
pub(crate) struct RetainedTemps {
    buffers: [Option<Buffer>; PipelineSlot::ALL.len()],
    grows: u64,
}

impl RetainedTemps {
    /// A buffer of at least `bytes` bytes. If it has to grow and cannot, the slot has none afterwards; the next run
    /// tries again.
    pub(crate) fn reserve(
        &mut self,
        memory: &mut DeviceMemory,
        slot: PipelineSlot,
        bytes: u64,
    ) -> Result<DeviceAddress, ChipError> {
        let buffer = &mut self.buffers[slot.index()];
        match *buffer {
            Some(Buffer { base, bytes: held }) if held >= bytes => return Ok(base),
            Some(Buffer { base, .. }) => {
                *buffer = None;
                memory.free(base)?;
            }
            None => {}
        }
        let base = memory.allocate(bytes)?;
        self.grows += 1;
        *buffer = Some(Buffer { base, bytes });
        Ok(base)
    }

    /// Where the buffer of a slot is.
    pub(crate) fn base(&self, slot: PipelineSlot) -> Option<DeviceAddress> {
        self.buffers[slot.index()].map(|buffer| buffer.base)
    }

    /// How often a buffer was allocated.
    pub(crate) fn grows(&self) -> u64 {
        self.grows
    }

    pub(crate) fn release(&mut self, memory: &mut DeviceMemory) -> Result<(), ChipError> {
        self.buffers.iter_mut().filter_map(Option::take).try_for_each(|buffer| memory.free(buffer.base))
    }
}
