//! Control commands on the base frame: what each carries and where.

use core::fmt;

use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::buffer::is_name_byte;
use super::{BufferDescriptor, Digest, Protocol, WireError, frame, num};

/// The sub-command of a control; the number stands at offset 8 of the base frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u64)]
pub enum ControlCommand {
    /// Device memory.
    Malloc = 0,
    /// Give device memory back.
    Free = 1,
    /// Host to device.
    CopyTo = 2,
    /// Device to host.
    CopyFrom = 3,
    /// Make a registered callable ready to run.
    Prepare = 4,
    /// Install a chip callable.
    Register = 5,
    /// Remove a chip callable.
    Unregister = 6,
    /// Communication domain; not served in this version.
    AllocDomain = 7,
    /// Communication domain; not served in this version.
    ReleaseDomain = 8,
    /// Communication domain; not served in this version.
    CommInit = 9,
    /// Install a host callable.
    PyRegister = 10,
    /// Remove a host callable.
    PyUnregister = 11,
    /// Communication region; not served in this version.
    RegionAllocate = 16,
    /// Communication region; not served in this version.
    RegionRelease = 17,
    /// How much device memory is committed.
    CommittedDeviceMemory = 18,
}

impl ControlCommand {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Malloc,
        Self::Free,
        Self::CopyTo,
        Self::CopyFrom,
        Self::Prepare,
        Self::Register,
        Self::Unregister,
        Self::AllocDomain,
        Self::ReleaseDomain,
        Self::CommInit,
        Self::PyRegister,
        Self::PyUnregister,
        Self::RegionAllocate,
        Self::RegionRelease,
        Self::CommittedDeviceMemory,
    ];

    /// The command that `raw` stands for.
    ///
    /// # Errors
    /// [`WireError::UnknownCommand`]: answered with a failed CONTROL_DONE, it never ends a child.
    pub fn from_raw(raw: u64) -> Result<Self, WireError> {
        Self::ALL.iter().copied().find(|command| command.raw() == raw).ok_or(WireError::UnknownCommand { value: raw })
    }

    /// The number on the base frame.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn raw(self) -> u64 {
        self as u64
    }
}

/// A name in the 32-byte slot of a control: 1 to 31 bytes and a NUL.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShmName([u8; 32]);

impl ShmName {
    /// A POSIX shared-memory name: 1 to 31 bytes of printable ASCII, '/' only in front, not starting with '@'.
    ///
    /// # Errors
    /// [`WireError::TooLong`], [`WireError::Zero`] for an empty name, or [`WireError::Text`] for the first illegal byte.
    pub fn new(name: &str) -> Result<Self, WireError> {
        Self::from_bytes(name.as_bytes())
    }

    fn from_bytes(name: &[u8]) -> Result<Self, WireError> {
        let field = "shared-memory name";
        if name.len() > 31 {
            return Err(WireError::TooLong { field, len: num::wide(name.len()), max: 31 });
        }
        if name.is_empty() {
            return Err(WireError::Zero { field });
        }
        let legal = |at: usize, byte: u8| match at {
            0 => byte == b'/' || (byte != b'@' && is_name_byte(byte)),
            _ => is_name_byte(byte),
        };
        if let Some(at) = name.iter().enumerate().position(|(at, &byte)| !legal(at, byte)) {
            let must = "printable ASCII, '/' only in front, not '@' in front";
            return Err(WireError::Text { field, at: num::wide(at), must });
        }
        let mut slot = [0; 32];
        for (to, from) in slot.iter_mut().zip(name) {
            *to = *from;
        }
        Ok(Self(slot))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let name = self.0.split(|&byte| byte == 0).next().unwrap_or_default();
        core::str::from_utf8(name).unwrap_or_default()
    }
}

impl fmt::Debug for ShmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Where the bytes of a callable are staged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Staged {
    /// At this offset of the buffer region that parent and child share: `@` and lowercase hex on the wire.
    Region(u64),
    /// In a shared-memory object, for a peer without the extension block.
    Shm(ShmName),
}

impl Staged {
    /// The 32 bytes of the name slot.
    #[must_use]
    pub fn slot(&self) -> [u8; 32] {
        match *self {
            Self::Shm(ShmName(slot)) => slot,
            Self::Region(offset) => {
                let mut slot = [0; 32];
                let digits = 16u32.saturating_sub(offset.leading_zeros() / 4).max(1);
                let text = slot.iter_mut().take(num::index(digits).saturating_add(1));
                for (at, byte) in (0..digits.saturating_add(1)).zip(text) {
                    *byte = match at {
                        0 => b'@',
                        _ => {
                            let nibble = offset.wrapping_shr(digits.saturating_sub(at).saturating_mul(4)) & 15;
                            HEX.get(num::narrow(nibble)).copied().unwrap_or(b'0')
                        }
                    };
                }
                slot
            }
        }
    }

