//! Runs: building one, and the handle of one that was accepted.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

use laneway_core::engine::{EngineError, FailureKind, RunOutcome};
use laneway_core::ids::RunId;

use crate::Error;
use crate::callable::BoxError;
use crate::live::{Guard, Inner, Live};
use crate::orchestrator::Orchestrator;
use crate::sys::{clock, panics, threads};

/// A run that was submitted. All calls can be repeated, from any thread, and say the same once the run has ended (E-9).
///
/// Dropping the handle does not end the run. A finished run's record is kept for its handle, and there is a bounded number
/// of records: drop handles that are no longer needed. Of a worker that is closed a handle keeps the outcome and nothing else:
/// no descriptor, no mapping.
///
/// ```no_run
/// # use std::time::Duration;
/// # use laneway_linux::{Error, RunHandle};
/// # fn example(run: &RunHandle) -> Result<(), Error> {
/// match run.wait_timeout(Duration::from_secs(1)) {
///     Err(Error::WaitTimedOut { .. }) => {
///         run.cancel()?; // what has not started fails; what runs finishes
///         run.wait()
///     }
///     ended => ended,
/// }
/// # }
/// ```
pub struct RunHandle {
    live: Weak<Live>,
    outcomes: Arc<Outcomes>,
    run: RunId,
}

/// How the runs ended whose handles outlive their worker.
#[derive(Default)]
pub(crate) struct Outcomes {
    /// `None` while the worker is there to be asked.
    ended: Mutex<Option<HashMap<RunId, Result<(), Error>>>>,
    settled: Condvar,
}

impl Outcomes {
    /// Called once, when nobody can ask the worker any more.
    pub(crate) fn settle(&self, ended: HashMap<RunId, Result<(), Error>>) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
        self.settled.notify_all();
    }

    /// How a run ended, of a worker that is gone or about to be.
    fn of(&self, run: RunId) -> Result<(), Error> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*ended {
                Some(ended) => return ended.get(&run).cloned().unwrap_or(Ok(())),
                None => ended = self.settled.wait(ended).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl RunHandle {
    /// The number of the run; it stands in messages.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.run
    }

    /// Waits until the run has ended, driving the worker's progress meanwhile.
    ///
    /// # Errors
    /// [`Error::RunFailed`] with the first error of the run.
    pub fn wait(&self) -> Result<(), Error> {
        let Some(live) = self.live()? else { return self.outcomes.of(self.run) };
        live.refuse_subscribers("wait")?;
        let (inner, _) = live.drive(live.lock(), None, |inner| inner.has_ended(self.run));
        let outcome = live.outcome(&inner, self.run);
        drop(inner);
        live.tell_subscriber();
        outcome
    }

    /// As [`RunHandle::wait`], for at most `timeout`.
    ///
    /// # Errors
    /// As [`RunHandle::wait`]; [`Error::WaitTimedOut`] if the run has not ended by then. It goes on as before.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<(), Error> {
        let Some(live) = self.live()? else { return self.outcomes.of(self.run) };
        live.refuse_subscribers("wait_timeout")?;
        let deadline = clock::now().saturating_add(timeout);
        match live.drive(live.lock(), Some(deadline), |inner| inner.has_ended(self.run)) {
            (inner, Some(())) => live.outcome(&inner, self.run),
            (_, None) => Err(Error::WaitTimedOut { run: self.run, after: timeout }),
        }
    }

    /// Waits until every task of the run was launched, or has ended, or never will be (E-8).
    ///
    /// # Errors
    /// [`Error::RunFailed`] if the run has failed by then.
    pub fn wait_accepted(&self) -> Result<(), Error> {
        let Some(live) = self.live()? else { return self.outcomes.of(self.run) };
        live.refuse_subscribers("wait_accepted")?;
        let (inner, _) = live.drive(live.lock(), None, |inner| {
            (inner.driver.engine().is_accepted(self.run) || inner.has_ended(self.run).is_some()).then_some(())
        });
        if inner.has_ended(self.run).is_some() { live.outcome(&inner, self.run) } else { Ok(()) }
    }

    /// Whether the run has ended, or is another process's, as [`wait`](Self::wait) then says. Never waits, and drives nothing: the
    /// background thread does while nobody waits.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.live.upgrade().is_none_or(|live| live.is_inherited() || live.lock().has_ended(self.run).is_some())
    }

    /// The graph of the run in the DOT language, with where each task stands; for a worker that was told to keep graphs
    /// ([`WorkerBuilder::record_graphs`](crate::WorkerBuilder::record_graphs)).
    ///
    /// # Errors
    /// [`Error::NotRecorded`] of one that was not; [`Error::WrongState`] once the worker is closed.
    pub fn dot(&self) -> Result<String, Error> {
        let live = self.live()?.ok_or(Error::WrongState { call: "dot", state: "CLOSED" })?;
        let mut inner = live.lock();
        inner.dot(self.run)
    }

    /// Fails what has not started and lets what runs finish; the run then ends as cancelled (E-9).
    ///
    /// # Errors
    /// None that a caller can cause; see [`EngineError`].
    pub fn cancel(&self) -> Result<(), Error> {
        let Some(live) = self.live()? else { return Ok(()) };
        let mut inner = live.lock();
        inner.driver.engine_mut().cancel(self.run)?;
        live.changed(&mut inner);
        Ok(())
    }

    /// The worker, unless it is closed.
    fn live(&self) -> Result<Option<Arc<Live>>, Error> {
        let live = self.live.upgrade();
        live.as_ref().map_or(Ok(()), |live| live.check_lineage())?;
        Ok(live)
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        let Some(live) = self.live.upgrade().filter(|live| !live.is_inherited()) else { return };
        let mut inner = live.lock();
        if let Some(at) = inner.handles.iter().rposition(|kept| *kept == self.run) {
            inner.handles.swap_remove(at);
        }
        inner.forget_run(self.run);
    }
}

