//! The error of this floor.

use core::fmt::{self, Write};

use super::phase::LegalPhases;
use super::{Call, CallableSlot, DeviceAddress, HostAddress, Phase, RunEpoch};
use crate::ids::PipelineSlot;
use crate::wire::WireError;
use crate::wire::text::Text;

/// The most bytes a [`Reason`] keeps.
const REASON_BYTES: usize = 88;

/// A short text without an allocator: what does not fit is cut off on a character boundary, and an ellipsis stands for it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Reason(Text<REASON_BYTES>);

impl Reason {
    /// The text of `arguments`: `Reason::new(format_args!("…"))`.
    #[must_use]
    pub fn new(arguments: fmt::Arguments<'_>) -> Self {
        let mut reason = Self::default();
        // `write_str` below cuts instead of failing; only a broken Display of an argument could fail, and then the
        // text up to it is what there is to say.
        let _ = reason.write_fmt(arguments);
        reason
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Write for Reason {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write_str(text)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::new(format_args!("{text}"))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// What can go wrong between a chip child and its device.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChipError {
    /// C-6: a call in the wrong phase.
    #[error("{call} on run slot {} in phase {phase}: legal in {}", .slot.index(), LegalPhases(*.call))]
    WrongPhase {
        /// What was called.
        call: Call,
        /// The run slot.
        slot: PipelineSlot,
        /// The phase that the slot is in.
        phase: Phase,
    },
    /// The token of a run that is over; the slot holds another one, or none.
    #[error("{call} with the token of run epoch {epoch}, which is over{}: a token is good until its finalize",
        Holds(*.current))]
    StaleToken {
        /// What was called.
        call: Call,
        /// The epoch of the token.
        epoch: RunEpoch,
        /// The epoch that its slot holds now.
        current: Option<RunEpoch>,
    },
    /// L-12, L-14: one run at a time.
    #[error("launch of run epoch {epoch} while run epoch {before} is {phase}: finalize that one first")]
    LaunchOrder {
        /// The run that should have been launched.
        epoch: RunEpoch,
        /// The run that the device still has.
        before: RunEpoch,
        /// Its phase.
        phase: Phase,
    },
    /// C-8: a call that needs a device without runs.
    #[error("{call} while run epoch {epoch} is {phase}: finalize it first")]
    RunInFlight {
        /// What was called.
        call: Call,
        /// The run in the way.
        epoch: RunEpoch,
        /// Its phase.
        phase: Phase,
    },
    /// The backend answered −1, or another negative code that has no meaning of its own (C-9).
    #[error("{call} failed with code {code}: {reason}")]
    Failed {
        /// What was called.
        call: Call,
        /// The code.
        code: i32,
        /// What the backend knows about it.
        reason: Reason,
    },
    /// −2 (C-9).
    #[error("{call} is not supported by this runtime: {reason}")]
    Unsupported {
        /// What was called.
        call: Call,
        /// What exactly is missing.
        reason: Reason,
    },
    /// −3 (C-9): the run cannot be prepared beside the one that is prepared or executing. Not an error of the task; it
    /// is prepared again once the device is free (L-16).
    #[error("{call} is incompatible with the state that another run has prepared; prepare again after its finalize")]
    Incompatible {
        /// What was called.
        call: Call,
    },
    /// An error after the launch: the device may still be at work, so nothing it can reach may be reused, and the lane
    /// is poisoned (C-9).
    #[error(
        "{call} of run epoch {epoch} failed with code {code}, its completion is unproven: {reason}; the device is \
        unusable until its process is replaced"
    )]
    Unproven {
        /// What was called.
        call: Call,
        /// The run.
        epoch: RunEpoch,
        /// The code.
        code: i32,
        /// What the backend knows about it.
        reason: Reason,
    },
    /// The device did the work and says that it went wrong: nothing of it is under way any more, and the device goes on.
    #[error("the run failed: {reason}")]
    RunFailed {
        /// What the device says.
        reason: Reason,
    },
    /// The device was closed, or a run of unproven completion made it unusable.
    #[error("{call} on a device that is closed or lost")]
    DeviceGone {
        /// What was called.
        call: Call,
    },
    /// No callable there.
    #[error("callable slot {slot} is empty: register a callable there first")]
    CallableUnknown {
        /// The slot.
        slot: CallableSlot,
    },
    /// A callable is there already.
    #[error("callable slot {slot} is taken: unregister its callable first")]
    CallableTaken {
        /// The slot.
        slot: CallableSlot,
    },
    /// C-14, or a callable that this runtime cannot run.
    #[error("callable refused: {reason}")]
    CallableRefused {
        /// What is wrong with it.
        reason: Reason,
    },
    /// The arguments do not fit the callable, or cannot be read.
    #[error("argument {index} refused: {reason}")]
    ArgumentRefused {
        /// Position among the tensors of the run.
        index: usize,
        /// What is wrong with it.
        reason: Reason,
    },
    /// The argument list of a run as a whole cannot be read; it came through a foreign interface.
    #[error("argument list refused: {0}")]
    ArgumentsRefused(WireError),
    /// The config of a run is not legal.
    #[error("config refused: {0}")]
    ConfigRefused(WireError),
    /// C-2
    #[error("pipeline contract refused: {0}")]
    Contract(WireError),
    /// The device has no room.
    #[error("out of device memory: {asked} bytes asked, {free} of {total} free, the largest piece is {largest}")]
    OutOfMemory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes free.
        free: u64,
        /// Bytes of the largest free piece.
        largest: u64,
        /// Bytes there are.
        total: u64,
    },
    /// A pointer that is no live device memory: a host pointer, one of another device, a dead one.
    #[error("{call}: {address} is no live device memory of this device")]
    NotDeviceMemory {
        /// What was called.
        call: Call,
        /// The address.
        address: DeviceAddress,
    },
    /// C-16: free takes the exact base of an allocation.
    #[error("free of {address}, which lies inside the allocation at {base}: free its base")]
    NotABase {
        /// The address.
        address: DeviceAddress,
        /// The base of the allocation around it.
        base: DeviceAddress,
    },
    /// C-16: nobody knows whether the device has freed it, so it is counted as live, and neither named nor freed again.
    #[error("free of {address}: {reason}; it may be free or not, so it counts as live and is not used or freed again")]
    FreeUnproven {
        /// The base of the allocation.
        address: DeviceAddress,
        /// How the free ended.
        reason: Reason,
    },
    /// A range that starts in an allocation and leaves it.
    #[error("{call}: {bytes} bytes at {address} leave the allocation of {size} bytes at {base}")]
    OutOfBounds {
        /// What was called.
        call: Call,
        /// Start of the range.
        address: DeviceAddress,
        /// Its length in bytes.
        bytes: u64,
        /// Base of the allocation.
        base: DeviceAddress,
        /// Its size in bytes.
        size: u64,
    },
    /// A host range that this process has not given to the device: a device pointer, or memory that is not shared.
    #[error("{call}: {bytes} bytes at {address} are no host memory that this device may touch")]
    NotHostMemory {
        /// What was called.
        call: Call,
        /// Start of the range.
        address: HostAddress,
        /// Its length in bytes.
        bytes: u64,
    },
    /// No such platform.
    #[error("unknown platform {name:?}: a2a3, a5, a2a3sim and a5sim are known")]
    UnknownPlatform {
        /// The name given.
        name: Reason,
    },
    /// No such runtime.
    #[error("unknown runtime {name:?}: host_build_graph and tensormap_and_ringbuffer are known")]
    UnknownRuntime {
        /// The name given.
        name: Reason,
    },
}

impl ChipError {
    /// Whether the device may still be at work on the run: the lane must be poisoned and the child must leave (C-9).
    #[must_use]
    pub const fn is_unproven(&self) -> bool {
        matches!(self, Self::Unproven { .. })
    }

    /// What is wrong with an argument list: one argument of it, or the list.
    #[must_use]
    pub fn arguments(error: WireError) -> Self {
        match error {
            WireError::Argument { index, fault } => {
                Self::ArgumentRefused { index, reason: Reason::new(format_args!("{fault}")) }
            }
            list => Self::ArgumentsRefused(list),
        }
    }

    /// The number for the vendor's interface: −2 unsupported, −3 incompatible, a runtime's own code, else −1 (C-9).
    #[must_use]
    pub const fn code(&self) -> i32 {
        match self {
            Self::Unsupported { .. } => -2,
            Self::Incompatible { .. } => -3,
            Self::Failed { code, .. } | Self::Unproven { code, .. } if *code < 0 => *code,
            _ => -1,
        }
    }
}

/// What a slot holds instead.
struct Holds(Option<RunEpoch>);

impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(epoch) => write!(f, " (the slot holds run epoch {epoch})"),
            None => Ok(()),
        }
    }
}