    /// Reads a name slot; what lies behind the NUL is not looked at.
    ///
    /// # Errors
    /// A slot without NUL, an empty name, an offset that is not 1 to 16 lowercase hex digits, an illegal byte.
    pub fn parse(slot: &[u8; 32]) -> Result<Self, WireError> {
        let field = "control name";
        let Some(len) = slot.iter().position(|&byte| byte == 0) else {
            return Err(WireError::Unterminated { field, capacity: 32 });
        };
        let name = slot.get(..len).unwrap_or_default();
        let Some(digits) = name.strip_prefix(b"@") else { return ShmName::from_bytes(name).map(Self::Shm) };
        if digits.is_empty() || digits.len() > 16 {
            let value = i128::from(num::wide(digits.len()));
            return Err(WireError::OutOfRange { field: "hex digits of a region offset", value, min: 1, max: 16 });
        }
        let mut offset = 0u64;
        for (at, digit) in digits.iter().enumerate() {
            let Some(nibble) = HEX.iter().position(|hex| hex == digit) else {
                let at = num::wide(at).saturating_add(1);
                return Err(WireError::Text { field, at, must: "'@' and lowercase hex digits" });
            };
            offset = offset << 4 | num::wide(nibble);
        }
        Ok(Self::Region(offset))
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// What a copy moves: both ends and a length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CopySpan {
    /// Protocol 2: two addresses.
    Addresses {
        /// Where to.
        dst: u64,
        /// Where from.
        src: u64,
        /// How much.
        nbytes: u64,
    },
    /// Protocol 3: two buffers.
    Buffers {
        /// Where to.
        dst: BufferDescriptor,
        /// Where from.
        src: BufferDescriptor,
        /// How much.
        nbytes: u64,
    },
}

/// One control, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ControlRequest {
    /// Allocate device memory; the result is its address.
    Malloc {
        /// Bytes wanted.
        bytes: u64,
    },
    /// Free device memory.
    Free {
        /// Its address.
        address: u64,
    },
    /// Copy to the device.
    CopyTo(CopySpan),
    /// Copy from the device.
    CopyFrom(CopySpan),
    /// Prepare a registered callable.
    Prepare {
        /// The callable.
        digest: Digest,
    },
    /// Install a chip callable.
    Register {
        /// Where its bytes are.
        staged: Staged,
        /// How many.
        bytes: u64,
        /// What they must amount to.
        digest: Digest,
    },
    /// Remove a chip callable.
    Unregister {
        /// The callable.
        digest: Digest,
    },
    /// Install a host callable.
    PyRegister {
        /// Where its bytes are.
        staged: Staged,
        /// How many.
        bytes: u64,
        /// What they must amount to.
        digest: Digest,
    },
    /// Remove a host callable.
    PyUnregister {
        /// The callable.
        digest: Digest,
    },
    /// How much device memory is committed; the result is bytes.
    CommittedDeviceMemory,
    /// A command of a later version (communication domains and regions): answered "unsupported".
    Unsupported(ControlCommand),
}

/// The bytes of a control on the base frame, gathered: sub-command (offset 8), first argument (16) and the payload area
/// (1,176). A child copies these words once and judges the copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ControlFrame {
    /// [`ControlCommand`].
    pub subcommand: u64,
    /// First argument.
    pub arg0: u64,
    /// The area from [`frame::CONTROL_PAYLOAD`] on.
    pub payload: [u8; frame::CONTROL_PAYLOAD_BYTES],
}

const_assert_eq!(frame::CONTROL_PAYLOAD_BYTES, 2 * BufferDescriptor::BYTES + 8);
const_assert_eq!(frame::NAME, frame::CONTROL_PAYLOAD);
const_assert_eq!(core::mem::offset_of!(NameAndDigest, digest), frame::CONTROL_DIGEST - frame::CONTROL_PAYLOAD);

/// The payload of a registration.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct NameAndDigest {
    pub(super) name: [u8; 32],
    pub(super) digest: Digest,
}

/// The payload of a copy in protocol 2.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Addresses {
    pub(super) dst: u64,
    pub(super) src: u64,
    pub(super) nbytes: u64,
}

/// The payload of a copy in protocol 3.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Buffers {
    pub(super) dst: [u8; BufferDescriptor::BYTES],
    pub(super) src: [u8; BufferDescriptor::BYTES],
    pub(super) nbytes: u64,
}

const_assert_eq!(size_of::<Addresses>(), 24);
const_assert_eq!(size_of::<Buffers>(), frame::CONTROL_PAYLOAD_BYTES);

