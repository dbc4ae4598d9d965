//! What a worker has while it is open.

use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::chip::{
    Call, CallableSlot, ChipError, DeviceAddress, DeviceLedger, DeviceRuntime, DirectLane, DirectTicket, HostAddress,
    Reason, Submitted,
};
use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, ByteRange, CallConfig, ChipStorageTaskArgs};

use super::ChipHandle;
use crate::Error;
use crate::sys::threads::HeldDevice;

/// The device and what is known about it.
pub(super) struct Open {
    device: Box<dyn DeviceRuntime>,
    ledger: DeviceLedger,
    /// The serial of what is registered where.
    callables: [Option<u64>; CallableSlot::COUNT],
    /// The arguments of the run that is being prepared; the device copies them.
    storage: Box<ChipStorageTaskArgs>,
    /// Device memory that runs on their way name.
    named: Vec<(DirectTicket, ByteRange)>,
    /// Keeps forks away: a device belongs to one process (P-2).
    _held: HeldDevice,
}

impl Open {
    pub(super) fn new(device: Box<dyn DeviceRuntime>) -> Self {
        Self {
            device,
            ledger: DeviceLedger::new(),
            callables: [None; CallableSlot::COUNT],
            storage: Box::new(ChipStorageTaskArgs::new()),
            named: Vec::new(),
            _held: HeldDevice::count(),
        }
    }

    /// Looks at the runs, and frees what waited for one that has ended.
    pub(super) fn step(&mut self, lane: &mut DirectLane) {
        if lane.step(&mut *self.device) {
            self.named.retain(|(ticket, _)| lane.is_in_flight(*ticket));
            let freeing: Vec<_> = self.ledger.freeing().filter(|(base, bytes)| !self.is_named(*base, *bytes)).collect();
            for (base, _) in freeing {
                // Its user has been told that it is freed. A device that refuses shows it in its committed memory.
                let _ = self.free_now(base);
            }
        }
    }

    pub(super) fn register(&mut self, blob: &[u8]) -> Result<ChipHandle, Error> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let free = self.callables.iter().position(Option::is_none).and_then(CallableSlot::new);
        let full =
            || ChipError::CallableRefused { reason: Reason::from("all 64 slots are taken: unregister one first") };
        let slot = free.ok_or_else(full)?;
        self.device.register(slot, blob)?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        self.callables[slot.index()] = Some(serial);
        Ok(ChipHandle { slot, serial })
    }

    pub(super) fn unregister(&mut self, callable: &ChipHandle) -> Result<(), Error> {
        let slot = self.slot(callable)?;
        self.device.unregister(slot)?;
        self.callables[slot.index()] = None;
        Ok(())
    }

    /// The slot of a handle that is from here and not unregistered.
    fn slot(&self, callable: &ChipHandle) -> Result<CallableSlot, ChipError> {
        let slot = callable.slot;
        let known = self.callables[slot.index()] == Some(callable.serial);
        known.then_some(slot).ok_or(ChipError::CallableUnknown { slot })
    }

    pub(super) fn submit(
        &mut self,
        lane: &mut DirectLane,
        callable: &ChipHandle,
        args: &TaskArgs,
        config: &CallConfig,
    ) -> Result<Submitted, Error> {
        let slot = self.slot(callable)?;
        for (index, tensor) in args.tensors().iter().enumerate() {
            let range = tensor.byte_range();
            if tensor.addr() == 0 && tensor.buffer_bytes() > 0 {
                let reason = Reason::from("address 0: a level-2 worker allocates no outputs");
                return Err(ChipError::ArgumentRefused { index, reason }.into());
            }
            if tensor.address_space() == AddressSpace::Device {
                self.ledger.check(Call::Prepare, DeviceAddress(range.start), range.len())?;
            }
        }
        self.storage.load(args.view());
        let submitted = lane.submit(&mut *self.device, slot, &self.storage, config)?;
        if let Submitted::Accepted(ticket) = submitted {
            let on_device = args.tensors().iter().filter(|tensor| tensor.address_space() == AddressSpace::Device);
            self.named.extend(on_device.map(|tensor| (ticket, tensor.byte_range())));
        }
        Ok(submitted)
    }

    pub(super) fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, Error> {
        let base = self.device.malloc(bytes)?;
        self.ledger.enter(base, bytes)?;
        Ok(base)
    }

    pub(super) fn free(&mut self, base: DeviceAddress) -> Result<(), Error> {
        let bytes = self.ledger.begin_free(base)?;
        if self.is_named(base, bytes) { Ok(()) } else { self.free_now(base) }
    }

    fn free_now(&mut self, base: DeviceAddress) -> Result<(), Error> {
        // A panic of the device leaves it at that.
        let request = self.ledger.request_free(base);
        let answer = self.device.free(base);
        match answer {
            Ok(()) => self.ledger.freed(request),
            Err(ChipError::FreeUnproven { .. }) => {}
            Err(_) => self.ledger.free_failed(request),
        }
        Ok(answer?)
    }

    pub(super) fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), Error> {
        self.check_copy(Call::CopyTo, to, bytes)?;
        Ok(self.device.copy_to(to, from, bytes)?)
    }

    pub(super) fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), Error> {
        self.check_copy(Call::CopyFrom, from, bytes)?;
        Ok(self.device.copy_from(to, from, bytes)?)
    }

    fn check_copy(&self, call: Call, address: DeviceAddress, bytes: u64) -> Result<(), Error> {
        self.ledger.check(call, address, bytes)?;
        if self.is_named(address, bytes) {
            return Err(Error::InUse { start: address.0, end: address.0 + bytes });
        }
        Ok(())
    }

    /// Whether a run on its way names any of these bytes.
    fn is_named(&self, address: DeviceAddress, bytes: u64) -> bool {
        let range = ByteRange { start: address.0, end: address.0.saturating_add(bytes) };
        self.named.iter().any(|(_, named)| named.overlaps(range))
    }

    pub(super) fn committed_memory(&self) -> u64 {
        self.device.committed_memory()
    }

    /// Frees what is live and closes the device; says what was live.
    pub(super) fn close(mut self) -> Result<Vec<(DeviceAddress, u64)>, Error> {
        let live: Vec<_> = self.ledger.live().collect();
        let mut closed = Ok(());
        for (base, _) in self.ledger.held() {
            closed = closed.and(self.device.free(base));
        }
        closed.and(self.device.shutdown())?;
        Ok(live)
    }
}
