//! Remote controls: the command, its body and the body of its reply.

use super::bodies::{
    Alloc, AllocResult, CallableRef, CopyRange, CopyTo, Export, ExportResult, Free, Import, ImportResult,
    PrepareRegister, ReleaseImport, same_length,
};
use super::field::Field;
use crate::wire::WireError;
use crate::wire::cursor::Cursor;
use crate::wire::writer::Writer;

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
    CopyFrom(CopyRange),
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
