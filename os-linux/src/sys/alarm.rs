//! A limit on how long this process may go on living.
#![allow(unsafe_code)]

use std::ptr;
use std::time::Duration;

/// SIGALRM ends this process after `limit`, unless it has ended by then. Its default action is what the child entry set it to.
pub(crate) fn end_within(limit: Duration) {
    let micros = limit.subsec_micros().into();
    let once = libc::itimerval {
        it_interval: libc::timeval { tv_sec: 0, tv_usec: 0 },
        it_value: libc::timeval { tv_sec: limit.as_secs() as libc::time_t, tv_usec: micros },
    };
    // SAFETY: reads one structure that lives for the call; no old value is asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &once, ptr::null_mut()) };
}
