//! The 40 bytes in front of every payload, judged before the payload is read (N-1).

use crate::ids::WorkerId;
use crate::wire::cursor::Cursor;
use crate::wire::remote::field::Field;
use crate::wire::writer::Writer;
use crate::wire::{WireError, num};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 40;
/// Most bytes of a payload.
pub const MAX_PAYLOAD_BYTES: u32 = 16 * 1024 * 1024;

const MAGIC: [u8; 4] = *b"SLR3";
const VERSION: u32 = 3;
const FLAG_GROUP: u32 = 1;

/// What a frame carries; the number is its type on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u32)]
pub enum FrameType {
    /// The first frame of a session.
    Hello = 1,
    /// A task.
    Task = 2,
    /// A control.
    Control = 3,
    /// The answer to a control.
    ControlReply = 4,
    /// The end of a task.
    Completion = 5,
    /// Still alive.
    Health = 6,
    /// Please leave.
    Shutdown = 7,
}

impl FrameType {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 7] =
        [Self::Hello, Self::Task, Self::Control, Self::ControlReply, Self::Completion, Self::Health, Self::Shutdown];

    /// The type that `code` stands for.
    ///
    /// # Errors
    /// [`WireError::UnknownCode`].
    pub fn from_code(code: u32) -> Result<Self, WireError> {
        Self::ALL.iter().copied().find(|kind| kind.code() == code).ok_or(WireError::UnknownCode {
            field: "frame type",
            value: code.into(),
            known: "1 HELLO, 2 TASK, 3 CONTROL, 4 CONTROL_REPLY, 5 COMPLETION, 6 HEALTH, 7 SHUTDOWN",
        })
    }

    /// The number on the wire.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn code(self) -> u32 {
        self as u32
    }
}

/// A judged header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FrameHeader {
    /// What the payload is.
    pub kind: FrameType,
    /// The session.
    pub session: u64,
    /// The worker that the frame goes to or comes from.
    pub worker: WorkerId,
    /// Position on its lane: 0 for HELLO, then from 1.
    pub sequence: u64,
    /// Bytes of the payload, at most [`MAX_PAYLOAD_BYTES`].
    pub payload_bytes: u32,
    /// Whether the frame goes to a group.
    pub group: bool,
}

impl FrameHeader {
    /// Judges a header.
    ///
    /// # Errors
    /// The first field that is not legal.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, WireError> {
        let mut cursor = Cursor::new("remote frame header", bytes);
        let magic = u32::from_be_bytes(*cursor.array()?);
        if magic != u32::from_be_bytes(MAGIC) {
            return Err(WireError::UnknownCode { field: "magic", value: magic.into(), known: "0x534c5233 \"SLR3\"" });
        }
        let version = cursor.u32()?;
        if version != VERSION {
            return Err(WireError::Protocol { found: version.into(), served: VERSION.into() });
        }
        let kind = FrameType::from_code(cursor.u32()?)?;
        let session = cursor.u64()?;
        let worker = Field::read(&mut cursor, "header worker id")?;
        let sequence = cursor.u64()?;
        let payload_bytes = cursor.u32()?;
        if payload_bytes > MAX_PAYLOAD_BYTES {
            let (len, max) = (payload_bytes.into(), MAX_PAYLOAD_BYTES.into());
            return Err(WireError::TooLong { field: "payload", len, max });
        }
        let flags = cursor.u32()?;
        if flags & !FLAG_GROUP != 0 {
            return Err(WireError::NotZero { field: "header flags but bit 0", value: (flags & !FLAG_GROUP).into() });
        }
        cursor.finish()?;
        Ok(Self { kind, session, worker, sequence, payload_bytes, group: flags & FLAG_GROUP != 0 })
    }

    /// The 40 bytes.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for a payload over the cap.
    pub fn encode(&self) -> Result<[u8; HEADER_BYTES], WireError> {
        if self.payload_bytes > MAX_PAYLOAD_BYTES {
            let (len, max) = (self.payload_bytes.into(), MAX_PAYLOAD_BYTES.into());
            return Err(WireError::TooLong { field: "payload", len, max });
        }
        let mut bytes = [0; HEADER_BYTES];
        let mut out = Writer::new("remote frame header", &mut bytes);
        out.bytes(&MAGIC)?;
        out.u32(VERSION)?;
        out.u32(self.kind.code())?;
        out.u64(self.session)?;
        self.worker.write(&mut out, "header worker id")?;
        out.u64(self.sequence)?;
        out.u32(self.payload_bytes)?;
        out.u32(u32::from(self.group))?;
        Ok(bytes)
    }

    /// Splits a whole frame into its header and its payload.
    ///
    /// # Errors
    /// A header that is not legal, or a payload that is shorter or longer than the header says.
    pub fn split(frame: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let what = "remote frame";
        let have = num::wide(frame.len());
        let Some((header, payload)) = frame.split_first_chunk() else {
            return Err(WireError::Short { what, have, need: num::wide(HEADER_BYTES) });
        };
        let header = Self::decode(header)?;
        let need = num::index(header.payload_bytes);
        match payload.len().checked_sub(need) {
            Some(0) => Ok((header, payload)),
            Some(extra) => Err(WireError::Trailing { what, extra: num::wide(extra) }),
            None => Err(WireError::Short { what, have, need: num::wide(need.saturating_add(HEADER_BYTES)) }),
        }
    }
}
