//! The hand-over as a protocol: what every thread that may drive does, with the ways to sleep and to wake left open.
//!
//! [`Live`](crate::live::Live) fills them with eventfds, epoll sets and a lock; the model beside this file fills them with
//! loom's, so that what is explored is what runs.

use std::ops::DerefMut;
use std::time::Duration;

use laneway_core::driver::Step;
use laneway_core::time::Instant;

use super::{Look, Progress, Right, Ring};

/// After so many rounds with news a driver lets sleepers in.
const LET_IN: u32 = 64;

/// How a thread inside [`HandOver::drive`] stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stance {
    /// Another thread drives.
    Guest,
    /// It drives; children ring nobody.
    Driving,
    /// It drives and has announced that it is about to sleep.
    Announced,
}

/// What a submitted task stands beside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// Its run waits for an earlier one: nothing of it can be placed.
    Queued,
    /// Its run executes, and no child has anything under way.
    Alone,
    /// Its run executes.
    Executing,
}

/// What the threads of one worker share, and how they sleep and wake each other.
pub(crate) trait HandOver {
    /// What the lock guards.
    type Inner;
    /// The lock, held.
    type Guard<'a>: DerefMut<Target = Self::Inner>
    where
        Self: 'a;

    /// The hand-over's part of what the lock guards.
    fn progress(inner: &mut Self::Inner) -> &mut Progress;

    /// Whether some lane has something under way, so that somebody must drive.
    fn is_busy(inner: &Self::Inner) -> bool;

    /// Whether some child has yet to answer, and nothing waits to be sent to one.
    fn awaits_answer(inner: &Self::Inner) -> bool;

    /// When the last round wanted the next one at the latest.
    fn deadline(inner: &Self::Inner) -> Option<Instant>;

    /// Whether something came from outside the mailboxes that a round must take in.
    fn has_news(&self) -> bool;

    /// One bounded round of the lanes, with everything around it. It calls [`HandOver::hurry`] if it wants the next one earlier than
    /// the one before did, and [`HandOver::tell_sleepers`] if something changed that a thread may wait for.
    fn round(&self, inner: &mut Self::Inner, now: Instant, look: Look) -> Step;

    fn now(&self) -> Instant;

    /// Stores [`Ring::Awake`] into the bell word.
    fn awake(&self);

    /// Stores `who` into the bell word and fences: what is looked at afterwards is at least as new as what any child had
    /// published when it looked at the word and did not ring.
    fn announce(&self, who: Ring);

    /// What the bell word says.
    fn is_announced(&self, who: Ring) -> bool;

    /// A driver that announced [`Ring::Waiter`] is awake again.
    fn rise(&self);

    /// Wakes one thread that sleeps behind another one.
    fn wake_sleeper(&self);

    /// Wakes all of them.
    fn wake_sleepers(&self);

    /// Wakes the driver that sleeps.
    fn nudge(&self);

    /// Wakes the background thread.
    fn ring_background(&self);

    /// Wakes the background thread after this time, which then finds `silence`.
    fn arm_takeover(&self, after: Duration);

    /// Whether another thread waits for the lock.
    fn is_contended(&self) -> bool;

    /// Gives the lock to whoever waits for it, and takes it again.
    fn let_others_in<'a>(&'a self, inner: Self::Guard<'a>) -> Self::Guard<'a>;

