//! A pipe between the processes of a case.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::{LIMIT, is_ready_within};

/// A pipe for what the processes of a case tell each other. It belongs to the test, so children inherit both ends.
pub(crate) struct Channel {
    read: OwnedFd,
    write: Option<OwnedFd>,
}

impl Channel {
    pub(crate) fn new() -> Self {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        Self { read, write: Some(write) }
    }

    /// Sends bytes; a few fit without a reader.
    pub(crate) fn send(&self, bytes: &[u8]) {
        assert_eq!(rustix::io::write(self.sender(), bytes), Ok(bytes.len()));
    }

    /// Waits for the next bytes; none once every sender is gone.
    pub(crate) fn receive(&self) -> Vec<u8> {
        assert!(is_ready_within(self.read.as_fd(), LIMIT / 2), "nobody sent anything");
        let mut bytes = vec![0; 4096];
        let count = rustix::io::read(&self.read, &mut bytes).expect("a readable pipe");
        bytes.truncate(count);
        bytes
    }

    /// As [`Channel::receive`], as text.
    pub(crate) fn receive_text(&self) -> String {
        String::from_utf8(self.receive()).expect("text")
    }

    /// Closes this process's copy of the sending end: [`Channel::wait_for_end`] then tells when all senders are gone.
    pub(crate) fn close_sender(&mut self) {
        self.write = None;
    }

    /// Waits until no process holds the sending end; says how long that took, and what was sent meanwhile. `None` if the
    /// time was over.
    pub(crate) fn wait_for_end(&self, limit: Duration) -> Option<(Duration, Vec<u8>)> {
        assert!(self.write.is_none(), "this process is a sender itself");
        let start = Instant::now();
        let mut sent = Vec::new();
        loop {
            if !is_ready_within(self.read.as_fd(), limit.saturating_sub(start.elapsed())) {
                return None;
            }
            let mut bytes = [0; 4096];
            match rustix::io::read(&self.read, &mut bytes).expect("a readable pipe") {
                0 => return Some((start.elapsed(), sent)),
                count => sent.extend_from_slice(&bytes[..count]),
            }
        }
    }

    /// The sending end, for calls that want a descriptor.
    pub(crate) fn sender(&self) -> BorrowedFd<'_> {
        self.write.as_ref().expect("the sending end is open").as_fd()
    }

    /// The receiving end, for calls that want a descriptor.
    pub(crate) fn receiver(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
