//! The bodies of remote controls and of their replies.

use super::caps;
use super::field::{AccessBits, Exported, Field, RemoteBuffer, RemoteSpace, record};
use crate::ids::WorkerId;
use crate::wire::cursor::Cursor;
use crate::wire::writer::Writer;
use crate::wire::{CallableKind, Digest, WireError, num};

/// What a control asks for; the number is its name on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum RemoteCommand {
    /// Remove a callable.
    UnregisterCallable = 1,
    /// First half of a registration.
    PrepareRegister = 2,
    /// Second half of a registration.
    CommitRegister = 3,
    /// Undo the first half.
    AbortRegister = 4,
    /// Make a callable ready to run.
    PrepareCallable = 5,
    /// Allocate a buffer.
    AllocBuffer = 6,
    /// Free a buffer.
    FreeBuffer = 7,
    /// Write to a buffer.
    CopyTo = 8,
    /// Read from a buffer.
    CopyFrom = 9,
    /// Let others reach a buffer.
    Export = 10,
    /// Reach a buffer of another.
    Import = 11,
    /// Stop reaching it.
    ReleaseImport = 12,
    /// Communication domains; answered "unsupported".
    Domain13 = 13,
    /// Communication domains; answered "unsupported".
    Domain14 = 14,
    /// Communication domains; answered "unsupported".
    Domain15 = 15,
    /// Communication domains; answered "unsupported".
    Domain16 = 16,
    /// Communication domains; answered "unsupported".
    Domain17 = 17,
}

impl RemoteCommand {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 17] = [
        Self::UnregisterCallable,
        Self::PrepareRegister,
        Self::CommitRegister,
        Self::AbortRegister,
        Self::PrepareCallable,
        Self::AllocBuffer,
        Self::FreeBuffer,
        Self::CopyTo,
        Self::CopyFrom,
        Self::Export,
        Self::Import,
        Self::ReleaseImport,
        Self::Domain13,
        Self::Domain14,
        Self::Domain15,
        Self::Domain16,
        Self::Domain17,
    ];

    /// The number on the wire.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn code(self) -> u32 {
        self as u32
    }
}

