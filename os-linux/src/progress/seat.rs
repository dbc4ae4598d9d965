//! How the threads of a worker take part in the hand-over: eventfds, epoll sets, a timer and the lock.

use std::hint::black_box;
use std::sync::PoisonError;
use std::time::Duration;

use laneway_core::driver::{Step, Watch};
use laneway_core::mailbox::Words;
use laneway_core::time::Instant;
use laneway_core::wire::frame;

use super::{HandOver, Look, Progress, Ring};
use crate::live::{Guard, Inner, Live};
use crate::sys::clock;

/// How long a stop from above may wait behind another driver, or a callback (P-29).
pub(super) const PASS_ON: Duration = Duration::from_millis(5);

impl HandOver for Live {
    type Inner = Inner;
    type Guard<'a> = Guard<'a>;

    fn progress(inner: &mut Inner) -> &mut Progress {
        &mut inner.progress
    }

    fn is_busy(inner: &Inner) -> bool {
        inner.driver.is_busy()
    }

    fn awaits_answer(inner: &Inner) -> bool {
        inner.driver.awaits_answer()
    }

    fn deadline(inner: &Inner) -> Option<Instant> {
        inner.deadline
    }

    fn has_news(&self) -> bool {
        self.inbox.any()
    }

    fn round(&self, inner: &mut Inner, now: Instant, look: Look) -> Step {
        self.one_round(inner, now, look)
    }

    fn now(&self) -> Instant {
        clock::now()
    }

    fn awake(&self) {
        self.bell.awake();
    }

    fn announce(&self, who: Ring) {
        self.bell.announce(who);
        if let (Ring::Waiter, Some(outer)) = (who, &self.outer) {
            outer.announce_sleep();
        }
    }

    fn is_announced(&self, who: Ring) -> bool {
        self.bell.is(who)
    }

    fn rise(&self) {
        self.bell.awake();
        if let Some(outer) = &self.outer {
            outer.announce_awake();
        }
    }

    fn wake_sleeper(&self) {
        self.turn.notify_one();
    }

    fn wake_sleepers(&self) {
        self.turn.notify_all();
    }

    fn nudge(&self) {
        self.nudge.ring();
    }

    fn ring_background(&self) {
        self.control.ring();
    }

    fn arm_takeover(&self, after: Duration) {
        self.takeover.arm(after);
    }

    fn is_contended(&self) -> bool {
        Self::is_contended(self)
    }

    fn let_others_in<'a>(&'a self, inner: Guard<'a>) -> Guard<'a> {
        Self::let_others_in(self, inner)
    }

    fn spin<'a>(&'a self, mut inner: Guard<'a>) -> (Guard<'a>, Option<Duration>) {
        let mut watches = std::mem::take(&mut inner.watches);
        watches.clear();
        inner.driver.watches(&mut watches);
        let tasks = inner.driver.recent_task();
        let window = inner.wait.next_window(&watches, &self.words, tasks);
        drop(inner);
        let spun = window.spin(|| self.inbox.any() || watches.iter().any(|watch| self.has_changed(watch)));
        let mut inner = self.lock();
        inner.watches = watches;
        let nanos = inner.wait.nanos(spun.turns);
        self.board.spun(nanos);
        (inner, spun.ready.then(|| Duration::from_nanos(nanos)))
    }

    fn sleep<'a>(&'a self, mut inner: Guard<'a>, wake_at: Option<Instant>) -> Guard<'a> {
        let mut events = inner.events.take().unwrap_or_default();
        drop(inner);
        self.about_to_sleep();
        let timeout = wake_at.map(|at| at.since(clock::now()));
        // A wait set that cannot be waited on any more is looked at instead: the loop goes on, it only sleeps less.
        let _ = self.waiter_set.wait(&mut events, timeout);
        let mut inner = self.lock();
        inner.events = Some(events);
        inner.wait.woke(clock::now());
        inner
    }

    fn sleep_behind<'a>(&'a self, inner: Guard<'a>, wake_at: Option<Instant>) -> Guard<'a> {
        // Whoever drives may be a thread that the worker above does not ring.
        let pass_on = self.outer.as_ref().map(|_| clock::now().saturating_add(PASS_ON));
        let inner = match [pass_on, wake_at].into_iter().flatten().min().map(|at| at.since(clock::now())) {
            None => self.turn.wait(inner).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => self.turn.wait_timeout(inner, timeout).unwrap_or_else(PoisonError::into_inner).0,
        };
        if !inner.closing && self.is_asked_to_stop() {
            self.nudge.ring();
        }
        inner
    }
}

impl Live {
    /// Whether a watched word changed. What the next round compares with what was published (L-1) is read along: a CPU may take a
    /// line away from its writer to read it, and so it comes back while the child works, not when it has answered.
    #[inline]
    fn has_changed(&self, watch: &Watch) -> bool {
        let words = &self.words[watch.endpoint.index()];
        let changed = words.load_relaxed(watch.at) != watch.seen;
        let start = watch.at - watch.at % frame::FRAME_BYTES;
        for at in [frame::TRAILER, frame::LEASE] {
            black_box(words.read(start + at));
        }
        changed
    }
}
