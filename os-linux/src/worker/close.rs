//! `close` and `close_now`: both always end (P-12, P-13).

use std::sync::{Arc, Condvar, PoisonError};
use std::time::Duration;

use super::{Shared, State, Unwinding, Worker, WorkerState};
use crate::Error;
use crate::live::{Inner, Live};
use crate::progress::{Background, HandOver, Look};
use crate::sys::clock;

/// For killed children to be gone; past it they are reported.
const KILL_BUDGET: Duration = Duration::from_secs(2);

/// For the descendants of children that are gone. What is left after it was started by user code, and let go by it.
const FOLLOW_BUDGET: Duration = Duration::from_millis(500);

/// What becomes of the runs that were accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// They may end within the drain budget.
    Drain,
    /// What was not dispatched fails (E-36).
    Abandon,
}

/// Who closes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The program. It does not close a worker that is another one's child (P-9).
    User,
    /// The worker above.
    Parent,
}

impl Worker {
    /// Refuses new runs, lets the accepted ones end, and takes the tree down. Closing twice is fine.
    ///
    /// # Errors
    /// [`Error::CloseTimedOut`] if runs are open after the drain budget: nothing is torn down then, and close can be called
    /// again. [`Error::InsideCallback`] from inside a callback of this worker. [`Error::Survivors`] names children that could
    /// not be ended; [`Error::AbnormalExits`] those that did not leave in order; [`Error::DeviceMemoryLeft`] chips whose memory
    /// was not all freed. The worker is closed all the same.
    pub fn close(&self) -> Result<(), Error> {
        self.refuse_children()?;
        self.shared.close(Runs::Drain, By::User)
    }

    /// As [`Worker::close`], but what was not dispatched yet fails with "worker closed" at once.
    ///
    /// # Errors
    /// As [`Worker::close`], never [`Error::CloseTimedOut`].
    pub fn close_now(&self) -> Result<(), Error> {
        self.refuse_children()?;
        self.shared.close(Runs::Abandon, By::User)
    }

    /// A callable that waits for the end of its own worker would wait for itself.
    fn refuse_children(&self) -> Result<(), Error> {
        match &*self.state() {
            State::Ready { live, .. } | State::Closing { live } => live.check_lineage(),
            State::Initializing { cancel } if cancel.is_of_a_parent() => Err(Error::Inherited),
            _ => Ok(()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        let result = self.close(Runs::Abandon, By::User);
        if !matches!(result, Err(Error::Inherited | Error::InsideCallback { .. })) {
            return;
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(state, State::Closed) {
            // A subscriber had the last handle, and the thread that tells it may be the one that would have to be waited for.
            State::Ready { live, background } if !live.is_inherited() => {
                let close = move || {
                    live.abandon();
                    let _ = live.shut_admission(Runs::Abandon);
                    let _ = live.take_down(background);
                };
                // Without a thread the tree goes with this process.
                let _ = std::thread::Builder::new().name("laneway-close".to_owned()).spawn(close);
            }
            // What the state owns belongs to another process.
            state => std::mem::forget(state),
        }
    }
}

/// Tells those who wait for a state to change, when it is dropped.
struct Settled<'a>(&'a Condvar);

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.0.notify_all();
    }
}

impl Shared {
    pub(super) fn close(&self, runs: Runs, by: By) -> Result<(), Error> {
        let (live, background) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                match &*state {
                    State::New { .. } | State::Failed | State::Closed => {
                        *state = State::Closed;
                        return Ok(());
                    }
                    State::Attached { .. } | State::Below => {
                        return Err(Error::WrongState { call: "close", state: state.name() });
                    }
                    State::Ready { live, .. } if by == By::User && live.outer.is_some() => {
                        return Err(Error::WrongState { call: "close", state: "ATTACHED" });
                    }
                    State::Initializing { cancel } if cancel.is_inherited() => return Err(Error::Inherited),
                    State::Initializing { cancel } => cancel.ask(),
                    State::Ready { live, .. } | State::Closing { live } if live.is_inherited() => {
                        return Err(Error::Inherited);
                    }
                    State::Ready { live, .. } | State::Closing { live }
                        if live.is_telling() || live.is_inside_callback() =>
                    {
                        return Err(Error::InsideCallback { call: "close" });
                    }
                    State::Ready { live, .. } => {
                        self.door.shut();
                        // Before anybody can see that it closes: from there on nothing starts.
                        if runs == Runs::Abandon {
                            live.abandon();
                        }
                        let closing = State::Closing { live: live.clone() };
                        match std::mem::replace(&mut *state, closing) {
                            State::Ready { live, background } => break (live, background),
                            other => *state = other,
                        }
                    }
                    // Another thread drains: it need not wait any longer.
                    State::Closing { live } if runs == Runs::Abandon => live.abandon(),
                    State::Closing { .. } => {}
                }
                state = self.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        if let Err(error) = live.shut_admission(runs) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            self.door.open(&live);
            *state = State::Ready { live, background };
            drop(state);
            self.settled.notify_all();
            return Err(error);
        }
        // A nested worker stays its parent's for ever (P-9).
        let end: fn() -> State = if by == By::Parent { || State::Below } else { || State::Closed };
        let unwinding = Unwinding { shared: self, end };
        let result = live.take_down(background);
        std::mem::forget(unwinding);
        let before = std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), end());
        // Others who close hear of it last, also where a destructor panics.
        let _tell = Settled(&self.settled);
        // Not under the lock: this is where what users' closures own goes.
        drop((before, live));
        result
    }
}