/// A run that nobody else has a handle of; its record goes with this.
struct Own<'a> {
    live: &'a Live,
    run: RunId,
}

impl Own<'_> {
    /// As dropping it, under the lock that the caller holds.
    fn forget(self, mut inner: Guard<'_>) {
        inner.forget_run(self.run);
        drop(inner);
        std::mem::forget(self);
    }
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        if !self.live.is_inherited() {
            self.live.lock().forget_run(self.run);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let inner = self.lock();
        let ended = inner.handles.iter().map(|run| (*run, self.outcome(&inner, *run))).collect();
        drop(inner);
        self.outcomes.settle(ended);
    }
}

impl Inner {
    /// `Some` once the run is terminal.
    pub(crate) fn has_ended(&self, run: RunId) -> Option<()> {
        self.driver.engine().is_terminal(run).then_some(())
    }

    /// Once the run is terminal, whether it failed.
    fn has_failed(&self, run: RunId) -> Option<bool> {
        let engine = self.driver.engine();
        let failed = engine.outcome(run).map(|outcome| outcome != RunOutcome::Completed);
        failed.or_else(|| engine.is_terminal(run).then_some(false))
    }

    /// Nobody can ask for this run any more.
    fn forget_run(&mut self, run: RunId) {
        // Unknown only to an engine that was stopped and forgot it.
        let _ = self.driver.engine_mut().release(run);
        self.driver.observer_mut().forget_graph(run);
    }
}

