//! One round of a worker, and whoever hears of it.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use laneway_core::driver::{Step, Wake};
use laneway_core::engine::RunPhase;
use laneway_core::ids::{EndpointIndex, RunId};
use laneway_core::lane::Poison;
use laneway_core::time::Instant;

use super::{HandOver, Look, News, Right, Standing};
use crate::callable::Role;
use crate::live::{Guard, Inner, Live, Ringer};
use crate::sys::clock;

/// How long what is left of a dead or killed child may take to go (L-35).
const GRACE: Duration = Duration::from_secs(2);

const STUCK: &str = "the child, or something that it started, did not end after it was killed; what its tasks name is never \
                     used again";

/// Tells the background thread when a driver unwinds: a bug under the lock must not leave the right with nobody (L-26).
struct Unwinding<'a>(&'a Live);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.panicked.store(true, Ordering::Release);
            self.0.control.ring();
        }
    }
}

/// What a round found of something that it hardly ever finds.
#[inline]
fn all<T>(found: impl Iterator<Item = T>) -> Vec<T> {
    if found.size_hint() == (0, Some(0)) { Vec::new() } else { found.collect() }
}

impl Inner {
    /// A child ended or was to be killed: what is left of it at `until` is stuck.
    fn doom(&mut self, endpoint: EndpointIndex, until: Instant) {
        if !self.gone[endpoint.index()] && self.doomed.iter().all(|(doomed, _)| *doomed != endpoint) {
            self.doomed.push((endpoint, until));
        }
    }
}

