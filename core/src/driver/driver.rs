//! Engine and lanes in one step.

use core::fmt::Write as _;
use core::time::Duration;

use alloc::vec::Vec;

use super::busy::BusySet;
use super::callable::Callable;
use super::controls::{ControlTicket, Controls, Sendable};
use super::error::{ControlError, ControlFault, DriverError};
use super::observe::{Fact, Observer, Unobserved};
use super::port::Port;
use super::sub_pool::{SubPool, Thrift};
use super::watch::{Doorbells, Step, Wake, Watch};
use crate::engine::{Action, Engine, Outcome as Ended, TEXT_BYTES, Ticket};
use crate::ids::{EndpointIndex, RunId};
use crate::lane::{ControlOutcome, EndpointSpec, Event, ExitCause, Job, Lane, LaneError, Outcome, Poison, Stage};
use crate::mailbox::{LONG_TEXT, Peer, Text, Words, extension};
use crate::time::Instant;
use crate::wire::control::ControlRequest;
use crate::wire::{DispatchIdentity, Protocol};

/// A message: what stands in front of a child's text, and the text.
type Message = Text<{ LONG_TEXT + 256 }>;

/// One level's engine and all its endpoints. Whoever is the progress owner calls [`step`](Self::step) in a loop; nothing here
/// waits. After [`new`](Self::new) no method on the way of a task allocates or formats.
#[derive(Debug)]
pub struct Driver<W, O = Unobserved> {
    engine: Engine,
    pub(super) ports: Vec<Port<W>>,
    busy: BusySet,
    controls: Controls,
    text: Text<LONG_TEXT>,
    message: Message,
    kills: Vec<EndpointIndex>,
    poisoned: Vec<EndpointIndex>,
    pub(super) subs: Thrift,
    observer: O,
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

    /// What a task took lately, from its dispatch to its end; zero before the first has ended.
    #[must_use]
    pub const fn recent_task(&self) -> Duration {
        self.subs.recent_task()
    }

    /// One bounded round: takes in what busy endpoints published, tells the engine, sends what it wants sent. Costs what
    /// changed, not what exists (E-37).
    pub fn step(&mut self, now: Instant, bells: &mut impl Doorbells) -> Step {
        self.round(now, Wake::All, bells)
    }

    /// As [`step`](Self::step), which wakes whatever child there is something for; `wake` may leave that for a later round.
    pub fn round(&mut self, now: Instant, wake: Wake, bells: &mut impl Doorbells) -> Step {
        self.observer.begin_round(now);
        let mut progressed = false;
        let mut deadline = self.controls.deadline();
        let mut from = 0;
        while let Some(endpoint) = self.busy.next_from(from) {
            from = endpoint.index() + 1;
            progressed |= self.poll(endpoint, now, bells);
            deadline = earliest(deadline, self.ports[endpoint.index()].lane.deadline());
        }
        if self.controls.queued() > 0 {
            progressed |= self.send_controls(now, bells);
        }
        // Completions were processed above, so nothing is placed on stale knowledge (E-35).
        let mut may_wake = wake == Wake::All;
        let held = loop {
            let spare = self.spares_a_wake(now);
            let held = spare.filter(|_| !may_wake);
            self.engine.hold_subs(held.is_some());
            let Some(action) = self.engine.next_action() else { break held };
            // One at a time: the next look shows whether it helped.
            may_wake &= spare.is_none();
            self.perform(action, now, bells);
            progressed = true;
        };
        Step { progressed, deadline, held }
    }

