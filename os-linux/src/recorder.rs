//! Hears what the driver does, under the worker's lock: counts it, and writes it into the log and the graphs that were asked
//! for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laneway_core::driver::{Fact, Observer};
use laneway_core::engine::{Engine, RunOutcome, RunPhase, Submission, Target, Ticket};
use laneway_core::ids::{EndpointIndex, RunId, TaskSlot};
use laneway_core::lane::{ExitCause, Frames, Outcome};
use laneway_core::time::Instant;
use laneway_core::wire::{Digest, DispatchIdentity};

use crate::Error;
use crate::config::Config;
use crate::graph::{Graphs, NodeState};
use crate::live::Inner;
use crate::metrics::{Counters, grow};
use crate::sys::clock;
use crate::trace::{Ending, Kind, Leaving, Record, Writer, prefix};

/// What a worker knows of its dispatches besides what the driver needs.
#[derive(Debug)]
pub(crate) struct Recorder {
    counters: Arc<Counters>,
    /// When the task of each record was submitted, in nanoseconds: the time of the first round after that.
    submitted: Box<[u64]>,
    /// The task that was submitted since the last round began, and whether it is the first of its run.
    fresh: Option<(TaskSlot, bool)>,
    /// The time of the last round.
    now: Instant,
    lanes: Box<[Lane]>,
    /// Runs that are not terminal; there are at most two.
    runs: [Option<OpenRun>; 2],
    writer: Option<Writer>,
    graphs: Option<Graphs>,
    names: HashMap<Digest, Box<str>>,
}

/// Dispatches of one endpoint.
#[derive(Debug)]
struct Lane {
    frames: Frames,
    flights: [Option<Flight>; 2],
}

/// One dispatch in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    ticket: Ticket,
    run: RunId,
    dispatch: u64,
    frame: u8,
    digest: u64,
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct OpenRun {
    run: RunId,
    /// When its first task was submitted, or it was closed.
    begun: Option<Instant>,
    executing: bool,
    submitted: u64,
    completed: u64,
    failed: u64,
}

impl Recorder {
    /// For children that are ready, with their frames and processes, and an engine with so many task records.
    pub(crate) fn new(
        counters: Arc<Counters>,
        children: &[(Frames, Option<i32>)],
        tasks: u32,
        mut writer: Option<Writer>,
        config: &Config,
    ) -> Self {
        if let Some(writer) = &mut writer {
            for (endpoint, (_, pid)) in (0..).zip(children) {
                let value = pid.unwrap_or_default().unsigned_abs().into();
                writer.put(Record { endpoint, value, ..Record::new(Kind::ChildReady) });
            }
        }
        let graphs = config.trace.graphs.then(Graphs::default);
        let lanes = children.iter().map(|(frames, _)| Lane { frames: *frames, flights: [None, None] }).collect();
        let submitted = vec![0; tasks as usize].into();
        let (fresh, now, names) = (None, clock::now(), HashMap::new());
        Self { counters, submitted, fresh, now, lanes, runs: [None, None], writer, graphs, names }
    }

    /// Children have this callable, or are going to be asked for it.
    pub(crate) fn named(&mut self, digest: Digest, name: &str) {
        if !name.is_empty() {
            self.names.insert(digest, name.into());
        }
    }

    /// When a submit begins, if somebody wants to know.
    pub(crate) fn submit_begins(&self) -> Option<Instant> {
        self.writer.as_ref().map(|_| clock::now())
    }

    /// A run holds a lease.
    pub(crate) fn run_begun(&mut self, run: RunId, engine: &Engine) {
        grow(&self.counters.runs_begun, 1);
        self.tell(|| Record { run: run.get(), ..Record::new(Kind::RunBegun) });
        // The clock is read when the first task goes out, and that is soon enough.
        let open = OpenRun { run, begun: None, executing: false, submitted: 0, completed: 0, failed: 0 };
        if let Some(free) = self.runs.iter_mut().find(|run| run.is_none()) {
            *free = Some(open);
        }
        // Only the log says when a run begins to execute.
        if self.writer.is_some() {
            self.look_at_runs(engine, None);
        }
    }

