//! The memory of the device: an address range of its own, an allocator over it, and the bytes behind it.

mod allocator;
mod bank;

pub(crate) use allocator::Allocator;
pub use bank::DEVICE_BASE;
pub(crate) use bank::DeviceMemory;
