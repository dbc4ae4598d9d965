//! Small worlds: what is asked for in them, and what may go wrong.

use laneway_core::ids::PipelineSlot;
use laneway_core::lane::Frames;
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;

/// A small world: what may happen in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) frames: Frames,
    /// Frame and whether it is staged, for dispatch 1 and 2.
    pub(crate) tasks: &'static [(PipelineSlot, bool)],
    pub(crate) concurrent: bool,
    pub(crate) control: bool,
    pub(crate) registry: bool,
    pub(crate) stop: bool,
    pub(crate) death: bool,
    pub(crate) withdraw: bool,
    /// The parent may die between two accesses; its child learns of it between two steps.
    pub(crate) parent_death: bool,
    /// A fault of the memory itself: compare-exchange never writes.
    pub(crate) exchanges_nothing: bool,
}

impl World {
    pub(crate) const fn request(&self) -> ControlRequest {
        if self.registry {
            ControlRequest::Unregister { digest: Digest([5; 32]) }
        } else {
            ControlRequest::Malloc { bytes: 0 }
        }
    }
}

const ZERO: PipelineSlot = PipelineSlot::Zero;
const ONE: PipelineSlot = PipelineSlot::One;
pub(crate) const ONE_TASK: &[(PipelineSlot, bool)] = &[(ZERO, false)];
pub(crate) const SAME_FRAME: &[(PipelineSlot, bool)] = &[(ZERO, false), (ZERO, false)];
const SUCCESSOR: &[(PipelineSlot, bool)] = &[(ZERO, false), (ONE, true)];
pub(crate) const STAGED_FIRST: &[(PipelineSlot, bool)] = &[(ONE, true), (ZERO, false)];

pub(crate) const QUIET: World = World {
    frames: Frames::One,
    tasks: SAME_FRAME,
    concurrent: false,
    control: false,
    registry: false,
    stop: false,
    death: false,
    withdraw: false,
    parent_death: false,
    exchanges_nothing: false,
};

pub(crate) const TWO: World = World { frames: Frames::Two, tasks: SUCCESSOR, concurrent: true, ..QUIET };
