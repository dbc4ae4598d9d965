//! What a nested worker keeps of the worker above it.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use laneway_core::mailbox::{Words, extension};
use laneway_core::time::Instant;
use laneway_core::wire::{FrameState, frame as at};

use crate::memory::Lent;
use crate::sys::eventfd::Bell;
use crate::sys::words::MailboxWords;
use crate::trace::TraceLog;

/// What a nested worker is given at its start.
pub(crate) struct Above {
    /// Memory that the workers above share with this one and everything below it (P-11).
    pub(crate) lent: Vec<Lent>,
    /// When the start of the whole tree must be over (P-5).
    pub(crate) deadline: Instant,
    pub(crate) outer: Outer,
    /// The log of the tree, if there is one.
    pub(crate) log: Option<Arc<TraceLog>>,
}

/// The mailbox of a nested worker's own process, as far as it must be looked at while an orchestration runs (P-29).
pub(crate) struct Outer {
    words: MailboxWords,
    pub(crate) wake: Arc<Bell>,
    /// The thread that serves the mailbox; it alone announces that it sleeps.
    server: ThreadId,
}

impl Outer {
    pub(crate) fn new(words: MailboxWords, wake: Arc<Bell>) -> Self {
        Self { words, wake, server: thread::current().id() }
    }

    /// Whether the worker above asks this process to leave.
    pub(crate) fn asks_to_stop(&self) -> bool {
        self.words.load_relaxed(at::SHUTDOWN) != 0 || self.words.load_relaxed(at::STATE) == FrameState::Shutdown.raw()
    }

    /// Before a sleep inside a task: whoever publishes to this process after this rings its bell.
    pub(crate) fn announce_sleep(&self) {
        if thread::current().id() == self.server {
            extension::announce_sleep(&self.words);
        }
    }

    /// After that sleep.
    pub(crate) fn announce_awake(&self) {
        if thread::current().id() == self.server {
            extension::announce_awake(&self.words);
        }
    }
}
