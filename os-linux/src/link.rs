//! What parent and child share, made before the child.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use crate::Error;
use crate::progress::BellWord;
use crate::sys::eventfd::Bell;
use crate::sys::pidfd::Pidfd;
use crate::sys::region::{Region, Sharing};
use crate::sys::words::{MailboxWords, MappedWords};

/// One child's mailbox and bells.
pub(crate) struct Link {
    pub(crate) mailbox: Region,
    /// Parent → child.
    pub(crate) wake: Arc<Bell>,
    /// Child → the thread that drives and sleeps.
    pub(crate) waiter: Bell,
    /// Child → the background thread.
    pub(crate) owner: Bell,
}

impl Link {
    /// Descriptors of one child in its parent once it runs: mailbox, three bells, lifeline, subtree pipe, pidfd; and during its
    /// fork the other ends of the two pipes. A thread child has the mailbox, three bells, both ends of its lifeline, the bell of
    /// its end and a wait set.
    pub(crate) const DESCRIPTORS: u64 = 9;

    pub(crate) fn new(name: &str) -> Result<Self, Error> {
        let bytes = laneway_core::wire::frame::REGION_BYTES;
        Ok(Self {
            mailbox: Region::new(&format!("laneway {name}"), bytes, Sharing::Shown)?,
            wake: Arc::new(Bell::new()?),
            waiter: Bell::new()?,
            owner: Bell::new()?,
        })
    }

    /// The mailbox's words.
    #[expect(unsafe_code, reason = "the one place where a mailbox's memory becomes words")]
    pub(crate) fn words(&self) -> MailboxWords {
        // SAFETY: whoever holds words of a mailbox — the driver and the child's serve machine — is dropped with or before
        // the link that owns the region; a child that is a thread has a share of the link for that.
        let words = unsafe { MappedWords::new(&self.mailbox) };
        words.of_mailbox().expect("the region was made as long as a mailbox")
    }

    /// Descriptors that a child process keeps.
    pub(crate) fn child_descriptors(&self, parent: Option<&Pidfd>) -> Vec<RawFd> {
        let bells = [&*self.wake, &self.waiter, &self.owner].map(AsRawFd::as_raw_fd);
        bells.into_iter().chain(parent.map(AsRawFd::as_raw_fd)).collect()
    }

    /// Mappings that a child process keeps.
    pub(crate) fn child_mappings(&self, bell: &BellWord) -> [usize; 2] {
        [self.mailbox.start(), bell.start()]
    }
}
