//! What a child does, told as it does it.

use laneway_core::lane::Frames;
use laneway_core::serve::{Failure, Launch, Poll, PrepareError, Report, Runner, Task};
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{Digest, DispatchIdentity};

use super::record::{Ending, Kind, Record, prefix};
use super::writer::Writer;

/// A runner whose phases are written into the log. Without a writer each call costs one branch.
#[derive(Debug)]
pub(crate) struct Traced<R: Runner> {
    runner: R,
    writer: Option<Writer>,
    /// Whether the phases of a task mean something; else a task is one call.
    phases: Phases,
    frames: Frames,
    /// Prepared runs; there are at most two.
    open: [Option<Open<R::Token>>; 2],
}

/// Whether a runner's phases are worth telling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phases {
    /// A device: prepare, launch, execute, finalise.
    Device,
    /// A task is one call.
    Call,
}

/// A prepared run.
#[derive(Clone, Copy, Debug)]
struct Open<T> {
    token: T,
    identity: DispatchIdentity,
    digest: u64,
    accepted: bool,
    launched: bool,
    ending: Ending,
}

impl<R: Runner> Traced<R> {
    pub(crate) fn new(runner: R, writer: Option<Writer>, phases: Phases, frames: Frames) -> Self {
        let mut traced = Self { runner, writer, phases, frames, open: [None, None] };
        if let Some(writer) = &mut traced.writer {
            writer.put(Record::new(Kind::Serving));
        }
        traced
    }

    /// The runner itself.
    pub(crate) fn runner(&self) -> &R {
        &self.runner
    }

    fn record(&self, kind: Kind, identity: &DispatchIdentity, digest: u64, ending: Ending) -> Record {
        let frame = match self.frames {
            Frames::One => 0,
            Frames::Two => identity.slot.index() as u8,
        };
        let (run, dispatch) = (identity.run.get(), identity.dispatch.get());
        Record { frame, digest, run, dispatch, detail: ending as u8, ..Record::new(kind) }
    }

    #[cold]
    #[inline(never)]
    fn begun(&mut self, task: &Task<'_>) {
        let record = self.record(Kind::TaskBegun, &task.identity, prefix(task.digest), Ending::Success);
        self.put(record);
    }

    #[cold]
    #[inline(never)]
    fn prepared(&mut self, task: &Task<'_>, result: &Result<R::Token, PrepareError>) {
        let (identity, digest) = (task.identity, prefix(task.digest));
        let (kind, ending) = match result {
            Ok(token) => {
                let open =
                    Open { token: *token, identity, digest, accepted: false, launched: false, ending: Ending::Success };
                if let Some(free) = self.open.iter_mut().find(|open| open.is_none()) {
                    *free = Some(open);
                }
                (Kind::Prepared, Ending::Success)
            }
            Err(PrepareError::Incompatible) => (Kind::TaskEnded, Ending::Deferred),
            Err(PrepareError::Failed(_)) => (Kind::TaskEnded, Ending::TaskFailure),
        };
        if self.phases == Phases::Device || kind == Kind::TaskEnded {
            let record = self.record(kind, &identity, digest, ending);
            self.put(record);
        }
    }

    /// A phase of a prepared run.
    #[cold]
    #[inline(never)]
    fn phase(&mut self, token: R::Token, kind: Kind, ending: Ending) {
        let Some(open) = self.open.iter_mut().flatten().find(|open| open.token == token) else { return };
        open.launched |= kind == Kind::LaunchBegun;
        if open.ending == Ending::Success {
            // One that is given up before its launch is prepared again.
            open.ending = if kind == Kind::TaskEnded && !open.launched { Ending::Deferred } else { ending };
        }
        let open = *open;
        if kind == Kind::TaskEnded {
            let closed = self.open.iter_mut().find(|open| open.is_some_and(|open| open.token == token));
            closed.map(Option::take);
        } else if self.phases == Phases::Call {
            return;
        }
        let record = self.record(kind, &open.identity, open.digest, open.ending);
        self.put(record);
    }

    /// Whether the acceptance of a run is news.
    #[cold]
    #[inline(never)]
    fn accepted_first(&mut self, token: R::Token) {
        let open = self.open.iter_mut().flatten().find(|open| open.token == token && !open.accepted);
        if let Some(open) = open {
            open.accepted = true;
            self.phase(token, Kind::LaunchAccepted, Ending::Success);
        }
    }

    #[cold]
    #[inline(never)]
    fn put(&mut self, record: Record) {
        if let Some(writer) = &mut self.writer {
            writer.put(record);
        }
    }

    fn is_on(&self) -> bool {
        self.writer.is_some()
    }
}

/// How a phase came out.
fn ending<T>(result: &Result<T, Failure>) -> Ending {
    if result.is_ok() { Ending::Success } else { Ending::TaskFailure }
}

impl<R: Runner> Runner for Traced<R> {
    type Token = R::Token;

    fn knows(&mut self, digest: &Digest) -> bool {
        self.runner.knows(digest)
    }

    fn prepares_concurrently(&self) -> bool {
        self.runner.prepares_concurrently()
    }

    fn prepare(&mut self, task: &Task<'_>, report: &mut Report) -> Result<R::Token, PrepareError> {
        if !self.is_on() {
            return self.runner.prepare(task, report);
        }
        self.begun(task);
        let result = self.runner.prepare(task, report);
        self.prepared(task, &result);
        result
    }

    fn launch(&mut self, token: R::Token, task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        if !self.is_on() {
            return self.runner.launch(token, task, report);
        }
        self.phase(token, Kind::LaunchBegun, Ending::Success);
        let result = self.runner.launch(token, task, report);
        self.phase(token, Kind::Launched, ending(&result));
        result
    }

    fn accepted(&mut self, token: R::Token) -> bool {
        let accepted = self.runner.accepted(token);
        if accepted && self.is_on() {
            self.accepted_first(token);
        }
        accepted
    }

    fn poll(&mut self, token: R::Token, report: &mut Report) -> Result<Poll, Failure> {
        let result = self.runner.poll(token, report);
        if self.is_on() && result != Ok(Poll::NotReady) {
            self.phase(token, Kind::ExecutionEnded, ending(&result));
        }
        result
    }

    fn finalize(&mut self, token: R::Token, report: &mut Report) -> Result<(), Failure> {
        if !self.is_on() {
            return self.runner.finalize(token, report);
        }
        self.phase(token, Kind::FinaliseBegun, Ending::Success);
        let result = self.runner.finalize(token, report);
        self.phase(token, Kind::TaskEnded, ending(&result));
        result
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        if !self.is_on() {
            return self.runner.control(request, report);
        }
        self.put(Record { value: request.command().raw(), ..Record::new(Kind::ControlBegun) });
        let result = self.runner.control(request, report);
        self.put(Record { detail: u8::from(result.is_ok()), ..Record::new(Kind::ControlServed) });
        result
    }

    fn shutdown(&mut self) {
        self.runner.shutdown();
    }
}
