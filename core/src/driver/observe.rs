//! What a driver tells of what it does.

use crate::engine::Ticket;
use crate::ids::EndpointIndex;
use crate::lane::{Outcome, Poison};
use crate::time::Instant;
use crate::wire::control::ControlCommand;
use crate::wire::{Digest, DispatchIdentity, Preparation};

/// One thing that a driver did with an endpoint, or learnt of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fact<'a> {
    /// A dispatch was published.
    Dispatched {
        /// Which.
        ticket: Ticket,
        /// Its run, pipeline slot and number.
        identity: DispatchIdentity,
        /// What it calls.
        digest: &'a Digest,
        /// It is staged for the next run.
        prepare_only: bool,
    },
    /// The child holds a validated copy of it.
    Staged {
        /// Which.
        ticket: Ticket,
        /// How far the child prepared it.
        preparation: Preparation,
    },
    /// A staged dispatch may run.
    Activated {
        /// Which.
        ticket: Ticket,
    },
    /// The device accepted its launch.
    Accepted {
        /// Which.
        ticket: Ticket,
    },
    /// A dispatch is over, whether or not it was ever published.
    Completed {
        /// Which.
        ticket: Ticket,
        /// How it ended.
        outcome: Outcome,
    },
    /// A dispatch could not be published; it fails with its endpoint.
    Refused {
        /// Which.
        ticket: Ticket,
    },
    /// A control was published.
    ControlSent {
        /// Which command.
        command: ControlCommand,
    },
    /// A control is over.
    ControlEnded {
        /// Whether the child answered it with success.
        succeeded: bool,
    },
    /// The child had announced that it sleeps, and was rung.
    Rung,
    /// The endpoint takes nothing any more.
    Poisoned {
        /// Why.
        reason: Poison,
    },
}

/// Hears what a [`Driver`](super::Driver) does, in the order in which it does it, and under whatever lock is around the
/// driver: it must neither wait nor call back.
pub trait Observer {
    /// A round begins; what is told until the next one is of about this time.
    fn begin_round(&mut self, now: Instant);

    /// Something happened on `endpoint`.
    fn note(&mut self, endpoint: EndpointIndex, fact: Fact<'_>);

    /// What the user calls a callable, if that is known. Asked when something failed, for the message.
    fn name_of(&self, digest: &Digest) -> Option<&str> {
        let _ = digest;
        None
    }
}

/// Hears nothing and costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    #[inline]
    fn begin_round(&mut self, _: Instant) {}

    #[inline]
    fn note(&mut self, _: EndpointIndex, _: Fact<'_>) {}
}
