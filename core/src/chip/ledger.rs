//! Which device memory is live, known without asking the device (C-16).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Call, ChipError, DeviceAddress};

/// One allocation of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Allocation {
    bytes: u64,
    /// Tells it from one that the device hands out at the same place later.
    serial: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    /// May be named by copies and tensors.
    Live,
    /// As live. If the device hands it out again, the free was done all the same.
    Refused,
    /// Its free was accepted and waits for tasks that still name it: nothing new may name it.
    Freeing,
    /// The device was asked to free it and has not answered, and maybe never will. Nothing may name it, and nobody asks a
    /// second time: the device may have given it to somebody else.
    Asked,
}

impl State {
    const fn may_be_named(self) -> bool {
        matches!(self, Self::Live | Self::Refused)
    }
}

/// A free that a device was asked for, until it is known how that ended.
#[derive(PartialEq, Eq, Debug)]
#[must_use]
pub struct FreeRequest {
    base: DeviceAddress,
    serial: u64,
}

/// The live allocations of one device. Equal numbers on two devices are two allocations: each device has a ledger of its
/// own.
///
/// Whoever drives a device from afar judges every pointer here before anything is sent (C-16).
///
/// ```
/// use laneway_core::chip::{Call, ChipError, DeviceAddress, DeviceLedger};
///
/// # fn main() -> Result<(), ChipError> {
/// let mut ledger = DeviceLedger::new();
/// let base = DeviceAddress(0x1000);
/// ledger.enter(base, 64)?;
/// ledger.check(Call::CopyTo, DeviceAddress(0x1010), 48)?;
/// assert!(ledger.check(Call::CopyTo, DeviceAddress(0x1010), 49).is_err(), "past the end");
/// assert!(ledger.begin_free(DeviceAddress(0x1010)).is_err(), "no base");
/// ledger.begin_free(base)?;
/// let request = ledger.request_free(base);
/// ledger.freed(request);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct DeviceLedger {
    allocations: BTreeMap<DeviceAddress, Allocation>,
    /// How many there have been: the serial of the newest.
    entered: u64,
}

impl DeviceLedger {
    /// A device without allocations.
    #[must_use]
    pub const fn new() -> Self {
        Self { allocations: BTreeMap::new(), entered: 0 }
    }

    /// Enters what a malloc returned.
    ///
    /// # Errors
    /// [`ChipError::Failed`] if the runtime handed out memory that is live already, or that wraps around: it cannot be
    /// trusted any more. What it was asked to free is live only for as long as it does not hand it out.
    pub fn enter(&mut self, base: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        let refused = |reason| Err(ChipError::Failed { call: Call::Malloc, code: -1, reason });
        let Some(end) = base.checked_add(bytes) else {
            return refused(super::Reason::new(format_args!("{bytes} bytes at {base} wrap around")));
        };
        let is_there = |allocation: &Allocation| matches!(allocation.state, State::Live | State::Freeing);
        if let Some((other, _)) = self.overlapping(base, end).find(|(_, allocation)| is_there(allocation)) {
            return refused(super::Reason::new(format_args!("{base} was handed out inside {other}, which is live")));
        }
        let gone: Vec<_> = self.overlapping(base, end).map(|(other, _)| other).collect();
        for other in gone {
            self.allocations.remove(&other);
        }
        self.entered += 1;
        self.allocations.insert(base, Allocation { bytes, serial: self.entered, state: State::Live });
        Ok(())
    }