impl Live {
    /// Takes a lease, lets `callback` build the graph, closes it and leaves it to whoever owns progress. Callers are served in
    /// arrival order (E-1).
    pub(crate) fn build<R>(
        self: &Arc<Self>,
        callback: impl FnOnce(&mut Orchestrator<'_>) -> Result<R, BoxError>,
    ) -> Result<(R, RunHandle), Error> {
        let run = self.begin().map_err(|error| *error)?;
        let handle = RunHandle { live: Arc::downgrade(self), outcomes: self.outcomes.clone(), run };
        let built = self.call(run, callback);
        self.refuse_a_copy()?;
        match built.map_err(|error| *error) {
            Ok(value) => {
                let mut inner = self.lock();
                inner.handles.push(run);
                let closed = self.close(&mut inner, run, None);
                self.changed(&mut inner);
                closed?;
                self.hand_over(&mut inner);
                drop(inner);
                Ok((value, handle))
            }
            Err(error) => {
                let reason = error.to_string();
                let mut inner = self.lock();
                let closed = self.close(&mut inner, run, Some(&reason));
                self.changed(&mut inner);
                drop(inner);
                closed?;
                // The callback's own error, once nothing that it submitted runs any more.
                let _ = handle.wait();
                Err(error)
            }
        }
    }

    /// As [`Live::build`], and waits for the end of the run: with one lock from the end of the callback until the driver
    /// spins, and one from its last look until the record of the run is gone.
    pub(crate) fn run<R>(
        &self,
        callback: impl FnOnce(&mut Orchestrator<'_>) -> Result<R, BoxError>,
    ) -> Result<R, Error> {
        let own = Own { live: self, run: self.begin().map_err(|error| *error)? };
        let built = self.call(own.run, callback);
        self.refuse_a_copy()?;
        let reason = built.as_ref().err().map(ToString::to_string);
        let mut inner = self.lock();
        let closed = self.close(&mut inner, own.run, reason.as_deref());
        // Else the first round of the driver does as much.
        if closed.is_err() || inner.has_ended(own.run).is_some() {
            self.changed(&mut inner);
        }
        closed?;
        let (inner, failed) = self.drive(inner, None, |inner| inner.has_failed(own.run));
        let outcome = if failed == Some(true) { self.outcome(&inner, own.run) } else { Ok(()) };
        own.forget(inner);
        self.tell_subscriber();
        match built {
            Ok(value) => outcome.map(|()| value),
            Err(error) => Err(*error),
        }
    }

    /// Calls what builds the graph of `run`. The error is boxed: beside one of its size a result is copied through memory three times,
    /// in pieces that do not match the stores before.
    fn call<R>(
        &self,
        run: RunId,
        callback: impl FnOnce(&mut Orchestrator<'_>) -> Result<R, BoxError>,
    ) -> Result<R, Box<Error>> {
        let mut orchestrator = Orchestrator::new(self, run);
        let level = self.config.level;
        // The text is taken in there too: an error of the user's may panic when it is printed or dropped; and so may a subscriber
        // that hears of the span.
        let built = panics::catch(|| {
            let _span = self.run_span(run);
            callback(&mut orchestrator).map_err(|error| {
                error
                    .downcast::<Error>()
                    .unwrap_or_else(|error| Box::new(Error::Callback { level, run, message: error.to_string() }))
            })
        });
        built.unwrap_or_else(|text| Err(Box::new(Error::CallbackPanicked { level, run, message: text })))
    }

    /// Waits for this caller's turn, then for a lease. The error is boxed as that of [`Live::call`].
    fn begin(&self) -> Result<RunId, Box<Error>> {
        self.refuse_subscribers("submit")?;
        let caller = threads::id();
        let mut inner = self.lock();
        if inner.builder == Some(caller) {
            return Err(Box::new(Error::InsideCallback { call: "submit" }));
        }
        let ticket = inner.tickets;
        inner.tickets += 1;
        while inner.serving != ticket {
            inner = self.builders.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut inner, begun) = self.lease(inner);
        match begun {
            Ok(run) => {
                inner.builder = Some(caller);
                self.mind_the_worker_above(&inner);
                inner.run_begun(run);
                Ok(run)
            }
            Err(error) => {
                self.next_builder(&mut inner);
                Err(Box::new(error))
            }
        }
    }

    /// Inlined, so that its result is never put together in memory.
    #[inline(always)]
    fn lease<'a>(&'a self, mut inner: Guard<'a>) -> (Guard<'a>, Result<RunId, Error>) {
        loop {
            if inner.closing {
                return (inner, Err(Error::Closing));
            }
            match inner.driver.engine_mut().begin_run() {
                Err(EngineError::NoLease { .. }) => {
                    let seen = inner.changes;
                    (inner, _) = self.drive(inner, None, |inner| (inner.changes != seen).then_some(()));
                }
                Ok(run) => return (inner, Ok(run)),
                Err(error) => return (inner, Err(Error::from(error))),
            }
        }
    }

    /// Closes a submission, or fails it for a reason, and lets the next caller build.
    fn close(&self, inner: &mut Inner, run: RunId, failed: Option<&str>) -> Result<(), EngineError> {
        inner.driver.observer_mut().run_closed(run, failed.is_some());
        inner.builder = None;
        self.next_builder(inner);
        let engine = inner.driver.engine_mut();
        match failed {
            None => engine.close_submission(run),
            Some(reason) => engine.fail_submission(run, reason),
        }
    }

    fn next_builder(&self, inner: &mut Inner) {
        inner.serving += 1;
        // Ringing costs a system call, and most of the time nobody else has taken a ticket.
        if inner.serving < inner.tickets {
            self.builders.notify_all();
        }
    }

    /// How a run ended.
    pub(crate) fn outcome(&self, inner: &Inner, run: RunId) -> Result<(), Error> {
        match inner.driver.engine().outcome(run) {
            Some(RunOutcome::Failed { kind, message }) => Err(self.run_failed(run, kind, message)),
            _ => Ok(()),
        }
    }

    pub(crate) fn run_failed(&self, run: RunId, kind: FailureKind, message: &str) -> Error {
        Error::RunFailed { level: self.config.level, run, kind, message: message.to_owned() }
    }
}
