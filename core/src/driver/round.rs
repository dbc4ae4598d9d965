//! One round: what the endpoints published goes into the engine, what the engine wants goes out.

use core::fmt::Write as _;

use super::callable::Callable;
use super::controls::{ControlTicket, Sendable};
use super::driver::Driver;
use super::error::ControlFault;
use super::observe::{Fact, Observer};
use super::port::Port;
use super::watch::{Doorbells, Part, Step, Wake};
use crate::engine::{Action, Outcome as Ended, TEXT_BYTES, Ticket};
use crate::ids::EndpointIndex;
use crate::lane::{ControlOutcome, Event, LaneError, Outcome, Poison, Stage};
use crate::mailbox::{Peer, Text, Words, extension};
use crate::time::Instant;
use crate::wire::text::fit;

impl<W: Words, O: Observer> Driver<W, O> {
    /// One bounded round: takes in what busy endpoints published, tells the engine, sends what it wants sent. Costs what
    /// changed, not what exists (E-37).
    pub fn step(&mut self, now: Instant, bells: &mut impl Doorbells) -> Step {
        self.round(now, Wake::All, bells)
    }

    /// As [`step`](Self::step), which wakes whatever child there is something for; `wake` may leave that for a later round.
    pub fn round(&mut self, now: Instant, wake: Wake, bells: &mut impl Doorbells) -> Step {
        self.observer.begin_round(now);
        let mut part = Part::IDLE;
        let mut group = 0;
        while let Some(members) = self.busy.members(group) {
            for endpoint in members {
                part = part.and(self.attend(endpoint, now, bells));
            }
            group += 1;
        }
        if self.controls.queued() > 0 {
            part = part.and(self.send_controls(now, bells));
        }
        // Completions were processed above, so nothing is placed on stale knowledge (E-35).
        let mut may_wake = wake == Wake::All;
        let held = loop {
            if !self.engine.may_act() {
                self.subs.forget_held();
                break None;
            }
            let spare = self.spares_a_wake(now);
            let held = spare.filter(|_| !may_wake);
            self.engine.hold_subs(held.is_some());
            let Some(action) = self.engine.next_action() else { break held };
            // One at a time: the next look shows whether it helped.
            may_wake &= spare.is_none();
            self.perform(action, now, bells);
            part.progressed = true;
        };
        part.step(held)
    }

    /// Takes in what one endpoint has to say. Most often that is one task that ended well, and nothing else.
    #[inline(always)]
    pub(super) fn attend(&mut self, endpoint: EndpointIndex, now: Instant, bells: &mut impl Doorbells) -> Part {
        let Self { ports, engine, subs, busy, observer, .. } = self;
        let port = &mut ports[endpoint.index()];
        let mut part = Part::IDLE;
        if let Some(ticket) = port.lane.take_success(&port.words) {
            part = Part::DONE;
            observer.note(endpoint, Fact::Completed { ticket, outcome: Outcome::Success });
            subs.learn(port, now);
            engine.completed(ticket, Ended::Success);
            if port.is_quiet() {
                busy.remove(endpoint);
                return part;
            }
        }
        part.and(self.look(endpoint, now, bells))
    }

    /// Takes in everything that one endpoint has to say, whatever it is.
    #[inline(never)]
    fn look(&mut self, endpoint: EndpointIndex, now: Instant, bells: &mut impl Doorbells) -> Part {
        let mut part = Part::IDLE;
        loop {
            let port = &mut self.ports[endpoint.index()];
            let event = port.lane.poll(&port.words, now, &mut self.text);
            // Looked at where it is: most of its bytes are for what goes wrong.
            let Some(event) = &event else { break };
            self.take_in(endpoint, event, now);
            part.progressed = true;
        }
        let port = &mut self.ports[endpoint.index()];
        if port.lane.wants_shutdown() {
            port.lane.request_stop(&port.words);
            if port.lane.take_kill(now) {
                self.kills.push(endpoint);
            }
        }
        if port.holds_back() {
            part.progressed |= self.send_held(endpoint, now, bells);
        }
        self.settle(endpoint, bells);
        part.due = self.ports[endpoint.index()].lane.deadline().unwrap_or(Instant::NEVER);
        part
    }

