//! The thread of a device: there a run may block.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use laneway_core::chip::Reason;

use crate::Error;
use crate::sys::panics;
use crate::sys::threads::{HeldDevice, LibraryThread};

use super::RunError;
use super::device::reason;

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
        match panics::catch(call) {
            Ok(Ok(())) => Self::Done,
            Ok(Err(RunError::Failed(error))) => Self::Failed(reason(&error)),
            Ok(Err(RunError::Unproven(error))) => Self::Unproven(reason(&error)),
            Err(text) => Self::Unproven(Reason::new(format_args!("panic: {text}"))),
        }
    }
}

/// Makes one call at a time, in the order in which they are handed over.
pub(super) struct DeviceThread<J> {
    /// `None` ends the thread.
    jobs: Option<SyncSender<Arc<J>>>,
    ended: Receiver<Ended>,
    thread: Option<LibraryThread<()>>,
    /// The thread may be anywhere in code of the user's: a fork would copy the locks that it holds (P-2).
    _held: HeldDevice,
}

impl<J: Send + Sync + 'static> DeviceThread<J> {
    pub(super) fn start(call: impl Fn(&J) -> Result<(), RunError> + Send + 'static) -> Result<Self, Error> {
        let held = HeldDevice::count();
        let (jobs, todo) = sync_channel::<Arc<J>>(1);
        let (done, ended) = sync_channel(1);
        let thread = LibraryThread::spawn("laneway-device", move |_| {
            for job in todo {
                // Whoever asks no more is gone, and so is this thread in a moment.
                let _ = done.send(Ended::of(|| call(&job)));
            }
        })?;
        Ok(Self { jobs: Some(jobs), ended, thread: Some(thread), _held: held })
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
fn gone() -> Ended {
    Ended::Unproven(Reason::from("the thread of the device is gone"))
}

impl<J> Drop for DeviceThread<J> {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}
