//! Where everything lies in a mailbox: three frames of 64 KiB, one layout.
//!
//! A mailbox is one base frame (start-up, control, shutdown) and two task frames. Offsets are bytes from the start of a
//! frame; [`BASE`] and [`task`] give the start of a frame in the region.

use static_assertions::{const_assert, const_assert_eq};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::args::{self, ArgsView, TaskArgsView};
use super::{CallConfig, Digest, DispatchIdentity, PipelineSlotLease, Protocol, SlotRule, Tensor, Trailer, WireError};
use crate::ids::PipelineSlot;

/// Bytes of one frame.
pub const FRAME_BYTES: usize = 65_536;
/// Frames of a mailbox.
pub const FRAMES: usize = 3;
/// Bytes of a mailbox.
pub const REGION_BYTES: usize = 196_608;

/// Start of the base frame in the region.
pub const BASE: usize = 0;

/// Start of a task frame in the region (W-2).
#[must_use]
pub const fn task(frame: PipelineSlot) -> usize {
    match frame {
        PipelineSlot::Zero => FRAME_BYTES,
        PipelineSlot::One => 2 * FRAME_BYTES,
    }
}

/// `state`, i32: the only hand-over word.
pub const STATE: usize = 0;
/// `error`, i32: 0 success, else failure.
pub const ERROR: usize = 4;
/// Base frame: control sub-command, u64. Task frames: zero.
pub const SUBCOMMAND: usize = 8;
/// Task frames: [`CallConfig`].
pub const CONFIG: usize = 16;
/// Base frame: first control argument, u64.
pub const CONTROL_ARG0: usize = 16;
/// Base frame: result of a control, u64.
pub const CONTROL_RESULT: usize = 40;
/// [`PipelineSlotLease`]; on the base frame the start-up metadata, `slot_id` = published pipeline depth.
pub const LEASE: usize = 1_160;
/// Task frames: digest of the callable.
pub const DIGEST: usize = 1_176;
/// Base frame: NUL-padded name slot of a control, 32 bytes.
pub const NAME: usize = 1_176;
/// Base frame: what a control carries beyond its first argument, [`CONTROL_PAYLOAD_BYTES`] at most.
pub const CONTROL_PAYLOAD: usize = 1_176;
/// Two buffer descriptors and a length.
pub const CONTROL_PAYLOAD_BYTES: usize = 184;
/// Base frame: digest of a control.
pub const CONTROL_DIGEST: usize = 1_208;
/// Task frames: argument list; its tensors start at 1,216, a multiple of 64.
pub const ARGS: usize = 1_208;
/// Bytes between the start of the argument list and the shutdown word (W-4).
pub const ARGS_CAPACITY: usize = 64_016;
/// Detail area of task frames (W-9): u32 length and UTF-8 text, the long form of an error.
pub const DETAIL: usize = 57_344;
/// Bytes of the detail area.
pub const DETAIL_BYTES: usize = 4_096;
/// Bytes of text that the detail area takes.
pub const DETAIL_TEXT_BYTES: usize = DETAIL_BYTES - 4;
/// Extension block of the base frame (W-6); see [`super::extension`].
pub const EXTENSION: usize = 61_440;
/// Bytes of the extension block.
pub const EXTENSION_BYTES: usize = 2_048;
/// `shutdown`, i32, sticky; meaningful on the base frame.
pub const SHUTDOWN: usize = 65_224;
/// [`Trailer`].
pub const TRAILER: usize = 65_232;
/// `accepted`, i32, sticky.
pub const ACCEPTED: usize = 65_272;
/// `preparation`, i32.
pub const PREPARATION: usize = 65_276;
/// Error message: NUL-terminated UTF-8.
pub const MESSAGE: usize = 65_280;
/// Bytes of the error message, NUL included.
pub const MESSAGE_BYTES: usize = 256;

