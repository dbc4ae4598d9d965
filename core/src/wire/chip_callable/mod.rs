//! The blob that installs a callable on a chip: an orchestration binary and the core binaries that it launches.

use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

mod build;
mod parse;

pub use build::{ChipCallableSource, CoreCallableSource};
pub use parse::{ChipCallable, CoreCallable};

/// Most parameters of a callable.
const MAX_SIGNATURE: usize = 256;
/// Most parameters of a core binary.
const MAX_CORE_SIGNATURE: usize = 32;
/// Most core binaries.
const MAX_CHILDREN: usize = 1_024;
/// Bytes of a name field.
const NAME_BYTES: usize = 64;
/// Alignment of a core binary in the storage.
const CHILD_ALIGN: u32 = 64;
/// Where the storage starts.
const STORAGE: usize = 9_376;
/// Where the binary of a core starts.
const CORE_BINARY: usize = 192;

/// The fixed part of the blob, readable at any alignment.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) signature: [I32; MAX_SIGNATURE],
    pub(super) sig_count: I32,
    pub(super) binary_size: U32,
    pub(super) func_name: [u8; NAME_BYTES],
    pub(super) func_name_len: U32,
    pub(super) child_func_ids: [I32; MAX_CHILDREN],
    pub(super) child_offsets: [U32; MAX_CHILDREN],
    pub(super) child_count: I32,
    pub(super) config_name: [u8; NAME_BYTES],
    pub(super) config_name_len: U32,
    pub(super) padding: [u8; 12],
}

const_assert_eq!(size_of::<Header>(), STORAGE);
const_assert_eq!(STORAGE % 16, 0);
const_assert_eq!(core::mem::offset_of!(Header, signature), 0);
const_assert_eq!(core::mem::offset_of!(Header, sig_count), 1_024);
const_assert_eq!(core::mem::offset_of!(Header, binary_size), 1_028);
const_assert_eq!(core::mem::offset_of!(Header, func_name), 1_032);
const_assert_eq!(core::mem::offset_of!(Header, func_name_len), 1_096);
const_assert_eq!(core::mem::offset_of!(Header, child_func_ids), 1_100);
const_assert_eq!(core::mem::offset_of!(Header, child_offsets), 5_196);
const_assert_eq!(core::mem::offset_of!(Header, child_count), 9_292);
const_assert_eq!(core::mem::offset_of!(Header, config_name), 9_296);
const_assert_eq!(core::mem::offset_of!(Header, config_name_len), 9_360);

/// The fixed part of a core binary, readable at any alignment.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct CoreHeader {
    pub(super) signature: [I32; MAX_CORE_SIGNATURE],
    pub(super) sig_count: I32,
    pub(super) binary_size: U32,
    pub(super) resolved_addr: U64,
    pub(super) padding: [u8; 48],
}

const_assert_eq!(size_of::<CoreHeader>(), CORE_BINARY);
const_assert_eq!(core::mem::offset_of!(CoreHeader, signature), 0);
const_assert_eq!(core::mem::offset_of!(CoreHeader, sig_count), 128);
const_assert_eq!(core::mem::offset_of!(CoreHeader, binary_size), 132);
const_assert_eq!(core::mem::offset_of!(CoreHeader, resolved_addr), 136);
