//! Waiting for several descriptors at once.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use super::clock;
use super::inventory::Descriptor;
use crate::Error;

/// What every kernel can wait for in one call; longer waits take several.
const LONGEST: Duration = Duration::from_secs(3600);

/// How a descriptor is watched. A hang-up is always reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watch {
    /// Once for every time it becomes readable: bells, which are then never read.
    Edge,
    /// For as long as it is readable: sockets, timers.
    Level,
    /// Once, ever: pidfds.
    OneShot,
}

/// The number that a watched descriptor was added with and is reported by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Token(pub u64);

/// One descriptor that is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    /// Which one.
    pub token: Token,
    /// Whether it has something to read, as opposed to only a hang-up or an error.
    pub readable: bool,
    /// Whether the other side is gone for good.
    pub hung_up: bool,
}

/// Room for what one wait reports. More is reported by the next one.
pub struct Events {
    buffer: [Event; Self::CAPACITY],
    filled: usize,
}

// SAFETY: plain numbers; the pointer that an event could carry instead is never used.
unsafe impl Send for Events {}

impl Events {
    /// Descriptors that one wait can report.
    pub const CAPACITY: usize = 64;

    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        let empty = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        Self { buffer: [empty; Self::CAPACITY], filled: 0 }
    }

    /// What the last wait reported.
    pub fn iter(&self) -> impl Iterator<Item = Ready> + '_ {
        self.buffer[..self.filled].iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            Ready {
                token: Token(data.u64()),
                readable: flags.contains(EventFlags::IN),
                hung_up: flags.intersects(EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP),
            }
        })
    }

    /// Whether the last wait ended without an event.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.filled == 0
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

