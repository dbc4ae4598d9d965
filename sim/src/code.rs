//! Callables on the device: their code is uploaded once per content, however many slots hold it.

use std::collections::HashMap;

use laneway_core::chip::{CallableSlot, CallableSlots, ChipError, DeviceAddress};
use sha2::{Digest as _, Sha256};

use crate::memory::DeviceMemory;
use crate::program::Program;

/// Uploaded code.
#[derive(Debug)]
struct Upload {
    address: DeviceAddress,
    /// Callable slots that hold it, at least 1.
    slots: usize,
}

/// A callable that is registered.
#[derive(Debug)]
struct Callable {
    content: [u8; 32],
    program: Program,
}

/// What was uploaded how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CodeCounters {
    /// Contents uploaded because no slot held them.
    pub uploads: u64,
    /// Registrations whose content was there already.
    pub reuses: u64,
    /// Code allocations freed.
    pub frees: u64,
}

/// Whether a registration brought new code to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Registered {
    Uploaded,
    Reused,
}

/// The callable slots of a device.
#[derive(Debug)]
pub(crate) struct CodeStore {
    slots: CallableSlots<Callable>,
    uploads: HashMap<[u8; 32], Upload>,
    counters: CodeCounters,
}

impl CodeStore {
    pub(crate) fn new() -> Self {
        Self { slots: CallableSlots::new(), uploads: HashMap::new(), counters: CodeCounters::default() }
    }

    pub(crate) fn counters(&self) -> CodeCounters {
        self.counters
    }

    /// The program in a slot.
    pub(crate) fn program(&self, slot: CallableSlot) -> Result<&Program, ChipError> {
        self.slots.get(slot).map(|callable| &callable.program)
    }

    /// Reads a blob and puts it into an empty slot; on an error nothing has changed.
    pub(crate) fn register(
        &mut self,
        memory: &mut DeviceMemory,
        slot: CallableSlot,
        blob: &[u8],
    ) -> Result<Registered, ChipError> {
        self.slots.check_free(slot)?;
        let program = Program::from_callable(blob)?;
        let content: [u8; 32] = Sha256::digest(blob).into();
        let registered = match self.uploads.get_mut(&content) {
            Some(upload) => {
                upload.slots += 1;
                self.counters.reuses += 1;
                Registered::Reused
            }
            None => {
                let address = memory.allocate(blob.len() as u64)?;
                let range = memory.range(laneway_core::chip::Call::Register, address, blob.len() as u64)?;
                memory.bytes_mut(range).copy_from_slice(blob);
                self.uploads.insert(content, Upload { address, slots: 1 });
                self.counters.uploads += 1;
                Registered::Uploaded
            }
        };
        self.slots.insert(slot, Callable { content, program })?;
        Ok(registered)
    }

    /// Empties a slot; the code goes with the last slot that held it.
    pub(crate) fn unregister(&mut self, memory: &mut DeviceMemory, slot: CallableSlot) -> Result<(), ChipError> {
        let callable = self.slots.remove(slot)?;
        let Some(upload) = self.uploads.get_mut(&callable.content) else { return Ok(()) };
        upload.slots -= 1;
        if upload.slots == 0 {
            let address = upload.address;
            self.uploads.remove(&callable.content);
            self.counters.frees += 1;
            memory.free(address)?;
        }
        Ok(())
    }

    /// Empties every slot.
    pub(crate) fn clear(&mut self, memory: &mut DeviceMemory) -> Result<(), ChipError> {
        let mut answer = Ok(());
        let taken: Vec<_> = self.slots.taken().collect();
        for slot in taken {
            answer = answer.and(self.unregister(memory, slot));
        }
        answer
    }
}
