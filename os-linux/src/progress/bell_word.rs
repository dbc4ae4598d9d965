//! One word that says who must be rung when a child has published something.
//!
//! It lies in a page that children can only read. The parent stores it, a child that published fences and looks at it;
//! a sleeper stores it, fences, and looks at the mailboxes once more before it sleeps. So either the child sees the
//! announcement or the sleeper sees the publication.

use std::sync::atomic::{Ordering, fence};

use laneway_core::mailbox::Words;
use laneway_core::serve::ParentBell;

use crate::Error;
use crate::sys::eventfd::Bell;
use crate::sys::page::{ReadOnlyPage, ReadOnlyWords};
use crate::sys::words::MappedWords;

/// Offset of the word in its page.
const AT: usize = 0;

/// Who must be rung.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ring {
    /// Nobody: a driver is inside and looks before it sleeps.
    Awake,
    /// The thread that drives and sleeps.
    Waiter,
    /// The background thread.
    Owner,
}

impl Ring {
    const fn raw(self) -> i32 {
        match self {
            Self::Awake => 0,
            Self::Waiter => 1,
            Self::Owner => 2,
        }
    }
}

/// The parent's side.
pub(crate) struct BellWord {
    page: ReadOnlyPage,
    words: MappedWords,
}

impl BellWord {
    #[expect(unsafe_code, reason = "the page's memory becomes words here")]
    pub(crate) fn new() -> Result<Self, Error> {
        let page = ReadOnlyPage::new("laneway bell")?;
        // SAFETY: `page` lives as long as `words`, and only this process, which made the page, has this value.
        let words = unsafe { page.writer() };
        Ok(Self { page, words })
    }

    /// Somebody is awake from here on. Stores only a change: children keep the line in their caches.
    pub(crate) fn awake(&self) {
        if !self.is(Ring::Awake) {
            self.words.store_relaxed(AT, Ring::Awake.raw());
        }
    }

    /// Announces that `who` is about to sleep. What the caller reads after this is at least as new as what any child had
    /// published when it looked at the word and did not ring.
    pub(crate) fn announce(&self, who: Ring) {
        self.words.store_relaxed(AT, who.raw());
        self.words.fence();
    }

    /// Whether `who` is announced. The caller published and fenced before, under the lock or as a child does.
    pub(crate) fn is(&self, who: Ring) -> bool {
        self.words.load_relaxed(AT) == who.raw()
    }

    /// The page's address in children, for the list of what a child keeps.
    pub(crate) fn start(&self) -> usize {
        self.page.start()
    }

    /// What a child reads.
    #[expect(unsafe_code, reason = "as in `new`, for the other side")]
    pub(crate) fn reader(&self) -> ReadOnlyWords {
        // SAFETY: a child keeps this page for life; it inherits `self` and never drops it.
        unsafe { self.page.reader() }
    }
}

/// A child's side: the word of its parent, and the two bells that are its own.
pub(crate) struct ParentRing<'a> {
    pub(crate) word: ReadOnlyWords,
    pub(crate) waiter: &'a Bell,
    pub(crate) owner: &'a Bell,
}

impl ParentBell for ParentRing<'_> {
    fn published(&mut self) {
        fence(Ordering::SeqCst);
        let who = self.word.load_relaxed(AT);
        if who == Ring::Waiter.raw() {
            self.waiter.ring();
        } else if who == Ring::Owner.raw() {
            self.owner.ring();
        }
    }
}