/// An epoll set. One thread sleeps on it: two would share its wakes at random.
///
/// Make it after the last fork, and remove a pidfd before closing it: a duplicate in a sibling keeps a closed descriptor
/// firing for ever.
#[derive(Debug)]
pub struct Poller {
    set: Descriptor,
    /// Whether waits shorter than a millisecond are possible (Linux 5.11, and not forbidden by a filter).
    precise: AtomicBool,
}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// [`Error::System`] where no descriptor is free.
    pub fn new() -> Result<Self, Error> {
        let set = Descriptor::open(|| epoll::create(CreateFlags::CLOEXEC))
            .map_err(|errno| Error::system("epoll_create1", "making a wait set", errno))?;
        Ok(Self { set, precise: AtomicBool::new(true) })
    }

    /// Watches `fd` until it is removed.
    ///
    /// # Errors
    /// [`Error::System`] if it is in the set already, or cannot be watched.
    pub fn add(&self, fd: impl AsFd, token: Token, watch: Watch) -> Result<(), Error> {
        let flags = EventFlags::IN
            | match watch {
                Watch::Edge => EventFlags::ET,
                Watch::Level => EventFlags::empty(),
                Watch::OneShot => EventFlags::ONESHOT,
            };
        let fd = fd.as_fd();
        epoll::add(&self.set, fd, EventData::new_u64(token.0), flags)
            .map_err(|errno| Error::system("epoll_ctl(ADD)", format!("watching descriptor {}", fd.as_raw_fd()), errno))
    }

    /// Stops watching `fd`.
    ///
    /// # Errors
    /// [`Error::System`] if it was not watched.
    pub fn remove(&self, fd: impl AsFd) -> Result<(), Error> {
        let fd = fd.as_fd();
        epoll::delete(&self.set, fd).map_err(|errno| {
            Error::system("epoll_ctl(DEL)", format!("forgetting descriptor {}", fd.as_raw_fd()), errno)
        })
    }

    /// Sleeps until something is ready or `timeout` is over (`None`: for ever; zero: looks and returns).
    ///
    /// Interruptions by signals are not seen by the caller. A kernel that can only wait whole milliseconds waits up to one
    /// longer.
    ///
    /// # Errors
    /// [`Error::System`] for what can only be a bug of the caller.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> Result<(), Error> {
        let deadline = timeout.map(|timeout| clock::now().saturating_add(timeout));
        let mut left = timeout;
        loop {
            events.filled = match self.wait_once(&mut events.buffer, left.map(|left| left.min(LONGEST))) {
                Ok(filled) => filled,
                Err(Errno::INTR) => 0,
                Err(errno) => return Err(Error::system("epoll_pwait2", "waiting", errno)),
            };
            left = deadline.map(|deadline| deadline.since(clock::now()));
            if events.filled > 0 || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    fn wait_once(
        &self,
        buffer: &mut [Event; Events::CAPACITY],
        timeout: Option<Duration>,
    ) -> rustix::io::Result<usize> {
        let timeout = timeout.map(clock::timespec);
        match &timeout {
            Some(precise) if precise.tv_nsec % 1_000_000 != 0 && self.precise.load(Ordering::Relaxed) => {
                match pwait2(self.set.as_fd(), buffer, precise) {
                    // Filters of old container runtimes answer EPERM to calls that they do not know.
                    Err(Errno::NOSYS | Errno::PERM) => self.precise.store(false, Ordering::Relaxed),
                    answer => return answer,
                }
            }
            _ => {}
        }
        epoll::wait(&self.set, &mut buffer[..], timeout.as_ref())
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

/// rustix waits in whole milliseconds unless it is built for Linux 5.11 and newer only.
fn pwait2(
    set: BorrowedFd<'_>,
    buffer: &mut [Event; Events::CAPACITY],
    timeout: &rustix::time::Timespec,
) -> rustix::io::Result<usize> {
    let (fd, room) = (set.as_raw_fd(), Events::CAPACITY as libc::c_int);
    let (timeout, no_mask) = (std::ptr::from_ref(timeout), std::ptr::null::<libc::sigset_t>());
    // SAFETY: the kernel writes at most `room` events to the buffer, which has room for them and the kernel's layout, and
    // reads the time, which has the kernel's layout too; without a mask the last argument is not looked at.
    let filled =
        unsafe { libc::syscall(libc::SYS_epoll_pwait2, fd, buffer.as_mut_ptr(), room, timeout, no_mask, 0_usize) };
    usize::try_from(filled).map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::eventfd::Bell;

    fn ready(poller: &Poller, timeout: Duration) -> Vec<u64> {
        let mut events = Events::new();
        poller.wait(&mut events, Some(timeout)).unwrap();
        events.iter().map(|ready| ready.token.0).collect()
    }

    #[test]
    fn an_edge_is_reported_once_a_ring_and_never_needs_a_read() {
        let (poller, bell) = (Poller::new().unwrap(), Bell::new().unwrap());
        poller.add(&bell, Token(7), Watch::Edge).unwrap();
        assert!(ready(&poller, Duration::ZERO).is_empty());
        for _ in 0..3 {
            bell.ring();
            assert_eq!(ready(&poller, Duration::ZERO), [7]);
            assert!(ready(&poller, Duration::ZERO).is_empty());
        }
    }

    #[test]
    fn a_level_is_reported_until_it_is_read_and_a_one_shot_once_ever() {
        let (poller, level, once) = (Poller::new().unwrap(), Bell::new().unwrap(), Bell::new().unwrap());
        poller.add(&level, Token(1), Watch::Level).unwrap();
        poller.add(&once, Token(2), Watch::OneShot).unwrap();
        level.ring();
        once.ring();
        let mut first = ready(&poller, Duration::ZERO);
        first.sort_unstable();
        assert_eq!(first, [1, 2]);
        once.ring();
        assert_eq!(ready(&poller, Duration::ZERO), [1]);
        level.drain();
        assert!(ready(&poller, Duration::ZERO).is_empty());
        poller.remove(&once).unwrap();
        assert!(poller.remove(&once).is_err());
    }

    #[test]
    fn a_timeout_shorter_than_a_millisecond_is_kept_or_rounded_up_never_down() {
        let poller = Poller::new().unwrap();
        for precise in [true, false] {
            poller.precise.store(precise, Ordering::Relaxed);
            let start = clock::now();
            assert!(ready(&poller, Duration::from_micros(300)).is_empty());
            assert!(clock::now().since(start) >= Duration::from_micros(300), "precise: {precise}");
        }
    }
}
