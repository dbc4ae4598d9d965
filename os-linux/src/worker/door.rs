//! The way to the running worker that takes no lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::live::Live;

/// The worker that runs, while its state is [`State::Ready`](super::State::Ready).
#[derive(Default)]
pub(super) struct Door {
    live: OnceLock<Weak<Live>>,
    open: AtomicBool,
}

impl Door {
    /// `live` takes runs from here on. After a close that timed out it is the same one again.
    pub(super) fn open(&self, live: &Arc<Live>) {
        self.live.get_or_init(|| Arc::downgrade(live));
        self.open.store(true, Ordering::Release);
    }

    /// Whoever comes from here on asks the state, which says why it is refused.
    pub(super) fn shut(&self) {
        self.open.store(false, Ordering::Release);
    }

    #[inline]
    pub(super) fn enter(&self) -> Option<Arc<Live>> {
        if self.open.load(Ordering::Acquire) { self.live.get()?.upgrade() } else { None }
    }
}
