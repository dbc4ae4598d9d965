//! Runs: building one, and the handle of one that was accepted.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use laneway_core::engine::{EngineError, FailureKind, RunOutcome};
use laneway_core::ids::RunId;

use crate::Error;
use crate::callable::BoxError;
use crate::live::{Guard, Inner, Live};
use crate::orchestrator::Orchestrator;
use crate::sys::{clock, panics};

/// A run that was submitted. All calls can be repeated, from any thread, and say the same once the run has ended (E-9).
///
/// Dropping the handle does not end the run. A finished run's record is kept for its handle, and there is a bounded number
/// of records: drop handles that are no longer needed.
pub struct RunHandle {
    live: Arc<Live>,
    run: RunId,
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
        self.live.check_lineage()?;
        let inner = self.live.lock();
        let (inner, _) = self.live.drive(inner, None, |inner| inner.has_ended(self.run));
        self.live.outcome(&inner, self.run)
    }

    /// As [`RunHandle::wait`], for at most `timeout`.
    ///
    /// # Errors
    /// As [`RunHandle::wait`]; [`Error::WaitTimedOut`] if the run has not ended by then. It goes on as before.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<(), Error> {
        self.live.check_lineage()?;
        let deadline = clock::now().saturating_add(timeout);
        let inner = self.live.lock();
        match self.live.drive(inner, Some(deadline), |inner| inner.has_ended(self.run)) {
            (inner, Some(())) => self.live.outcome(&inner, self.run),
            (_, None) => Err(Error::WaitTimedOut { run: self.run, after: timeout }),
        }
    }

    /// Waits until every task of the run was launched, or has ended, or never will be (E-8).
    ///
    /// # Errors
    /// [`Error::RunFailed`] if the run has failed by then.
    pub fn wait_accepted(&self) -> Result<(), Error> {
        self.live.check_lineage()?;
        let inner = self.live.lock();
        let (inner, _) = self.live.drive(inner, None, |inner| {
            (inner.driver.engine().is_accepted(self.run) || inner.has_ended(self.run).is_some()).then_some(())
        });
        if inner.has_ended(self.run).is_some() { self.live.outcome(&inner, self.run) } else { Ok(()) }
    }

    /// Whether the run has ended. Never waits, and drives nothing: the background thread does while nobody waits.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.live.lock().has_ended(self.run).is_some()
    }

    /// Fails what has not started and lets what runs finish; the run then ends as cancelled (E-9).
    ///
    /// # Errors
    /// None that a caller can cause; see [`EngineError`].
    pub fn cancel(&self) -> Result<(), Error> {
        self.live.check_lineage()?;
        let mut inner = self.live.lock();
        inner.driver.engine_mut().cancel(self.run)?;
        self.live.changed(&mut inner);
        Ok(())
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        if self.live.check_lineage().is_err() {
            return;
        }
        // Unknown only to an engine that was stopped and forgot it.
        let _ = self.live.lock().driver.engine_mut().release(self.run);
    }
}

impl Inner {
    /// `Some` once the run is terminal.
    pub(crate) fn has_ended(&self, run: RunId) -> Option<()> {
        self.driver.engine().is_terminal(run).then_some(())
    }
}

impl Live {
    /// Takes a lease, lets `callback` build the graph, and closes it. Callers are served in arrival order (E-1).
    pub(crate) fn build<R>(
        self: &Arc<Self>,
        callback: impl FnOnce(&mut Orchestrator<'_>) -> Result<R, BoxError>,
    ) -> Result<(R, RunHandle), Error> {
        let run = self.begin()?;
        let handle = RunHandle { live: self.clone(), run };
        let mut orchestrator = Orchestrator::new(self, run);
        let level = self.config.level;
        // The text is taken in there too: an error of the user's may panic when it is printed or dropped.
        let built = panics::catch(|| {
            callback(&mut orchestrator).map_err(|error| match error.downcast::<Error>() {
                Ok(own) => *own,
                Err(error) => Error::Callback { level, run, message: error.to_string() },
            })
        });
        let error = match built {
            Ok(Ok(value)) => {
                self.end(|inner| inner.driver.engine_mut().close_submission(run))?;
                return Ok((value, handle));
            }
            Ok(Err(error)) => error,
            Err(text) => Error::CallbackPanicked { level, run, message: text },
        };
        let reason = error.to_string();
        self.end(|inner| inner.driver.engine_mut().fail_submission(run, &reason))?;
        // The callback's own error, once nothing that it submitted runs any more.
        let _ = handle.wait();
        Err(error)
    }

    /// Waits for this caller's turn, then for a lease.
    fn begin(&self) -> Result<RunId, Error> {
        let caller = std::thread::current().id();
        let mut inner = self.lock();
        if inner.builder == Some(caller) {
            return Err(Error::InsideCallback { call: "submit" });
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
                Ok(run)
            }
            Err(error) => {
                self.next_builder(&mut inner);
                Err(error)
            }
        }
    }

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
                begun => return (inner, begun.map_err(Error::from)),
            }
        }
    }

    /// Closes a submission one way or the other, and lets the next caller build.
    fn end(&self, close: impl FnOnce(&mut Inner) -> Result<(), EngineError>) -> Result<(), Error> {
        let mut inner = self.lock();
        let closed = close(&mut inner);
        inner.builder = None;
        self.next_builder(&mut inner);
        self.changed(&mut inner);
        Ok(closed?)
    }

    fn next_builder(&self, inner: &mut Inner) {
        inner.serving += 1;
        self.builders.notify_all();
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