const_assert_eq!(REGION_BYTES, FRAMES * FRAME_BYTES);
const_assert_eq!(size_of::<CallConfig>(), LEASE - CONFIG);
const_assert_eq!(size_of::<PipelineSlotLease>(), DIGEST - LEASE);
const_assert_eq!(size_of::<Digest>(), ARGS - DIGEST);
const_assert_eq!((ARGS + args::HEADER_BYTES) % 64, 0);
const_assert_eq!(ARGS + ARGS_CAPACITY, SHUTDOWN);
const_assert_eq!(size_of::<Trailer>(), ACCEPTED - TRAILER);
const_assert_eq!(MESSAGE + MESSAGE_BYTES, FRAME_BYTES);
// W-5: the words from `shutdown` to `preparation` share one cache line.
const_assert_eq!(SHUTDOWN / 64, (PREPARATION + 3) / 64);
// W-9: the largest legal argument list ends before the detail area, the detail area before the extension block.
const_assert_eq!(ARGS + args::MAX_BYTES, 39_104);
const_assert!(ARGS + args::MAX_BYTES <= DETAIL);
const_assert!(DETAIL + DETAIL_BYTES <= EXTENSION);
const_assert!(EXTENSION + EXTENSION_BYTES <= SHUTDOWN);
// The widest control ends before anything else on the base frame.
const_assert!(CONTROL_PAYLOAD + CONTROL_PAYLOAD_BYTES <= EXTENSION);

/// The words of a frame that are accessed as i32; every other byte belongs to a whole u64 word (W-8), but for the named
/// words of the extension block ([`super::extension::NARROW_WORDS`]).
pub const NARROW_WORDS: [usize; 6] = [STATE, ERROR, SHUTDOWN, SHUTDOWN + 4, ACCEPTED, PREPARATION];

/// The hand-over word. Any other value, or a legal value in the wrong place, is a protocol violation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(i32)]
pub enum FrameState {
    /// Nobody owes anything. Written by the parent.
    Idle = 0,
    /// An active task is published. Written by the parent.
    TaskReady = 1,
    /// The task is over; in a one-frame mailbox the error word tells how. Written by the child.
    TaskDone = 2,
    /// Please leave. Written by the parent on the base frame; erasable, so never the only signal.
    Shutdown = 3,
    /// A control is published. Written by the parent on the base frame.
    ControlRequest = 4,
    /// The control is answered. Written by the child on the base frame.
    ControlDone = 5,
    /// The child is ready. Written by the child on the base frame, once.
    InitReady = 6,
    /// The child could not start. Written by the child on the base frame, once.
    InitFailed = 7,
    /// The child holds a validated private snapshot. Written by the child.
    FrameStaged = 8,
    /// The task runs. Written by the child.
    TaskLaunched = 9,
    /// The task failed (two-frame mailboxes). Written by the child.
    TaskFailed = 10,
    /// The staged task may run. Written by the parent, by compare-exchange from `FrameStaged` only.
    Activate = 11,
    /// A successor is published for staging. Written by the parent.
    PrepareReady = 12,
}

impl FrameState {
    /// All of them, in the order of their values.
    pub const ALL: [Self; 13] = [
        Self::Idle,
        Self::TaskReady,
        Self::TaskDone,
        Self::Shutdown,
        Self::ControlRequest,
        Self::ControlDone,
        Self::InitReady,
        Self::InitFailed,
        Self::FrameStaged,
        Self::TaskLaunched,
        Self::TaskFailed,
        Self::Activate,
        Self::PrepareReady,
    ];

    /// The state that `raw` stands for; `None` is a protocol violation.
    #[inline]
    #[must_use]
    pub fn from_raw(raw: i32) -> Option<Self> {
        usize::try_from(raw).ok().and_then(|index| Self::ALL.get(index).copied())
    }

    /// The value of the word.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn raw(self) -> i32 {
        self as i32
    }

    /// Whether a task frame in this state is over.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::TaskDone | Self::TaskFailed)
    }
}

/// How far a staged frame is prepared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(i32)]
pub enum Preparation {
    /// Not staged.
    None = 0,
    /// Validated only; native preparation follows later.
    Validated = 1,
    /// Natively prepared.
    Prepared = 2,
}

impl Preparation {
    /// The preparation that `raw` stands for.
    #[must_use]
    pub const fn from_raw(raw: i32) -> Option<Self> {
        match raw {
            0 => Some(Self::None),
            1 => Some(Self::Validated),
            2 => Some(Self::Prepared),
            _ => None,
        }
    }

    /// The value of the word.
    #[must_use]
    #[allow(clippy::as_conversions)] // a fieldless enum has no other way to its number
    pub const fn raw(self) -> i32 {
        self as i32
    }
}