    /// Takes in everything that one endpoint has to say.
    #[inline]
    fn poll(&mut self, endpoint: EndpointIndex, now: Instant, bells: &mut impl Doorbells) -> bool {
        let mut progressed = false;
        loop {
            let port = &mut self.ports[endpoint.index()];
            let event = port.lane.poll(&port.words, now, &mut self.text);
            // Looked at where it is: most of its bytes are for what goes wrong.
            let Some(event) = &event else { break };
            self.take_in(endpoint, event, now);
            progressed = true;
            // Most often that was all, and another look would find nothing.
            if self.ports[endpoint.index()].lane.is_quiet() {
                break;
            }
        }
        let port = &mut self.ports[endpoint.index()];
        let held = port.held_active.is_some() || port.held_staged.is_some();
        if port.lane.wants_shutdown() {
            port.lane.request_stop(&port.words);
            if port.lane.take_kill(now) {
                self.kills.push(endpoint);
            }
        }
        if held {
            progressed |= self.send_held(endpoint, now);
        }
        self.settle(endpoint, bells);
        progressed
    }

    /// After anything was done on a lane: wakes the child if something was published to it asleep, and keeps the busy set.
    #[inline(always)]
    fn settle(&mut self, endpoint: EndpointIndex, bells: &mut impl Doorbells) {
        let port = &mut self.ports[endpoint.index()];
        if port.lane.take_published() {
            if port.lane.child() == Peer::Known && extension::take_sleeper(&port.words) {
                bells.ring(endpoint);
                self.observer.note(endpoint, Fact::Rung);
            }
            bells.published(endpoint);
        }
        if port.is_quiet() {
            self.busy.remove(endpoint);
        } else {
            self.busy.insert(endpoint);
        }
    }

    /// Tells the engine, or the waiter of a control, what happened.
    #[inline]
    fn take_in(&mut self, endpoint: EndpointIndex, event: &Event<Ticket, ControlTicket>, now: Instant) {
        match *event {
            Event::Staged { key, preparation } => {
                self.observer.note(endpoint, Fact::Staged { ticket: key, preparation });
                self.engine.staged(key);
            }
            Event::Accepted { key } => {
                self.observer.note(endpoint, Fact::Accepted { ticket: key });
                self.engine.accepted(key);
            }
            Event::Completed { key, ref outcome } => self.completed(endpoint, key, outcome, now),
            Event::Control { key, ref outcome } => {
                let result = match *outcome {
                    ControlOutcome::Done(result) => Ok(result),
                    ControlOutcome::Failed { code } => {
                        let mut text = Text::new();
                        text.push_str(self.text.as_str());
                        Err(ControlFault::Failed { code, text })
                    }
                    ControlOutcome::Poisoned(reason) => Err(ControlFault::Dead(reason)),
                    ControlOutcome::Stopped => Err(ControlFault::Stopped),
                };
                self.observer.note(endpoint, Fact::ControlEnded { succeeded: result.is_ok() });
                self.controls.end(key, result);
            }
            Event::Poisoned { reason } => {
                self.observer.note(endpoint, Fact::Poisoned { reason });
                self.describe(endpoint, format_args!("{reason}; {}", reason.remedy()));
                // Only an endpoint that the engine was not told of could be refused, and then it sends nothing there.
                let _ = self.engine.endpoint_dead(endpoint, self.message.as_str());
                self.poisoned.push(endpoint);
                self.drop_held(endpoint);
            }
        }
    }

    #[inline]
    fn completed(&mut self, endpoint: EndpointIndex, ticket: Ticket, outcome: &Outcome, now: Instant) {
        self.observer.note(endpoint, Fact::Completed { ticket, outcome: *outcome });
        let lane = &self.ports[endpoint.index()].lane;
        match *outcome {
            Outcome::Success => {
                self.learn(endpoint, now);
                self.engine.completed(ticket, Ended::Success);
            }
            Outcome::Skipped => {
                self.engine.completed(ticket, Ended::Skipped);
            }
            Outcome::TaskFailure { code } => self.task_failed(endpoint, ticket, code),
            Outcome::EndpointFailure { identity, phase, since } => {
                let reason = lane.poison().unwrap_or(Poison::Driver);
                let running = extension::says_running(&self.ports[endpoint.index()].words, &identity);
                self.describe(endpoint, reason);
                let _ = write!(self.message, "; it held {identity}");
                if let Some(callable) = Callable::of(&self.engine, &self.observer, ticket) {
                    let _ = write!(self.message, " of {callable}");
                }
                let (stage, age, remedy) = (Stage { phase, running }, now.since(since), reason.remedy());
                let _ = write!(self.message, ", {stage}, published {age:?} ago; {remedy}");
                self.engine.completed(ticket, Ended::EndpointFailure(self.message.as_str()));
            }
        }
    }

