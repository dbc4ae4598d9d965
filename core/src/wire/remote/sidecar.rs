//! What it takes to reach the bytes of a remote tensor: 80 bytes beside it.

use core::num::NonZeroU64;

use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::field::{Field, RemoteBuffer, RemoteSpace};
use crate::ids::WorkerId;
use crate::wire::WireError;
use crate::wire::cursor::Cursor;
use crate::wire::writer::Writer;

/// Where a tensor's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RemoteTensorDesc {
    /// In the frame, among its inline bytes.
    Inline {
        /// First byte of them.
        inline_offset: u64,
        /// How many.
        nbytes: u64,
    },
    /// In a buffer of a remote worker.
    Buffer {
        /// How it is reached; never `HostInline`.
        space: RemoteSpace,
        /// Which buffer.
        buffer: RemoteBuffer,
        /// First byte in it.
        offset: u64,
        /// How many.
        nbytes: u64,
        /// Its address for the transport.
        remote_addr: u64,
        /// Key or token for the transport.
        rkey: u64,
    },
}

impl RemoteTensorDesc {
    /// Bytes of one on the wire.
    pub const BYTES: usize = 80;

    /// Whether it can stand beside `inline_bytes` inline bytes.
    ///
    /// # Errors
    /// [`WireError::Outside`] for inline bytes that are not there, or a range that wraps.
    pub fn check(&self, inline_bytes: u32) -> Result<(), WireError> {
        let (what, offset, len, limit) = match *self {
            Self::Inline { inline_offset, nbytes } => {
                ("inline bytes of a tensor", inline_offset, nbytes, u64::from(inline_bytes))
            }
            Self::Buffer { offset, nbytes, .. } => ("range of a remote buffer", offset, nbytes, u64::MAX),
        };
        match offset.checked_add(len) {
            Some(end) if end <= limit => Ok(()),
            _ => Err(WireError::Outside { what, offset, len, limit }),
        }
    }
}

/// The bytes of a [`RemoteTensorDesc`], not yet judged.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RawDesc {
    pub(crate) space: U32,
    pub(crate) owner: I32,
    pub(crate) buffer_id: U64,
    pub(crate) offset: U64,
    pub(crate) nbytes: U64,
    pub(crate) remote_addr: U64,
    pub(crate) rkey: U64,
    pub(crate) generation: U64,
    pub(crate) inline_offset: U64,
    pub(crate) inline_length: U64,
    pub(crate) flags: U64,
}

const_assert_eq!(size_of::<RawDesc>(), RemoteTensorDesc::BYTES);
const_assert_eq!(core::mem::offset_of!(RawDesc, space), 0);
const_assert_eq!(core::mem::offset_of!(RawDesc, owner), 4);
const_assert_eq!(core::mem::offset_of!(RawDesc, buffer_id), 8);
const_assert_eq!(core::mem::offset_of!(RawDesc, offset), 16);
const_assert_eq!(core::mem::offset_of!(RawDesc, nbytes), 24);
const_assert_eq!(core::mem::offset_of!(RawDesc, remote_addr), 32);
const_assert_eq!(core::mem::offset_of!(RawDesc, rkey), 40);
const_assert_eq!(core::mem::offset_of!(RawDesc, generation), 48);
const_assert_eq!(core::mem::offset_of!(RawDesc, inline_offset), 56);
const_assert_eq!(core::mem::offset_of!(RawDesc, inline_length), 64);
const_assert_eq!(core::mem::offset_of!(RawDesc, flags), 72);

impl<'a> Field<'a> for RemoteTensorDesc {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        let raw: RawDesc = zerocopy::transmute!(*cursor.array::<{ Self::BYTES }>()?);
        raw.judge()
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        let raw = match *self {
            Self::Inline { inline_offset, nbytes } => RawDesc {
                space: RemoteSpace::HostInline.code().into(),
                nbytes: nbytes.into(),
                inline_offset: inline_offset.into(),
                inline_length: nbytes.into(),
                ..RawDesc::default()
            },
            Self::Buffer { space: RemoteSpace::HostInline, .. } => {
                let known = "2 REMOTE_DEVICE, 3 REMOTE_WINDOW, 4 UB_LDST";
                return Err(WireError::UnknownCode { field: "sidecar space of a buffer", value: 1, known });
            }
            Self::Buffer { space, buffer, offset, nbytes, remote_addr, rkey } => RawDesc {
                space: space.code().into(),
                owner: buffer.owner.get().into(),
                buffer_id: buffer.id.get().into(),
                offset: offset.into(),
                nbytes: nbytes.into(),
                remote_addr: remote_addr.into(),
                rkey: rkey.into(),
                generation: buffer.generation.get().into(),
                ..RawDesc::default()
            },
        };
        out.bytes(raw.as_bytes())
    }
}

impl RawDesc {
    fn judge(&self) -> Result<RemoteTensorDesc, WireError> {
        let space = RemoteSpace::from_code("sidecar space", self.space.get())?;
        zero("sidecar flags", self.flags)?;
        if space == RemoteSpace::HostInline {
            zero("inline sidecar owner", u64::from(u32::from_le_bytes(self.owner.to_bytes())).into())?;
            zero("inline sidecar buffer id", self.buffer_id)?;
            zero("inline sidecar generation", self.generation)?;
            zero("inline sidecar offset", self.offset)?;
            zero("inline sidecar remote address", self.remote_addr)?;
            zero("inline sidecar key", self.rkey)?;
            let (nbytes, length) = (self.nbytes.get(), self.inline_length.get());
            if length != nbytes {
                let field = "inline sidecar length (must be nbytes)";
                let (value, min, max) = (length.into(), nbytes.into(), nbytes.into());
                return Err(WireError::OutOfRange { field, value, min, max });
            }
            return Ok(RemoteTensorDesc::Inline { inline_offset: self.inline_offset.get(), nbytes });
        }
        zero("sidecar inline offset of a buffer", self.inline_offset)?;
        zero("sidecar inline length of a buffer", self.inline_length)?;
        let owner = WorkerId::new(self.owner.get()).ok_or(WireError::OutOfRange {
            field: "sidecar owner",
            value: self.owner.get().into(),
            min: 0,
            max: i32::MAX.into(),
        })?;
        let nonzero = |field, value: U64| NonZeroU64::new(value.get()).ok_or(WireError::Zero { field });
        let id = nonzero("sidecar buffer id", self.buffer_id)?;
        let generation = nonzero("sidecar generation", self.generation)?;
        Ok(RemoteTensorDesc::Buffer {
            space,
            buffer: RemoteBuffer { owner, id, generation },
            offset: self.offset.get(),
            nbytes: self.nbytes.get(),
            remote_addr: self.remote_addr.get(),
            rkey: self.rkey.get(),
        })
    }
}

fn zero(field: &'static str, value: U64) -> Result<(), WireError> {
    match value.get() {
        0 => Ok(()),
        value => Err(WireError::NotZero { field, value }),
    }
}
