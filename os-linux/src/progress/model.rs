//! The hand-over under loom: every order in which the threads of a worker and a child can meet, within the bounds below.
//!
//! The protocol is that of production, [`HandOver`]; modelled are the lock, the two ways to sleep, the bell word, and one mailbox
//! word. A child serves a chain of two tasks: the second is sent by whoever takes in the end of the first, and only in a round
//! that says it is the last before a sleep, so a gap, which is work open with everybody asleep and nobody about to be rung, is a
//! deadlock, which loom reports. A timer that is armed may fire at any moment. Explored is every order with up to
//! [`PREEMPTIONS`] preemptions, or one less with four threads. Deaths, deadlines and the outer bell of a nested worker are not modelled.

use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering, fence};
use loom::sync::{Condvar, Mutex, MutexGuard};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::driver::Step;
use laneway_core::time::Instant;

use super::bell_word::{Word, WordView};
use super::{HandOver, Look, Progress, Ring, Standing};

const TASKS: usize = 2;

/// Without a bound there are too many orders for every change; a gap of the kinds that were found needed one or two.
const PREEMPTIONS: usize = 3;

const IDLE: i32 = 0;
const READY: i32 = 1;
const DONE: i32 = 2;

/// The bell word. Without its fences the hand-shake must be found broken.
struct Bells {
    word: AtomicI32,
    fences: bool,
}

impl WordView for Bells {
    fn load(&self) -> i32 {
        self.word.load(Ordering::Relaxed)
    }

    fn fence(&self) {
        if self.fences {
            fence(Ordering::SeqCst);
        }
    }
}

impl Word for Bells {
    fn store(&self, value: i32) {
        self.word.store(value, Ordering::Relaxed);
    }
}

/// A set of edge-triggered bells: rung before a sleep, it ends the sleep at once.
struct WaitSet {
    rung: Mutex<bool>,
    turn: Condvar,
}

impl WaitSet {
    fn new() -> Self {
        Self { rung: Mutex::new(false), turn: Condvar::new() }
    }

    fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.turn.notify_one();
    }

    fn sleep(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.turn.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// What the lock guards.
struct Inner {
    progress: Progress,
    /// Tasks that can be sent, sent, and known to have ended.
    submitted: usize,
    sent: usize,
    ended: usize,
}

struct World {
    lock: Mutex<Inner>,
    /// The takeover timer.
    armed: AtomicBool,
    bells: Bells,
    mailbox: AtomicI32,
    /// Where the driver sleeps, the background thread, and the child.
    waiter: WaitSet,
    owner: WaitSet,
    child: WaitSet,
    turn: Condvar,
    /// Threads inside the driver's spin or sleep: never two.
    inside: AtomicUsize,
}

impl World {
    fn new(submitted: usize, fences: bool) -> Self {
        let progress = Progress::new();
        Self {
            lock: Mutex::new(Inner { progress, submitted, sent: 0, ended: 0 }),
            armed: AtomicBool::new(false),
            bells: Bells { word: AtomicI32::new(0), fences },
            mailbox: AtomicI32::new(IDLE),
            waiter: WaitSet::new(),
            owner: WaitSet::new(),
            child: WaitSet::new(),
            turn: Condvar::new(),
            inside: AtomicUsize::new(0),
        }
    }

    fn alone_inside<R>(&self, wait: impl FnOnce() -> R) -> R {
        assert_eq!(self.inside.fetch_add(1, Ordering::Relaxed), 0, "two threads drive");
        let result = wait();
        self.inside.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// The child: serves what it is sent, and rings whom the bell word names.
    fn serve(&self) {
        for _ in 0..TASKS {
            self.child.sleep();
            assert_eq!(self.mailbox.load(Ordering::Acquire), READY);
            self.mailbox.store(DONE, Ordering::Release);
            match Ring::after_a_publication(&self.bells) {
                Ring::Awake => {}
                Ring::Waiter => self.waiter.ring(),
                Ring::Owner => self.owner.ring(),
            }
        }
    }

    /// A thread that waits until `tasks` have ended.
    fn wait_for(&self, tasks: usize) {
        let inner = self.lock.lock().unwrap();
        let (_, ended) = self.drive(inner, None, |inner| (inner.ended >= tasks).then_some(()));
        assert!(ended.is_some());
    }

    /// The background thread, until every task has ended.
    fn run_in_background(&self) {
        while self.lock.lock().unwrap().ended < TASKS {
            self.owner.sleep();
            let silence = self.armed.swap(false, Ordering::Relaxed);
            self.background(self.lock.lock().unwrap(), silence);
        }
    }

    /// Ends the background thread if it has nothing to do any more. It is not rung otherwise: then it must be awake, or about to
    /// be rung by somebody else.
    fn settle(&self) {
        if self.lock.lock().unwrap().ended == TASKS {
            self.owner.ring();
        }
    }
}

impl HandOver for World {
    type Inner = Inner;
    type Guard<'a> = MutexGuard<'a, Inner>;

    fn progress(inner: &mut Inner) -> &mut Progress {
        &mut inner.progress
    }

    fn is_busy(inner: &Inner) -> bool {
        inner.submitted > inner.ended
    }

    fn awaits_answer(inner: &Inner) -> bool {
        inner.sent > inner.ended
    }

    fn deadline(_: &Inner) -> Option<Instant> {
        None
    }

    fn has_news(&self) -> bool {
        false
    }

    fn round(&self, inner: &mut Inner, _: Instant, look: Look) -> Step {
        let mut progressed = false;
        if inner.sent > inner.ended && self.mailbox.load(Ordering::Acquire) == DONE {
            inner.ended += 1;
            self.mailbox.store(IDLE, Ordering::Relaxed);
            progressed = true;
        }
        let ended = progressed;
        let first = inner.sent == 0;
        if (first || look != Look::Passing) && inner.sent == inner.ended && inner.sent < inner.submitted {
            inner.sent += 1;
            self.mailbox.store(READY, Ordering::Release);
            self.child.ring();
            progressed = true;
        }
        if ended {
            self.tell_sleepers(inner);
        }
        Step { progressed, deadline: None, held: None }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(1)
    }

    fn awake(&self) {
        Ring::wake_up(&self.bells);
    }

    fn announce(&self, who: Ring) {
        who.announce(&self.bells);
    }

    fn is_announced(&self, who: Ring) -> bool {
        who.is_in(&self.bells)
    }

    fn rise(&self) {
        self.awake();
    }

    fn wake_sleeper(&self) {
        self.turn.notify_one();
    }

    fn wake_sleepers(&self) {
        self.turn.notify_all();
    }

    fn nudge(&self) {
        self.waiter.ring();
    }

    fn ring_background(&self) {
        self.owner.ring();
    }

    fn arm_takeover(&self, _: Duration) {
        self.armed.store(true, Ordering::Relaxed);
        self.owner.ring();
    }

    fn is_contended(&self) -> bool {
        false
    }

    fn let_others_in<'a>(&'a self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        drop(inner);
        self.lock.lock().unwrap()
    }

    fn spin<'a>(&'a self, inner: MutexGuard<'a, Inner>) -> (MutexGuard<'a, Inner>, Option<Duration>) {
        drop(inner);
        // A window of no length.
        let stirred = self.alone_inside(|| self.mailbox.load(Ordering::Relaxed) == DONE);
        (self.lock.lock().unwrap(), stirred.then_some(Duration::ZERO))
    }

    fn sleep<'a>(&'a self, inner: MutexGuard<'a, Inner>, _: Option<Instant>) -> MutexGuard<'a, Inner> {
        drop(inner);
        self.alone_inside(|| self.waiter.sleep());
        self.lock.lock().unwrap()
    }

    fn sleep_behind<'a>(&'a self, inner: MutexGuard<'a, Inner>, _: Option<Instant>) -> MutexGuard<'a, Inner> {
        self.turn.wait(inner).unwrap()
    }
}

