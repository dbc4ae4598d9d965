//! What the library says on standard error, as far as the host program lets it.

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The log state of the host program; it lives to the end of the process.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LogState {
    abi: u32,
    size: u32,
    threshold: i32,
    clock_anchor_pid: i32,
}

/// Messages of this level and above are errors.
const ERROR: i32 = 40;

static STATE: AtomicPtr<LogState> = AtomicPtr::new(ptr::null_mut());

/// Keeps the state; `false` if it is not of the version that this library reads.
///
/// # Safety
/// `state` is null or points to a state that lives to the end of the process.
pub(crate) unsafe fn bind(state: *mut LogState) -> bool {
    // SAFETY: null or valid, as the caller promises.
    let Some(found) = (unsafe { state.as_ref() }) else { return false };
    if found.abi != 1 || found.size as usize != size_of::<LogState>() || found.clock_anchor_pid != 0 {
        return false;
    }
    STATE.store(state, Ordering::Release);
    true
}

/// Reports why a call failed.
pub(crate) fn error(message: fmt::Arguments<'_>) {
    // SAFETY: null, or a state that `bind` was promised to live to the end of the process.
    let state = unsafe { STATE.load(Ordering::Acquire).as_ref() };
    if state.is_some_and(|state| state.threshold <= ERROR) {
        eprintln!("laneway simulated host runtime: {message}");
    }
}
