//! Device memory behind a blocking device.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_core::chip::{Call, ChipError, DeviceAddress};
use laneway_core::wire::ByteRange;

use super::Bytes;

/// The memory of a device: what only the device can do. Which ranges are live is known before: every call here is about a
/// range inside one live allocation (C-16), and about host memory that the device may touch.
///
/// Calls may be made while a run is on its way, and should not wait for it.
pub trait DeviceMemory: Send + Sync {
    /// Allocates `bytes` bytes, at least one.
    ///
    /// # Errors
    /// [`ChipError::OutOfMemory`], or the device's own failure.
    fn allocate(&self, bytes: u64) -> Result<DeviceAddress, ChipError>;

    /// Frees the allocation at `base`.
    ///
    /// # Errors
    /// The device's own failure; the allocation is live as before. After a panic nobody knows whether it is, so it is
    /// reported as live, and neither named nor freed again ([`ChipError::FreeUnproven`]).
    fn free(&self, base: DeviceAddress) -> Result<(), ChipError>;

    /// Copies host memory to the device.
    ///
    /// # Errors
    /// The device's own failure.
    fn copy_to(&self, to: DeviceAddress, from: Bytes<'_>) -> Result<(), ChipError>;

    /// Copies from the device to host memory.
    ///
    /// # Errors
    /// The device's own failure.
    fn copy_from(&self, to: Bytes<'_>, from: DeviceAddress) -> Result<(), ChipError>;

    /// The block around an address, if it is memory of this process: then a run sees tensors in it by
    /// [`RunArgs::tensor`](super::RunArgs::tensor), and it stays until the run has ended.
    fn block(&self, _address: DeviceAddress) -> Option<Block> {
        None
    }
}

/// Memory of this process as the memory of a device: for a device that has none of its own, but whose users should be able to
/// keep data beside it.
pub struct ProcessMemory {
    total: u64,
    blocks: Mutex<BTreeMap<DeviceAddress, Block>>,
}

/// One allocation of a [`ProcessMemory`], which stays for as long as somebody holds it.
#[derive(Clone)]
pub struct Block {
    words: Arc<Vec<AtomicU64>>,
    /// Bytes that were asked for; words are whole.
    bytes: u64,
}

impl ProcessMemory {
    /// A memory of `total` bytes. They are bought when they are allocated.
    #[must_use]
    pub const fn new(total: u64) -> Self {
        Self { total, blocks: Mutex::new(BTreeMap::new()) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<DeviceAddress, Block>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, call: Call, address: DeviceAddress) -> Result<Block, ChipError> {
        self.block(address).ok_or(ChipError::NotDeviceMemory { call, address })
    }
}

impl fmt::Debug for ProcessMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessMemory({} blocks, {} bytes at most)", self.lock().len(), self.total)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes at {})", self.bytes, self.base())
    }
}

impl Block {
    fn new(bytes: u64) -> Option<Self> {
        let count = usize::try_from(bytes).ok()?.div_ceil(size_of::<u64>());
        let mut words = Vec::new();
        words.try_reserve_exact(count).ok()?;
        words.resize_with(count, || AtomicU64::new(0));
        Some(Self { words: Arc::new(words), bytes })
    }

    /// Where it begins.
    #[must_use]
    pub fn base(&self) -> DeviceAddress {
        DeviceAddress(self.words.as_ptr().expose_provenance() as u64)
    }

    pub(super) fn contains(&self, range: ByteRange) -> bool {
        ByteRange { start: self.base().0, end: self.base().0 + self.bytes }.contains(range)
    }

    /// The bytes from `address` on.
    #[expect(unsafe_code, reason = "the address is checked here")]
    pub(super) fn bytes(&self, address: DeviceAddress) -> Bytes<'_> {
        let offset = address.0.saturating_sub(self.base().0).min(self.bytes);
        // SAFETY: inside the words, which `self` keeps and which nothing but atomics reaches.
        unsafe { Bytes::at(self.base().0 + offset, (self.bytes - offset) as usize) }
    }
}

impl DeviceMemory for ProcessMemory {
    fn allocate(&self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        let mut blocks = self.lock();
        let free = self.total - blocks.values().map(|block| block.bytes).sum::<u64>();
        let none = ChipError::OutOfMemory { asked: bytes, free, largest: free, total: self.total };
        let block = if bytes <= free { Block::new(bytes).ok_or(none)? } else { return Err(none) };
        let base = block.base();
        blocks.insert(base, block);
        Ok(base)
    }

    fn free(&self, base: DeviceAddress) -> Result<(), ChipError> {
        let unknown = ChipError::NotDeviceMemory { call: Call::Free, address: base };
        self.lock().remove(&base).map(|_| ()).ok_or(unknown)
    }

    fn copy_to(&self, to: DeviceAddress, from: Bytes<'_>) -> Result<(), ChipError> {
        self.find(Call::CopyTo, to)?.bytes(to).copy_from(from);
        Ok(())
    }

    fn copy_from(&self, to: Bytes<'_>, from: DeviceAddress) -> Result<(), ChipError> {
        to.copy_from(self.find(Call::CopyFrom, from)?.bytes(from));
        Ok(())
    }

    fn block(&self, address: DeviceAddress) -> Option<Block> {
        let blocks = self.lock();
        let (base, block) = blocks.range(..=address).next_back()?;
        (address.0 - base.0 < block.bytes).then(|| block.clone())
    }
}
