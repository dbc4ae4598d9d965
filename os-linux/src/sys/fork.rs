//! The one fork.
#![allow(unsafe_code)]

use std::io::{self, Write};
use std::sync::Once;

use rustix::io::Errno;
use rustix::process::Pid;

use super::{inventory, lineage, signals, threads};
use crate::Error;

/// Which of the two this process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fork {
    /// The new process. Every signal is blocked until it enters its own life.
    Child,
    /// The old one, with the number of its child.
    Parent(Pid),
}

/// Forks, with this library's threads parked, its list of descriptors and mappings consistent, the standard streams
/// flushed and all signals blocked.
///
/// # Safety
/// No thread that this library did not start holds a lock, or the child never needs one that such a thread may hold;
/// [`threads::foreign_threads`] counts them (P-2). The child goes to its entry point and never returns into the
/// frames of the parent (P-3).
///
/// # Errors
/// [`Error::System`], in the parent alone.
pub unsafe fn fork() -> Result<Fork, Error> {
    flush_streams();
    let gate = threads::close_gate();
    let list = inventory::lock();
    let mask = signals::block_all();
    // SAFETY: the caller vouches for foreign threads; ours are parked outside all locks, and the locks of this module's
    // own are held by this very thread, which exists on both sides.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        drop(list);
        gate.forget_threads();
        return Ok(Fork::Child);
    }
    let errno = io::Error::last_os_error();
    drop(list);
    drop(gate);
    mask.restore();
    Pid::from_raw(pid.max(0)).map(Fork::Parent).ok_or_else(|| {
        Error::advised(
            "fork",
            "starting a child",
            Errno::from_io_error(&errno).unwrap_or(Errno::AGAIN),
            "check the limits on processes (ulimit -u, pids.max of the control group) and on memory",
        )
    })
}

/// From here on a child that anybody forks in this process knows that what is there came through a fork: the host program, or a
/// callable, may fork too (P-31).
pub(super) fn notice_forks() {
    static NOTICED: Once = Once::new();
    unsafe extern "C" fn in_child() {
        lineage::begin_generation();
        threads::forget_after_a_foreign_fork();
    }
    NOTICED.call_once(|| {
        // It fails for want of memory alone; then a foreign fork goes unnoticed.
        // SAFETY: what is registered is part of this program for as long as it runs. It stores to atomics, and takes a lock only
        // if that is free.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// Writes out what this process buffered for its standard streams and C's: a fork would copy it, and both would write it.
pub(crate) fn flush_streams() {
    // A stream that is closed or full is no reason not to go on.
    let _ = io::stdout().flush();
    let _ = io::stderr().flush();
    // Not all of C's streams at once: that waits for the lock of every one, and a thread that reads one may hold its lock
    // for hours.
    // SAFETY: C's own variable, set before `main` and assigned by nobody in a sane process.
    let out = unsafe { stdout };
    // SAFETY: an open stream.
    unsafe { libc::fflush(out) };
    // SAFETY: as above.
    let err = unsafe { stderr };
    // SAFETY: as above.
    unsafe { libc::fflush(err) };
}

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
}
