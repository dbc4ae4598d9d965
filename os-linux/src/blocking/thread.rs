//! The thread of a device: there a run may block.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use laneway_core::chip::{ChipError, Reason};

use crate::Error;
use crate::child_entry::leave_copy;
use crate::sys::lineage::Lineage;
use crate::sys::panics;
use crate::sys::threads::{HeldDevice, LibraryThread};

use super::RunError;
use super::device::{panicked, reason};

/// How a call ended.
#[derive(Clone, Debug)]
pub(super) enum Ended {
    Done,
    /// The work is over and went wrong.
    Failed(Reason),
    /// The device may still be at work, or nobody knows how it is.
    Unproven(Reason),
}

impl Ended {
    fn of(call: impl FnOnce() -> Result<(), RunError>) -> Self {
        // The text is taken in there too: an error of the user's may panic when it is printed or dropped.
        let ended = panics::catch(|| match call() {
            Ok(()) => Self::Done,
            Err(RunError::Failed(error)) => match error.downcast_ref() {
                Some(ChipError::Unproven { reason, .. }) => Self::Unproven(reason.clone()),
                _ => Self::Failed(reason(&error)),
            },
            Err(RunError::Unproven(error)) => Self::Unproven(reason(&error)),
        });
        ended.unwrap_or_else(|text| Self::Unproven(panicked(&text)))
    }
}

/// Makes one call at a time, in the order in which they are handed over.
pub(super) struct DeviceThread<J> {
    /// `None` ends the thread.
    jobs: Option<SyncSender<Arc<J>>>,
    ended: Receiver<Ended>,
    thread: Option<LibraryThread<()>>,
    lineage: Lineage,
    /// The thread may be anywhere in code of the user's: a fork would copy the locks that it holds (P-2).
    _held: HeldDevice,
}

impl<J: Send + Sync + 'static> DeviceThread<J> {
    pub(super) fn start(call: impl Fn(&J) -> Result<(), RunError> + Send + 'static) -> Result<Self, Error> {
        let held = HeldDevice::count();
        let (jobs, todo) = sync_channel::<Arc<J>>(1);
        let (done, ended) = sync_channel(1);
        let lineage = Lineage::here();
        let thread = LibraryThread::spawn_for_user_code("laneway-device", move |_| {
            lineage.adopt();
            for job in todo {
                let ended = Ended::of(|| call(&job));
                if lineage.is_inherited() {
                    leave_copy();
                }
                // Before anybody hears of the end: who does is the last to have the job.
                drop(job);
                // Whoever asks no more is gone, and so is this thread in a moment.
                let _ = done.send(ended);
            }
        })?;
        Ok(Self { jobs: Some(jobs), ended, thread: Some(thread), lineage, _held: held })
    }

    /// Hands a run over; the one before it has ended, so there is room.
    pub(super) fn hand_over(&self, job: Arc<J>) -> Result<(), Reason> {
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.try_send(job).is_ok());
        if sent { Ok(()) } else { Err(Reason::from("the thread of the device takes no run")) }
    }

    /// Looks whether the call has returned.
    pub(super) fn look(&self) -> Option<Ended> {
        match self.ended.try_recv() {
            Ok(ended) => Some(ended),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(gone()),
        }
    }

    /// Waits until it has.
    pub(super) fn wait(&self) -> Ended {
        self.ended.recv().unwrap_or_else(|_| gone())
    }
}

/// The thread ended by itself, which it does not do: a call that panics is caught.
pub(super) fn gone() -> Ended {
    Ended::Unproven(Reason::from("the thread of the device is gone"))
}

impl<J> Drop for DeviceThread<J> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            if self.lineage.is_inherited() {
                // There is no such thread in this process that could be waited for.
                std::mem::forget(thread);
                return;
            }
            // It ends without a panic, and whoever closes a device has more to do than to hear of one.
            let _ = panics::catch(|| thread.join());
        }
    }
}
