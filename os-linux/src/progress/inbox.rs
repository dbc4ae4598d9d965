//! What the background thread found out and the next round must hear of: deaths.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use laneway_core::ids::EndpointIndex;
use laneway_core::lane::ExitCause;

/// Something the kernel told about a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum News {
    /// The process ended and was reaped.
    Exited(EndpointIndex, ExitCause),
    /// The process and everything it started are gone.
    SubtreeGone(EndpointIndex),
}

/// A queue that costs its reader one load while it is empty.
#[derive(Default)]
pub(crate) struct Inbox {
    any: AtomicBool,
    news: Mutex<Vec<News>>,
}

impl Inbox {
    /// Adds news. The caller fences and looks at the bell word afterwards.
    pub(crate) fn put(&self, news: News) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(news);
        self.any.store(true, Ordering::SeqCst);
    }

    /// Whether there is something to take.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Everything put so far, in order.
    pub(crate) fn take(&self) -> Vec<News> {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut news)
    }
}