    /// Watches the busy lanes without the lock for a while; after how long something stirred, if it did.
    fn spin<'a>(&'a self, inner: Self::Guard<'a>) -> (Self::Guard<'a>, Option<Duration>);

    /// Sleeps, without the lock, until a child rings for [`Ring::Waiter`], [`HandOver::nudge`] or `wake_at`.
    fn sleep<'a>(&'a self, inner: Self::Guard<'a>, wake_at: Option<Instant>) -> Self::Guard<'a>;

    /// Sleeps, without the lock, until [`HandOver::wake_sleeper`], [`HandOver::wake_sleepers`] or `wake_at`. May wake for nothing.
    fn sleep_behind<'a>(&'a self, inner: Self::Guard<'a>, wake_at: Option<Instant>) -> Self::Guard<'a>;

    /// Drives the lanes, or sleeps while another thread does, until `done` returns something or the deadline passes
    /// (`None`). `done` is asked again after every change.
    fn drive<'a, R>(
        &'a self,
        mut inner: Self::Guard<'a>,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut Self::Inner) -> Option<R>,
    ) -> (Self::Guard<'a>, Option<R>) {
        let is_over = |now: Instant| deadline.is_some_and(|deadline| deadline <= now);
        let mut stance = Stance::Guest;
        let mut rounds = 0_u32;
        // The clock is read while a child works. When it has answered, that time and the length of the spin do: the reading would
        // stand between the answer and whoever waits for it. It is never late by more than one spin that was interrupted.
        let mut stirred_at = None;
        // Whether it is the child's turn: a round now would find nothing, and the answer would wait for its end.
        let mut awaits_child = false;
        let result = loop {
            // What stirred is taken in first: the question would stand before the answer.
            if stirred_at.is_none()
                && let Some(result) = done(&mut inner)
            {
                break Some(result);
            }
            if stance == Stance::Guest {
                if Self::progress(&mut inner).right == Right::Waiter {
                    if is_over(self.now()) {
                        break None;
                    }
                    // What this thread asked for, a control say, goes out although the driver may sleep.
                    if !self.round(&mut inner, self.now(), Look::Last).progressed {
                        Self::progress(&mut inner).sleepers += 1;
                        inner = self.sleep_behind(inner, deadline);
                        Self::progress(&mut inner).sleepers -= 1;
                    }
                    continue;
                }
                // The one task that was submitted went out a moment ago.
                awaits_child = Self::progress(&mut inner).right == (Right::Builder { watched: false })
                    && Self::awaits_answer(&inner);
                Self::progress(&mut inner).right = Right::Waiter;
                self.awake();
                stance = Stance::Driving;
            }
            let stirred = stirred_at.take();
            let now = stirred.unwrap_or_else(|| self.now());
            let step = if std::mem::take(&mut awaits_child) && !is_over(now) {
                Step { progressed: false, deadline: None, held: None }
            } else {
                let look = if stance == Stance::Announced { Look::Sleeping } else { Look::Passing };
                self.round(&mut inner, now, look)
            };
            if step.progressed {
                if stance == Stance::Announced {
                    self.rise();
                    stance = Stance::Driving;
                }
                rounds = rounds.wrapping_add(1);
                // Sleepers that were woken, or whose time is over, take the lock where nobody counts them.
                let guests = Self::progress(&mut inner).sleepers > 0 && rounds.is_multiple_of(LET_IN);
                if guests || self.is_contended() {
                    inner = self.let_others_in(inner);
                }
                if is_over(now) {
                    break done(&mut inner);
                }
                continue;
            }
            if stirred.is_some() {
                // Another thread took in what stirred, and it may be what this one waits for.
                continue;
            }
            if is_over(now) {
                break None;
            }
            if stance == Stance::Driving {
                let stirred;
                (inner, stirred) = self.spin(inner);
                stirred_at = stirred.map(|after| now.saturating_add(after));
                if stirred.is_none() {
                    // From here to the sleep the lock is held: whoever changes something later sees the announcement.
                    self.announce(Ring::Waiter);
                    stance = Stance::Announced;
                }
                continue;
            }
            let wake_at = [deadline, step.deadline, step.held].into_iter().flatten().min();
            inner = self.sleep(inner, wake_at);
            self.rise();
            stance = Stance::Driving;
        };
        if stance == Stance::Announced {
            self.rise();
        }
        if stance != Stance::Guest || Self::progress(&mut inner).right == Right::Passed {
            self.leave(&mut inner);
        }
        (inner, result)
    }

    /// Gives up the right: to a sleeping waiter if there is one, else to the background thread.
    fn leave(&self, inner: &mut Self::Inner) {
        let progress = Self::progress(inner);
        if progress.sleepers > 0 {
            progress.right = Right::Passed;
            self.wake_sleeper();
        } else {
            progress.right = Right::Background;
            if Self::is_busy(inner) {
                self.own_in_background(inner);
            }
        }
    }

    /// Announces the background thread as the owner, and looks once more; wakes it only for what that look did not settle.
    fn own_in_background(&self, inner: &mut Self::Inner) {
        self.announce(Ring::Owner);
        let step = self.round(inner, self.now(), Look::Last);
        if step.progressed || step.deadline.is_some() {
            self.ring_background();
        }
    }

    /// After a submit: one bounded round under the lock that the submitter holds. The callback of the executing run owns progress
    /// meanwhile; if it falls silent, the background thread takes over.
    fn submitted(&self, inner: &mut Self::Inner, standing: impl FnOnce(&Self::Inner) -> Standing) {
        let mut look = Look::Passing;
        let watched = match Self::progress(inner).right {
            Right::Background => match standing(inner) {
                Standing::Queued => return,
                Standing::Alone => Some(false),
                Standing::Executing => Some(true),
            },
            Right::Builder { .. } => Some(true),
            // The driver sleeps, and no child need ring it for what was submitted now.
            Right::Waiter if self.is_announced(Ring::Waiter) => {
                look = Look::Last;
                None
            }
            Right::Waiter | Right::Passed => None,
        };
        let now = self.now();
        if let Some(watched) = watched {
            let progress = Self::progress(inner);
            let before = std::mem::replace(&mut progress.right, Right::Builder { watched });
            progress.watch.stirred();
            if watched {
                self.watch_for_silence(inner, now);
            }
            if before == Right::Background {
                self.awake();
            }
        }
        self.round(inner, now, look);
    }

    /// Sees to it that the background thread looks a while from now.
    fn watch_for_silence(&self, inner: &mut Self::Inner, now: Instant) {
        if let Some(period) = Self::progress(inner).watch.arm(now) {
            self.arm_takeover(period);
        }
    }

    /// Something of the graph is asked for in a callback that owns progress: it makes some.
    fn stir(&self, inner: &mut Self::Inner) {
        if matches!(Self::progress(inner).right, Right::Builder { .. }) {
            self.round(inner, self.now(), Look::Passing);
        }
    }

    /// A callback is over and nobody waits for its run here: whoever comes next owns progress.
    fn hand_over(&self, inner: &mut Self::Inner) {
        if matches!(Self::progress(inner).right, Right::Builder { .. }) {
            self.leave(inner);
        }
    }

    /// What falls to the background thread when it was woken; when it wants to be woken at the latest. `silence`: the takeover
    /// timer fired.
    fn background<'a>(&'a self, mut inner: Self::Guard<'a>, silence: bool) -> Option<Instant> {
        if silence {
            let now = self.now();
            let progress = Self::progress(&mut inner);
            let silent = progress.watch.look(now);
            if progress.right == (Right::Builder { watched: true }) {
                if silent {
                    progress.right = Right::Background;
                } else {
                    self.watch_for_silence(&mut inner, now);
                }
            }
        }
        match Self::progress(&mut inner).right {
            Right::Background => {}
            // A callback that computes for long must not keep a death from whoever waits.
            Right::Builder { .. } => {
                let now = self.now();
                if self.has_news() || Self::deadline(&inner).is_some_and(|at| at <= now) {
                    self.round(&mut inner, now, Look::Last);
                }
                return Self::deadline(&inner);
            }
            // Whoever drives takes news in its next round; only a sleeper must be woken for them.
            Right::Waiter | Right::Passed => {
                if self.has_news() {
                    self.tell_sleepers(&mut inner);
                }
                return None;
            }
        }
        loop {
            let announced = self.is_announced(Ring::Owner);
            let step = self.round(&mut inner, self.now(), if announced { Look::Last } else { Look::Passing });
            if step.progressed {
                self.awake();
                if self.is_contended() {
                    inner = self.let_others_in(inner);
                    if Self::progress(&mut inner).right != Right::Background {
                        return None;
                    }
                }
                continue;
            }
            if announced || !Self::is_busy(&inner) {
                return step.deadline;
            }
            self.announce(Ring::Owner);
        }
    }

    /// Wakes whoever sleeps for the worker, so that it looks at a deadline that came closer.
    fn hurry(&self, inner: &mut Self::Inner) {
        match Self::progress(inner).right {
            Right::Waiter if self.is_announced(Ring::Waiter) => self.nudge(),
            Right::Waiter | Right::Passed => {}
            Right::Background | Right::Builder { .. } => self.ring_background(),
        }
    }

    /// Wakes whoever sleeps and may find its condition met now.
    fn tell_sleepers(&self, inner: &mut Self::Inner) {
        let progress = Self::progress(inner);
        if progress.sleepers > 0 {
            self.wake_sleepers();
        }
        if progress.right == Right::Waiter && self.is_announced(Ring::Waiter) {
            self.nudge();
        }
    }
}
