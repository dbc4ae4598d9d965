//! A child that is a thread of this process (P-27): its end is told by a bell, and taken in exactly once.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::eventfd::Bell;
use super::lineage;
use super::region::shown_name;
use super::threads::{Admitted, THREAD_LIMITS, USER_STACK, own_name};
use super::{panics, signals};
use crate::Error;
use crate::child_entry::EXIT_PANIC;

/// A child that is a thread of this process. Whoever owns this value is the only one who joins it.
///
/// A thread cannot be ended from outside. One that is dropped before it has ended goes on by itself.
#[derive(Debug)]
pub struct ChildThread {
    ending: Arc<Ending>,
    life: Life,
}

#[derive(Debug)]
enum Life {
    Running {
        thread: JoinHandle<()>,
        admitted: Admitted,
    },
    Joined {
        status: i32,
    },
    /// Between the two, inside one call.
    Joining,
}

/// What the thread leaves behind.
#[derive(Debug)]
struct Ending {
    bell: Bell,
    status: OnceLock<i32>,
    /// What /proc calls the thread.
    name: OnceLock<OsString>,
}

impl ChildThread {
    /// Starts a thread that blocks all signals, which are the host's business, and returns what `body` returns as its status; a
    /// panic becomes the status of one. Waits while a start in this process forks.
    ///
    /// # Errors
    /// [`Error::System`] where no descriptor is free or no thread can be started.
    pub fn spawn(name: &str, body: impl FnOnce() -> i32 + Send + 'static) -> Result<Self, Error> {
        let admitted = Admitted::enter();
        let ending = Arc::new(Ending { bell: Bell::new()?, status: OnceLock::new(), name: OnceLock::new() });
        let told = ending.clone();
        let saved = signals::block_all();
        let spawned = thread::Builder::new().name(shown_name(name)).stack_size(USER_STACK).spawn(move || {
            if let Ok(name) = own_name() {
                let _ = told.name.set(name);
            }
            lineage::begin_child_thread();
            let status = panics::catch(body).unwrap_or(EXIT_PANIC);
            let _ = told.status.set(status);
            told.bell.ring();
        });
        saved.restore();
        let failed = |error: std::io::Error| {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::AGAIN);
            Error::advised("pthread_create", format!("starting child {name} as a thread"), errno, THREAD_LIMITS)
        };
        let thread = spawned.map_err(failed)?;
        Ok(Self { ending, life: Life::Running { thread, admitted } })
    }

    /// Looks whether it has ended; joins it then. Never blocks: destructors of the thread's own may still run when the bell
    /// rings, so look again, soon, if the answer is that it lives.
    pub fn poll(&mut self) -> Option<i32> {
        if let Life::Running { thread, .. } = &self.life {
            let status = *self.ending.status.get()?;
            let task = self.ending.name.get().map(|name| Path::new("/proc/self/task").join(name));
            if !thread.is_finished() || task.is_some_and(|task| task.exists()) {
                return None;
            }
            if let Life::Running { thread, admitted } = std::mem::replace(&mut self.life, Life::Joining) {
                // It cannot have panicked: its body was caught.
                let _ = thread.join();
                drop(admitted);
            }
            self.life = Life::Joined { status };
        }
        self.status()
    }

    /// What it returned, once [`ChildThread::poll`] has seen that.
    #[must_use]
    pub const fn status(&self) -> Option<i32> {
        match self.life {
            Life::Joined { status } => Some(status),
            Life::Running { .. } | Life::Joining => None,
        }
    }
}

impl AsFd for ChildThread {
    /// Readable once it is about to end.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ending.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys::threads::Forking;

    fn end_of(child: &mut ChildThread) -> i32 {
        let start = Instant::now();
        loop {
            if let Some(status) = child.poll() {
                return status;
            }
            assert!(start.elapsed() < Duration::from_secs(10));
            thread::yield_now();
        }
    }

    /// P-27, P-2
    #[test]
    fn a_thread_child_keeps_forks_away_until_it_has_ended_and_tells_its_status() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let mut child = ChildThread::spawn("held", move || receive.recv().map_or(1, |()| 7)).unwrap();
        assert_eq!(child.poll(), None);
        assert!(matches!(Forking::begin(), Err(Error::ThreadChildren { count: 1.. })));
        send.send(()).unwrap();
        assert_eq!((end_of(&mut child), child.status(), child.poll()), (7, Some(7), Some(7)));
        let mut child = ChildThread::spawn("panics", || panic!("outside everything that catches")).unwrap();
        assert_eq!(end_of(&mut child), EXIT_PANIC);
    }
}