    /// The child reported an error: whose, which, its text, and what it ran (L-28).
    #[cold]
    fn task_failed(&mut self, endpoint: EndpointIndex, ticket: Ticket, code: i32) {
        let Self { engine, observer, ports, text, message, .. } = self;
        // A long text is cut rather than this.
        let mut whose: Text<128> = Text::new();
        if let Some(callable) = Callable::of(engine, observer, ticket) {
            let _ = write!(whose, "; in {callable}");
        }
        message.clear();
        let _ = write!(message, "{}: code {code}: ", ports[endpoint.index()].lane.spec().label);
        let room = TEXT_BYTES.saturating_sub(message.as_str().len() + whose.as_str().len());
        let text = text.as_str();
        message.push_str(&text[..text.floor_char_boundary(room)]);
        message.push_str(whose.as_str());
        engine.completed(ticket, Ended::TaskFailure(message.as_str()));
    }

    /// Writes `<label> (pid <n>): <reason>` into the message.
    #[cold]
    fn describe(&mut self, endpoint: EndpointIndex, reason: impl core::fmt::Display) {
        let spec = self.ports[endpoint.index()].lane.spec();
        self.message.clear();
        let _ = match spec.pid {
            Some(pid) => write!(self.message, "{} (pid {pid}): {reason}", spec.label),
            None => write!(self.message, "{}: {reason}", spec.label),
        };
    }

    #[inline]
    fn perform(&mut self, action: Action, now: Instant, bells: &mut impl Doorbells) {
        let endpoint = match action {
            Action::Dispatch { ticket, endpoint, prepare_only } => {
                let port = &mut self.ports[endpoint.index()];
                match prepare_only {
                    _ if !port.lane.is_held_back(prepare_only) => self.send(endpoint, ticket, prepare_only, now),
                    false => port.held_active = Some(ticket),
                    true => port.held_staged = Some(ticket),
                }
                endpoint
            }
            Action::Activate { run, endpoint, ticket } => {
                self.activate(endpoint, run, ticket, now);
                endpoint
            }
            Action::Withdraw { endpoint, ticket } => {
                self.withdraw(endpoint, ticket, now);
                endpoint
            }
        };
        self.settle(endpoint, bells);
    }

    /// Sends what waits for its lane, unless a control holds it back (L-21).
    #[inline(never)]
    fn send_held(&mut self, endpoint: EndpointIndex, now: Instant) -> bool {
        let mut sent = false;
        for prepare_only in [false, true] {
            let port = &mut self.ports[endpoint.index()];
            let held = if prepare_only { &mut port.held_staged } else { &mut port.held_active };
            let Some(ticket) = *held else { continue };
            if port.lane.is_held_back(prepare_only) {
                continue;
            }
            *held = None;
            sent = true;
            self.send(endpoint, ticket, prepare_only, now);
        }
        sent
    }

