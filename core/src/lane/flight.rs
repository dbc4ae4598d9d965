//! The parent's record of one task frame.

use core::time::Duration;

use super::{Act, Phase};
use crate::time::Instant;
use crate::wire::{DispatchIdentity, FrameState};

/// What the parent knows of one task frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Record<K> {
    /// Free: IDLE, or the terminal state that the parent read last (L-3).
    Free(FrameState),
    /// Occupied.
    Busy(Flight<K>),
}

/// One dispatch in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Flight<K> {
    /// What the owner names it by.
    pub key: K,
    /// Whose task it is.
    pub identity: DispatchIdentity,
    /// Where it stands.
    pub phase: Phase,
    /// When it was published.
    pub since: Instant,
    /// Whether ACCEPTED was reported.
    pub(super) accepted: bool,
    /// How long it may take from the moment that it may run.
    pub(super) limit: Option<Duration>,
    /// When it is overdue; [`Instant::NEVER`] without a limit, or while it may not run.
    pub(super) due: Instant,
    /// [`Act::Activate`] or [`Act::Withdraw`], asked for before the child had staged the frame (L-8).
    pub(super) wanted: Option<Act>,
}