    /// A task was submitted.
    #[inline]
    pub(crate) fn submitted(
        &mut self,
        run: RunId,
        submission: &Submission<'_>,
        engine: &Engine,
        began: Option<Instant>,
    ) {
        let Some(ticket) = engine.newest() else { return };
        let members = submission.members.len() as u64;
        grow(&self.counters.submitted, members);
        self.stamp(self.now);
        let mut is_first = false;
        if let Some(open) = self.runs.iter_mut().flatten().find(|open| open.run == run) {
            is_first = open.submitted == 0;
            open.submitted += members;
        }
        self.fresh = Some((ticket.slot(), is_first));
        if let Some(began) = began {
            self.tell_submitted(run, submission, ticket, began);
        }
        if let Some(graphs) = &mut self.graphs {
            graphs.submitted(run, submission, ticket, engine);
        }
    }

    /// The task that was submitted last was submitted now.
    #[inline]
    fn stamp(&mut self, now: Instant) {
        let Some((slot, is_first)) = self.fresh.take() else { return };
        if let Some(time) = self.submitted.get_mut(slot.index()) {
            *time = now.as_nanos();
        }
        if is_first {
            self.runs.iter_mut().flatten().for_each(|open| open.begun = open.begun.or(Some(now)));
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_submitted(&mut self, run: RunId, submission: &Submission<'_>, ticket: Ticket, began: Instant) {
        let detail = match submission.target {
            Target::NextLevel(_) => 0,
            Target::Sub => 1,
            Target::NextLevelGroup(_) => 2,
            Target::SubGroup => 3,
        };
        self.tell(|| Record {
            detail,
            time: began.as_nanos(),
            digest: prefix(submission.digest),
            run: run.get(),
            slot: ticket.slot().0,
            serial: ticket.serial(),
            value: clock::now().as_nanos().saturating_sub(began.as_nanos()),
            extra: submission.members.len() as u64,
            ..Record::new(Kind::Submitted)
        });
    }

    /// The graph of a run is complete, or its callback failed.
    pub(crate) fn run_closed(&mut self, run: RunId, failed: bool) {
        if let Some(open) = self.runs.iter_mut().flatten().find(|open| open.run == run && open.submitted == 0) {
            open.begun = Some(clock::now());
        }
        self.tell(|| Record { run: run.get(), detail: failed.into(), ..Record::new(Kind::RunClosed) });
    }

    /// Looks which runs have begun to execute or have ended, `now` or, if that is not known, at this moment. Call it when the
    /// engine says that runs changed.
    pub(crate) fn look_at_runs(&mut self, engine: &Engine, now: Option<Instant>) {
        for at in 0..self.runs.len() {
            let Some(open) = &mut self.runs[at] else { continue };
            let failed = match engine.outcome(open.run) {
                Some(outcome) => outcome != RunOutcome::Completed,
                None => {
                    let phase = engine.phase(open.run);
                    if !open.executing && phase == Some(RunPhase::Executing) {
                        open.executing = true;
                        let run = open.run.get();
                        self.tell(|| Record { run, ..Record::new(Kind::RunExecuting) });
                    }
                    if phase.is_some() {
                        continue;
                    }
                    // Nobody keeps its record.
                    self.runs[at].is_some_and(|open| open.submitted > open.completed)
                }
            };
            if let Some(open) = self.runs[at].take() {
                self.run_ended(&open, failed, now);
            }
        }
    }

    fn run_ended(&mut self, open: &OpenRun, failed: bool, now: Option<Instant>) {
        let counters = &self.counters;
        grow(&counters.skipped, open.submitted.saturating_sub(open.completed + open.failed));
        grow(if failed { &counters.runs_failed } else { &counters.runs_completed }, 1);
        let end = now.unwrap_or_else(clock::now);
        counters.begin_to_end.add(nanos(open.begun.unwrap_or(end), end));
        self.tell(|| Record { run: open.run.get(), detail: failed.into(), ..Record::new(Kind::RunEnded) });
        if let Some(graphs) = &mut self.graphs {
            graphs.ended(open.run);
        }
    }

    /// Nobody can ask for the graph of this run any more.
    pub(crate) fn forget_graph(&mut self, run: RunId) {
        if let Some(graphs) = &mut self.graphs {
            graphs.forget(run);
        }
    }

    /// How full the engine is.
    pub(crate) fn look_at_pools(&self, engine: &Engine) {
        self.counters.pools.set(&engine.usage());
    }

    /// A child ended.
    pub(crate) fn child_exited(&mut self, endpoint: EndpointIndex, cause: ExitCause) {
        let (how, value) = match cause {
            ExitCause::Exited { status, .. } => (Leaving::Exited, status),
            ExitCause::Signalled { signal, .. } => (Leaving::Signalled, signal),
            ExitCause::LetGo { .. } => (Leaving::Signalled, libc::SIGKILL),
            ExitCause::ThreadEnded { status, .. } => (Leaving::Thread, status),
            _ => (Leaving::Vanished, 0),
        };
        let (detail, value) = (how as u8, value.unsigned_abs().into());
        self.tell(|| Record { endpoint: endpoint.0, detail, value, ..Record::new(Kind::ChildExited) });
    }

    /// Writes a record if there is a log.
    #[inline]
    fn tell(&mut self, record: impl FnOnce() -> Record) {
        if let Some(writer) = &mut self.writer {
            writer.put(record());
        }
    }

    /// Writes a record about a dispatch if there is a log.
    #[inline]
    fn tell_of(&mut self, endpoint: EndpointIndex, flight: &Flight, kind: Kind, detail: u8) {
        self.tell(|| Record {
            endpoint: endpoint.0,
            frame: flight.frame,
            detail,
            digest: flight.digest,
            run: flight.run.get(),
            dispatch: flight.dispatch,
            slot: flight.ticket.slot().0,
            serial: flight.ticket.serial(),
            extra: flight.ticket.member().0.into(),
            ..Record::new(kind)
        });
    }

    fn flight(&mut self, endpoint: EndpointIndex, ticket: Ticket) -> Option<&mut Option<Flight>> {
        let lane = self.lanes.get_mut(endpoint.index())?;
        lane.flights.iter_mut().find(|flight| flight.is_some_and(|flight| flight.ticket == ticket))
    }

    /// Writes a record about a dispatch in flight if there is a log.
    #[inline]
    fn tell_by(&mut self, endpoint: EndpointIndex, ticket: Ticket, kind: Kind) {
        if self.writer.is_some()
            && let Some(flight) = self.flight(endpoint, ticket).and_then(|flight| *flight)
        {
            self.tell_of(endpoint, &flight, kind, 0);
        }
    }

    #[inline]
    fn dispatched(
        &mut self,
        endpoint: EndpointIndex,
        ticket: Ticket,
        identity: &DispatchIdentity,
        digest: &Digest,
        staged: bool,
    ) {
        let Some(lane) = self.lanes.get_mut(endpoint.index()) else { return };
        let frame = if lane.frames == Frames::Two { identity.slot.index() as u8 } else { 0 };
        let (run, dispatch, digest, since) = (identity.run, identity.dispatch.get(), prefix(digest), self.now);
        // Made where it stays: a copy of what was just stored would wait for all stores before, those of the mailbox among them.
        if let Some(free) = lane.flights.iter_mut().find(|flight| flight.is_none()) {
            *free = Some(Flight { ticket, run, dispatch, frame, digest, since });
        }
        let counters = &self.counters;
        grow(&counters.dispatches[endpoint.index()], 1);
        grow(&counters.in_flight, 1);
        let submitted = self.submitted.get(ticket.slot().index()).copied().unwrap_or_default();
        counters.submit_to_dispatch.add(since.as_nanos().saturating_sub(submitted));
        if self.writer.is_some() {
            let flight = Flight { ticket, run, dispatch, frame, digest, since };
            self.tell_of(endpoint, &flight, Kind::Dispatched, staged.into());
        }
        if let Some(graphs) = &mut self.graphs {
            graphs.change(ticket, NodeState::Running);
        }
    }

    fn completed(&mut self, endpoint: EndpointIndex, ticket: Ticket, outcome: Outcome) {
        // One that was never published counts as skipped when its run has ended.
        let Some(flight) = self.flight(endpoint, ticket).and_then(Option::take) else { return };
        let ending = match outcome {
            Outcome::Success => Ending::Success,
            Outcome::TaskFailure { .. } => Ending::TaskFailure,
            Outcome::EndpointFailure { .. } => Ending::EndpointFailure,
            Outcome::Skipped => Ending::Skipped,
        };
        let counters = &self.counters;
        let (completed, failed) = match ending {
            Ending::Success => (1, 0),
            Ending::TaskFailure | Ending::EndpointFailure => (0, 1),
            Ending::Skipped | Ending::Deferred => (0, 0),
        };
        grow(&counters.completed, completed);
        grow(&counters.failed, failed);
        if let Some(run) = self.runs.iter_mut().flatten().find(|open| open.run == flight.run) {
            run.completed += completed;
            run.failed += failed;
        }
        let before = counters.in_flight.load(Ordering::Relaxed);
        counters.in_flight.store(before.saturating_sub(1), Ordering::Relaxed);
        counters.dispatch_to_completion.add(nanos(flight.since, self.now));
        self.tell_of(endpoint, &flight, Kind::Completed, ending as u8);
        if let Some(graphs) = &mut self.graphs {
            let success = ending == Ending::Success;
            graphs.change(ticket, if success { NodeState::Completed } else { NodeState::Failed });
        }
    }
}

impl Observer for Recorder {
    #[inline]
    fn begin_round(&mut self, now: Instant) {
        self.now = now;
        self.stamp(now);
    }

    #[inline]
    fn note(&mut self, endpoint: EndpointIndex, fact: Fact<'_>) {
        match fact {
            Fact::Dispatched { ticket, identity, digest, prepare_only } => {
                self.dispatched(endpoint, ticket, &identity, digest, prepare_only);
            }
            Fact::Completed { ticket, outcome } => self.completed(endpoint, ticket, outcome),
            Fact::Staged { ticket, .. } => self.tell_by(endpoint, ticket, Kind::Staged),
            Fact::Activated { ticket } => self.tell_by(endpoint, ticket, Kind::Activated),
            Fact::Accepted { ticket } => self.tell_by(endpoint, ticket, Kind::Accepted),
            Fact::ControlSent { command } => {
                grow(&self.counters.controls, 1);
                let (endpoint, value) = (endpoint.0, command.raw());
                self.tell(|| Record { endpoint, value, ..Record::new(Kind::ControlSent) });
            }
            Fact::ControlEnded { succeeded } => {
                let (endpoint, detail) = (endpoint.0, succeeded.into());
                self.tell(|| Record { endpoint, detail, ..Record::new(Kind::ControlEnded) });
            }
            Fact::Rung => grow(&self.counters.rings, 1),
            Fact::Poisoned { .. } => {
                self.tell(|| Record { endpoint: endpoint.0, ..Record::new(Kind::ChildPoisoned) });
            }
            _ => {}
        }
    }

    fn name_of(&self, digest: &Digest) -> Option<&str> {
        self.names.get(digest).map(|name| &**name)
    }
}

impl Inner {
    /// No child has this callable any more.
    pub(crate) fn forget(&mut self, digest: &Digest) {
        self.registry.forget(digest);
        self.driver.observer_mut().names.remove(digest);
    }

    /// The graph of a run in the DOT language.
    pub(crate) fn dot(&mut self, run: RunId) -> Result<String, Error> {
        let Self { driver, registry, .. } = self;
        let graphs = driver.observer_mut().graphs.as_ref();
        let graphs = graphs.ok_or(Error::NotRecorded { what: "the graph of a run", setting: "record_graphs(true)" })?;
        Ok(graphs.dot(run, &|digest| registry.name_of(digest).map(str::to_owned)))
    }

    /// A run was begun.
    pub(crate) fn run_begun(&mut self, run: RunId) {
        let (engine, recorder) = self.driver.engine_and_observer();
        recorder.run_begun(run, engine);
    }

    /// A task was submitted; `began` is when that began, if somebody wanted to know.
    #[inline]
    pub(crate) fn task_submitted(&mut self, run: RunId, submission: &Submission<'_>, began: Option<Instant>) {
        let (engine, recorder) = self.driver.engine_and_observer();
        recorder.submitted(run, submission, engine, began);
    }

    /// Something changed in the engine, or with its `runs`; in a round of that time.
    #[inline]
    pub(crate) fn look_at_changes(&mut self, runs: bool, round: Option<Instant>) {
        let (engine, recorder) = self.driver.engine_and_observer();
        recorder.look_at_pools(engine);
        if runs {
            recorder.look_at_runs(engine, round);
        }
    }
}

/// Nanoseconds between two times.
fn nanos(from: Instant, to: Instant) -> u64 {
    to.as_nanos().saturating_sub(from.as_nanos())
}