    /// After anything was done on a lane: wakes the child if something was published to it asleep, and keeps the busy set.
    fn settle(&mut self, endpoint: EndpointIndex, bells: &mut impl Doorbells) {
        let Self { ports, busy, observer, .. } = self;
        let port = &mut ports[endpoint.index()];
        if port.lane.take_published() {
            ring(endpoint, port, observer, bells);
        }
        if port.is_quiet() {
            busy.remove(endpoint);
        } else {
            busy.insert(endpoint);
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

    fn completed(&mut self, endpoint: EndpointIndex, ticket: Ticket, outcome: &Outcome, now: Instant) {
        self.observer.note(endpoint, Fact::Completed { ticket, outcome: *outcome });
        let port = &mut self.ports[endpoint.index()];
        match *outcome {
            Outcome::Success => {
                self.subs.learn(port, now);
                self.engine.completed(ticket, Ended::Success);
            }
            Outcome::Skipped => {
                self.engine.completed(ticket, Ended::Skipped);
            }
            Outcome::TaskFailure { code } => self.task_failed(endpoint, ticket, code),
            Outcome::EndpointFailure { identity, phase, since } => {
                let reason = port.lane.poison().unwrap_or(Poison::Driver);
                let running = extension::says_running(&port.words, &identity);
                self.describe(endpoint, reason);
                let callable = Callable::of(&self.engine, &self.observer, ticket);
                // Of a task that is overdue the reason has said everything but what it runs.
                let is_said = matches!(reason, Poison::Overdue { identity: overdue, .. } if overdue == identity);
                let _ = match (is_said, callable) {
                    (true, Some(callable)) => write!(self.message, "; it was at {callable}"),
                    (true, None) => Ok(()),
                    (false, Some(callable)) => write!(self.message, "; it held {identity} of {callable}"),
                    (false, None) => write!(self.message, "; it held {identity}"),
                };
                if !is_said {
                    let (stage, age) = (Stage { phase, running }, now.since(since));
                    let _ = write!(self.message, ", {stage}, published {age:?} ago");
                }
                let _ = write!(self.message, "; {}", reason.remedy());
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
        let (head, mark) = fit(text.as_str(), room);
        for part in [head, mark, whose.as_str()] {
            message.push_str(part);
        }
        engine.completed(ticket, Ended::TaskFailure(message.as_str()));
    }

    #[inline(always)]
    fn perform(&mut self, action: Action, now: Instant, bells: &mut impl Doorbells) {
        match action {
            Action::Dispatch { ticket, endpoint, prepare_only } => {
                self.send(endpoint, ticket, prepare_only, now, bells)
            }
            Action::Activate { run, endpoint, ticket } => {
                self.activate(endpoint, run, ticket, now, bells);
                self.settle(endpoint, bells);
            }
            Action::Withdraw { endpoint, ticket } => {
                self.withdraw(endpoint, ticket, now);
                self.settle(endpoint, bells);
            }
        }
    }

    /// Sends the controls whose turn it is.
    #[inline(never)]
    fn send_controls(&mut self, now: Instant, bells: &mut impl Doorbells) -> Part {
        let mut part = Part { progressed: false, due: self.controls.deadline().unwrap_or(Instant::NEVER) };
        loop {
            let Self { controls, ports, .. } = self;
            let is_free = |endpoint: EndpointIndex| !ports[endpoint.index()].lane.has_control();
            let before = controls.queued();
            let next = controls.take_sendable(now, is_free);
            part.progressed |= controls.queued() != before;
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
        part
    }
}

/// After something was published: wakes the child if it sleeps.
#[inline(always)]
pub(super) fn ring<W: Words>(
    endpoint: EndpointIndex,
    port: &Port<W>,
    observer: &mut impl Observer,
    bells: &mut impl Doorbells,
) {
    if port.lane.child() == Peer::Known && extension::take_sleeper(&port.words) {
        bells.ring(endpoint);
        observer.note(endpoint, Fact::Rung);
    }
    bells.published(endpoint);
}
