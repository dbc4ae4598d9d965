//! What a worker is made of between a successful `init` and the end of `close`.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::ThreadId;

use laneway_core::driver::{Doorbells, Driver, Watch};
use laneway_core::engine::{EngineError, Memory, Range as Backing, RangeKind};
use laneway_core::ids::{EndpointIndex, RunId};
use laneway_core::lane::ExitCause;
use laneway_core::time::Instant;
use laneway_core::wire::ByteRange;

use crate::Error;
use crate::board::Board;
use crate::callable::Role;
use crate::config::Config;
use crate::device_memory::DeviceBooks;
use crate::install::Scope;
use crate::late::Images;
use crate::memory::Space;
use crate::metrics::Counters;
use crate::progress::{BellWord, Inbox, Progress};
use crate::recorder::Recorder;
use crate::registry::Registry;
use crate::run::Outcomes;
use crate::supervisor::Supervisor;
use crate::sys::epoll::{Events, Poller};
use crate::sys::eventfd::Bell;
use crate::sys::lineage::Lineage;
use crate::sys::spin::SpinWindow;
use crate::sys::threads;
use crate::sys::timer::Timer;
use crate::sys::words::MailboxWords;
use crate::trace::Tracer;
use crate::waiting::ParentWait;
use crate::worker::Outer;

/// What the lock of a worker guards.
pub(crate) struct Inner {
    pub(crate) driver: Driver<MailboxWords, Recorder>,
    pub(crate) registry: Registry,
    /// Who owns progress, and who waits for it.
    pub(crate) progress: Progress,
    /// Callers of `submit` are served in arrival order: the ticket being served, and the next one to give out (E-1).
    pub(crate) serving: u64,
    pub(crate) tickets: u64,
    /// The thread whose callback builds a run now.
    pub(crate) builder: Option<ThreadId>,
    /// Runs whose handles are alive.
    pub(crate) handles: Vec<RunId>,
    /// Whether new runs are refused.
    pub(crate) closing: bool,
    /// Counts what may have made a waiter's condition true.
    pub(crate) changes: u64,
    /// Children that have not been reaped.
    pub(crate) alive: usize,
    /// Which children are gone with everything below them.
    pub(crate) gone: Box<[bool]>,
    /// Children that ended or were killed, and when what is left of them counts as stuck (L-35).
    pub(crate) doomed: Vec<(EndpointIndex, Instant)>,
    /// What the last round asked for: the next one at this time at the latest.
    pub(crate) deadline: Option<Instant>,
    /// Controls that were over when sleepers were last told.
    pub(crate) controls_ended: u64,
    /// Children that have ended, in that order.
    pub(crate) ends: Vec<(EndpointIndex, ExitCause)>,
    /// How many of them were before a stop or a close told children to leave.
    ends_before: Option<usize>,
    /// Buffers that were dropped while a task still named them.
    pub(crate) dropped: Vec<Range<u64>>,
    /// What is live on which chip.
    pub(crate) devices: DeviceBooks,
    /// Addresses of buffers that nothing names any more and whose memory is still to be given back.
    pub(crate) freed: Vec<u64>,
    /// The driver's list of words to spin on; kept for its memory.
    pub(crate) watches: Vec<Watch>,
    /// How long a driver spins before it sleeps.
    pub(crate) wait: ParentWait,
    /// What the driver's wait set reported; taken by whoever sleeps on it.
    pub(crate) events: Option<Events>,
}