    /// What shares bytes with a range, or its base, highest first.
    fn overlapping(
        &self,
        base: DeviceAddress,
        end: DeviceAddress,
    ) -> impl Iterator<Item = (DeviceAddress, Allocation)> + '_ {
        let below = self.allocations.range(..end).rev().map(|(other, allocation)| (*other, *allocation));
        below.take_while(move |(other, found)| *other == base || other.0.saturating_add(found.bytes) > base.0)
    }

    /// Refuses a range that does not lie in one live allocation.
    ///
    /// # Errors
    /// [`ChipError::NotDeviceMemory`] or [`ChipError::OutOfBounds`].
    pub fn check(&self, call: Call, address: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        let (base, size) = match self.around(address) {
            Some((base, allocation)) if allocation.state.may_be_named() => (base, allocation.bytes),
            _ => return Err(ChipError::NotDeviceMemory { call, address }),
        };
        match (address.0 - base.0).checked_add(bytes) {
            Some(end) if end <= size => Ok(()),
            _ => Err(ChipError::OutOfBounds { call, address, bytes, base, size }),
        }
    }

    /// Begins a free, which takes the exact base: from now on nothing new may name the allocation. Returns its size in
    /// bytes. The free itself may wait for tasks that name it.
    ///
    /// # Errors
    /// [`ChipError::NotDeviceMemory`] or [`ChipError::NotABase`]; a second free of one allocation is the former.
    pub fn begin_free(&mut self, base: DeviceAddress) -> Result<u64, ChipError> {
        match self.around(base) {
            Some((found, allocation)) if allocation.state.may_be_named() && found == base => {
                self.allocations.insert(base, Allocation { state: State::Freeing, ..allocation });
                Ok(allocation.bytes)
            }
            Some((found, allocation)) if allocation.state.may_be_named() => {
                Err(ChipError::NotABase { address: base, base: found })
            }
            _ => Err(ChipError::NotDeviceMemory { call: Call::Free, address: base }),
        }
    }

    /// The device is about to be asked for the free that was begun. Until [`freed`](Self::freed) or
    /// [`free_failed`](Self::free_failed) says what it answered nobody knows whether the allocation is there, and if no
    /// answer ever comes it stays so: it is listed as [`live`](Self::live), and neither named nor freed again.
    pub fn request_free(&mut self, base: DeviceAddress) -> FreeRequest {
        let begun = self.allocations.get_mut(&base).filter(|allocation| allocation.state == State::Freeing);
        let serial = begun.map_or(0, |allocation| {
            allocation.state = State::Asked;
            allocation.serial
        });
        FreeRequest { base, serial }
    }

    /// The device has done what it was asked for. What it handed out at the same place meanwhile stays.
    pub fn freed(&mut self, request: FreeRequest) {
        if self.requested(&request).is_some() {
            self.allocations.remove(&request.base);
        }
    }

    /// The device refused what it was asked for: the allocation is live as before.
    pub fn free_failed(&mut self, request: FreeRequest) {
        if let Some(allocation) = self.requested(&request) {
            allocation.state = State::Refused;
        }
    }

    fn requested(&mut self, request: &FreeRequest) -> Option<&mut Allocation> {
        let found = self.allocations.get_mut(&request.base)?;
        (found.serial == request.serial && found.state == State::Asked).then_some(found)
    }

    /// What has not been freed, lowest first: base and size in bytes. Reported at close.
    pub fn live(&self) -> impl Iterator<Item = (DeviceAddress, u64)> + '_ {
        self.select(|_| true)
    }

    /// What waits to be freed.
    pub fn freeing(&self) -> impl Iterator<Item = (DeviceAddress, u64)> + '_ {
        self.select(|state| state == State::Freeing)
    }

    /// What is live without a free that was begun: whoever closes the device may free it.
    pub fn held(&self) -> impl Iterator<Item = (DeviceAddress, u64)> + '_ {
        self.select(State::may_be_named)
    }

    fn select(&self, these: fn(State) -> bool) -> impl Iterator<Item = (DeviceAddress, u64)> + '_ {
        let selected = self.allocations.iter().filter(move |(_, allocation)| these(allocation.state));
        selected.map(|(base, allocation)| (*base, allocation.bytes))
    }

    fn around(&self, address: DeviceAddress) -> Option<(DeviceAddress, Allocation)> {
        let (base, allocation) = self.allocations.range(..=address).next_back()?;
        let inside = address.0 - base.0 < allocation.bytes || address == *base;
        inside.then_some((*base, *allocation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: DeviceAddress = DeviceAddress(0x1000);

    fn at(offset: u64) -> DeviceAddress {
        DeviceAddress(BASE.0 + offset)
    }

    fn ledger() -> DeviceLedger {
        let mut ledger = DeviceLedger::new();
        ledger.enter(BASE, 64).unwrap();
        ledger.enter(at(64), 32).unwrap();
        ledger
    }

    /// C-16: any range inside one live allocation, and no other.
    #[test]
    fn a_copy_stays_inside_one_live_allocation() {
        let ledger = ledger();
        for (address, bytes) in [(BASE, 64), (at(10), 54), (at(63), 1), (BASE, 0), (at(64), 32)] {
            ledger.check(Call::CopyTo, address, bytes).unwrap();
        }
        let past =
            |address, bytes, base, size| Err(ChipError::OutOfBounds { call: Call::CopyTo, address, bytes, base, size });
        assert_eq!(ledger.check(Call::CopyTo, at(10), 55), past(at(10), 55, BASE, 64));
        assert_eq!(ledger.check(Call::CopyTo, at(65), u64::MAX), past(at(65), u64::MAX, at(64), 32));
        for address in [DeviceAddress(0), DeviceAddress(0xfff), at(96), DeviceAddress(u64::MAX)] {
            let unknown = Err(ChipError::NotDeviceMemory { call: Call::CopyTo, address });
            assert_eq!(ledger.check(Call::CopyTo, address, 1), unknown);
        }
    }

    /// C-16, T-46: free(base + 16), a second free, and what may name an allocation whose free waits.
    #[test]
    fn free_takes_the_exact_base_once() {
        let mut ledger = ledger();
        assert_eq!(ledger.begin_free(at(16)), Err(ChipError::NotABase { address: at(16), base: BASE }));
        assert_eq!(ledger.begin_free(BASE), Ok(64));
        let unknown = |call| ChipError::NotDeviceMemory { call, address: BASE };
        assert_eq!(ledger.begin_free(BASE), Err(unknown(Call::Free)));
        assert_eq!(ledger.check(Call::CopyFrom, BASE, 1), Err(unknown(Call::CopyFrom)));
        assert!(ledger.freeing().eq([(BASE, 64)]));
        let request = ledger.request_free(BASE);
        ledger.free_failed(request);
        ledger.check(Call::CopyFrom, BASE, 64).unwrap();
        let request = ledger.request_free(BASE);
        ledger.freed(request);
        assert_eq!(ledger.live().count(), 2, "only a free that was begun ends an allocation");
        ledger.begin_free(BASE).unwrap();
        let request = ledger.request_free(BASE);
        ledger.freed(request);
        assert!(ledger.live().eq([(at(64), 32)]));
    }

    /// C-16, T-46: a free that was asked for and not answered is counted once, named by nothing, and asked for by nobody
    /// again.
    #[test]
    fn a_free_without_an_answer_is_listed_and_never_repeated() {
        let mut ledger = ledger();
        ledger.begin_free(BASE).unwrap();
        let request = ledger.request_free(BASE);
        assert!(ledger.live().eq([(BASE, 64), (at(64), 32)]));
        assert!(ledger.held().eq([(at(64), 32)]));
        assert_eq!(ledger.freeing().count(), 0);
        let unknown = |call| ChipError::NotDeviceMemory { call, address: BASE };
        assert_eq!(ledger.begin_free(BASE), Err(unknown(Call::Free)));
        assert_eq!(ledger.check(Call::CopyTo, BASE, 1), Err(unknown(Call::CopyTo)));
        // The answer may still come.
        ledger.free_failed(request);
        ledger.check(Call::CopyTo, BASE, 64).unwrap();
        ledger.begin_free(BASE).unwrap();
        let request = ledger.request_free(BASE);
        ledger.freed(request);
        assert!(ledger.live().eq([(at(64), 32)]));
    }

    /// C-16: what a device hands out again was freed, whatever became of its answer.
    #[test]
    fn memory_that_was_asked_for_or_refused_may_be_handed_out_again() {
        let mut ledger = ledger();
        for base in [BASE, at(64)] {
            ledger.begin_free(base).unwrap();
            assert!(ledger.enter(base, 8).is_err(), "{base} waits for a task that names it");
        }
        let late = ledger.request_free(BASE);
        let request = ledger.request_free(at(64));
        ledger.free_failed(request);
        ledger.enter(at(16), 64).unwrap();
        assert!(ledger.live().eq([(at(16), 64)]), "it lies in both");
        // The answer to the free of one that is gone says nothing about what is there now, nor about the free of that.
        ledger.enter(BASE, 16).unwrap();
        ledger.begin_free(BASE).unwrap();
        ledger.freed(late);
        assert!(ledger.freeing().eq([(BASE, 16)]));
        let request = ledger.request_free(BASE);
        ledger.freed(request);
        assert!(ledger.live().eq([(at(16), 64)]));
    }

    /// C-16: what is refused changes nothing.
    #[test]
    fn memory_that_is_handed_out_in_a_live_and_a_refused_allocation_leaves_both() {
        let mut ledger = ledger();
        ledger.begin_free(at(64)).unwrap();
        let request = ledger.request_free(at(64));
        ledger.free_failed(request);
        assert!(ledger.enter(at(32), 48).is_err());
        assert!(ledger.held().eq([(BASE, 64), (at(64), 32)]));
    }

    /// T-46: equal numbers on two devices are two allocations.
    #[test]
    fn two_devices_may_hand_out_the_same_number() {
        let (mut one, two) = (ledger(), ledger());
        one.begin_free(BASE).unwrap();
        let request = one.request_free(BASE);
        one.freed(request);
        assert!(one.check(Call::CopyTo, BASE, 1).is_err());
        two.check(Call::CopyTo, BASE, 1).unwrap();
    }

    #[test]
    fn a_device_that_hands_out_live_memory_is_not_believed() {
        let mut ledger = ledger();
        for (base, bytes) in [(BASE, 1), (at(63), 1), (DeviceAddress(0xf00), 0x101), (DeviceAddress(u64::MAX), 2)] {
            assert!(matches!(ledger.enter(base, bytes), Err(ChipError::Failed { .. })), "{base} {bytes}");
        }
        ledger.enter(DeviceAddress(0xf00), 0x100).unwrap();
    }
}
