//! Engine and lanes in one step.

use core::time::Duration;

use alloc::vec::Vec;

use super::busy::BusySet;
use super::controls::{ControlTicket, Controls};
use super::error::{ControlError, DriverError};
use super::observe::{Observer, Unobserved};
use super::port::Port;
use super::sub_pool::{SubPool, Thrift};
use super::watch::{Doorbells, Watch};
use crate::engine::{Engine, Ticket};
use crate::ids::EndpointIndex;
use crate::lane::{EndpointSpec, ExitCause, Lane, Poison};
use crate::mailbox::{LONG_TEXT, Text, Words};
use crate::time::Instant;
use crate::wire::Protocol;
use crate::wire::control::ControlRequest;

/// A message: what stands in front of a child's text, and the text.
type Message = Text<{ LONG_TEXT + 256 }>;

/// One level's engine and all its endpoints. Whoever is the progress owner calls [`step`](Self::step) in a loop; nothing here
/// waits. After [`new`](Self::new) no method on the way of a task allocates or formats.
#[derive(Debug)]
pub struct Driver<W, O = Unobserved> {
    pub(super) engine: Engine,
    pub(super) ports: Vec<Port<W>>,
    pub(super) busy: BusySet,
    pub(super) controls: Controls,
    pub(super) text: Text<LONG_TEXT>,
    pub(super) message: Message,
    pub(super) kills: Vec<EndpointIndex>,
    pub(super) poisoned: Vec<EndpointIndex>,
    pub(super) subs: Thrift,
    pub(super) observer: O,
}

impl<W: Words> Driver<W> {
    /// Joins an engine with its endpoints; the position of an endpoint is the
    /// [`EndpointIndex`] that its [`WorkerSpec`](crate::engine::WorkerSpec) names. INIT_READY of each was consumed.
    ///
    /// # Errors
    /// [`DriverError::Protocol`] for an endpoint whose child expects described tensors: the engine encodes addressed ones
    /// alone. [`DriverError::NoSuchEndpoint`] for a worker of the engine that is none of these.
    pub fn new(engine: Engine, endpoints: impl IntoIterator<Item = (EndpointSpec, W)>) -> Result<Self, DriverError> {
        Self::observed(engine, endpoints, Unobserved)
    }
}

impl<W: Words, O: Observer> Driver<W, O> {
    /// As [`new`](Driver::new), with somebody who hears what the driver does.
    ///
    /// # Errors
    /// As [`new`](Driver::new).
    pub fn observed(
        engine: Engine,
        endpoints: impl IntoIterator<Item = (EndpointSpec, W)>,
        observer: O,
    ) -> Result<Self, DriverError> {
        let ports: Vec<_> = endpoints.into_iter().map(|(spec, words)| Port::new(spec, words)).collect();
        if let Some(spec) =
            ports.iter().map(|port| port.lane.spec()).find(|spec| spec.protocol != Protocol::ChipTensors)
        {
            return Err(DriverError::Protocol { label: spec.label, protocol: spec.protocol });
        }
        let last = engine.endpoints().max();
        if let Some(endpoint) = last.filter(|last| last.index() >= ports.len()) {
            return Err(DriverError::NoSuchEndpoint { endpoint, endpoints: ports.len() });
        }
        let busy = BusySet::new(ports.len());
        let controls = Controls::new(64.max(4 * ports.len()));
        let (kills, poisoned) = (Vec::with_capacity(ports.len()), Vec::with_capacity(ports.len()));
        let (text, message, subs) = (Text::new(), Text::new(), Thrift::default());
        Ok(Self { engine, ports, busy, controls, text, message, kills, poisoned, subs, observer })
    }