/// A worker whose children run.
pub(crate) struct Live {
    inner: Mutex<Inner>,
    /// Threads that want the lock while another one drives; the driver lets them in between two rounds.
    contenders: AtomicU32,
    /// Wakes the threads that sleep because another one drives.
    pub(crate) turn: Condvar,
    /// Wakes callers of `submit` whose turn may have come.
    pub(crate) builders: Condvar,
    pub(crate) bell: Arc<BellWord>,
    pub(crate) inbox: Inbox,
    /// What is told of the worker and its children, to whoever looks.
    pub(crate) board: Board,
    /// Whether a driver panicked: nobody has the right that it held.
    pub(crate) panicked: AtomicBool,
    /// The mailboxes, by endpoint, for looking at them without the lock.
    pub(crate) words: Box<[MailboxWords]>,
    pub(crate) wakes: Wakes,
    /// What a driver sleeps on: the waiter bells and `nudge`.
    pub(crate) waiter_set: Poller,
    /// Wakes a driver that sleeps, for news that no child rings for.
    pub(crate) nudge: Bell,
    /// Wakes the background thread.
    pub(crate) control: Bell,
    /// Wakes the background thread when a callback has been silent for a while.
    pub(crate) takeover: Timer,
    /// How long a driver waits for threads that it lets in.
    window: SpinWindow,
    pub(crate) supervisor: Mutex<Supervisor>,
    pub(crate) space: Arc<Space>,
    /// What each NEXT_LEVEL worker runs, by its id.
    pub(crate) next_level: Box<[Role]>,
    /// What each child serves, by its endpoint.
    pub(crate) scopes: Box<[Scope]>,
    /// Code that the children have too.
    pub(crate) images: Images,
    /// The worker above, of a nested worker in its own process.
    pub(crate) outer: Option<Outer>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) config: Config,
    /// What handles ask when this is gone.
    pub(crate) outcomes: Arc<Outcomes>,
    lineage: Lineage,
}

pub(crate) type Guard<'a> = MutexGuard<'a, Inner>;

/// Everything of a [`Live`] but its lock.
pub(crate) struct Parts {
    pub(crate) bell: Arc<BellWord>,
    pub(crate) words: Box<[MailboxWords]>,
    pub(crate) wakes: Wakes,
    pub(crate) waiter_set: Poller,
    pub(crate) nudge: Bell,
    pub(crate) control: Bell,
    pub(crate) takeover: Timer,
    pub(crate) supervisor: Supervisor,
    pub(crate) space: Arc<Space>,
    pub(crate) next_level: Box<[Role]>,
    pub(crate) scopes: Box<[Scope]>,
    pub(crate) images: Images,
    pub(crate) outer: Option<Outer>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) tracer: Option<Tracer>,
    pub(crate) config: Config,
    pub(crate) wait: ParentWait,
    pub(crate) board: Board,
    pub(crate) window: SpinWindow,
}

impl Live {
    pub(crate) fn new(driver: Driver<MailboxWords, Recorder>, registry: Registry, parts: Parts) -> Self {
        let inner = Inner {
            driver,
            registry,
            progress: Progress::new(),
            serving: 0,
            tickets: 0,
            builder: None,
            handles: Vec::with_capacity(64),
            closing: false,
            changes: 0,
            alive: parts.words.len(),
            doomed: Vec::with_capacity(parts.words.len()),
            deadline: None,
            gone: vec![false; parts.words.len()].into(),
            controls_ended: 0,
            ends: Vec::with_capacity(parts.words.len()),
            ends_before: None,
            dropped: Vec::new(),
            devices: DeviceBooks::new(parts.next_level.len()),
            freed: Vec::new(),
            watches: Vec::with_capacity(3 * parts.words.len()),
            wait: parts.wait,
            events: Some(Events::new()),
        };
        Self {
            inner: Mutex::new(inner),
            contenders: AtomicU32::new(0),
            turn: Condvar::new(),
            builders: Condvar::new(),
            window: parts.window,
            bell: parts.bell,
            inbox: Inbox::default(),
            board: parts.board,
            panicked: AtomicBool::new(false),
            words: parts.words,
            wakes: parts.wakes,
            waiter_set: parts.waiter_set,
            nudge: parts.nudge,
            control: parts.control,
            takeover: parts.takeover,
            supervisor: Mutex::new(parts.supervisor),
            space: parts.space,
            next_level: parts.next_level,
            scopes: parts.scopes,
            images: parts.images,
            outer: parts.outer,
            counters: parts.counters,
            tracer: parts.tracer,
            config: parts.config,
            outcomes: Arc::default(),
            lineage: Lineage::here(),
        }
    }

    /// Refuses a worker of a parent of the caller: its mailboxes and bells were not given to a process, and a thread would wait
    /// for itself.
    pub(crate) fn check_lineage(&self) -> Result<(), Error> {
        if self.lineage.is_of_a_parent() { Err(Error::Inherited) } else { Ok(()) }
    }

