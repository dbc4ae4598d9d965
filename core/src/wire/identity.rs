//! Which dispatch a frame carries: the lease of its run, the trailer, and whether the two agree.

use core::fmt;

use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{WireError, num};
use crate::ids::{DispatchId, Generation, PipelineSlot, RunId};

/// What the argument list of a task frame is made of. A child serves exactly one protocol, told to it at start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Protocol {
    /// Version 2: [`super::ChipTensor`], whose addresses are valid in the whole process tree.
    #[default]
    ChipTensors,
    /// Version 3: self-describing [`super::Tensor`].
    Tensors,
}

impl Protocol {
    /// The protocol that a version number stands for.
    #[must_use]
    pub const fn from_version(version: u64) -> Option<Self> {
        match version {
            2 => Some(Self::ChipTensors),
            3 => Some(Self::Tensors),
            _ => None,
        }
    }

    /// The version number in the trailer.
    #[must_use]
    pub const fn version(self) -> u64 {
        match self {
            Self::ChipTensors => 2,
            Self::Tensors => 3,
        }
    }

    /// Bytes of one tensor in an argument list.
    #[must_use]
    pub const fn tensor_bytes(self) -> usize {
        match self {
            Self::ChipTensors => 128,
            Self::Tensors => 144,
        }
    }
}

/// A run's claim on a pipeline slot, as it stands in a frame: 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PipelineSlotLease {
    /// The slot. On the base frame before the first task: the pipeline depth that the child publishes.
    pub slot_id: u32,
    /// Must be 0.
    pub reserved: u32,
    /// How often the slot has been leased; 0 = invalid.
    pub generation: u64,
}

const_assert_eq!(size_of::<PipelineSlotLease>(), 16);
const_assert_eq!(core::mem::offset_of!(PipelineSlotLease, slot_id), 0);
const_assert_eq!(core::mem::offset_of!(PipelineSlotLease, reserved), 4);
const_assert_eq!(core::mem::offset_of!(PipelineSlotLease, generation), 8);

impl PipelineSlotLease {
    /// The lease of `slot` in its `generation`.
    #[inline]
    #[must_use]
    pub const fn new(slot: PipelineSlot, generation: Generation) -> Self {
        let slot_id = match slot {
            PipelineSlot::Zero => 0,
            PipelineSlot::One => 1,
        };
        Self { slot_id, reserved: 0, generation: generation.get() }
    }

    /// The slot and generation that it names.
    ///
    /// # Errors
    /// A slot that does not exist, a reserved word that is not 0, or generation 0.
    pub fn parse(&self) -> Result<(PipelineSlot, Generation), WireError> {
        let slot = PipelineSlot::new(self.slot_id.into()).ok_or(WireError::OutOfRange {
            field: "lease slot_id",
            value: self.slot_id.into(),
            min: 0,
            max: 1,
        })?;
        if self.reserved != 0 {
            return Err(WireError::NotZero { field: "lease reserved word", value: self.reserved.into() });
        }
        let generation = Generation::new(self.generation).ok_or(WireError::Zero { field: "lease generation" })?;
        Ok((slot, generation))
    }
}

/// The identity words at the end of a task frame: 40 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Trailer {
    /// Protocol version.
    pub protocol: u64,
    /// Run id, 0 = invalid.
    pub run: u64,
    /// Pipeline slot of the run's lease.
    pub slot: u64,
    /// Generation of that lease, 0 = invalid.
    pub generation: u64,
    /// Dispatch id, 0 = invalid.
    pub dispatch: u64,
}

const_assert_eq!(size_of::<Trailer>(), 40);
const_assert_eq!(core::mem::offset_of!(Trailer, protocol), 0);
const_assert_eq!(core::mem::offset_of!(Trailer, run), 8);
const_assert_eq!(core::mem::offset_of!(Trailer, slot), 16);
const_assert_eq!(core::mem::offset_of!(Trailer, generation), 24);
const_assert_eq!(core::mem::offset_of!(Trailer, dispatch), 32);

/// One dispatch: everything that both sides compare before a hand-over that matters (L-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DispatchIdentity {
    /// The run.
    pub run: RunId,
    /// The pipeline slot of its lease.
    pub slot: PipelineSlot,
    /// The generation of its lease.
    pub generation: Generation,
    /// The dispatch, counted per endpoint.
    pub dispatch: DispatchId,
}

impl DispatchIdentity {
    /// The words of the trailer.
    #[inline]
    #[must_use]
    pub const fn trailer(&self, protocol: Protocol) -> Trailer {
        Trailer {
            protocol: protocol.version(),
            run: self.run.get(),
            slot: match self.slot {
                PipelineSlot::Zero => 0,
                PipelineSlot::One => 1,
            },
            generation: self.generation.get(),
            dispatch: self.dispatch.get(),
        }
    }

    /// The lease beside it.
    #[inline]
    #[must_use]
    pub const fn lease(&self) -> PipelineSlotLease {
        PipelineSlotLease::new(self.slot, self.generation)
    }
}

impl fmt::Display for DispatchIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, slot, generation, dispatch } = self;
        write!(f, "dispatch {dispatch} of run {run} (slot {}, generation {generation})", slot.index())
    }
}

/// Which pipeline slots a task frame may carry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlotRule {
    /// Two-frame endpoints: the slot is the frame's index (W-2).
    Exactly(PipelineSlot),
    /// One-frame endpoints: any slot below the admission depth (L-34).
    Below(u64),
}

impl SlotRule {
    /// Whether `slot` is legal here.
    #[inline]
    #[must_use]
    pub const fn allows(self, slot: PipelineSlot) -> bool {
        match self {
            Self::Exactly(only) => only.index() == slot.index(),
            Self::Below(depth) => num::wide(slot.index()) < depth,
        }
    }
}

impl fmt::Display for SlotRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(slot) => write!(f, "slot {} only", slot.index()),
            Self::Below(depth) => write!(f, "slots below {depth}"),
        }
    }
}

impl Trailer {
    /// Judges trailer and lease in the order that both sides agreed on (L-5): protocol; run, generation and dispatch
    /// not 0; slot; lease slot, reserved word and generation.
    ///
    /// # Errors
    /// The first of them that fails.
    #[inline]
    pub fn judge(
        &self,
        lease: &PipelineSlotLease,
        served: Protocol,
        rule: SlotRule,
    ) -> Result<DispatchIdentity, WireError> {
        if self.protocol != served.version() {
            return Err(WireError::Protocol { found: self.protocol, served: served.version() });
        }
        let run = RunId::new(self.run).ok_or(WireError::Zero { field: "trailer run id" })?;
        let generation = Generation::new(self.generation).ok_or(WireError::Zero { field: "trailer generation" })?;
        let dispatch = DispatchId::new(self.dispatch).ok_or(WireError::Zero { field: "trailer dispatch id" })?;
        let slot = PipelineSlot::new(self.slot)
            .filter(|slot| rule.allows(*slot))
            .ok_or(WireError::Slot { found: self.slot, rule })?;
        if u64::from(lease.slot_id) != self.slot {
            let (lease, trailer) = (lease.slot_id.into(), self.slot);
            return Err(WireError::LeaseMismatch { field: "slot", lease, trailer });
        }
        if lease.reserved != 0 {
            return Err(WireError::NotZero { field: "lease reserved word", value: lease.reserved.into() });
        }
        if lease.generation != self.generation {
            let (lease, trailer) = (lease.generation, self.generation);
            return Err(WireError::LeaseMismatch { field: "generation", lease, trailer });
        }
        Ok(DispatchIdentity { run, slot, generation, dispatch })
    }
}
