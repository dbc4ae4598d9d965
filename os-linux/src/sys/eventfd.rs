//! A bell: one side rings, the other sleeps on it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::event::EventfdFlags;
use rustix::io::Errno;

use super::inventory::Descriptor;
use crate::Error;

/// A non-blocking eventfd. Ringing never blocks and never fails; a bell rung twice before anybody looks is rung once.
#[derive(Debug)]
pub struct Bell(Descriptor);

impl Bell {
    /// A silent bell.
    ///
    /// # Errors
    /// [`Error::System`] where no descriptor is free.
    pub fn new() -> Result<Self, Error> {
        Descriptor::open(|| rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))
            .map(Self)
            .map_err(|errno| Error::system("eventfd", "making a bell", errno))
    }

    /// Rings: a sleeper wakes, a later one does not fall asleep.
    pub fn ring(&self) {
        loop {
            match rustix::io::write(&self.0, &1_u64.to_ne_bytes()) {
                Err(Errno::INTR) => {}
                // EAGAIN is a counter at its end: nobody has looked 2^64 - 2 times, and the bell is rung.
                _ => return,
            }
        }
    }

    /// Silences the bell; says whether it was rung since the last time.
    pub fn drain(&self) -> bool {
        let mut count = [0; 8];
        loop {
            match rustix::io::read(&self.0, &mut count) {
                Err(Errno::INTR) => {}
                read => return read == Ok(8),
            }
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rings_are_one_and_draining_silences() {
        let bell = Bell::new().unwrap();
        assert!(!bell.drain());
        bell.ring();
        bell.ring();
        assert!(bell.drain());
        assert!(!bell.drain());
    }

    #[test]
    fn ringing_never_blocks_even_at_the_end_of_the_counter() {
        let bell = Bell::new().unwrap();
        rustix::io::write(&bell, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        bell.ring();
        assert!(bell.drain());
    }
}
