//! What it takes to reach the bytes of a remote tensor: 80 bytes beside it.

use core::num::NonZeroU64;

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

/// The eleven fields in their order.
struct Raw {
    space: RemoteSpace,
    owner: i32,
    buffer_id: u64,
    offset: u64,
    nbytes: u64,
    remote_addr: u64,
    rkey: u64,
    generation: u64,
    inline_offset: u64,
    inline_length: u64,
}

impl<'a> Field<'a> for RemoteTensorDesc {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        let raw = Raw {
            space: RemoteSpace::read(cursor, "sidecar space")?,
            owner: cursor.i32()?,
            buffer_id: cursor.u64()?,
            offset: cursor.u64()?,
            nbytes: cursor.u64()?,
            remote_addr: cursor.u64()?,
            rkey: cursor.u64()?,
            generation: cursor.u64()?,
            inline_offset: cursor.u64()?,
            inline_length: cursor.u64()?,
        };
        zero("sidecar flags", cursor.u64()?)?;
        raw.judge()
    }

    fn write(&self, out: &mut Writer<'_>, field: &'static str) -> Result<(), WireError> {
        match *self {
            Self::Inline { inline_offset, nbytes } => {
                RemoteSpace::HostInline.write(out, field)?;
                0i32.write(out, field)?;
                [0, 0, nbytes, 0, 0, 0, inline_offset, nbytes, 0].iter().try_for_each(|word| out.u64(*word))
            }
            Self::Buffer { space, buffer, offset, nbytes, remote_addr, rkey } => {
                if space == RemoteSpace::HostInline {
                    return Err(INLINE_BUFFER);
                }
                space.write(out, field)?;
                buffer.owner.write(out, field)?;
                let RemoteBuffer { id, generation, .. } = buffer;
                [id.get(), offset, nbytes, remote_addr, rkey, generation.get(), 0, 0, 0]
                    .iter()
                    .try_for_each(|word| out.u64(*word))
            }
        }
    }
}

const INLINE_BUFFER: WireError = WireError::UnknownCode {
    field: "sidecar space of a buffer",
    value: 1,
    known: "2 REMOTE_DEVICE, 3 REMOTE_WINDOW, 4 UB_LDST",
};

impl Raw {
    fn judge(self) -> Result<RemoteTensorDesc, WireError> {
        if self.space == RemoteSpace::HostInline {
            let owner = u32::from_le_bytes(self.owner.to_le_bytes());
            zero("inline sidecar owner", owner.into())?;
            zero("inline sidecar buffer id", self.buffer_id)?;
            zero("inline sidecar generation", self.generation)?;
            zero("inline sidecar offset", self.offset)?;
            zero("inline sidecar remote address", self.remote_addr)?;
            zero("inline sidecar key", self.rkey)?;
            if self.inline_length != self.nbytes {
                let (value, exact) = (self.inline_length.into(), i128::from(self.nbytes));
                let field = "inline sidecar length (must be nbytes)";
                return Err(WireError::OutOfRange { field, value, min: exact, max: exact });
            }
            return Ok(RemoteTensorDesc::Inline { inline_offset: self.inline_offset, nbytes: self.nbytes });
        }
        zero("sidecar inline offset of a buffer", self.inline_offset)?;
        zero("sidecar inline length of a buffer", self.inline_length)?;
        let owner = WorkerId::new(self.owner).ok_or(WireError::OutOfRange {
            field: "sidecar owner",
            value: self.owner.into(),
            min: 0,
            max: i32::MAX.into(),
        })?;
        let nonzero = |field, value| NonZeroU64::new(value).ok_or(WireError::Zero { field });
        let id = nonzero("sidecar buffer id", self.buffer_id)?;
        let generation = nonzero("sidecar generation", self.generation)?;
        Ok(RemoteTensorDesc::Buffer {
            space: self.space,
            buffer: RemoteBuffer { owner, id, generation },
            offset: self.offset,
            nbytes: self.nbytes,
            remote_addr: self.remote_addr,
            rkey: self.rkey,
        })
    }
}

fn zero(field: &'static str, value: u64) -> Result<(), WireError> {
    if value == 0 { Ok(()) } else { Err(WireError::NotZero { field, value }) }
}