/// A whole task frame in private memory. The fields are plain; [`decode`](Self::decode) judges them.
#[derive(Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct TaskFrame {
    /// [`FrameState`].
    pub state: i32,
    /// 0 success, else failure.
    pub error: i32,
    /// Zero.
    pub reserved: u64,
    /// Settings of the task.
    pub config: CallConfig,
    /// The run's claim on its pipeline slot.
    pub lease: PipelineSlotLease,
    /// The callable.
    pub digest: Digest,
    /// Argument list; the detail area lies in its unused end.
    pub args: [u8; ARGS_CAPACITY],
    /// Reserved on a task frame.
    pub shutdown: i32,
    /// Zero.
    pub zero: i32,
    /// Identity of the dispatch.
    pub trailer: Trailer,
    /// 1 = launch accepted.
    pub accepted: i32,
    /// [`Preparation`].
    pub preparation: i32,
    /// NUL-terminated UTF-8.
    pub message: [u8; MESSAGE_BYTES],
}

const_assert_eq!(size_of::<TaskFrame>(), FRAME_BYTES);
const_assert_eq!(core::mem::offset_of!(TaskFrame, state), STATE);
const_assert_eq!(core::mem::offset_of!(TaskFrame, error), ERROR);
const_assert_eq!(core::mem::offset_of!(TaskFrame, reserved), SUBCOMMAND);
const_assert_eq!(core::mem::offset_of!(TaskFrame, config), CONFIG);
const_assert_eq!(core::mem::offset_of!(TaskFrame, lease), LEASE);
const_assert_eq!(core::mem::offset_of!(TaskFrame, digest), DIGEST);
const_assert_eq!(core::mem::offset_of!(TaskFrame, args), ARGS);
const_assert_eq!(core::mem::offset_of!(TaskFrame, shutdown), SHUTDOWN);
const_assert_eq!(core::mem::offset_of!(TaskFrame, zero), SHUTDOWN + 4);
const_assert_eq!(core::mem::offset_of!(TaskFrame, trailer), TRAILER);
const_assert_eq!(core::mem::offset_of!(TaskFrame, accepted), ACCEPTED);
const_assert_eq!(core::mem::offset_of!(TaskFrame, preparation), PREPARATION);
const_assert_eq!(core::mem::offset_of!(TaskFrame, message), MESSAGE);

/// The arguments of a frame in the protocol that its trailer names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameArgs<'a> {
    /// Protocol 2.
    ChipTensors(TaskArgsView<'a>),
    /// Protocol 3.
    Tensors(ArgsView<'a, Tensor>),
}

/// What a task frame asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskRequest<'a> {
    /// Which dispatch it is.
    pub identity: DispatchIdentity,
    /// The callable.
    pub digest: &'a Digest,
    /// Its settings, judged.
    pub config: &'a CallConfig,
    /// Its arguments, judged.
    pub args: FrameArgs<'a>,
}

impl TaskFrame {
    /// A frame of zeros: idle, nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::new_zeroed()
    }

    /// Judges a published frame in the order of L-5 as far as bytes alone can tell: identity, config, arguments. A child
    /// looks the digest up between the first two.
    ///
    /// # Errors
    /// The first gate that the frame fails.
    pub fn decode(&self, served: Protocol, rule: SlotRule) -> Result<TaskRequest<'_>, WireError> {
        let identity = self.trailer.judge(&self.lease, served, rule)?;
        self.config.validate()?;
        let args = match served {
            Protocol::ChipTensors => FrameArgs::ChipTensors(args::decode(&self.args, ARGS_CAPACITY)?),
            Protocol::Tensors => FrameArgs::Tensors(args::decode_described(&self.args, ARGS_CAPACITY)?),
        };
        Ok(TaskRequest { identity, digest: &self.digest, config: &self.config, args })
    }
}

impl Default for TaskFrame {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for TaskFrame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TaskFrame")
            .field("state", &FrameState::from_raw(self.state).ok_or(self.state))
            .field("error", &self.error)
            .field("config", &self.config)
            .field("lease", &self.lease)
            .field("digest", &self.digest)
            .field("trailer", &self.trailer)
            .field("accepted", &self.accepted)
            .field("preparation", &self.preparation)
            .field("message", &message_text(&self.message))
            .finish_non_exhaustive()
    }
}

/// The text of a message field: up to its NUL, or its end, and as far as it is UTF-8.
#[must_use]
pub fn message_text(field: &[u8; MESSAGE_BYTES]) -> &str {
    let text = field.split(|&byte| byte == 0).next().unwrap_or_default();
    utf8_head(text)
}

fn utf8_head(text: &[u8]) -> &str {
    match core::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => {
            text.get(..error.valid_up_to()).and_then(|head| core::str::from_utf8(head).ok()).unwrap_or_default()
        }
    }
}

/// The longest head of `text` that fits `max` bytes and ends at a character boundary.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    loop {
        if let Some(head) = text.get(..end) {
            return head;
        }
        end = end.saturating_sub(1);
    }
}
