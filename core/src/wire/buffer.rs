//! The buffer descriptor of protocol 3: memory that says for itself where it is and what may be done with it.

use bytemuck::TransparentWrapper;
use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{AddressSpace, BufferFault};

const MAGIC: u16 = 0x5342;
const BODY_BYTES: usize = 32;

/// What a descriptor allows; the number is its code on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Access {
    /// Reading only.
    Read = 0,
    /// Writing only.
    Write = 1,
    /// Both.
    ReadWrite = 2,
}

impl Access {
    /// The access that `code` stands for.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Read),
            1 => Some(Self::Write),
            2 => Some(Self::ReadWrite),
            _ => None,
        }
    }

    /// The code on the wire.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// How a buffer is reached; the number is its code on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Backend {
    /// Shared memory inherited by the fork; the body is its address.
    ForkShm = 0,
    /// A POSIX shared-memory object; the body is its name without the leading slash.
    PosixShm = 1,
    /// A window of mapped device memory; the body is its address.
    VmmWindow = 2,
    /// Memory of another host, reached through a sidecar record.
    RemoteSidecar = 3,
    /// Memory from the device allocator; the body is its address.
    DeviceMalloc = 4,
    /// A copy-on-write snapshot inherited by the fork; the body is its address, reading only.
    ForkCow = 5,
}

impl Backend {
    /// The backend that `code` stands for.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::ForkShm),
            1 => Some(Self::PosixShm),
            2 => Some(Self::VmmWindow),
            3 => Some(Self::RemoteSidecar),
            4 => Some(Self::DeviceMalloc),
            5 => Some(Self::ForkCow),
            _ => None,
        }
    }

    /// The code on the wire.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The only space this backend has memory in; `None` = either.
    #[must_use]
    pub const fn space(self) -> Option<AddressSpace> {
        match self {
            Self::VmmWindow | Self::DeviceMalloc => Some(AddressSpace::Device),
            Self::ForkShm | Self::PosixShm | Self::ForkCow => Some(AddressSpace::Host),
            Self::RemoteSidecar => None,
        }
    }

    /// Whether the body is an address.
    #[must_use]
    pub const fn is_address(self) -> bool {
        matches!(self, Self::ForkShm | Self::VmmWindow | Self::DeviceMalloc | Self::ForkCow)
    }
}

/// Who a buffer is: two descriptors of one buffer carry the same identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BufferIdentity {
    /// Opaque name of the process that minted it.
    pub owner: [u8; 8],
    /// Its number there.
    pub buffer_id: u64,
    /// How often that number has been used; never 0.
    pub generation: u32,
}

/// What a buffer covers and allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BufferRange {
    /// Where the memory lies.
    pub space: AddressSpace,
    /// What may be done with it.
    pub access: Access,
    /// Size in bytes.
    pub nbytes: u64,
    /// Path of the owner in the tree; diagnostic.
    pub owner_path: u32,
}

/// The bytes of a [`BufferDescriptor`], not yet judged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RawBufferDescriptor {
    pub(super) magic: u16,
    pub(super) address_space: u8,
    pub(super) access: u8,
    pub(super) backend: u8,
    pub(super) ignored: [u8; 3],
    pub(super) owner: [u8; 8],
    pub(super) buffer_id: u64,
    pub(super) generation: u32,
    pub(super) identity_ignored: [u8; 12],
    pub(super) nbytes: u64,
    pub(super) owner_path: u32,
    pub(super) body_len: u16,
    pub(super) reserved: u16,
    pub(super) body: [u8; BODY_BYTES],
}

const_assert_eq!(size_of::<RawBufferDescriptor>(), 88);
const_assert_eq!(align_of::<RawBufferDescriptor>(), 8);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, magic), 0);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, address_space), 2);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, access), 3);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, backend), 4);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, owner), 8);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, buffer_id), 16);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, generation), 24);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, nbytes), 40);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, owner_path), 48);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, body_len), 52);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, reserved), 54);
const_assert_eq!(core::mem::offset_of!(RawBufferDescriptor, body), 56);

/// Every gate of a descriptor, one fault each.
pub(crate) fn judge(raw: &RawBufferDescriptor) -> Result<(), BufferFault> {
    if raw.magic != MAGIC {
        return Err(BufferFault::Magic { found: raw.magic });
    }
    let Some(space) = AddressSpace::from_code(raw.address_space) else {
        return Err(BufferFault::AddressSpace { value: raw.address_space });
    };
    let Some(access) = Access::from_code(raw.access) else {
        return Err(BufferFault::Access { value: raw.access });
    };
    let Some(backend) = Backend::from_code(raw.backend) else {
        return Err(BufferFault::Backend { value: raw.backend });
    };
    if backend.space().is_some_and(|only| only != space) {
        return Err(BufferFault::BackendSpace { backend, space });
    }
    if raw.generation == 0 {
        return Err(BufferFault::Generation);
    }
    if raw.reserved != 0 {
        return Err(BufferFault::Reserved { value: raw.reserved });
    }
    let len = usize::from(raw.body_len);
    let Some((body, padding)) = raw.body.split_at_checked(len) else {
        return Err(BufferFault::BodyTooLong { len: raw.body_len });
    };
    if backend.is_address() {
        let Ok(address) = body.try_into() else {
            return Err(BufferFault::AddressLength { len: raw.body_len, backend });
        };
        let addr = u64::from_le_bytes(address);
        if addr == 0 {
            return Err(BufferFault::NullAddress);
        }
        if addr.checked_add(raw.nbytes).is_none() {
            return Err(BufferFault::AddressWraps { addr, bytes: raw.nbytes });
        }
    } else if backend == Backend::PosixShm {
        if body.is_empty() {
            return Err(BufferFault::NameEmpty);
        }
        if let Some((at, &byte)) = body.iter().enumerate().find(|(_, byte)| !is_name_byte(**byte)) {
            return Err(BufferFault::NameByte { at, byte });
        }
    }
    if backend == Backend::ForkCow && access != Access::Read {
        return Err(BufferFault::CowAccess { access });
    }
    if let Some((at, &byte)) = padding.iter().enumerate().find(|(_, byte)| **byte != 0) {
        return Err(BufferFault::BodyPadding { at: at.saturating_add(len), byte });
    }
    Ok(())
}

