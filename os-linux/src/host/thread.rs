//! Children that are threads of this process (P-27): watched by a bell, asked to leave by their lifeline, joined.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use laneway_core::lane::ExitCause;

use super::{Body, Host, Hosting, Kept, Seat};
use crate::Error;
use crate::error::Place;
use crate::sys::child_thread::ChildThread;
use crate::sys::lifeline::{LifelineHold, LifelinePipe};
use crate::sys::pidfd::Pidfd;

/// Starts children as threads.
pub(crate) struct Threads;

impl Hosting for Threads {
    fn start(&self, seat: &Seat, mut body: Body) -> Result<Box<dyn Host>, Error> {
        let (hold, lifeline) = LifelinePipe::new()?.split();
        let thread = ChildThread::spawn(&seat.name, move || body(&lifeline))?;
        Ok(Box::new(Thread { thread, lifeline: Some(hold) }))
    }

    fn parent(&self) -> Option<Arc<Pidfd>> {
        // It ends with this process anyway.
        None
    }
}

/// A child in a thread.
struct Thread {
    thread: ChildThread,
    /// `None` once it was told to go.
    lifeline: Option<LifelineHold>,
}

impl Host for Thread {
    fn place(&self) -> Place {
        Place::Thread
    }

    fn poll(&mut self) -> Option<ExitCause> {
        self.thread.poll().map(|status| ExitCause::ThreadEnded { status })
    }

    fn exit(&self) -> Option<ExitCause> {
        self.thread.status().map(|status| ExitCause::ThreadEnded { status })
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn has_orphans(&self) -> bool {
        false
    }

    fn terminate(&mut self) {
        self.lifeline = None;
    }

    fn kill(&mut self) {
        self.lifeline = None;
    }

    fn end_for_letting_go(&mut self) {}

    fn is_mortal(&self) -> bool {
        false
    }

    fn end(&self) -> Option<BorrowedFd<'_>> {
        Some(self.thread.as_fd())
    }

    fn hint(&self) -> BorrowedFd<'_> {
        self.thread.as_fd()
    }

    fn rest(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn outlive(&self, kept: Kept) {
        // Its thread holds all of that itself, for as long as it runs.
        drop(kept);
    }
}
