//! Signal masks and dispositions. rustix leaves both to libc, which keeps signals of its own.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;

use libc::{c_int, sigset_t};

/// A set of signals.
#[derive(Clone, Copy)]
struct Set(sigset_t);

impl Set {
    fn of(signals: &[c_int]) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: writes a whole set to memory that has room for one.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        // SAFETY: just initialised.
        let mut set = unsafe { set.assume_init() };
        for &signal in signals {
            // SAFETY: changes one bit of an initialised set; a number that is no signal changes nothing.
            unsafe { libc::sigaddset(&mut set, signal) };
        }
        Self(set)
    }

    fn all() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: writes a whole set to memory that has room for one.
        unsafe { libc::sigfillset(set.as_mut_ptr()) };
        // SAFETY: just initialised.
        Self(unsafe { set.assume_init() })
    }

    /// Applies the set to the mask of the calling thread and returns what that was. Cannot fail: `how` is one of three.
    fn apply(self, how: c_int) -> Self {
        let mut before = MaybeUninit::<sigset_t>::uninit();
        // SAFETY: reads a whole set and writes one.
        let done = unsafe { libc::pthread_sigmask(how, &raw const self.0, before.as_mut_ptr()) };
        debug_assert_eq!(done, 0, "pthread_sigmask with a known verb");
        // SAFETY: written by the call above.
        Self(unsafe { before.assume_init() })
    }
}

/// The mask of the calling thread as it was before [`block_all`].
pub(super) struct SavedMask(Set);

/// Blocks every signal that can be blocked: around a fork, so that no handler of the host runs in a child (P-30).
pub(super) fn block_all() -> SavedMask {
    SavedMask(Set::all().apply(libc::SIG_SETMASK))
}

impl SavedMask {
    pub(super) fn restore(self) {
        self.0.apply(libc::SIG_SETMASK);
    }
}

/// Blocks exactly this signal, or none, in the calling thread.
pub(crate) fn block_only(signal: Option<c_int>) {
    Set::of(signal.as_slice()).apply(libc::SIG_SETMASK);
}

/// Blocks a signal for the rest of the calling thread.
pub(super) fn block(signal: c_int) {
    Set::of(&[signal]).apply(libc::SIG_BLOCK);
}

/// Lets a signal through; one that is waiting is delivered now.
pub(super) fn unblock(signal: c_int) {
    Set::of(&[signal]).apply(libc::SIG_UNBLOCK);
}

/// Gives every signal its default disposition, but ignores SIGINT, which the parent decides on (P-17, P-30).
///
/// An ignored SIGPIPE stays ignored: Rust ignores it from the start, and code that prints to a closed pipe expects an
/// error, not to be killed.
pub(crate) fn reset_dispositions() {
    for signal in 1..=libc::SIGRTMAX() {
        let default = match signal {
            libc::SIGKILL | libc::SIGSTOP => continue,
            libc::SIGINT => libc::SIG_IGN,
            libc::SIGPIPE if is_ignored(signal) => continue,
            _ => libc::SIG_DFL,
        };
        // Fails for the two or three numbers that libc keeps for itself; nobody can have a handler on those.
        // SAFETY: neither disposition runs code.
        unsafe { libc::signal(signal, default) };
    }
}

fn is_ignored(signal: c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one.
    let done = unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) };
    // SAFETY: zeroed at the least, which is a valid value of this plain structure.
    done == 0 && unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN
}