impl<'a> Field<'a> for RemoteCommand {
    fn read(cursor: &mut Cursor<'a>, field: &'static str) -> Result<Self, WireError> {
        let code = cursor.u32()?;
        let found = Self::ALL.iter().copied().find(|command| command.code() == code);
        found.ok_or(WireError::UnknownCode { field, value: code.into(), known: "1..=12, reserved 13..=17" })
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u32(self.code())
    }
}

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
    Copy {
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
        range: is as Copy,
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

fn same_length(field: &'static str, size: u64, bytes: &[u8]) -> Result<(), WireError> {
    let exact = num::wide(bytes.len());
    if size == exact {
        return Ok(());
    }
    Err(WireError::OutOfRange { field, value: size.into(), min: exact.into(), max: exact.into() })
}

fn in_range(what: &'static str, offset: u64, len: u64) -> Result<(), WireError> {
    match offset.checked_add(len) {
        Some(_) => Ok(()),
        None => Err(WireError::Outside { what, offset, len, limit: u64::MAX }),
    }
}

/// The body of a control, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteRequest<'a> {
    /// Remove a callable.
    UnregisterCallable(CallableRef),
    /// First half of a registration.
    PrepareRegister(PrepareRegister<'a>),
    /// Second half of a registration.
    CommitRegister(CallableRef),
    /// Undo the first half.
    AbortRegister(CallableRef),
    /// Make a callable ready to run.
    PrepareCallable(CallableRef),
    /// Allocate a buffer.
    AllocBuffer(Alloc),
    /// Free a buffer.
    FreeBuffer(Free),
    /// Write to a buffer.
    CopyTo(CopyTo<'a>),
    /// Read from a buffer.
    CopyFrom(Copy),
    /// Let others reach a buffer.
    Export(Export<'a>),
    /// Reach a buffer of another.
    Import(Import<'a>),
    /// Stop reaching it.
    ReleaseImport(ReleaseImport),
    /// A command of a later version, answered "unsupported"; its body is not looked at.
    Unsupported(RemoteCommand),
}

impl<'a> RemoteRequest<'a> {
    /// Decodes the body of a control.
    ///
    /// # Errors
    /// The first field that is not legal, bytes that are missing, or bytes too many.
    pub fn decode(command: RemoteCommand, body: &'a [u8]) -> Result<Self, WireError> {
        let cursor = &mut Cursor::new("control body", body);
        let request = match command {
            RemoteCommand::UnregisterCallable => Self::UnregisterCallable(Field::read(cursor, "body")?),
            RemoteCommand::PrepareRegister => Self::PrepareRegister(Field::read(cursor, "body")?),
            RemoteCommand::CommitRegister => Self::CommitRegister(Field::read(cursor, "body")?),
            RemoteCommand::AbortRegister => Self::AbortRegister(Field::read(cursor, "body")?),
            RemoteCommand::PrepareCallable => Self::PrepareCallable(Field::read(cursor, "body")?),
            RemoteCommand::AllocBuffer => Self::AllocBuffer(Field::read(cursor, "body")?),
            RemoteCommand::FreeBuffer => Self::FreeBuffer(Field::read(cursor, "body")?),
            RemoteCommand::CopyTo => Self::CopyTo(Field::read(cursor, "body")?),
            RemoteCommand::CopyFrom => Self::CopyFrom(Field::read(cursor, "body")?),
            RemoteCommand::Export => Self::Export(Field::read(cursor, "body")?),
            RemoteCommand::Import => Self::Import(Field::read(cursor, "body")?),
            RemoteCommand::ReleaseImport => Self::ReleaseImport(Field::read(cursor, "body")?),
            RemoteCommand::Domain13
            | RemoteCommand::Domain14
            | RemoteCommand::Domain15
            | RemoteCommand::Domain16
            | RemoteCommand::Domain17 => return Ok(Self::Unsupported(command)),
        };
        cursor.finish()?;
        request.judge()?;
        Ok(request)
    }

    /// Writes the body and returns its length in bytes.
    ///
    /// # Errors
    /// A field over its cap, a range that wraps, or an `out` that is too small.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        self.judge()?;
        let out = &mut Writer::new("control body", out);
        match self {
            Self::UnregisterCallable(body)
            | Self::CommitRegister(body)
            | Self::AbortRegister(body)
            | Self::PrepareCallable(body) => body.write(out, "body")?,
            Self::PrepareRegister(body) => body.write(out, "body")?,
            Self::AllocBuffer(body) => body.write(out, "body")?,
            Self::FreeBuffer(body) => body.write(out, "body")?,
            Self::CopyTo(body) => body.write(out, "body")?,
            Self::CopyFrom(body) => body.write(out, "body")?,
            Self::Export(body) => body.write(out, "body")?,
            Self::Import(body) => body.write(out, "body")?,
            Self::ReleaseImport(body) => body.write(out, "body")?,
            Self::Unsupported(_) => {}
        }
        Ok(out.len())
    }

    /// The command that it is the body of.
    #[must_use]
    pub const fn command(&self) -> RemoteCommand {
        match self {
            Self::UnregisterCallable(_) => RemoteCommand::UnregisterCallable,
            Self::PrepareRegister(_) => RemoteCommand::PrepareRegister,
            Self::CommitRegister(_) => RemoteCommand::CommitRegister,
            Self::AbortRegister(_) => RemoteCommand::AbortRegister,
            Self::PrepareCallable(_) => RemoteCommand::PrepareCallable,
            Self::AllocBuffer(_) => RemoteCommand::AllocBuffer,
            Self::FreeBuffer(_) => RemoteCommand::FreeBuffer,
            Self::CopyTo(_) => RemoteCommand::CopyTo,
            Self::CopyFrom(_) => RemoteCommand::CopyFrom,
            Self::Export(_) => RemoteCommand::Export,
            Self::Import(_) => RemoteCommand::Import,
            Self::ReleaseImport(_) => RemoteCommand::ReleaseImport,
            Self::Unsupported(command) => *command,
        }
    }

    fn judge(&self) -> Result<(), WireError> {
        match self {
            Self::CopyTo(body) => {
                same_length("CopyTo.size", body.range.size, body.bytes)?;
                in_range("range of a copy", body.range.offset, body.range.size)
            }
            Self::CopyFrom(range) => in_range("range of a copy", range.offset, range.size),
            Self::Export(body) => in_range("range of an export", body.offset, body.bytes),
            Self::Import(body) => in_range("range of an export", body.export.offset, body.export.bytes),
            _ => Ok(()),
        }
    }
}

/// The body of a successful reply, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteReply<'a> {
    /// The command answers with its success alone.
    Done,
    /// An allocation.
    Alloc(AllocResult),
    /// The bytes of a copy.
    Bytes(&'a [u8]),
    /// An export.
    Export(ExportResult<'a>),
    /// An import.
    Import(ImportResult<'a>),
}

impl<'a> RemoteReply<'a> {
    /// Decodes the body of a successful reply to `command`.
    ///
    /// # Errors
    /// The first field that is not legal, bytes that are missing, or bytes too many.
    pub fn decode(command: RemoteCommand, body: &'a [u8]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("reply body", body);
        let reply = match command {
            RemoteCommand::AllocBuffer => Self::Alloc(Field::read(&mut cursor, "reply")?),
            RemoteCommand::CopyFrom => Self::Bytes(cursor.rest()),
            RemoteCommand::Export => {
                let result: ExportResult<'a> = Field::read(&mut cursor, "reply")?;
                in_range("range of an export", result.offset, result.bytes)?;
                Self::Export(result)
            }
            RemoteCommand::Import => {
                let result: ImportResult<'a> = Field::read(&mut cursor, "reply")?;
                in_range("range of an import", result.offset, result.bytes)?;
                Self::Import(result)
            }
            _ => Self::Done,
        };
        cursor.finish()?;
        Ok(reply)
    }

    /// Writes the body and returns its length in bytes.
    ///
    /// # Errors
    /// A field over its cap, or an `out` that is too small.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut out = Writer::new("reply body", out);
        match self {
            Self::Done => {}
            Self::Alloc(result) => result.write(&mut out, "reply")?,
            Self::Bytes(bytes) => out.bytes(bytes)?,
            Self::Export(result) => result.write(&mut out, "reply")?,
            Self::Import(result) => result.write(&mut out, "reply")?,
        }
        Ok(out.len())
    }
}
