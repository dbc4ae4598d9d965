//! The payloads by frame type.

use super::caps;
use super::control::RemoteCommand;
use super::field::{Field, record};
use super::header::FrameType;
use super::task::RemoteTask;
use crate::ids::WorkerId;
use crate::wire::WireError;
use crate::wire::cursor::Cursor;
use crate::wire::writer::Writer;

use core::num::NonZeroU64;

/// Version of this protocol, as HELLO repeats it.
const PROTOCOL: u32 = 3;

/// Version of the control bodies.
const CONTROL_VERSION: u32 = 1;

record! {
    /// The first frame of a session; its header has sequence 0.
    Hello<'a> {
        /// The session.
        session: is as NonZeroU64,
        /// The worker that says hello.
        worker: is as WorkerId,
        /// 3.
        protocol: is as Version<PROTOCOL>,
        /// Transport profile.
        profile: str(PROFILE),
        /// Feature flags.
        features: is as u64,
        /// Whether it is fully initialised.
        ready: is as bool,
    }
}

record! {
    /// The end of a task.
    Completion<'a> {
        /// Sequence of the TASK frame.
        sequence: is as u64,
        /// 0 success, else failure.
        error: is as i32,
        /// What went wrong.
        message: str(MESSAGE),
    }
}

record! {
    /// A control; its body is decoded by its command.
    Control<'a> {
        /// Which.
        command: is as RemoteCommand,
        /// 1.
        version: is as Version<CONTROL_VERSION>,
        /// Its body; see [`super::RemoteRequest`].
        body: blob(BODY),
    }
}

record! {
    /// The answer to a control; its body is decoded by its command.
    ControlReply<'a> {
        /// Sequence of the CONTROL frame.
        sequence: is as u64,
        /// Which.
        command: is as RemoteCommand,
        /// 1.
        version: is as Version<CONTROL_VERSION>,
        /// 0 success, else failure.
        error: is as i32,
        /// What went wrong.
        message: str(MESSAGE),
        /// Its body; see [`super::RemoteReply`].
        body: blob(BODY),
    }
}

/// A version field that can have one value only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Version<const ONLY: u32>;

impl<'a, const ONLY: u32> Field<'a> for Version<ONLY> {
    fn read(cursor: &mut Cursor<'a>, _: &'static str) -> Result<Self, WireError> {
        match cursor.u32()? {
            version if version == ONLY => Ok(Self),
            version => Err(WireError::Protocol { found: version.into(), served: ONLY.into() }),
        }
    }

    fn write(&self, out: &mut Writer<'_>, _: &'static str) -> Result<(), WireError> {
        out.u32(ONLY)
    }
}

/// A decoded payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload<'a> {
    /// The first frame of a session.
    Hello(Hello<'a>),
    /// A task.
    Task(RemoteTask<'a>),
    /// A control.
    Control(Control<'a>),
    /// The answer to a control.
    ControlReply(ControlReply<'a>),
    /// The end of a task.
    Completion(Completion<'a>),
    /// Still alive.
    Health,
    /// Please leave.
    Shutdown,
}

impl<'a> Payload<'a> {
    /// Decodes the payload of a frame of type `kind`.
    ///
    /// # Errors
    /// The first field that is not legal, bytes that are missing, or bytes too many.
    pub fn decode(kind: FrameType, bytes: &'a [u8]) -> Result<Self, WireError> {
        let cursor = &mut Cursor::new(name(kind), bytes);
        let payload = match kind {
            FrameType::Hello => Self::Hello(Field::read(cursor, "HELLO")?),
            FrameType::Task => Self::Task(Field::read(cursor, "TASK")?),
            FrameType::Control => Self::Control(Field::read(cursor, "CONTROL")?),
            FrameType::ControlReply => Self::ControlReply(Field::read(cursor, "CONTROL_REPLY")?),
            FrameType::Completion => Self::Completion(Field::read(cursor, "COMPLETION")?),
            FrameType::Health => Self::Health,
            FrameType::Shutdown => Self::Shutdown,
        };
        cursor.finish()?;
        Ok(payload)
    }

    /// Writes the payload and returns its length in bytes.
    ///
    /// # Errors
    /// A field over its cap, or an `out` that is too small.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut out = Writer::new(name(self.kind()), out);
        match self {
            Self::Hello(hello) => hello.write(&mut out, "HELLO")?,
            Self::Task(task) => task.write(&mut out, "TASK")?,
            Self::Control(control) => control.write(&mut out, "CONTROL")?,
            Self::ControlReply(reply) => reply.write(&mut out, "CONTROL_REPLY")?,
            Self::Completion(completion) => completion.write(&mut out, "COMPLETION")?,
            Self::Health | Self::Shutdown => {}
        }
        Ok(out.len())
    }

    /// The type of the frame that carries it.
    #[must_use]
    pub const fn kind(&self) -> FrameType {
        match self {
            Self::Hello(_) => FrameType::Hello,
            Self::Task(_) => FrameType::Task,
            Self::Control(_) => FrameType::Control,
            Self::ControlReply(_) => FrameType::ControlReply,
            Self::Completion(_) => FrameType::Completion,
            Self::Health => FrameType::Health,
            Self::Shutdown => FrameType::Shutdown,
        }
    }
}

const fn name(kind: FrameType) -> &'static str {
    match kind {
        FrameType::Hello => "HELLO payload",
        FrameType::Task => "TASK payload",
        FrameType::Control => "CONTROL payload",
        FrameType::ControlReply => "CONTROL_REPLY payload",
        FrameType::Completion => "COMPLETION payload",
        FrameType::Health => "HEALTH payload",
        FrameType::Shutdown => "SHUTDOWN payload",
    }
}
