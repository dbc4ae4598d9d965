//! One endpoint inside a driver: its mailbox, its lane, and dispatches that a control holds back.

use super::controls::ControlTicket;
use crate::engine::Ticket;
use crate::lane::{EndpointSpec, Lane};
use crate::time::Instant;

/// One endpoint.
#[derive(Debug)]
pub(super) struct Port<W> {
    pub(super) words: W,
    pub(super) lane: Lane<Ticket, ControlTicket>,
    /// A dispatch of the executing run that waits for a registry control (L-21).
    pub(super) held_active: Option<Ticket>,
    /// The same of the next run.
    pub(super) held_staged: Option<Ticket>,
    /// When the last dispatch was sent.
    pub(super) sent: Instant,
    /// What the child had counted when it was last asked: tasks, and nanoseconds in them.
    pub(super) counted: (u64, u64),
}

impl<W: crate::mailbox::Words> Port<W> {
    pub(super) fn new(spec: EndpointSpec, words: W) -> Self {
        let lane = Lane::new(spec, &words);
        Self { words, lane, held_active: None, held_staged: None, sent: Instant::from_nanos(0), counted: (0, 0) }
    }

    /// Whether a dispatch waits for its lane.
    #[inline]
    pub(super) fn holds_back(&self) -> bool {
        self.held_active.is_some() || self.held_staged.is_some()
    }

    /// Whether nothing needs to be looked at until somebody sends something.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.lane.is_quiet() && !self.holds_back()
    }
}
