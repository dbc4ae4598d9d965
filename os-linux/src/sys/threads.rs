//! Threads and forks (P-2): which threads are this library's, where they may be during a fork, and how many others exist.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use crate::Error;

/// The stack of a thread that runs code of the user's: as much as the first thread of a process has by default, committed by
/// use.
pub(super) const USER_STACK: usize = 8 << 20;

/// What to look at where no thread can be started.
pub(super) const THREAD_LIMITS: &str =
    "check the limits on threads (ulimit -u, pids.max of the control group) and on memory";

static GATE: Mutex<Gate> = Mutex::new(Gate {
    inside: 0,
    births: 0,
    forking: false,
    starts: 0,
    children: 0,
    devices: 0,
    threads: BTreeSet::new(),
});
static CHANGED: Condvar = Condvar::new();

struct Gate {
    /// Threads of this library that may hold a lock now.
    inside: usize,
    /// Threads of this library that exist, or are about to, and have not said yet what /proc calls them.
    births: usize,
    /// A fork waits for them and lets no more in.
    forking: bool,
    /// Starts that are forking their children.
    starts: usize,
    /// Children that are threads of this process: they run user code, so nothing is known about the locks that they hold.
    children: usize,
    /// Devices that are open in this process.
    devices: usize,
    /// Threads of this library, by the names that /proc has for them.
    threads: BTreeSet<OsString>,
}

fn gate() -> MutexGuard<'static, Gate> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread of this library, or a step of one, that may hold locks: while this exists no fork happens.
#[derive(Debug)]
struct Inside(());

