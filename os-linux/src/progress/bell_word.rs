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

    /// Somebody is awake from here on. Stores only a change: children keep the line in their caches.
    pub(super) fn wake_up(word: &impl Word) {
        if !Self::Awake.is_in(word) {
            word.store(Self::Awake.raw());
        }
    }

    /// Announces that `self` is about to sleep. What the caller reads after this is at least as new as what any child had
    /// published when it looked at the word and did not ring.
    pub(super) fn announce(self, word: &impl Word) {
        word.store(self.raw());
        word.fence();
    }

    /// Whether the word says so. The caller published and fenced before, under the lock or as a child does.
    pub(super) fn is_in(self, word: &impl WordView) -> bool {
        word.load() == self.raw()
    }

    /// Whom a child must ring that has published something.
    pub(super) fn after_a_publication(word: &impl WordView) -> Self {
        word.fence();
        match word.load() {
            1 => Self::Waiter,
            2 => Self::Owner,
            _ => Self::Awake,
        }
    }
}

/// The word as a child sees it: relaxed loads, and the fence that orders them.
pub(super) trait WordView {
    fn load(&self) -> i32;
    fn fence(&self);
}

/// The word as the parent, who alone stores it, sees it.
pub(super) trait Word: WordView {
    fn store(&self, value: i32);
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

    /// See [`Ring::wake_up`].
    pub(crate) fn awake(&self) {
        Ring::wake_up(self);
    }

    /// See [`Ring::announce`].
    pub(crate) fn announce(&self, who: Ring) {
        who.announce(self);
    }

    /// See [`Ring::is_in`].
    pub(crate) fn is(&self, who: Ring) -> bool {
        who.is_in(self)
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

impl WordView for BellWord {
    fn load(&self) -> i32 {
        self.words.load_relaxed(AT)
    }

    fn fence(&self) {
        self.words.fence();
    }
}

impl Word for BellWord {
    fn store(&self, value: i32) {
        self.words.store_relaxed(AT, value);
    }
}

/// A child's side: the word of its parent, and the two bells that are its own.
pub(crate) struct ParentRing<'a> {
    pub(crate) word: ReadOnlyWords,
    pub(crate) waiter: &'a Bell,
    pub(crate) owner: &'a Bell,
}

impl WordView for ReadOnlyWords {
    fn load(&self) -> i32 {
        self.load_relaxed(AT)
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }
}

impl ParentBell for ParentRing<'_> {
    fn published(&mut self) {
        match Ring::after_a_publication(&self.word) {
            Ring::Awake => {}
            Ring::Waiter => self.waiter.ring(),
            Ring::Owner => self.owner.ring(),
        }
    }
}