    /// Publishes a dispatch. What it carries is put together in one place, so that nothing of it is copied on the way.
    #[inline(never)]
    fn send(&mut self, endpoint: EndpointIndex, ticket: Ticket, prepare_only: bool, now: Instant) {
        let Self { engine, ports, observer, .. } = self;
        let Port { words, lane, sent, .. } = &mut ports[endpoint.index()];
        *sent = now;
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
        match lane.submit(words, &job, now) {
            Ok(dispatch) => {
                let (run, slot, generation, digest) = (job.run, job.slot, job.generation, job.digest);
                let identity = DispatchIdentity { run, slot, generation, dispatch };
                observer.note(endpoint, Fact::Dispatched { ticket, identity, digest, prepare_only });
            }
            Err(error) => {
                if !matches!(error, LaneError::Poisoned(_) | LaneError::Stopping) {
                    // The engine and the lane disagree about what is free: nothing here can be trusted (L-26).
                    lane.set_poison(Poison::Driver, now);
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

    fn activate(&mut self, endpoint: EndpointIndex, run: RunId, ticket: Ticket, now: Instant) {
        let port = &mut self.ports[endpoint.index()];
        if port.held_staged == Some(ticket) {
            // Never published: it goes out as an ordinary task of the run that now executes.
            port.held_active = port.held_staged.take();
            self.send_held(endpoint, now);
            return;
        }
        match port.lane.activate(&port.words, run, now) {
            Ok(()) => self.observer.note(endpoint, Fact::Activated { ticket }),
            Err(LaneError::Poisoned(_) | LaneError::Stopping) => {}
            // The engine and the lane disagree about what is staged: nothing on this endpoint can be trusted (L-26).
            Err(_) => port.lane.set_poison(Poison::Driver, now),
        }
    }

    fn withdraw(&mut self, endpoint: EndpointIndex, ticket: Ticket, now: Instant) {
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
    fn drop_held(&mut self, endpoint: EndpointIndex) {
        let port = &mut self.ports[endpoint.index()];
        let reason = port.lane.poison();
        for ticket in [port.held_active.take(), port.held_staged.take()].into_iter().flatten() {
            let error = reason.map_or(LaneError::Stopping, LaneError::Poisoned);
            self.refuse(endpoint, ticket, error);
        }
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

    fn send_controls(&mut self, now: Instant, bells: &mut impl Doorbells) -> bool {
        let mut progressed = false;
        loop {
            let Self { controls, ports, .. } = self;
            let is_free = |endpoint: EndpointIndex| !ports[endpoint.index()].lane.has_control();
            let before = controls.queued();
            let next = controls.take_sendable(now, is_free);
            progressed |= controls.queued() != before;
            let Some(Sendable { ticket, endpoint, request, deadline }) = next else { break };
            let port = &mut self.ports[endpoint.index()];
            match port.lane.control(&port.words, ticket, &request, deadline, now) {
                Ok(()) => self.observer.note(endpoint, Fact::ControlSent { command: request.command() }),
                Err(error) => {
                    let fault = match error {
                        LaneError::Poisoned(reason) => ControlFault::Dead(reason),
                        LaneError::Stopping => ControlFault::Stopped,
                        _ => ControlFault::Dead(Poison::Driver),
                    };
                    self.controls.end(ticket, Err(fault));
                }
            }
            self.settle(endpoint, bells);
        }
        progressed
    }

    /// A child has ended. What it published before is taken in first; then its endpoint is dead, and a running task of it ends
    /// once [`subtree_gone`](Self::subtree_gone) is reported (L-27). Call [`step`](Self::step) afterwards.
    pub fn child_exited(&mut self, endpoint: EndpointIndex, cause: ExitCause, now: Instant) {
        if endpoint.index() < self.ports.len() {
            self.poll(endpoint, now, &mut Silence);
            self.ports[endpoint.index()].lane.child_exited(cause, now);
            self.poll(endpoint, now, &mut Silence);
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

    /// Collects the words that the next events will change, with what they held when the driver last looked. A sleeper that
    /// finds one of them changed must [`step`](Self::step).
    pub fn watches(&self, out: &mut Vec<Watch>) {
        out.clear();
        let mut from = 0;
        while let Some(endpoint) = self.busy.next_from(from) {
            from = endpoint.index() + 1;
            self.ports[endpoint.index()].lane.watch(|at, seen| out.push(Watch { endpoint, at, seen }));
        }
    }
}

/// For what is published to a child that nobody needs to wake: it has ended, or the next step looks after it.
struct Silence;

impl Doorbells for Silence {
    fn ring(&mut self, _: EndpointIndex) {}
}

#[inline]
fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