impl ControlFrame {
    /// The bytes of `request`; what it does not use is zero.
    #[must_use]
    pub fn encode(request: &ControlRequest) -> Self {
        let mut out = Self { subcommand: request.command().raw(), arg0: 0, payload: [0; frame::CONTROL_PAYLOAD_BYTES] };
        let named = |name: [u8; 32], digest: &Digest| NameAndDigest { name, digest: *digest };
        match request {
            ControlRequest::Malloc { bytes } => out.arg0 = *bytes,
            ControlRequest::Free { address } => out.arg0 = *address,
            ControlRequest::CopyTo(span) | ControlRequest::CopyFrom(span) => match span {
                CopySpan::Addresses { dst, src, nbytes } => {
                    out.put(&Addresses { dst: *dst, src: *src, nbytes: *nbytes });
                }
                CopySpan::Buffers { dst, src, nbytes } => {
                    let (dst, src) = (zerocopy::transmute!(*dst), zerocopy::transmute!(*src));
                    out.put(&Buffers { dst, src, nbytes: *nbytes });
                }
            },
            ControlRequest::Prepare { digest }
            | ControlRequest::Unregister { digest }
            | ControlRequest::PyUnregister { digest } => out.put(&named([0; 32], digest)),
            ControlRequest::Register { staged, bytes, digest }
            | ControlRequest::PyRegister { staged, bytes, digest } => {
                out.arg0 = *bytes;
                out.put(&named(staged.slot(), digest));
            }
            ControlRequest::CommittedDeviceMemory | ControlRequest::Unsupported(_) => {}
        }
        out
    }

    fn put<T: IntoBytes + Immutable>(&mut self, value: &T) {
        for (to, from) in self.payload.iter_mut().zip(value.as_bytes()) {
            *to = *from;
        }
    }

    fn take<T: FromBytes + FromZeros>(&self) -> Result<T, WireError> {
        T::read_from_prefix(&self.payload).map(|(value, _)| value).map_err(|_| WireError::Short {
            what: "control payload",
            have: num::wide(self.payload.len()),
            need: num::wide(size_of::<T>()),
        })
    }

    /// Decodes a control under the protocol that this side serves.
    ///
    /// # Errors
    /// [`WireError::UnknownCommand`], or the first field that is not legal.
    pub fn decode(&self, served: Protocol) -> Result<ControlRequest, WireError> {
        let command = ControlCommand::from_raw(self.subcommand)?;
        Ok(match command {
            ControlCommand::Malloc => ControlRequest::Malloc { bytes: self.arg0 },
            ControlCommand::Free => ControlRequest::Free { address: self.arg0 },
            ControlCommand::CopyTo => ControlRequest::CopyTo(self.span(served)?),
            ControlCommand::CopyFrom => ControlRequest::CopyFrom(self.span(served)?),
            ControlCommand::Prepare => ControlRequest::Prepare { digest: self.digest()? },
            ControlCommand::Unregister => ControlRequest::Unregister { digest: self.digest()? },
            ControlCommand::PyUnregister => ControlRequest::PyUnregister { digest: self.digest()? },
            ControlCommand::Register => {
                let NameAndDigest { name, digest } = self.take()?;
                ControlRequest::Register { staged: Staged::parse(&name)?, bytes: self.arg0, digest }
            }
            ControlCommand::PyRegister => {
                let NameAndDigest { name, digest } = self.take()?;
                ControlRequest::PyRegister { staged: Staged::parse(&name)?, bytes: self.arg0, digest }
            }
            ControlCommand::CommittedDeviceMemory => ControlRequest::CommittedDeviceMemory,
            ControlCommand::AllocDomain
            | ControlCommand::ReleaseDomain
            | ControlCommand::CommInit
            | ControlCommand::RegionAllocate
            | ControlCommand::RegionRelease => ControlRequest::Unsupported(command),
        })
    }

    fn digest(&self) -> Result<Digest, WireError> {
        self.take().map(|NameAndDigest { digest, .. }| digest)
    }

    fn span(&self, served: Protocol) -> Result<CopySpan, WireError> {
        match served {
            Protocol::ChipTensors => {
                let Addresses { dst, src, nbytes } = self.take()?;
                Ok(CopySpan::Addresses { dst, src, nbytes })
            }
            Protocol::Tensors => {
                let Buffers { dst, src, nbytes } = self.take()?;
                let (dst, src) = (BufferDescriptor::decode(&dst)?, BufferDescriptor::decode(&src)?);
                for (what, limit) in [("copy destination", dst.range().nbytes), ("copy source", src.range().nbytes)] {
                    if nbytes > limit {
                        return Err(WireError::Outside { what, offset: 0, len: nbytes, limit });
                    }
                }
                Ok(CopySpan::Buffers { dst, src, nbytes })
            }
        }
    }
}

impl ControlRequest {
    /// The sub-command that carries it.
    #[must_use]
    pub const fn command(&self) -> ControlCommand {
        match self {
            Self::Malloc { .. } => ControlCommand::Malloc,
            Self::Free { .. } => ControlCommand::Free,
            Self::CopyTo(_) => ControlCommand::CopyTo,
            Self::CopyFrom(_) => ControlCommand::CopyFrom,
            Self::Prepare { .. } => ControlCommand::Prepare,
            Self::Register { .. } => ControlCommand::Register,
            Self::Unregister { .. } => ControlCommand::Unregister,
            Self::PyRegister { .. } => ControlCommand::PyRegister,
            Self::PyUnregister { .. } => ControlCommand::PyUnregister,
            Self::CommittedDeviceMemory => ControlCommand::CommittedDeviceMemory,
            Self::Unsupported(command) => *command,
        }
    }
}