type Part = fn(&World);

/// Explores every order in which these parts and a child can meet.
fn model(name: &str, submitted: usize, fences: bool, background: bool, parts: &'static [Part]) {
    let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let mut builder = loom::model::Builder::new();
    // With four threads beside the one that waits for them, one less: the number of orders explodes.
    let crowded = usize::from(parts.len() + usize::from(background) > 2);
    builder.preemption_bound = Some(PREEMPTIONS - crowded);
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // Not loom's: that one cannot be dropped while a deadlock unwinds.
        let world = Arc::new(World::new(submitted, fences));
        let spawn = |part: Part| {
            let world = Arc::clone(&world);
            thread::spawn(move || part(&world))
        };
        let behind = background.then(|| spawn(World::run_in_background));
        let parts: Vec<_> = parts.iter().map(|part| spawn(*part)).chain([spawn(World::serve)]).collect();
        parts.into_iter().for_each(|part| part.join().unwrap());
        world.settle();
        behind.into_iter().for_each(|part| part.join().unwrap());
        let inner = world.lock.lock().unwrap();
        assert_eq!((inner.ended, inner.progress.sleepers), (TASKS, 0));
    });
    println!("{name}: {} executions", count.load(std::sync::atomic::Ordering::Relaxed));
}

fn wait_for_one(world: &World) {
    world.wait_for(1);
}

fn wait_for_both(world: &World) {
    world.wait_for(2);
}

/// A callback that submits two tasks, one after the other.
fn build(world: &World) {
    for standing in [Standing::Alone, Standing::Executing] {
        let mut inner = world.lock.lock().unwrap();
        inner.submitted += 1;
        world.submitted(&mut inner, |_| standing);
    }
}

fn build_and_return(world: &World) {
    build(world);
    world.hand_over(&mut world.lock.lock().unwrap());
}

fn build_and_wait(world: &World) {
    build(world);
    world.wait_for(2);
}

/// Something became placeable while nobody waits, and somebody waits a moment later.
fn start_then_wait(world: &World) {
    world.own_in_background(&mut world.lock.lock().unwrap());
    world.wait_for(2);
}

/// Architecture, progress: the second task is sent, and its end taken in, by nobody but the background thread.
#[test]
fn a_waiter_that_leaves_with_work_open_hands_over_to_the_background_thread() {
    model("waiter to background", TASKS, true, true, &[wait_for_one]);
}

#[test]
fn a_waiter_that_leaves_hands_over_to_a_waiter_that_sleeps() {
    model("waiter to waiter", TASKS, true, false, &[wait_for_one, wait_for_both]);
}

#[test]
fn the_background_thread_hands_over_to_a_waiter() {
    model("background to waiter", TASKS, true, true, &[start_then_wait]);
}

#[test]
fn a_callback_that_waits_drives_by_itself() {
    model("builder to itself", 0, true, false, &[build_and_wait]);
}

#[test]
fn a_callback_hands_over_to_a_waiter() {
    model("builder to waiter", 0, true, false, &[wait_for_both, build_and_return]);
}

#[test]
fn a_callback_that_falls_silent_is_taken_over_by_the_background_thread() {
    model("builder to background", 0, true, true, &[build]);
}

#[test]
fn the_last_of_two_waiters_hands_over_to_the_background_thread() {
    model("last waiter to background", TASKS, true, true, &[wait_for_one, wait_for_one]);
}

/// The check itself: an announcement that is not ordered before the last look is found.
#[test]
#[should_panic(expected = "deadlock")]
fn a_hand_over_without_its_fences_would_be_found() {
    model("no fences", TASKS, false, false, &[wait_for_both]);
}