/// Printable ASCII without '/'.
pub(crate) const fn is_name_byte(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7E) && byte != b'/'
}

/// A buffer that describes itself: 88 bytes. A value of this type has passed every gate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, IntoBytes, Immutable, KnownLayout, TransparentWrapper)]
#[repr(transparent)]
pub struct BufferDescriptor(RawBufferDescriptor);

impl BufferDescriptor {
    /// Size on the wire in bytes.
    pub const BYTES: usize = 88;

    /// A buffer reached by its address: every backend but POSIX shared memory and the remote sidecar.
    ///
    /// # Errors
    /// The gate that it fails.
    pub fn at_address(
        backend: Backend,
        identity: BufferIdentity,
        range: BufferRange,
        addr: u64,
    ) -> Result<Self, BufferFault> {
        Self::build(backend, identity, range, &addr.to_le_bytes())
    }

    /// A POSIX shared-memory object by its name without the leading slash, 1..=32 bytes.
    ///
    /// # Errors
    /// The gate that it fails.
    pub fn posix(identity: BufferIdentity, range: BufferRange, name: &str) -> Result<Self, BufferFault> {
        Self::build(Backend::PosixShm, identity, range, name.as_bytes())
    }

    /// A buffer of another host; what it takes to reach it travels in a sidecar record.
    ///
    /// # Errors
    /// The gate that it fails.
    pub fn remote(identity: BufferIdentity, range: BufferRange) -> Result<Self, BufferFault> {
        Self::build(Backend::RemoteSidecar, identity, range, &[])
    }

    fn build(backend: Backend, identity: BufferIdentity, range: BufferRange, body: &[u8]) -> Result<Self, BufferFault> {
        let mut field = [0; BODY_BYTES];
        for (to, from) in field.iter_mut().zip(body) {
            *to = *from;
        }
        let raw = RawBufferDescriptor {
            magic: MAGIC,
            address_space: range.space.code(),
            access: range.access.code(),
            backend: backend.code(),
            ignored: [0; 3],
            owner: identity.owner,
            buffer_id: identity.buffer_id,
            generation: identity.generation,
            identity_ignored: [0; 12],
            nbytes: range.nbytes,
            owner_path: range.owner_path,
            body_len: u16::try_from(body.len()).unwrap_or(u16::MAX),
            reserved: 0,
            body: field,
        };
        judge(&raw)?;
        Ok(Self(raw))
    }

    /// Decodes a descriptor from its 88 bytes.
    ///
    /// # Errors
    /// The gate that it fails.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, BufferFault> {
        let raw = zerocopy::transmute!(*bytes);
        judge(&raw)?;
        Ok(Self(raw))
    }

    /// Judges the value again; it always passes for a value that safe code made.
    ///
    /// # Errors
    /// The gate that it fails.
    pub fn validate(&self) -> Result<(), BufferFault> {
        judge(&self.0)
    }

    /// How the buffer is reached.
    #[must_use]
    pub fn backend(&self) -> Backend {
        // Judged when the value was made.
        Backend::from_code(self.0.backend).unwrap_or(Backend::RemoteSidecar)
    }

    /// Who the buffer is.
    #[must_use]
    pub const fn identity(&self) -> BufferIdentity {
        BufferIdentity { owner: self.0.owner, buffer_id: self.0.buffer_id, generation: self.0.generation }
    }

    /// What the buffer covers and allows.
    #[must_use]
    pub fn range(&self) -> BufferRange {
        BufferRange {
            // Judged when the value was made.
            space: AddressSpace::from_code(self.0.address_space).unwrap_or(AddressSpace::Host),
            access: Access::from_code(self.0.access).unwrap_or(Access::Read),
            nbytes: self.0.nbytes,
            owner_path: self.0.owner_path,
        }
    }

    /// The address, for a backend that is reached by one.
    #[must_use]
    pub fn address(&self) -> Option<u64> {
        if !self.backend().is_address() {
            return None;
        }
        self.0.body.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The name of the shared-memory object, without the leading slash.
    #[must_use]
    pub fn shm_name(&self) -> Option<&str> {
        if self.backend() != Backend::PosixShm {
            return None;
        }
        self.0.body.get(..usize::from(self.0.body_len)).and_then(|name| core::str::from_utf8(name).ok())
    }
}

const_assert_eq!(size_of::<BufferDescriptor>(), BufferDescriptor::BYTES);

impl core::fmt::Debug for BufferDescriptor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("BufferDescriptor")
            .field("backend", &self.backend())
            .field("identity", &self.identity())
            .field("range", &self.range())
            .field("address", &self.address())
            .field("shm_name", &self.shm_name())
            .finish()
    }
}
