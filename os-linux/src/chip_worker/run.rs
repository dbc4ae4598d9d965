//! The handle of a run.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::chip::{Call, ChipError, DirectTicket};
use laneway_core::time::Instant;

use super::{Shared, State};
use crate::Error;
use crate::sys::clock;

/// A run of a [`ChipWorker`](super::ChipWorker). All calls can be repeated, from any thread, and say the same once the run
/// has ended. Dropping it does not end the run.
pub struct ChipRun {
    shared: Arc<Shared>,
    ticket: DirectTicket,
    /// Taken from the lane once.
    result: Mutex<Option<Result<(), ChipError>>>,
}

impl fmt::Debug for ChipRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChipRun").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl ChipRun {
    pub(super) fn new(shared: Arc<Shared>, ticket: DirectTicket) -> Self {
        Self { shared, ticket, result: Mutex::new(None) }
    }

    /// Waits until the run has ended; the one before it is driven to its end (C-18).
    ///
    /// # Errors
    /// [`Error::Chip`] with what the device says.
    pub fn wait(&self) -> Result<(), Error> {
        loop {
            if let Some(ended) = self.until(None) {
                return ended;
            }
        }
    }

    /// As [`wait`](Self::wait), for at most `timeout`; `None` if it has not ended by then, and it goes on as before.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<(), Error>> {
        self.until(Some(clock::now().saturating_add(timeout)))
    }

    /// Whether the run has ended; looks once.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.until(Some(Instant::default())).is_some()
    }

    fn until(&self, deadline: Option<Instant>) -> Option<Result<(), Error>> {
        let ended = self.shared.until_state(deadline, |state| self.look(state))?;
        Some(ended.map_err(Error::from))
    }

    /// The result, if there is one by now. Lanes answer every run before they forget it.
    fn look(&self, state: &mut State) -> Option<Result<(), ChipError>> {
        let mut result = self.result();
        if result.is_none() && !state.lane.is_in_flight(self.ticket) {
            let gone = Err(ChipError::DeviceGone { call: Call::Wait });
            *result = Some(state.lane.take(self.ticket).unwrap_or(gone));
        }
        result.clone()
    }

    fn result(&self) -> MutexGuard<'_, Option<Result<(), ChipError>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ChipRun {
    fn drop(&mut self) {
        self.shared.lock().lane.forget(self.ticket);
    }
}