impl Live {
    /// No new runs from here on; the accepted ones end, or nothing has changed after the drain budget.
    fn shut_admission(&self, runs: Runs) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.closing = true;
        self.board.state(WorkerState::Closing);
        if runs == Runs::Abandon {
            return Ok(());
        }
        let deadline = clock::now().saturating_add(self.config.drain_budget);
        let (mut inner, drained) =
            self.drive(inner, Some(deadline), |inner| inner.driver.engine().is_drained().then_some(()));
        if drained.is_some() {
            return Ok(());
        }
        inner.closing = false;
        self.board.state(WorkerState::Ready);
        drop(inner);
        let running: Vec<_> =
            self.health(WorkerState::Closing).stalled(Duration::ZERO).map(ToString::to_string).collect();
        Err(Error::CloseTimedOut { after: self.config.drain_budget, running: running.join("; ") })
    }

    /// What was not dispatched fails, and nothing new is (E-36).
    fn abandon(&self) {
        let mut inner = self.lock();
        inner.closing = true;
        // Children that have nothing to end leave from here on.
        self.count_ends_before(&mut inner);
        inner.driver.stop();
        self.changed(&mut inner);
        self.tell_sleepers(&mut inner);
    }

    /// Children that had ended when they were first told to leave.
    fn count_ends_before(&self, inner: &mut Inner) -> usize {
        // A death that was noticed before is no exit of this close; whoever reaps tells of it under the supervisor's lock.
        drop(self.supervisor.lock().unwrap_or_else(PoisonError::into_inner));
        self.round(inner, clock::now(), Look::Last);
        inner.ends_before()
    }

    /// Stops the lanes, waits for the children, kills those that stay, and ends the background thread.
    fn take_down(self: &Arc<Self>, background: Background) -> Result<(), Error> {
        let deadline = clock::now().saturating_add(self.config.reap_budget);
        let mut inner = self.lock();
        let before = self.count_ends_before(&mut inner);
        let left_on_chips = inner.left_on_chips();
        inner.driver.stop();
        let reaped = |inner: &mut Inner| (inner.alive == 0).then_some(());
        let (inner, left) = self.drive(inner, Some(deadline), reaped);
        drop(inner);
        if left.is_none() {
            self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).kill_all();
            let deadline = clock::now().saturating_add(KILL_BUDGET);
            drop(self.drive(self.lock(), Some(deadline), reaped));
        }
        // Descendants end a moment after their parents, by their lifelines.
        let deadline = clock::now().saturating_add(FOLLOW_BUDGET);
        drop(self.drive(self.lock(), Some(deadline), |inner| inner.gone.iter().all(|gone| *gone).then_some(())));
        // Runs that wait for what is left end now; nobody drives after this (L-35).
        self.give_up_on_all(&mut self.lock());
        background.stop(self);
        let traced = self.finish_trace();
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        let survivors = supervisor.abandon(&self.bell, &self.space);
        drop(supervisor);
        if !survivors.is_empty() {
            self.space.buffers().keep();
            return Err(Error::Survivors { children: survivors });
        }
        let inner = self.lock();
        let unclean = inner.ends[before..].iter().filter(|(_, cause)| !cause.is_orderly());
        let label = |at| inner.driver.lane(at).map(|lane| lane.spec().label);
        let abnormal: Vec<_> = unclean.filter_map(|(at, cause)| Some((label(*at)?, *cause))).collect();
        if !abnormal.is_empty() {
            return Err(Error::AbnormalExits { children: abnormal });
        }
        traced?;
        if left_on_chips.is_empty() { Ok(()) } else { Err(Error::DeviceMemoryLeft { chips: left_on_chips }) }
    }
}
