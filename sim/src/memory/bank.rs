//! The bytes behind the addresses.

use std::ops::Range;

use laneway_core::chip::{Call, ChipError, DeviceAddress};

use super::Allocator;

/// Where device addresses begin unless told otherwise: far above everything that a process can map, so a device pointer
/// that is taken for a host pointer is caught on both sides.
pub const DEVICE_BASE: DeviceAddress = DeviceAddress(0x00d0_0000_0000_0000);

/// The memory of one device.
///
/// The bytes are bought when the highest address in use first rises to them. Fresh memory holds whatever was there
/// before, as on the hardware.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    base: DeviceAddress,
    allocator: Allocator,
    /// The bytes from `base` on; words, so that every element type finds its alignment.
    words: Vec<u64>,
}

impl DeviceMemory {
    /// A memory of `total` bytes (rounded down to 512) whose addresses start at `base`, rounded up to 512.
    pub(crate) fn new(base: DeviceAddress, total: u64) -> Self {
        let base = DeviceAddress(base.0.next_multiple_of(super::allocator::GRAIN));
        Self { base, allocator: Allocator::new(total.min(u64::MAX - base.0)), words: Vec::new() }
    }

    /// Bytes taken up by live allocations.
    pub(crate) fn committed(&self) -> u64 {
        self.allocator.committed()
    }

    /// Whether `address` lies in the range of this device, allocated or not.
    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base.0) < self.allocator.total()
    }

    /// Allocates `bytes` bytes on a 512-byte boundary.
    ///
    /// # Errors
    /// [`ChipError::OutOfMemory`], also if the host has no memory to put behind it.
    pub(crate) fn allocate(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        let total = self.allocator.total();
        let offset = self.allocator.allocate(bytes).map_err(|room| ChipError::OutOfMemory {
            asked: bytes,
            free: room.free,
            largest: room.largest,
            total,
        })?;
        let needed = (offset + bytes).div_ceil(8) as usize;
        if needed > self.words.len() {
            let more = needed - self.words.len();
            if self.words.try_reserve(more).is_err() {
                self.allocator.release(offset);
                let free = total - self.allocator.committed();
                return Err(ChipError::OutOfMemory { asked: bytes, free, largest: 0, total });
            }
            self.words.resize(needed, 0);
        }
        Ok(DeviceAddress(self.base.0 + offset))
    }

    /// The base of the live allocation around `address`.
    pub(crate) fn allocation(&self, address: DeviceAddress) -> Option<DeviceAddress> {
        let offset = self.contains(address.0).then(|| address.0 - self.base.0)?;
        self.allocator.find(offset).map(|(base, _)| DeviceAddress(self.base.0 + base))
    }

    /// Frees the allocation that starts at `address`.
    ///
    /// # Errors
    /// [`ChipError::NotABase`] inside of one, else [`ChipError::NotDeviceMemory`].
    pub(crate) fn free(&mut self, address: DeviceAddress) -> Result<(), ChipError> {
        let unknown = ChipError::NotDeviceMemory { call: Call::Free, address };
        if !self.contains(address.0) {
            return Err(unknown);
        }
        let offset = address.0 - self.base.0;
        match self.allocator.find(offset) {
            Some((base, _)) if base == offset => {
                self.allocator.release(offset);
                Ok(())
            }
            Some((base, _)) => Err(ChipError::NotABase { address, base: DeviceAddress(self.base.0 + base) }),
            None => Err(unknown),
        }
    }

    /// Checks that `bytes` bytes at `address` lie in one live allocation, and says where their bytes are.
    ///
    /// # Errors
    /// [`ChipError::NotDeviceMemory`] or [`ChipError::OutOfBounds`].
    pub(crate) fn range(&self, call: Call, address: DeviceAddress, bytes: u64) -> Result<Range<usize>, ChipError> {
        let unknown = ChipError::NotDeviceMemory { call, address };
        if !self.contains(address.0) {
            return Err(unknown);
        }
        let offset = address.0 - self.base.0;
        let Some((base, size)) = self.allocator.find(offset) else { return Err(unknown) };
        match offset.checked_add(bytes) {
            Some(end) if end <= base + size => Ok(offset as usize..end as usize),
            _ => {
                let base = DeviceAddress(self.base.0 + base);
                Err(ChipError::OutOfBounds { call, address, bytes, base, size })
            }
        }
    }

    /// The bytes of a checked range.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[range]
    }

    /// The bytes of a checked range, to change them.
    pub(crate) fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[range]
    }

    /// Every byte that has been bought; ranges of [`range`](Self::range) index it.
    pub(crate) fn all_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> DeviceMemory {
        DeviceMemory::new(DEVICE_BASE, 1 << 20)
    }

    /// T-46, C-16
    #[test]
    fn free_takes_the_exact_base_of_a_live_allocation() {
        let mut memory = memory();
        let base = memory.allocate(100).unwrap();
        let inside = DeviceAddress(base.0 + 16);
        assert_eq!(memory.free(inside), Err(ChipError::NotABase { address: inside, base }));
        let host = DeviceAddress(0x7fff_0000_0000);
        assert_eq!(memory.free(host), Err(ChipError::NotDeviceMemory { call: Call::Free, address: host }));
        memory.free(base).unwrap();
        assert_eq!(memory.free(base), Err(ChipError::NotDeviceMemory { call: Call::Free, address: base }));
        assert_eq!(memory.committed(), 0);
    }

    /// C-16
    #[test]
    fn a_range_may_not_leave_its_allocation_even_within_the_grain() {
        let mut memory = memory();
        let base = memory.allocate(100).unwrap();
        memory.allocate(100).unwrap();
        assert_eq!(memory.range(Call::CopyTo, base, 100).unwrap().len(), 100);
        for (address, bytes) in [(base, 101), (DeviceAddress(base.0 + 99), 2), (base, u64::MAX)] {
            let refused = ChipError::OutOfBounds { call: Call::CopyTo, address, bytes, base, size: 100 };
            assert_eq!(memory.range(Call::CopyTo, address, bytes), Err(refused));
        }
    }

    #[test]
    fn a_full_device_says_what_it_has() {
        let mut memory = memory();
        let refused = memory.allocate((1 << 20) + 1).unwrap_err();
        assert_eq!(
            refused,
            ChipError::OutOfMemory { asked: (1 << 20) + 1, free: 1 << 20, largest: 1 << 20, total: 1 << 20 }
        );
        assert_eq!(memory.committed(), 0);
    }
}
