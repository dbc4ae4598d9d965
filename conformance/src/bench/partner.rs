//! Processes that a floor is measured with: forked before anything else, asleep but in their own slices.
#![allow(unsafe_code)]

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use laneway_core::mailbox::Words;
use laneway_linux::Error;
use laneway_linux::child_entry::{self, ChildSpec, Started};
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::group::Group;
use laneway_linux::sys::lifeline::{AtHangUp, Lifeline};
use laneway_linux::sys::park::{Bed, Woke};
use laneway_linux::sys::region::{Region, Sharing};
use laneway_linux::sys::words::MappedWords;
use laneway_linux::sys::{clock, cpu, threads};

use super::Failure;

/// Where the words of a partner's life lie in its page; floors use the bytes from [`FREE`] on.
const COMMAND: usize = 0;
const PARKED: usize = 64;
/// The first byte that a floor may use for itself.
pub(super) const FREE: usize = 128;

/// The command word: written by the main process, but for the step back to IDLE and the first one out of STARTING.
const STARTING: i32 = 0;
const IDLE: i32 = 1;
const GO: i32 = 2;
const STOP: i32 = 3;
const QUIT: i32 = 4;
const FAILED: i32 = 5;

/// How long a partner may take for what takes microseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Shared memory that every process forked from here on sees, for as long as it lives.
pub(super) fn shared_words(name: &str, bytes: usize) -> Result<MappedWords, Error> {
    let region = Box::leak(Box::new(Region::new(name, bytes, Sharing::Tree)?));
    region.populate(0..region.len())?;
    // SAFETY: the region is leaked, so it is mapped until the process ends.
    Ok(unsafe { MappedWords::new(region) })
}

/// Forks a process that has `bell` and lives until `body` returns or this process is gone.
fn fork(bell: &Bell, others: &[&Bell], body: impl FnOnce(Lifeline) -> i32) -> Result<Started, Failure> {
    let count = threads::foreign_threads()?;
    if count > 0 {
        return Err(Error::ForeignThreads { count }.into());
    }
    let bells: Vec<_> = others.iter().copied().chain([bell]).map(AsRawFd::as_raw_fd).collect();
    let spec = ChildSpec {
        group: Group::Head,
        at_hang_up: AtHangUp::Die,
        keep_descriptors: &bells,
        keep_mappings: &[],
        close_foreign_descriptors: false,
    };
    // SAFETY: there is no foreign thread that could hold a lock.
    Ok(unsafe { child_entry::start(&spec, body) }?)
}

/// What a partner's own code is given in its process.
pub(super) struct Seat<'a> {
    /// Its page.
    pub(super) words: MappedWords,
    /// Its lifeline, for further beds.
    pub(super) lifeline: &'a Lifeline,
    bed: Bed,
}

impl Seat<'_> {
    /// Whether the slice goes on.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        self.words.load_relaxed(COMMAND) == GO
    }

    /// Sleeps as a child of a worker does, until its bell rings, `ready` says yes or the slice is over.
    pub(super) fn park(&mut self, parked: usize, ready: impl Fn() -> bool) {
        let words = self.words;
        self.bed.park(&words, parked, None, || ready() || words.load_relaxed(COMMAND) != GO);
    }
}

/// What a partner does while it is told to go on; returns soon after [`Seat::goes_on`] says no.
pub(super) type Serve<'a> = Box<dyn FnMut(&mut Seat<'_>) + 'a>;

/// A partner as the main process holds it. Dropping it ends the process.
pub(super) struct Partner {
    words: MappedWords,
    bell: Arc<Bell>,
    started: Started,
}

impl Partner {
    /// Starts one on `cpu`; on any where there is none. `make` is called in its process, once.
    pub(super) fn start(
        name: &str,
        bytes: usize,
        cpu: Option<usize>,
        bells: &[&Bell],
        make: impl for<'a> FnOnce(&Seat<'a>) -> Result<Serve<'a>, Failure>,
    ) -> Result<Self, Failure> {
        let words = shared_words(name, FREE + bytes)?;
        let bell = Arc::new(Bell::new()?);
        let mut started = fork(&bell, bells, |lifeline| match live(words, &bell, &lifeline, cpu, make) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("{name}: {error}");
                words.store(COMMAND, FAILED);
                1
            }
        })?;
        let since = clock::now();
        while words.load(COMMAND) == STARTING {
            if started.process.poll().is_some() || clock::now().since(since) > PATIENCE {
                return Err(format!("{name} did not start").into());
            }
            thread::yield_now();
        }
        match words.load(COMMAND) {
            IDLE => Ok(Self { words, bell, started }),
            _ => Err(format!("{name} did not start").into()),
        }
    }

    /// Its page.
    pub(super) fn words(&self) -> MappedWords {
        self.words
    }

    /// What wakes it.
    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// The same, for another partner.
    pub(super) fn shared_bell(&self) -> Arc<Bell> {
        self.bell.clone()
    }

    /// Begins its part of a slice.
    pub(super) fn go(&self) {
        self.command(GO);
    }

    /// Ends it; returns when it is about to sleep.
    pub(super) fn stop(&mut self) -> Result<(), Failure> {
        self.command(STOP);
        let since = clock::now();
        while self.words.load(COMMAND) != IDLE {
            if self.started.process.poll().is_some() || clock::now().since(since) > PATIENCE {
                return Err("a process of a floor is gone".into());
            }
            thread::yield_now();
        }
        Ok(())
    }

    fn command(&self, command: i32) {
        self.words.store(COMMAND, command);
        self.words.fence();
        self.bell.ring();
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.command(QUIT);
        let since = clock::now();
        while self.started.process.poll().is_none() {
            if clock::now().since(since) > PATIENCE {
                self.started.process.kill();
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
}

fn live<'a>(
    words: MappedWords,
    bell: &Bell,
    lifeline: &'a Lifeline,
    cpu: Option<usize>,
    make: impl FnOnce(&Seat<'a>) -> Result<Serve<'a>, Failure>,
) -> Result<(), Failure> {
    if let Some(cpu) = cpu {
        cpu::pin(&[cpu])?;
    }
    let mut seat = Seat { words, lifeline, bed: Bed::new(bell, lifeline, None)? };
    let mut serve = make(&seat)?;
    words.store(COMMAND, IDLE);
    loop {
        match words.load(COMMAND) {
            GO => serve(&mut seat),
            QUIT => return Ok(()),
            STOP => words.store(COMMAND, IDLE),
            _ => {
                if seat.bed.park(&words, PARKED, None, || words.load(COMMAND) != IDLE) == Woke::ParentGone {
                    return Ok(());
                }
            }
        }
    }
}

/// After a publication: wakes the other side if it has announced at `parked` that it sleeps.
#[inline]
pub(super) fn wake(words: &MappedWords, parked: usize, bell: &Bell) {
    words.fence();
    if words.load_relaxed(parked) == 1 && words.compare_exchange(parked, 1, 0).is_ok() {
        bell.ring();
    }
}

/// Spins until `ready` says yes; an error if that takes as long as only a dead process takes.
#[inline]
pub(super) fn spin_until(mut ready: impl FnMut() -> bool) -> Result<(), Failure> {
    const TURNS: u32 = 1 << 28;
    for _ in 0..TURNS {
        if ready() {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    Err("the other process of a floor does not answer".into())
}
