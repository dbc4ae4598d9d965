//! What stands in the bodies of remote controls and of their replies.

use super::caps;
use super::field::{AccessBits, Exported, Field, RemoteBuffer, RemoteSpace, record};
use crate::ids::WorkerId;
use crate::wire::cursor::Cursor;
use crate::wire::writer::Writer;
use crate::wire::{CallableKind, Digest, WireError, num};

/// Which registry of a session a callable goes to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Registry {
    /// The session's own dispatcher (1).
    Dispatcher,
    /// The worker inside the session (2).
    InnerWorker,
}

impl<'a> Field<'a> for Registry {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        match cursor.u32()? {
            1 => Ok(Self::Dispatcher),
            2 => Ok(Self::InnerWorker),
            code => Err(WireError::UnknownCode { field, value: code.into(), known: "1 dispatcher, 2 inner worker" }),
        }
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u32(match self {
            Self::Dispatcher => 1,
            Self::InnerWorker => 2,
        })
    }
}

impl<'a> Field<'a> for CallableKind {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        Self::from_code(cursor.i32()?)
    }

    fn write(&self, out: &mut Writer<'_>, field: &'static str) -> Result<(), WireError> {
        self.code().write(out, field)
    }
}

record! {
    /// A callable in a registry: the body of COMMIT, ABORT, UNREGISTER and PREPARE_CALLABLE.
    CallableRef {
        /// Where.
        registry: is as Registry,
        /// What it is made of.
        kind: is as CallableKind,
        /// Its name.
        digest: is as Digest,
    }
}

record! {
    /// The first half of a registration.
    PrepareRegister<'a> {
        /// What is registered where.
        callable: is as CallableRef,
        /// Version of the payload.
        payload_version: is as u32,
        /// What it takes to install it; see [`ChipPayload`] for a chip callable.
        payload: blob(BODY),
    }
}

record! {
    /// A remote allocation wanted.
    Alloc {
        /// Size in bytes.
        bytes: is as u64,
    }
}

record! {
    /// A remote allocation made.
    AllocResult {
        /// What was allocated.
        buffer: is as RemoteBuffer,
        /// How it is reached.
        space: is as RemoteSpace,
        /// Size in bytes.
        bytes: is as u64,
        /// Its address for the transport.
        addr: is as u64,
        /// Key or token for the transport.
        rkey: is as u64,
        /// Its address on a load/store fabric.
        ub_address: is as u64,
    }
}

record! {
    /// A buffer to free.
    Free {
        /// Which.
        buffer: is as RemoteBuffer,
    }
}

record! {
    /// A range to read; the reply's body is its bytes.
    CopyRange {
        /// The buffer.
        buffer: is as RemoteBuffer,
        /// First byte.
        offset: is as u64,
        /// How many.
        size: is as u64,
    }
}

record! {
    /// A range to write.
    CopyTo<'a> {
        /// Where to.
        range: is as CopyRange,
        /// As many bytes as the range has.
        bytes: tail,
    }
}

record! {
    /// A buffer to let others reach.
    Export<'a> {
        /// Which.
        buffer: is as RemoteBuffer,
        /// First byte.
        offset: is as u64,
        /// How many.
        bytes: is as u64,
        /// What they may do.
        access: is as AccessBits,
        /// Transport profile.
        profile: str(PROFILE),
        ; reserved
    }
}

record! {
    /// How an exported buffer is reached.
    ExportResult<'a> {
        /// Which.
        buffer: is as RemoteBuffer,
        /// A window or a load/store fabric.
        space: exported,
        /// First byte.
        offset: is as u64,
        /// How many.
        bytes: is as u64,
        /// Its number as an export.
        export_id: is as u64,
        /// Its address for the transport.
        addr: is as u64,
        /// Key or token for the transport.
        rkey: is as u64,
        /// Its address on a load/store fabric.
        ub_address: is as u64,
        /// What others may do.
        access: is as AccessBits,
        /// Transport profile.
        profile: str(PROFILE),
        /// What the transport needs to know beyond that.
        descriptor: blob(DESCRIPTOR),
        ; reserved
    }
}

record! {
    /// An export to be reached by another worker.
    Import<'a> {
        /// That worker.
        importer: is as WorkerId,
        /// What it wants to do.
        access: is as AccessBits,
        /// What the owner said.
        export: is as ExportResult<'a>,
        ; reserved
    }
}

record! {
    /// An export reached.
    ImportResult<'a> {
        /// The worker that reaches it.
        importer: is as WorkerId,
        /// The buffer.
        buffer: is as RemoteBuffer,
        /// Its number as an import.
        import_id: is as u64,
        /// A window or a load/store fabric.
        space: exported,
        /// First byte.
        offset: is as u64,
        /// How many.
        bytes: is as u64,
        /// Its address for the transport.
        addr: is as u64,
        /// Key or token for the transport.
        rkey: is as u64,
        /// Its address on a load/store fabric.
        ub_address: is as u64,
        /// What the importer may do.
        access: is as AccessBits,
        /// Transport profile.
        profile: str(PROFILE),
        /// What the transport needs to know beyond that.
        descriptor: blob(DESCRIPTOR),
        ; reserved
    }
}

record! {
    /// An import no longer needed.
    ReleaseImport {
        /// The worker that reached it.
        importer: is as WorkerId,
        /// The buffer.
        buffer: is as RemoteBuffer,
        /// Its number as an import.
        import_id: is as u64,
        ; reserved
    }
}

record! {
    /// What it takes to install a chip callable.
    ChipPayload<'a> {
        /// The canonical descriptor that the digest names.
        descriptor: blob(DESCRIPTOR),
        /// Where the bytes are: 1, inline. Staged bytes (2) are refused.
        location: is as Inline,
        /// How many bytes.
        size: is as u64,
        /// Their SHA-256.
        sha256: is as [u8; 32],
        /// The bytes.
        inline: blob(INLINE),
        /// Token of a staged blob; of no use to an inline one.
        token: blob(TOKEN),
        ; reserved
    }
}

/// The only location of a chip callable's bytes that is served.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Inline;

impl<'a> Field<'a> for Inline {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        match cursor.u32()? {
            1 => Ok(Self),
            code => {
                let known = "1 inline; 2 staged is not supported";
                Err(WireError::UnknownCode { field, value: code.into(), known })
            }
        }
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u32(1)
    }
}

impl<'a> ChipPayload<'a> {
    /// Decodes the payload of a PREPARE_REGISTER for a chip callable.
    ///
    /// # Errors
    /// The first field that is not legal, or a size that is not the number of inline bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("chip payload", bytes);
        let payload: Self = Field::read(&mut cursor, "chip payload")?;
        cursor.finish()?;
        same_length("ChipPayload.size", payload.size, payload.inline)?;
        Ok(payload)
    }

    /// Writes the payload and returns its length in bytes.
    ///
    /// # Errors
    /// A field over its cap, a size that is not the number of inline bytes, or an `out` that is too small.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        same_length("ChipPayload.size", self.size, self.inline)?;
        let mut out = Writer::new("chip payload", out);
        self.write(&mut out, "chip payload")?;
        Ok(out.len())
    }
}

/// `size` says how many `bytes` there are.
pub(super) fn same_length(field: &'static str, size: u64, bytes: &[u8]) -> Result<(), WireError> {
    let exact = num::wide(bytes.len());
    if size == exact {
        return Ok(());
    }
    Err(WireError::OutOfRange { field, value: size.into(), min: exact.into(), max: exact.into() })
}
