//! From an action of the engine to a published frame, and what becomes of a dispatch that cannot be sent.

use core::fmt::Write as _;

use super::driver::Driver;
use super::observe::{Fact, Observer};
use super::round::ring;
use super::watch::Doorbells;
use crate::engine::{Outcome as Ended, Ticket};
use crate::ids::{EndpointIndex, RunId};
use crate::lane::{Job, LaneError, Outcome, Poison};
use crate::mailbox::Words;
use crate::time::Instant;
use crate::wire::DispatchIdentity;

impl<W: Words, O: Observer> Driver<W, O> {
    /// Sends what waited for its lane, unless a control still holds it back (L-21).
    #[inline(never)]
    pub(super) fn send_held(&mut self, endpoint: EndpointIndex, now: Instant, bells: &mut impl Doorbells) -> bool {
        let mut sent = false;
        for prepare_only in [false, true] {
            let port = &mut self.ports[endpoint.index()];
            let held = if prepare_only { &mut port.held_staged } else { &mut port.held_active };
            if port.lane.is_held_back(prepare_only) {
                continue;
            }
            let Some(ticket) = held.take() else { continue };
            sent = true;
            self.send(endpoint, ticket, prepare_only, now, bells);
        }
        sent
    }

    /// Publishes a dispatch, or keeps it while a control holds it back (L-21). What it carries is put together in one place, so
    /// that nothing of it is copied on the way.
    #[inline(never)]
    pub(super) fn send(
        &mut self,
        endpoint: EndpointIndex,
        ticket: Ticket,
        prepare_only: bool,
        now: Instant,
        bells: &mut impl Doorbells,
    ) {
        let Self { engine, ports, busy, observer, .. } = self;
        let port = &mut ports[endpoint.index()];
        busy.insert(endpoint);
        if port.lane.is_held_back(prepare_only) {
            let held = if prepare_only { &mut port.held_staged } else { &mut port.held_active };
            *held = Some(ticket);
            return;
        }
        port.sent = now;
        // A dispatch that is over meanwhile has no payload, and nobody waits for it.
        let Some(payload) = engine.payload(ticket) else { return };
        let job = Job {
            key: ticket,
            run: payload.run,
            slot: payload.pipeline_slot,
            generation: payload.generation,
            digest: payload.digest,
            config: payload.config,
            blob: payload.blob,
            limit: payload.deadline,
            prepare_only,
        };
        match port.lane.submit(&port.words, &job, now) {
            Ok(dispatch) => {
                let (run, slot, generation, digest) = (job.run, job.slot, job.generation, job.digest);
                let identity = DispatchIdentity { run, slot, generation, dispatch };
                observer.note(endpoint, Fact::Dispatched { ticket, identity, digest, prepare_only });
                port.lane.take_published();
                ring(endpoint, port, observer, bells);
            }
            Err(error) => {
                if !matches!(error, LaneError::Poisoned(_) | LaneError::Stopping) {
                    // The engine and the lane disagree about what is free: nothing here can be trusted (L-26).
                    port.lane.set_poison(Poison::Driver, now);
                }
                self.refuse(endpoint, ticket, error);
            }
        }
    }

    /// A dispatch that could not be sent ends as a failure of its endpoint, once (L-2).
    #[cold]
    fn refuse(&mut self, endpoint: EndpointIndex, ticket: Ticket, error: LaneError) {
        self.observer.note(endpoint, Fact::Refused { ticket });
        self.describe(endpoint, error);
        self.engine.completed(ticket, Ended::EndpointFailure(self.message.as_str()));
    }

    pub(super) fn activate(
        &mut self,
        endpoint: EndpointIndex,
        run: RunId,
        ticket: Ticket,
        now: Instant,
        bells: &mut impl Doorbells,
    ) {
        let port = &mut self.ports[endpoint.index()];
        if port.held_staged == Some(ticket) {
            // Never published: it goes out as an ordinary task of the run that now executes.
            port.held_active = port.held_staged.take();
            self.send_held(endpoint, now, bells);
            return;
        }
        match port.lane.activate(&port.words, run, now) {
            Ok(()) => self.observer.note(endpoint, Fact::Activated { ticket }),
            Err(LaneError::Poisoned(_) | LaneError::Stopping) => {}
            // The engine and the lane disagree about what is staged: nothing on this endpoint can be trusted (L-26).
            Err(_) => port.lane.set_poison(Poison::Driver, now),
        }
    }

    pub(super) fn withdraw(&mut self, endpoint: EndpointIndex, ticket: Ticket, now: Instant) {
        let port = &mut self.ports[endpoint.index()];
        if port.held_staged == Some(ticket) {
            port.held_staged = None;
            self.observer.note(endpoint, Fact::Completed { ticket, outcome: Outcome::Skipped });
            self.engine.completed(ticket, Ended::Skipped);
            return;
        }
        match port.lane.withdraw(&port.words, ticket, now) {
            Ok(()) | Err(LaneError::Poisoned(_) | LaneError::Stopping) => {}
            Err(_) => port.lane.set_poison(Poison::Driver, now),
        }
    }

    /// Ends dispatches that were never published to a lane that takes nothing any more.
    pub(super) fn drop_held(&mut self, endpoint: EndpointIndex) {
        let port = &mut self.ports[endpoint.index()];
        let reason = port.lane.poison();
        for ticket in [port.held_active.take(), port.held_staged.take()].into_iter().flatten() {
            let error = reason.map_or(LaneError::Stopping, LaneError::Poisoned);
            self.refuse(endpoint, ticket, error);
        }
    }

    /// Writes `<label> (pid <n>): <reason>` into the message.
    #[cold]
    pub(super) fn describe(&mut self, endpoint: EndpointIndex, reason: impl core::fmt::Display) {
        let spec = self.ports[endpoint.index()].lane.spec();
        self.message.clear();
        let _ = match spec.pid {
            Some(pid) => write!(self.message, "{} (pid {pid}): {reason}", spec.label),
            None => write!(self.message, "{}: {reason}", spec.label),
        };
    }
}