    /// Inside a callback: refuses a process that the callback forked, on whose side everything here is a copy.
    pub(crate) fn refuse_a_copy(&self) -> Result<(), Error> {
        if self.is_inherited() { Err(Error::Inherited) } else { Ok(()) }
    }

    /// Whether the worker came through a fork.
    pub(crate) fn is_inherited(&self) -> bool {
        self.lineage.is_inherited()
    }

    /// Whether it is another worker's child, and the caller not one of the callbacks that it runs for that (P-9).
    pub(crate) fn is_foreign(&self) -> bool {
        self.outer.is_some() && !self.is_inside_callback()
    }

    /// Whether the calling thread is inside a callback that builds a run of this worker.
    pub(crate) fn is_inside_callback(&self) -> bool {
        self.lock().builder == Some(threads::id())
    }

    /// Takes the lock. A panic under it is a bug of this crate that must not make every later call panic too.
    pub(crate) fn lock(&self) -> Guard<'_> {
        match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.contenders.fetch_add(1, Ordering::Relaxed);
                let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
                self.contenders.fetch_sub(1, Ordering::Relaxed);
                inner
            }
        }
    }

    /// Whether another thread waits for the lock.
    pub(crate) fn is_contended(&self) -> bool {
        self.contenders.load(Ordering::Relaxed) > 0
    }

    /// Whether the worker above wants this nested worker to leave (P-29).
    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.outer.as_ref().is_some_and(Outer::asks_to_stop)
    }

    /// Gives the lock away to whoever waits for it, and takes it again. The lock itself is not fair: without the pause the
    /// driver would have it back before a waiting thread is awake.
    pub(crate) fn let_others_in<'a>(&'a self, inner: Guard<'a>) -> Guard<'a> {
        drop(inner);
        match self.window.turns() {
            // One CPU for all: a thread that waits for the lock does not run before this one stops.
            0 => std::thread::yield_now(),
            _ => drop(self.window.until(|| !self.is_contended())),
        }
        self.lock()
    }
}

impl Live {
    /// Whether an unfinished task names any of `bytes` (P-19); looks for news of it first.
    pub(crate) fn is_named(&self, bytes: &Range<u64>) -> bool {
        let mut inner = self.lock();
        inner.names(bytes) && {
            self.stir(&mut inner);
            inner.names(bytes)
        }
    }
}

impl Inner {
    /// Children that had ended when they were first told to leave: what came later is for the close to tell.
    pub(crate) fn ends_before(&mut self) -> usize {
        *self.ends_before.get_or_insert(self.ends.len())
    }

    /// Makes a buffer's bytes known as something that tasks may name (E-38).
    pub(crate) fn add_buffer(&mut self, bytes: &Range<u64>) -> Result<(), EngineError> {
        self.driver.engine_mut().add_range(Backing {
            base: bytes.start,
            bytes: bytes.end - bytes.start,
            kind: RangeKind::Buffer,
        })
    }

    /// Whether an unfinished task names any of `bytes` (P-19).
    pub(crate) fn names(&self, bytes: &Range<u64>) -> bool {
        self.driver.engine().unfinished_names(Memory::Host, ByteRange { start: bytes.start, end: bytes.end })
    }
}

/// The doorbells of the children, by endpoint.
pub(crate) struct Wakes(pub(crate) Box<[Arc<Bell>]>);

/// What one round does besides storing into mailboxes.
pub(crate) struct Ringer<'a> {
    pub(crate) wakes: &'a Wakes,
    pub(crate) board: &'a Board,
    pub(crate) words: &'a [MailboxWords],
    pub(crate) wait: &'a mut ParentWait,
    pub(crate) now: Instant,
}

impl Doorbells for Ringer<'_> {
    fn ring(&mut self, endpoint: EndpointIndex) {
        self.wait.rang(endpoint, &self.words[endpoint.index()], self.now);
        self.wakes.0[endpoint.index()].ring();
    }

    fn published(&mut self, endpoint: EndpointIndex) {
        self.board.published(endpoint, self.now);
    }
}