    /// Who hears what the driver does.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The engine, to look at, and the observer, to tell it what was seen there.
    pub const fn engine_and_observer(&mut self) -> (&Engine, &mut O) {
        (&self.engine, &mut self.observer)
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, to begin runs and submit tasks. What that makes placeable is placed by the next [`step`](Self::step).
    pub const fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The lane of an endpoint, to look at.
    #[must_use]
    pub fn lane(&self, endpoint: EndpointIndex) -> Option<&Lane<Ticket, ControlTicket>> {
        self.ports.get(endpoint.index()).map(|port| &port.lane)
    }

    /// Says when a sleeping SUB child is worth its wake.
    pub fn set_sub_pool(&mut self, pool: SubPool) {
        self.subs.set(pool);
    }

    /// What a task took lately, from its dispatch to its end; zero before the first has ended, and without a
    /// [`SubPool::window`].
    #[must_use]
    pub const fn recent_task(&self) -> Duration {
        self.subs.recent_task()
    }

    /// Asks for a control on an endpoint. One at a time is sent, the others queue; the result is fetched with
    /// [`control_result`](Self::control_result). `timeout` counts from now and includes every delay; past it the endpoint is
    /// poisoned, because what the child did is unknown (L-22).
    ///
    /// # Errors
    /// No such endpoint, or too many controls under way.
    pub fn control(
        &mut self,
        endpoint: EndpointIndex,
        request: &ControlRequest,
        timeout: Option<Duration>,
        now: Instant,
    ) -> Result<ControlTicket, DriverError> {
        let endpoints = self.ports.len();
        let port = self.ports.get(endpoint.index()).ok_or(DriverError::NoSuchEndpoint { endpoint, endpoints })?;
        let deadline = timeout.map(|timeout| now.saturating_add(timeout));
        self.controls.push(endpoint, port.lane.spec().label, request, deadline, now)
    }

    /// The result of a control, once it is over; it can be fetched once.
    pub fn control_result(&mut self, ticket: ControlTicket) -> Option<Result<u64, ControlError>> {
        self.controls.take(ticket)
    }

    /// How many controls are over, since the driver was built: when this changes, whoever waits for one looks at
    /// [`control_result`](Self::control_result).
    #[must_use]
    pub const fn controls_ended(&self) -> u64 {
        self.controls.ended()
    }

    /// A child has ended. What it published before is taken in first; then its endpoint is dead, and a running task of it ends
    /// once [`subtree_gone`](Self::subtree_gone) is reported (L-27). Call [`step`](Self::step) afterwards.
    pub fn child_exited(&mut self, endpoint: EndpointIndex, cause: ExitCause, now: Instant) {
        if endpoint.index() < self.ports.len() {
            self.attend(endpoint, now, &mut Silence);
            self.ports[endpoint.index()].lane.child_exited(cause, now);
            self.attend(endpoint, now, &mut Silence);
        }
    }

    /// A child and everything below it has ended: nothing writes any more what its tasks named. Call [`step`](Self::step)
    /// afterwards.
    pub fn subtree_gone(&mut self, endpoint: EndpointIndex) {
        if let Some(port) = self.ports.get_mut(endpoint.index()) {
            port.lane.subtree_gone();
            self.busy.insert(endpoint);
        }
    }

    /// Poisons an endpoint for a reason outside its mailbox: a failure of the thread that drives (L-26).
    pub fn poison(&mut self, endpoint: EndpointIndex, reason: Poison, now: Instant) {
        if let Some(port) = self.ports.get_mut(endpoint.index()) {
            port.lane.set_poison(reason, now);
            self.busy.insert(endpoint);
        }
    }

    /// A killed child, or its subtree, did not go: its frames are never given back, the engine keeps what its tasks name
    /// (L-35).
    pub fn stuck(&mut self, endpoint: EndpointIndex, facts: &str, now: Instant) {
        if let Some(port) = self.ports.get_mut(endpoint.index()) {
            port.lane.abandon(now);
            self.describe(endpoint, facts);
            // An endpoint that the engine was not told of has no task of its.
            let _ = self.engine.stuck(endpoint, self.message.as_str());
            self.busy.insert(endpoint);
        }
    }

    /// Endpoints that were poisoned since the last call; [`Lane::poison`] says why.
    pub fn take_poisoned(&mut self) -> impl Iterator<Item = EndpointIndex> + '_ {
        self.poisoned.drain(..)
    }

    /// Endpoints whose poisoned child used up its grace since the last call: their owner kills them (L-35).
    pub fn take_kills(&mut self) -> impl Iterator<Item = EndpointIndex> + '_ {
        self.kills.drain(..)
    }

    /// Stops: the engine places nothing new and fails what was never sent, every lane asks its child to leave, what runs ends
    /// (L-29, E-36). [`step`](Self::step) until [`is_drained`](Self::is_drained).
    pub fn stop(&mut self) {
        self.engine.stop();
        for index in 0..self.ports.len() {
            self.stop_endpoint(EndpointIndex(index as u16));
        }
    }

    /// Stops one endpoint: its lane asks its child to leave, what it runs ends. The engine must place nothing there any more.
    pub fn stop_endpoint(&mut self, endpoint: EndpointIndex) {
        if let Some(port) = self.ports.get_mut(endpoint.index()) {
            port.lane.stop();
            self.drop_held(endpoint);
            self.busy.insert(endpoint);
        }
    }

    /// Whether no dispatch is in flight and no control is under way.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.controls.is_idle() && self.ports.iter().all(|port| port.lane.in_flight() == 0)
    }

    /// Whether some endpoint has something under way, so that somebody must drive.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.busy.is_empty() || self.controls.queued() > 0
    }

    /// Whether some endpoint has something under way, and no control waits to be sent: then the next event is a child's.
    #[must_use]
    pub fn awaits_answer(&self) -> bool {
        !self.busy.is_empty() && self.controls.queued() == 0
    }

    /// Collects the words that the next events will change, with what they held when the driver last looked. A sleeper that
    /// finds one of them changed must [`step`](Self::step).
    pub fn watches(&self, out: &mut Vec<Watch>) {
        out.clear();
        for endpoint in self.busy.iter() {
            self.ports[endpoint.index()].lane.watch(|at, seen| out.push(Watch { endpoint, at, seen }));
        }
    }
}

/// For what is published to a child that nobody needs to wake: it has ended, or the next step looks after it.
struct Silence;

impl Doorbells for Silence {
    fn ring(&mut self, _: EndpointIndex) {}
}