impl Live {
    /// See [`HandOver::drive`].
    pub(crate) fn drive<'a, R>(
        &'a self,
        inner: Guard<'a>,
        deadline: Option<Instant>,
        done: impl FnMut(&mut Inner) -> Option<R>,
    ) -> (Guard<'a>, Option<R>) {
        let _watch = Unwinding(self);
        HandOver::drive(self, inner, deadline, done)
    }

    /// One round of the driver with everything around it: news first, whoever must hear of a change afterwards.
    pub(super) fn one_round(&self, inner: &mut Inner, now: Instant, look: Look) -> Step {
        let mut news = self.inbox.any() && self.take_news(inner, now);
        if !inner.closing && self.is_asked_to_stop() {
            self.shut(inner);
            news = true;
        }
        let wake = match look {
            Look::Passing | Look::Sleeping => Wake::Spare,
            Look::Last => Wake::All,
        };
        let Inner { driver, wait, .. } = &mut *inner;
        let mut ringer = Ringer { wakes: &self.wakes, board: &self.board, words: &self.words, wait, now };
        let mut step = driver.round(now, wake, &mut ringer);
        step.progressed |= news;
        // Answers are no signal of the engine; whoever asked may sleep behind the thread that took one in.
        let ended = inner.driver.controls_ended();
        news |= std::mem::replace(&mut inner.controls_ended, ended) != ended;
        inner.devices.take_answers(&mut inner.driver);
        for endpoint in all(inner.driver.take_poisoned()) {
            let reason = inner.driver.lane(endpoint).and_then(|lane| lane.poison());
            self.board.poisoned(endpoint, &reason.map(|reason| reason.to_string()).unwrap_or_default());
        }
        for endpoint in all(inner.driver.take_kills()) {
            let mortal = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).kill(endpoint);
            inner.doom(endpoint, if mortal { now.saturating_add(GRACE) } else { now });
        }
        if !inner.doomed.is_empty() {
            step.progressed |= self.give_up_on_the_stuck(inner, now);
            step.deadline = [step.deadline, inner.doomed.iter().map(|(_, at)| *at).min()].into_iter().flatten().min();
        }
        let before = std::mem::replace(&mut inner.deadline, step.deadline);
        if step.deadline.is_some_and(|at| before.is_none_or(|before| at < before)) {
            // Whoever sleeps does so for longer than that (the thread that runs this round does not, and is not hurt).
            self.hurry(inner);
        }
        self.spread(inner, news, Some(now));
        step
    }

    /// Takes in what the background thread left; whether that was anything.
    #[cold]
    fn take_news(&self, inner: &mut Inner, now: Instant) -> bool {
        let news = self.inbox.take();
        for item in &news {
            match *item {
                News::Exited(endpoint, cause) => {
                    inner.alive -= 1;
                    inner.doom(endpoint, now.saturating_add(GRACE));
                    inner.ends.push((endpoint, cause));
                    inner.driver.observer_mut().child_exited(endpoint, cause);
                    inner.driver.child_exited(endpoint, cause, now);
                }
                News::SubtreeGone(endpoint) => {
                    inner.gone[endpoint.index()] = true;
                    inner.driver.subtree_gone(endpoint);
                }
            }
        }
        !news.is_empty()
    }

    /// What runs ends, nothing new starts; the lanes stay open for what runs. Nested workers hear of it (P-29).
    #[cold]
    fn shut(&self, inner: &mut Inner) {
        inner.closing = true;
        inner.ends_before();
        inner.driver.engine_mut().stop();
        for (endpoint, scope) in (0..).map(EndpointIndex).zip(&self.scopes) {
            if scope.role == Role::Orchestration {
                inner.driver.stop_endpoint(endpoint);
            }
        }
    }

    /// Frames of a child that is dead, or was killed, and of which something is left too long, are never given back (L-35).
    fn give_up_on_the_stuck(&self, inner: &mut Inner, now: Instant) -> bool {
        let mut doomed = std::mem::take(&mut inner.doomed);
        let mut changed = false;
        doomed.retain(|&(endpoint, at)| {
            if inner.gone[endpoint.index()] {
                return false;
            }
            if now < at {
                return true;
            }
            inner.driver.stuck(endpoint, STUCK, now);
            changed = true;
            false
        });
        inner.doomed = doomed;
        changed
    }

    /// Declares every child stuck of which something is left; at the end of a close.
    pub(crate) fn give_up_on_all(&self, inner: &mut Inner) {
        let now = clock::now();
        let left: Vec<_> =
            (0..).map(EndpointIndex).zip(&*inner.gone).filter(|(_, gone)| !**gone).map(|(i, _)| i).collect();
        for endpoint in left {
            inner.driver.stuck(endpoint, STUCK, now);
        }
        self.round(inner, now, Look::Last);
    }

    /// After a driver panicked: what it left behind cannot be trusted, so every endpoint is given up, and the right comes back
    /// (L-26).
    pub(crate) fn recover(&self, inner: &mut Inner) {
        if self.panicked.swap(false, Ordering::AcqRel) {
            let now = clock::now();
            for endpoint in (0..self.words.len()).map(|i| EndpointIndex(i as u16)) {
                inner.driver.poison(endpoint, Poison::Driver, now);
            }
            inner.progress.right = Right::Background;
            inner.changes += 1;
            self.turn.notify_all();
        }
    }

    /// After a call on the engine outside a round: whoever waits for what it changed is woken.
    pub(crate) fn changed(&self, inner: &mut Inner) {
        let placeable = self.spread(inner, false, None);
        if placeable && inner.progress.right == Right::Background {
            // Its owner sleeps, and no child is going to ring for this (E-35).
            self.own_in_background(inner);
        }
    }

    /// Tells of what changed, in a round of that time if it was one; whether the engine has something to place.
    #[inline]
    fn spread(&self, inner: &mut Inner, news: bool, round: Option<Instant>) -> bool {
        let signals = inner.driver.engine_mut().take_signals();
        if !(news || signals.lease_free || signals.released || signals.task_ended || signals.run_changed) {
            return signals.work;
        }
        inner.changes += 1;
        inner.look_at_changes(news || signals.run_changed || signals.lease_free, round);
        self.tell_sleepers(inner);
        if !inner.dropped.is_empty() {
            self.free_dropped(inner);
        }
        inner.devices.send_due(&mut inner.driver);
        signals.work
    }

    /// What the background thread found out: shown at once, and left for the next round.
    pub(super) fn tell(&self, news: News) {
        if let News::Exited(endpoint, cause) = news {
            self.board.exited(endpoint, cause);
        }
        self.inbox.put(news);
    }

    /// See [`HandOver::submitted`].
    pub(crate) fn submitted(&self, inner: &mut Inner, run: RunId) {
        HandOver::submitted(self, inner, |inner| match inner.driver.engine().phase(run) {
            Some(RunPhase::Executing) if !inner.driver.is_busy() => Standing::Alone,
            Some(RunPhase::Executing) => Standing::Executing,
            _ => Standing::Queued,
        });
    }

    /// See [`HandOver::stir`].
    pub(crate) fn stir(&self, inner: &mut Inner) {
        HandOver::stir(self, inner);
    }

    /// See [`HandOver::hand_over`].
    pub(crate) fn hand_over(&self, inner: &mut Inner) {
        HandOver::hand_over(self, inner);
    }

    /// See [`HandOver::tell_sleepers`].
    pub(crate) fn tell_sleepers(&self, inner: &mut Inner) {
        HandOver::tell_sleepers(self, inner);
    }

    /// Forgets the buffers that were dropped while a task named them and that none names any more; the background thread gives
    /// their memory back, which may take a while.
    fn free_dropped(&self, inner: &mut Inner) {
        let Inner { driver, dropped, freed, .. } = inner;
        let before = freed.len();
        dropped.retain(|bytes| {
            let free = driver.engine_mut().remove_range(bytes.start).is_ok();
            freed.extend(free.then_some(bytes.start));
            !free
        });
        if freed.len() > before {
            self.control.ring();
        }
    }

    /// A buffer's last tensor is gone: frees it, now or when no task names it any more (T-47).
    pub(crate) fn free_buffer(&self, bytes: Range<u64>) {
        let mut inner = self.lock();
        if inner.driver.engine_mut().remove_range(bytes.start).is_err() {
            inner.dropped.push(bytes);
            return;
        }
        drop(inner);
        self.space.give_back(bytes.start);
    }
}
