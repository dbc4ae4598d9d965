//! What a device runtime is told about the run that it prepares.

use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Identity of a native run and where to mark its launch acceptance: 56 bytes, handed over by pointer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NativeRunDescriptor {
    /// Pipeline slot of the run's lease.
    pub pipeline_slot: u32,
    /// Arena bank to prepare in.
    pub arena_bank: u32,
    /// Run id.
    pub run_id: u64,
    /// Generation of the run's lease.
    pub generation: u64,
    /// Dispatch id.
    pub dispatch_id: u64,
    /// Unique per prepare in this process (C-7).
    pub run_epoch: u64,
    /// Address of the private `volatile i32` that the runtime sets once both kernels are enqueued; 0 = none. It is valid
    /// until finalize returned and never lies in a frame (L-17).
    pub accepted_state: u64,
    /// What the runtime stores there.
    pub accepted_value: i32,
    /// Zero.
    pub reserved: u32,
}

const_assert_eq!(size_of::<NativeRunDescriptor>(), 56);
const_assert_eq!(align_of::<NativeRunDescriptor>(), 8);
const_assert_eq!(core::mem::offset_of!(NativeRunDescriptor, pipeline_slot), 0);
const_assert_eq!(core::mem::offset_of!(NativeRunDescriptor, arena_bank), 4);
const_assert_eq!(core::mem::offset_of!(NativeRunDescriptor, run_id), 8);
const_assert_eq!(core::mem::offset_of!(NativeRunDescriptor, generation), 16);
const_assert_eq!(core::mem::offset_of!(NativeRunDescriptor, dispatch_id), 24);
const_assert_eq!(core::mem::offset_of!(NativeRunDescriptor, run_epoch), 32);
const_assert_eq!(core::mem::offset_of!(NativeRunDescriptor, accepted_state), 40);
const_assert_eq!(core::mem::offset_of!(NativeRunDescriptor, accepted_value), 48);
