//! The background thread: it reaps, notices deaths, and owns progress while work is open and nobody waits. It sleeps in the
//! kernel, without a timer unless the driver asked for one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, PoisonError};
use std::time::Duration;

use laneway_core::time::Instant;

use super::seat::PASS_ON;
use super::{HandOver, Look};
use crate::Error;
use crate::live::{Inner, Live};
use crate::supervisor::Woken;
use crate::sys::clock;
use crate::sys::epoll::{Events, Poller, Watch};
use crate::sys::panics;
use crate::sys::threads::LibraryThread;

/// A child lets go of its pipes a moment before it can be reaped: looked at again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The running thread.
pub(crate) struct Background {
    thread: LibraryThread<()>,
    stop: Arc<AtomicBool>,
}

impl Background {
    /// Starts it, and returns when it runs: what a thread allocates as it starts is no part of a task, and deaths are noticed from
    /// here on. Every child was forked before: wait sets and threads are made after the last fork.
    pub(crate) fn start(live: &Arc<Live>) -> Result<Self, Error> {
        let set = Poller::new()?;
        set.add(&live.control, Woken::Control.token(), Watch::Edge)?;
        set.add(&live.takeover, Woken::Takeover.token(), Watch::Edge)?;
        live.supervisor.lock().unwrap_or_else(PoisonError::into_inner).watch(&set)?;
        let stop = Arc::new(AtomicBool::new(false));
        let runs = Arc::new(Barrier::new(2));
        let (flag, live, running) = (stop.clone(), live.clone(), runs.clone());
        let thread = LibraryThread::spawn("laneway", move |park| {
            running.wait();
            let mut events = Events::new();
            let mut wake_at: Option<Instant> = None;
            while !flag.load(Ordering::Acquire) {
                let timeout = wake_at.map(|at| at.since(clock::now()));
                // A set that cannot be waited on is a bug; the thread goes on with what it knows.
                let _ = park.outside(|| set.wait(&mut events, timeout));
                let mut silence = false;
                for ready in events.iter() {
                    match Woken::of(ready.token) {
                        Woken::Takeover => silence = true,
                        Woken::Exit(endpoint) | Woken::Subtree(endpoint) => {
                            let mut supervisor = live.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
                            supervisor.look(endpoint, |news| live.tell(news));
                        }
                        Woken::Control | Woken::Published => {}
                    }
                }
                let again = {
                    let mut supervisor = live.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
                    supervisor.look_again(|news| live.tell(news))
                };
                let mut inner = live.lock();
                live.recover(&mut inner);
                if !inner.closing && live.is_asked_to_stop() {
                    live.round(&mut inner, clock::now(), Look::Last);
                }
                wake_at = live.background(inner, silence);
                if live.is_under_a_callback() {
                    let look = clock::now().saturating_add(PASS_ON);
                    wake_at = Some(wake_at.map_or(look, |at| at.min(look)));
                }
                live.tell_subscriber();
                // Not under the lock: gigabytes take a while.
                let freed = std::mem::take(&mut live.lock().freed);
                for address in freed {
                    live.space.give_back(address);
                }
                if again {
                    let soon = clock::now().saturating_add(LOOK_AGAIN);
                    wake_at = Some(wake_at.map_or(soon, |at| at.min(soon)));
                }
            }
        })?;
        runs.wait();
        Ok(Self { thread, stop })
    }

    /// Ends it and waits for its end.
    pub(crate) fn stop(self, live: &Live) {
        self.stop.store(true, Ordering::Release);
        live.control.ring();
        // It ends by a panic only if this crate has a bug; the children are taken down all the same.
        let _ = panics::catch(|| self.thread.join());
    }
}

impl Live {
    /// Looks for a stop from above soon, and again and again while a callback builds: it may call nothing for long, and the worker
    /// above rings only those who sleep (P-29).
    pub(crate) fn mind_the_worker_above(&self, inner: &Inner) {
        // Armed already, it fires sooner.
        if self.outer.is_some() && !inner.progress.watch.is_armed() {
            self.takeover.arm(PASS_ON);
        }
    }

    /// Whether a callback of a nested worker builds a run.
    fn is_under_a_callback(&self) -> bool {
        self.outer.is_some() && self.lock().builder.is_some()
    }
}
