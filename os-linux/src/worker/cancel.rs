//! Cancelling `init`, also from a signal handler.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use super::Worker;
use crate::Error;
use crate::sys::eventfd::Bell;
use crate::sys::lineage::Lineage;

/// Whether an `init` is to be given up.
pub(super) struct Cancel {
    asked: AtomicBool,
    pub(super) bell: Bell,
    lineage: Lineage,
}

impl Cancel {
    pub(super) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    pub(super) fn is_inherited(&self) -> bool {
        self.lineage.is_inherited()
    }

    /// Whether the caller is a child, of either kind, that this `init` starts.
    pub(super) fn is_of_a_parent(&self) -> bool {
        self.lineage.is_of_a_parent()
    }

    /// One store and one write.
    pub(super) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
        self.bell.ring();
    }
}

/// Cancels the `init` of one worker, from any thread or from a signal handler of the host (P-7). See
/// [`Worker::init_canceller`].
#[derive(Clone)]
pub struct InitCanceller(Arc<Cancel>);

impl InitCanceller {
    /// Makes the running `init` give up and reclaim everything; one that has not begun gives up at once, one that is over
    /// does not notice. Async-signal-safe: one load, one store and one write to an eventfd.
    pub fn cancel(&self) {
        if !self.0.is_inherited() {
            self.0.ask();
        }
    }
}

impl std::fmt::Debug for InitCanceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InitCanceller(asked: {})", self.0.is_asked())
    }
}

impl Worker {
    /// What cancels [`Worker::init`]; made before it, and kept where a handler finds it. This library handles no signal itself.
    ///
    /// ```no_run
    /// use std::sync::OnceLock;
    ///
    /// use laneway_linux::{InitCanceller, Worker};
    ///
    /// static CANCELLER: OnceLock<InitCanceller> = OnceLock::new();
    ///
    /// extern "C" fn on_interrupt(_signal: i32) {
    ///     if let Some(canceller) = CANCELLER.get() {
    ///         canceller.cancel();
    ///     }
    /// }
    /// # fn example(worker: &Worker) -> Result<(), laneway_linux::Error> {
    /// let canceller = worker.init_canceller()?;
    /// CANCELLER.get_or_init(|| canceller);
    /// worker.init()?; // the handler, once it is installed, ends this
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::System`] where no descriptor is free.
    pub fn init_canceller(&self) -> Result<InitCanceller, Error> {
        self.cancel().map(InitCanceller)
    }

    /// The one that exists, or a new one.
    pub(super) fn cancel(&self) -> Result<Arc<Cancel>, Error> {
        let mut slot = self.shared.cancel.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancel) = slot.upgrade().filter(|cancel| !cancel.is_inherited()) {
            return Ok(cancel);
        }
        let cancel = Arc::new(Cancel { asked: AtomicBool::new(false), bell: Bell::new()?, lineage: Lineage::here() });
        *slot = Arc::downgrade(&cancel);
        Ok(cancel)
    }
}
