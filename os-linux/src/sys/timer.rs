//! A timer that can be slept on beside other descriptors.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use super::clock;
use super::inventory::Descriptor;
use crate::Error;

/// A one-shot timer on the monotonic clock. Watch it by edge: it is never read.
#[derive(Debug)]
pub struct Timer(Descriptor);

impl Timer {
    /// A timer that is not armed.
    ///
    /// # Errors
    /// [`Error::System`] where no descriptor is free.
    pub fn new() -> Result<Self, Error> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Descriptor::open(|| rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags))
            .map(Self)
            .map_err(|errno| Error::system("timerfd_create", "making a timer", errno))
    }

    /// Fires once, `after` from now; forgets what it was armed for before. Zero fires as soon as possible.
    pub fn arm(&self, after: Duration) {
        let value = clock::timespec(after.max(Duration::from_nanos(1)));
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // Fails only for values out of range, which no Duration of this crate's configuration is.
        let _ = rustix::time::timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