impl Inside {
    fn enter() -> Self {
        let mut gate = gate();
        while gate.forking {
            gate = CHANGED.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        gate.inside += 1;
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut gate = gate();
        // A process that somebody forked begins to count anew, and may have one that was counted before.
        gate.inside = gate.inside.saturating_sub(1);
        if gate.forking {
            CHANGED.notify_all();
        }
    }
}

/// Held across a fork: every thread of this library is parked, and stays so until this is dropped.
pub(super) struct ClosedGate(MutexGuard<'static, Gate>);

/// Waits until every thread of this library is parked.
pub(super) fn close_gate() -> ClosedGate {
    let mut gate = gate();
    while gate.forking {
        gate = CHANGED.wait(gate).unwrap_or_else(PoisonError::into_inner);
    }
    gate.forking = true;
    while gate.inside > 0 {
        gate = CHANGED.wait(gate).unwrap_or_else(PoisonError::into_inner);
    }
    // The lock itself stays held, so that the child finds it held by the thread that it consists of.
    ClosedGate(gate)
}

impl ClosedGate {
    /// In the child: none of the threads came along.
    pub(super) fn forget_threads(mut self) {
        self.0.forget();
    }
}

/// In a child that somebody else forked, where threads of this library may have been anywhere. One that was just changing the
/// list keeps it: the child can start no worker then, as its parent's threads might have held any lock.
pub(super) fn forget_after_a_foreign_fork() {
    if let Ok(mut gate) = GATE.try_lock() {
        gate.forget();
        gate.inside = 0;
        gate.forking = false;
        gate.children = 0;
    }
}

impl Gate {
    /// In a child: no thread of this library came along. Frees nothing, since the allocator may be in use.
    fn forget(&mut self) {
        std::mem::forget(std::mem::take(&mut self.threads));
        self.births = 0;
        self.starts = 0;
    }
}

impl Drop for ClosedGate {
    fn drop(&mut self) {
        self.0.forking = false;
        CHANGED.notify_all();
    }
}

/// The calling thread. The standard library, which counts a reference for each answer, is asked once.
pub(crate) fn id() -> ThreadId {
    thread_local! {
        static ID: ThreadId = thread::current().id();
    }
    ID.with(|id| *id)
}

/// A start that forks: while it exists no thread child begins.
#[derive(Debug)]
pub struct Forking(());

impl Forking {
    /// Refuses to fork where that is not safe (P-2).
    ///
    /// # Errors
    /// [`Error::ThreadChildren`], [`Error::HoldsDevice`].
    pub fn begin() -> Result<Self, Error> {
        let mut gate = gate();
        if gate.children > 0 {
            return Err(Error::ThreadChildren { count: gate.children });
        }
        if gate.devices > 0 {
            return Err(Error::HoldsDevice { count: gate.devices });
        }
        gate.starts += 1;
        Ok(Self(()))
    }
}

impl Drop for Forking {
    fn drop(&mut self) {
        let mut gate = gate();
        gate.starts = gate.starts.saturating_sub(1);
        CHANGED.notify_all();
    }
}

/// A thread child, from before its thread begins until after it has ended.
#[derive(Debug)]
pub(super) struct Admitted(());

impl Admitted {
    /// Waits while a start forks.
    pub(super) fn enter() -> Self {
        let mut gate = gate();
        while gate.starts > 0 {
            gate = CHANGED.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        gate.children += 1;
        Self(())
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut gate = gate();
        gate.children = gate.children.saturating_sub(1);
    }
}

/// A device that is open in this process: a fork would copy a connection to it that works on one side alone (C-17).
#[derive(Debug)]
pub struct HeldDevice(());

impl HeldDevice {
    /// Counts one more; waits while a start forks.
    #[must_use]
    pub fn count() -> Self {
        let mut gate = gate();
        while gate.starts > 0 {
            gate = CHANGED.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        gate.devices += 1;
        Self(())
    }
}

impl Drop for HeldDevice {
    fn drop(&mut self) {
        gate().devices -= 1;
    }
}

/// Whether a thread of this library is where it may hold locks: it begins there.
#[derive(Debug)]
pub struct Presence(Option<Inside>);

impl Presence {
    /// Runs `sleep` where a fork may find this thread: it must hold no lock and take none, and it must not allocate.
    pub fn outside<T>(&mut self, sleep: impl FnOnce() -> T) -> T {
        self.0 = None;
        let slept = sleep();
        self.0 = Some(Inside::enter());
        slept
    }
}

/// A running thread of this library.
#[derive(Debug)]
pub struct LibraryThread<T> {
    handle: JoinHandle<Ended<T>>,
}

/// A thread that has ended still counts as inside until it was joined: it frees its memory and runs destructors.
struct Ended<T> {
    result: thread::Result<T>,
    _named: Option<Named>,
    _inside: Option<Inside>,
}

/// A thread of this library that is about to begin, or has begun and not said its name.
struct Birth(());

impl Birth {
    fn begin() -> Self {
        gate().births += 1;
        Self(())
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        let mut gate = gate();
        gate.births = gate.births.saturating_sub(1);
        CHANGED.notify_all();
    }
}

/// The name of a thread of this library, known for as long as /proc may list it.
struct Named(OsString);

impl Named {
    fn enter() -> Option<Self> {
        let own = own_name().ok()?;
        gate().threads.insert(own.clone());
        Some(Self(own))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        gate().threads.remove(&self.0);
    }
}

impl<T: Send + 'static> LibraryThread<T> {
    /// Starts a thread that counts as this library's. It blocks all signals: they are the host's business (P-18).
    ///
    /// # Errors
    /// [`Error::System`] where no thread can be started.
    pub fn spawn(name: &str, body: impl FnOnce(&mut Presence) -> T + Send + 'static) -> Result<Self, Error> {
        Self::begin(thread::Builder::new().name(name.to_owned()), name, body)
    }

    /// As [`spawn`](Self::spawn), with a stack that code of the user's does not soon fill.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn spawn_for_user_code(
        name: &str,
        body: impl FnOnce(&mut Presence) -> T + Send + 'static,
    ) -> Result<Self, Error> {
        Self::begin(thread::Builder::new().name(name.to_owned()).stack_size(USER_STACK), name, body)
    }

    fn begin(
        builder: thread::Builder,
        name: &str,
        body: impl FnOnce(&mut Presence) -> T + Send + 'static,
    ) -> Result<Self, Error> {
        // Taken here: no fork may fall between the birth of the thread and its first step.
        let inside = Inside::enter();
        let birth = Birth::begin();
        let saved = super::signals::block_all();
        let spawned = builder.spawn(move || {
            let named = Named::enter();
            drop(birth);
            let mut presence = Presence(Some(inside));
            let result = catch_unwind(AssertUnwindSafe(|| body(&mut presence)));
            Ended { result, _named: named, _inside: presence.0 }
        });
        saved.restore();
        spawned.map(|handle| Self { handle }).map_err(|error| {
            let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::AGAIN);
            Error::advised("pthread_create", format!("starting thread {name}"), errno, THREAD_LIMITS)
        })
    }

    /// Waits for its end and returns what its body returned; a panic goes on here.
    pub fn join(self) -> T {
        match self.handle.join() {
            Ok(Ended { result: Ok(value), .. }) => value,
            Ok(Ended { result: Err(panic), .. }) | Err(panic) => resume_unwind(panic),
        }
    }

    /// Whether it has ended, so that joining it does not block.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

/// Threads of this process that are neither the caller nor this library's.
///
/// A thread that was joined a moment ago may still be leaving the kernel, so a count above zero is taken again for a few
/// milliseconds before it is believed.
///
/// # Errors
/// [`Error::System`] if /proc is not mounted.
pub fn foreign_threads() -> Result<usize, Error> {
    let mut count = count_once()?;
    for _ in 0..20 {
        if count == 0 {
            break;
        }
        thread::sleep(Duration::from_millis(1));
        count = count_once()?;
    }
    Ok(count)
}

fn count_once() -> Result<usize, Error> {
    let failed = |error: io::Error| {
        let errno = rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        Error::advised("readdir", "counting threads in /proc/self/task", errno, "mount /proc")
    };
    let own = own_name().map_err(failed)?;
    // Held over the listing: no thread of this library comes or goes meanwhile.
    let mut gate = gate();
    while gate.births > 0 {
        gate = CHANGED.wait(gate).unwrap_or_else(PoisonError::into_inner);
    }
    let mut count = 0;
    for entry in fs::read_dir("/proc/self/task").map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let ours = name == own || gate.threads.contains(&name);
        if !ours && is_running(&entry.path().join("stat")) {
            count += 1;
        }
    }
    Ok(count)
}

/// What /proc calls the calling thread. Not its own number, which differs where /proc shows an outer PID namespace.
pub(super) fn own_name() -> io::Result<OsString> {
    let link = fs::read_link("/proc/thread-self")?;
    link.file_name().map(ToOwned::to_owned).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// False for a thread that has ended: a main thread that left before the others stays listed as a zombie.
fn is_running(stat: &std::path::Path) -> bool {
    let Ok(stat) = fs::read_to_string(stat) else { return false };
    // The name in parentheses may hold anything; the state follows the last one.
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// P-2: between its birth and its first step a thread of this library has no name yet, and would pass for a stranger.
    #[test]
    fn threads_are_counted_once_all_of_this_library_have_said_their_names() {
        static NAMED: AtomicBool = AtomicBool::new(false);
        let birth = Birth::begin();
        let counting = thread::spawn(|| {
            count_once().unwrap();
            NAMED.load(Ordering::SeqCst)
        });
        // Time for a count that does not wait to go wrong; one that does wait never depends on it.
        thread::sleep(Duration::from_millis(50));
        NAMED.store(true, Ordering::SeqCst);
        drop(birth);
        assert!(counting.join().unwrap());
    }
}
