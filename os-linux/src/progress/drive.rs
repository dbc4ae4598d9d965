//! The drive loop, and leaving it.

use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use laneway_core::driver::{Step, Watch};
use laneway_core::engine::RunPhase;
use laneway_core::ids::{EndpointIndex, RunId};
use laneway_core::lane::Poison;
use laneway_core::mailbox::Words;
use laneway_core::time::Instant;

use super::background::SILENCE;
use super::{News, Right, Ring};
use crate::callable::Role;
use crate::live::{Guard, Inner, Live};
use crate::sys::clock;

/// How long a stop from above may wait behind another driver, or a callback (P-29).
pub(super) const PASS_ON: Duration = Duration::from_millis(5);

/// How long what is left of a dead or killed child may take to go (L-35).
const GRACE: Duration = Duration::from_secs(2);

const STUCK: &str = "the child, or something that it started, did not end after it was killed; what its tasks name is never \
                     used again";

/// After so many rounds with news a driver lets sleepers in.
const LET_IN: u32 = 64;

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

/// While controls are under way, several threads may wait for answers behind one driver: each looks again by itself after this
/// time at the latest.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// When a sleeper must look again although nothing rang.
fn look_again(inner: &Inner, now: Instant) -> Option<Instant> {
    inner.driver.has_controls().then(|| now.saturating_add(LOOK_AGAIN))
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
    /// Drives the lanes, or sleeps while another thread does, until `done` returns something or the deadline passes
    /// (`None`). `done` is asked again after every change.
    pub(crate) fn drive<'a, R>(
        &'a self,
        mut inner: Guard<'a>,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut Inner) -> Option<R>,
    ) -> (Guard<'a>, Option<R>) {
        let _watch = Unwinding(self);
        let mut holding = false;
        let mut announced = false;
        let mut rounds = 0_u32;
        let result = loop {
            if let Some(result) = done(&mut inner) {
                break Some(result);
            }
            if !holding {
                if inner.right == Right::Waiter {
                    if deadline.is_some_and(|deadline| deadline <= clock::now()) {
                        break None;
                    }
                    // What this thread asked for, a control say, goes out although the driver may sleep.
                    if self.round(&mut inner, clock::now()).progressed {
                        continue;
                    }
                    let look = look_again(&inner, clock::now());
                    inner = self.sleep_behind(inner, [deadline, look].into_iter().flatten().min());
                    if !inner.closing && self.is_asked_to_stop() {
                        self.nudge.ring();
                    }
                    continue;
                }
                inner.right = Right::Waiter;
                self.bell.awake();
                holding = true;
            }
            let now = clock::now();
            let step = self.round(&mut inner, now);
            if step.progressed {
                if announced {
                    self.announce_awake();
                    announced = false;
                }
                rounds += 1;
                // Sleepers that were woken, or whose time is over, take the lock where nobody counts them.
                if self.is_contended() || (inner.sleepers > 0 && rounds.is_multiple_of(LET_IN)) {
                    inner = self.let_others_in(inner);
                }
                if deadline.is_some_and(|deadline| deadline <= now) {
                    break done(&mut inner);
                }
                continue;
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                break None;
            }
            if !announced {
                let stirred;
                (inner, stirred) = self.spin(inner);
                if !stirred {
                    // From here to the sleep the lock is held: whoever changes something later sees the announcement.
                    self.announce_sleep();
                    announced = true;
                }
                continue;
            }
            let wake_at = [deadline, step.deadline, look_again(&inner, now)].into_iter().flatten().min();
            inner = self.sleep(inner, wake_at);
            self.announce_awake();
            announced = false;
        };
        if announced {
            self.announce_awake();
        }
        if holding || inner.right == Right::Passed {
            self.leave(&mut inner);
        }
        (inner, result)
    }

    /// One round of the driver with everything around it: news first, whoever must hear of a change afterwards.
    pub(crate) fn round(&self, inner: &mut Inner, now: Instant) -> Step {
        let mut news = false;
        if self.inbox.any() {
            for item in self.inbox.take() {
                news = true;
                match item {
                    News::Exited(endpoint, cause) => {
                        inner.alive -= 1;
                        inner.doom(endpoint, now.saturating_add(GRACE));
                        inner.ends.push((endpoint, cause));
                        inner.driver.child_exited(endpoint, cause, now);
                    }
                    News::SubtreeGone(endpoint) => {
                        inner.gone[endpoint.index()] = true;
                        inner.driver.subtree_gone(endpoint);
                    }
                }
            }
        }
        if !inner.closing && self.is_asked_to_stop() {
            // What runs ends, nothing new starts; the lanes stay open for what runs. Nested workers hear of it (P-29).
            inner.closing = true;
            inner.driver.engine_mut().stop();
            for (endpoint, scope) in (0..).map(EndpointIndex).zip(&self.scopes) {
                if scope.role == Role::Orchestration {
                    inner.driver.stop_endpoint(endpoint);
                }
            }
            news = true;
        }
        let mut step = inner.driver.step(now, &mut &self.wakes);
        step.progressed |= news;
        // Answers are no signal of the engine; whoever asked may sleep behind the thread that took one in.
        let ended = inner.driver.controls_ended();
        news |= std::mem::replace(&mut inner.controls_ended, ended) != ended;
        inner.devices.take_answers(&mut inner.driver);
        let kills: Vec<_> = inner.driver.take_kills().collect();
        for endpoint in kills {
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
        self.spread(inner, news);
        step
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
        self.round(inner, now);
    }

    /// After a driver panicked: what it left behind cannot be trusted, so every endpoint is given up, and the right comes back
    /// (L-26).
    pub(crate) fn recover(&self, inner: &mut Inner) {
        if self.panicked.swap(false, Ordering::AcqRel) {
            let now = clock::now();
            for endpoint in (0..self.words.len()).map(|i| EndpointIndex(i as u16)) {
                inner.driver.poison(endpoint, Poison::Driver, now);
            }
            inner.right = Right::Background;
            inner.changes += 1;
            self.turn.notify_all();
        }
    }

    /// Wakes whoever sleeps for the worker, so that it looks at the new deadline.
    fn hurry(&self, inner: &Inner) {
        match inner.right {
            Right::Waiter if self.bell.is(Ring::Waiter) => self.nudge.ring(),
            Right::Waiter | Right::Passed => {}
            Right::Background | Right::Builder { .. } => self.control.ring(),
        }
    }

    /// After a call on the engine outside a round: whoever waits for what it changed is woken.
    pub(crate) fn changed(&self, inner: &mut Inner) {
        let placeable = self.spread(inner, false);
        if placeable && inner.right == Right::Background {
            // Its owner sleeps, and no child is going to ring for this (E-35).
            self.own_in_background(inner);
        }
    }

    /// Tells of what changed; whether the engine has something to place.
    fn spread(&self, inner: &mut Inner, news: bool) -> bool {
        let signals = inner.driver.engine_mut().take_signals();
        if !(news || signals.lease_free || signals.released || signals.task_ended || signals.run_changed) {
            return signals.work;
        }
        inner.changes += 1;
        self.tell_sleepers(inner);
        if !inner.dropped.is_empty() {
            self.free_dropped(inner);
        }
        inner.devices.send_due(&mut inner.driver);
        signals.work
    }

    /// After a submit: one bounded round under the lock that the submitter holds already. The callback of the executing
    /// run owns progress meanwhile; if it falls silent, the background thread takes over.
    pub(crate) fn submitted(&self, inner: &mut Inner, run: RunId) {
        match inner.right {
            Right::Background if inner.driver.engine().phase(run) == Some(RunPhase::Executing) => {
                self.bell.awake();
                // A task alone needs nobody until it has ended and something waits for that.
                let alone = inner.driver.engine().usage().unfinished == 1;
                inner.right = Right::Builder { rounds: if alone { 1 } else { 2 } };
                if !alone {
                    self.takeover.arm(SILENCE);
                }
            }
            // The run waits for an earlier one, and nothing of it can be placed.
            Right::Background => return,
            Right::Builder { rounds } => {
                if rounds == 1 {
                    self.takeover.arm(SILENCE);
                }
                inner.right = Right::Builder { rounds: rounds.wrapping_add(1).max(2) };
            }
            Right::Waiter | Right::Passed => {}
        }
        self.round(inner, clock::now());
    }

    /// Something of the graph is asked for in a callback that owns progress: it makes some.
    pub(crate) fn stir(&self, inner: &mut Inner) {
        if matches!(inner.right, Right::Builder { .. }) {
            self.round(inner, clock::now());
        }
    }

    /// A callback is over and nobody waits for its run here: whoever comes next owns progress.
    pub(crate) fn hand_over(&self) {
        let mut inner = self.lock();
        if matches!(inner.right, Right::Builder { .. }) {
            self.leave(&mut inner);
        }
    }

    /// Wakes whoever sleeps and may find its condition met now.
    pub(crate) fn tell_sleepers(&self, inner: &Inner) {
        if inner.sleepers > 0 {
            self.turn.notify_all();
        }
        if inner.right == Right::Waiter && self.bell.is(Ring::Waiter) {
            self.nudge.ring();
        }
    }

    /// Gives up the right: to a sleeping waiter if there is one, else to the background thread.
    fn leave(&self, inner: &mut Inner) {
        if inner.sleepers > 0 {
            inner.right = Right::Passed;
            self.turn.notify_one();
        } else {
            self.leave_to_background(inner);
        }
    }

    /// Makes the background thread the owner, without waking it unless something was missed.
    pub(crate) fn leave_to_background(&self, inner: &mut Inner) {
        inner.right = Right::Background;
        if inner.driver.is_busy() {
            self.own_in_background(inner);
        }
    }

    /// Announces the background thread as the owner, and looks once more.
    fn own_in_background(&self, inner: &mut Inner) {
        self.bell.announce(Ring::Owner);
        let step = self.round(inner, clock::now());
        if step.progressed || step.deadline.is_some() {
            self.control.ring();
        }
    }

    fn announce_sleep(&self) {
        self.bell.announce(Ring::Waiter);
        if let Some(outer) = &self.outer {
            outer.announce_sleep();
        }
    }

    fn announce_awake(&self) {
        self.bell.awake();
        if let Some(outer) = &self.outer {
            outer.announce_awake();
        }
    }

    /// Watches the busy lanes without the lock for one spin window; whether something stirred.
    fn spin<'a>(&'a self, mut inner: Guard<'a>) -> (Guard<'a>, bool) {
        let mut watches = std::mem::take(&mut inner.watches);
        watches.clear();
        inner.driver.watches(&mut watches);
        drop(inner);
        let stirred = self.window.until(|| self.inbox.any() || watches.iter().any(|watch| self.has_changed(watch)));
        let mut inner = self.lock();
        inner.watches = watches;
        (inner, stirred)
    }

    fn has_changed(&self, watch: &Watch) -> bool {
        self.words[watch.endpoint.index()].load_relaxed(watch.at) != watch.seen
    }

    /// Sleeps in the kernel until a bell rings or `wake_at`.
    fn sleep<'a>(&'a self, mut inner: Guard<'a>, wake_at: Option<Instant>) -> Guard<'a> {
        let mut events = inner.events.take().unwrap_or_default();
        drop(inner);
        let timeout = wake_at.map(|at| at.since(clock::now()));
        // A wait set that cannot be waited on any more is looked at instead: the loop goes on, it only sleeps less.
        let _ = self.waiter_set.wait(&mut events, timeout);
        let mut inner = self.lock();
        inner.events = Some(events);
        inner
    }

    /// Sleeps until the driving thread has news or passes the right on.
    fn sleep_behind<'a>(&'a self, mut inner: Guard<'a>, deadline: Option<Instant>) -> Guard<'a> {
        inner.sleepers += 1;
        // Whoever drives may be a thread that the worker above does not ring.
        let pass_on = self.outer.as_ref().map(|_| clock::now().saturating_add(PASS_ON));
        let deadline = [pass_on, deadline].into_iter().flatten().min();
        let mut inner = match deadline.map(|at| at.since(clock::now())) {
            None => self.turn.wait(inner).unwrap_or_else(PoisonError::into_inner),
            Some(timeout) => self.turn.wait_timeout(inner, timeout).unwrap_or_else(PoisonError::into_inner).0,
        };
        inner.sleepers -= 1;
        inner
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
