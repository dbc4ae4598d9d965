//! The 40 bytes in front of every payload, judged before the payload is read (N-1).

use static_assertions::const_assert_eq;
use zerocopy::byteorder::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::ids::WorkerId;
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

/// The bytes of a header, not yet judged.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct RawHeader {
    pub(crate) magic: [u8; 4],
    pub(crate) version: U32,
    pub(crate) kind: U32,
    pub(crate) session: U64,
    pub(crate) worker: I32,
    pub(crate) sequence: U64,
    pub(crate) payload_bytes: U32,
    pub(crate) flags: U32,
}

const_assert_eq!(size_of::<RawHeader>(), HEADER_BYTES);
const_assert_eq!(core::mem::offset_of!(RawHeader, magic), 0);
const_assert_eq!(core::mem::offset_of!(RawHeader, version), 4);
const_assert_eq!(core::mem::offset_of!(RawHeader, kind), 8);
const_assert_eq!(core::mem::offset_of!(RawHeader, session), 12);
const_assert_eq!(core::mem::offset_of!(RawHeader, worker), 20);
const_assert_eq!(core::mem::offset_of!(RawHeader, sequence), 24);
const_assert_eq!(core::mem::offset_of!(RawHeader, payload_bytes), 32);
const_assert_eq!(core::mem::offset_of!(RawHeader, flags), 36);

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
        let raw: RawHeader = zerocopy::transmute!(*bytes);
        if raw.magic != MAGIC {
            let value = u32::from_be_bytes(raw.magic).into();
            return Err(WireError::UnknownCode { field: "magic", value, known: "0x534c5233 \"SLR3\"" });
        }
        if raw.version.get() != VERSION {
            return Err(WireError::Protocol { found: raw.version.get().into(), served: VERSION.into() });
        }
        let kind = FrameType::from_code(raw.kind.get())?;
        let worker = WorkerId::new(raw.worker.get()).ok_or(WireError::OutOfRange {
            field: "header worker id",
            value: raw.worker.get().into(),
            min: 0,
            max: i32::MAX.into(),
        })?;
        let payload_bytes = payload_cap(raw.payload_bytes.get())?;
        let flags = raw.flags.get();
        if flags & !FLAG_GROUP != 0 {
            return Err(WireError::NotZero { field: "header flags but bit 0", value: (flags & !FLAG_GROUP).into() });
        }
        let (session, sequence) = (raw.session.get(), raw.sequence.get());
        Ok(Self { kind, session, worker, sequence, payload_bytes, group: flags & FLAG_GROUP != 0 })
    }

    /// The 40 bytes.
    ///
    /// # Errors
    /// [`WireError::TooLong`] for a payload over the cap.
    pub fn encode(&self) -> Result<[u8; HEADER_BYTES], WireError> {
        Ok(zerocopy::transmute!(RawHeader {
            magic: MAGIC,
            version: VERSION.into(),
            kind: self.kind.code().into(),
            session: self.session.into(),
            worker: self.worker.get().into(),
            sequence: self.sequence.into(),
            payload_bytes: payload_cap(self.payload_bytes)?.into(),
            flags: u32::from(self.group).into(),
        }))
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

fn payload_cap(len: u32) -> Result<u32, WireError> {
    if len <= MAX_PAYLOAD_BYTES {
        return Ok(len);
    }
    Err(WireError::TooLong { field: "payload", len: len.into(), max: MAX_PAYLOAD_BYTES.into() })
}
