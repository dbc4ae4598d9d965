//! Hostile children against the parent half, hostile parents against the child half.

use std::time::Duration;

use laneway_core::driver::{ExitCause, Frames};
use laneway_core::ids::{Generation, PipelineSlot, RunId};
use laneway_core::lane::{EXIT_DEVICE, EXIT_PROTOCOL, Job, Lane};
use laneway_core::mailbox::{Frame, LongText, Words, extension};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::{CallConfig, FrameState, frame};
use laneway_linux::sys::clock;
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::words::MappedWords;

use crate::child::{Device, serve};
use crate::dice::Dice;
use crate::kind::{Kind, digest};
use crate::ledger::Ledger;
use crate::scribbler::{LATE_WRITES, Scribbler, WRITES};
use crate::seat::{Footprint, HANGS, Seat, shared_page, sleep, spec_of};
use crate::wire::{Wire, scratch};

/// How many writes each attack makes at least.
const MUTATIONS: u64 = 3_000;

/// How many sessions each attack has at least; each is a process of its own.
const SESSIONS: u64 = 200;

const KINDS: [Kind; 4] = [Kind::Concurrent, Kind::Exclusive, Kind::Single, Kind::Sub];

/// After this a poisoned child is killed (L-35).
const GRACE: Duration = Duration::from_millis(20);

fn soon() -> Instant {
    clock::now().saturating_add(Duration::from_millis(1))
}

/// A parent of one hostile child.
struct Parent {
    seat: Seat,
    bell: Bell,
    lane: Lane<u32, u32>,
    ledger: Ledger,
    text: LongText,
}

impl Parent {
    /// Everything that there is to see now.
    fn look(&mut self) {
        let now = clock::now();
        let (exited, gone) = self.seat.news();
        if let Some(cause) = exited {
            self.lane.child_exited(cause, now);
        }
        if gone {
            self.lane.subtree_gone();
        }
        for polls in 0.. {
            assert!(polls < 32, "seed {}: a parent that is kept busy by its child", self.ledger.seed);
            let Some(event) = self.lane.poll(&self.seat.words, now, &mut self.text) else { break };
            assert!(self.text.as_str().len() <= 8_192);
            self.ledger.take(event);
        }
        if self.lane.wants_shutdown() {
            self.lane.request_stop(&self.seat.words);
            if self.lane.take_kill(now) {
                self.seat.kill();
            }
        }
        if self.lane.take_published() && extension::take_sleeper(&self.seat.words) {
            self.seat.bell.ring();
        }
    }

    fn act(&mut self, dice: &Dice, key: &mut u32) {
        let (words, now) = (self.seat.words, clock::now());
        match dice.roll(8) {
            0..=4 => {
                let run = RunId::new(1 + dice.roll(2) as u64).expect("not 0");
                let slot = PipelineSlot::ALL[dice.roll(2)];
                let digest = digest(dice.roll(4) as u8);
                let job = Job {
                    key: *key + 1,
                    run,
                    slot,
                    generation: Generation::FIRST,
                    digest: &digest,
                    config: &CallConfig::ZERO,
                    blob: &[0; 8],
                    limit: None,
                    prepare_only: dice.roll(2) == 0,
                };
                if self.lane.submit(&words, &job, now).is_ok() {
                    *key += 1;
                    self.ledger.open.insert(*key);
                }
            }
            // Refusals are fine; a panic, a hang, or a dispatch that ends twice is not.
            5 => drop(self.lane.activate(&words, RunId::new(1 + dice.roll(2) as u64).expect("not 0"), now)),
            6 => drop(self.lane.withdraw(&words, *key, now)),
            _ => {
                let request = ControlRequest::Malloc { bytes: 1 };
                self.ledger.control |= self.lane.control(&words, 1, &request, None, now).is_ok();
            }
        }
    }

    fn session(&mut self, dice: &Dice, key: &mut u32) {
        for _ in 0..60 {
            self.act(dice, key);
            self.look();
            if self.lane.poison().is_some() {
                break;
            }
            if dice.roll(4) > 0 {
                sleep(&self.bell, std::iter::once(&self.seat), soon());
            }
        }
        self.lane.stop();
        // A child that does not leave although it is asked to, again and again, is killed; a poisoned one by the lane's word.
        let (patience, limit) = (clock::now().saturating_add(GRACE), clock::now().saturating_add(HANGS));
        while !self.seat.gone {
            self.look();
            if clock::now() > patience && self.lane.poison().is_none() {
                self.seat.kill();
            }
            assert!(clock::now() < limit, "seed {}: a child that cannot be ended", self.ledger.seed);
            sleep(&self.bell, std::iter::once(&self.seat), soon());
        }
        self.look();
    }
}

/// L-1, L-3, L-26, L-27, L-35: every dispatch ends once, in a normal completion or with a poisoned endpoint.
pub(crate) fn a_hostile_child_process_cannot_confuse_its_parent() {
    let (_region, page) = shared_page();
    let clean = Footprint::now();
    let (mut key, mut sessions, mut killed) = (0, 0, 0_u64);
    let mut ledger = Ledger::default();
    while sessions < SESSIONS || page.read(WRITES) < MUTATIONS {
        sessions += 1;
        ledger.seed = sessions;
        let kind = KINDS[sessions as usize % 4];
        let bell = Bell::new().expect("a bell");
        let seat = Seat::fork(kind, &bell, |words, own, lifeline| {
            let dice = Dice::of_seed(2 * sessions);
            let restless = [4, 20, 60, 200][dice.roll(4)];
            let device = Device::new(kind, Wire::new(words, page, u64::MAX));
            let scribbler = Scribbler { words, page, dice, counter: WRITES, restless };
            for _ in 0..scribbler.dice.roll(3) {
                scribbler.scribble();
            }
            let obstinate = scribbler.dice.roll(3) == 0;
            let attacker = Scribbler {
                words,
                page,
                dice: Dice::of_seed(2 * sessions + 1_000_000),
                counter: LATE_WRITES,
                restless,
            };
            let status = serve(scribbler, device, own, &bell, lifeline);
            // Asked to leave, it writes on until it is killed.
            while obstinate && !lifeline.is_cut() {
                attacker.scribble();
            }
            status
        });
        // It may never be ready, or be gone at once: a parent that takes it for ready meets the same noise.
        sleep(&bell, std::iter::once(&seat), clock::now().saturating_add(Duration::from_millis(100)));
        seat.words.store(frame::STATE, FrameState::Idle.raw());
        let lane = Lane::new(spec_of(0, &seat, GRACE), &seat.words);
        let mut parent = Parent { seat, bell, lane, ledger, text: LongText::new() };
        parent.session(&Dice::of_seed(2 * sessions + 1), &mut key);
        assert!(parent.lane.is_quiet() && parent.lane.in_flight() == 0, "seed {sessions}");
        killed += u64::from(matches!(parent.seat.exit, Some(ExitCause::Signalled { signal: 9, .. })));
        ledger = parent.ledger;
        ledger.close();
    }
    assert_eq!(Footprint::now(), clean, "something is left");
    println!(
        "seeds 1 to {sessions}: {} writes and {} more by children that do not leave; {} dispatches ended, {} of them well, \
         {} endpoints poisoned, {killed} children killed",
        page.read(WRITES),
        page.read(LATE_WRITES),
        ledger.ended,
        ledger.succeeded,
        ledger.poisoned
    );
    assert!(ledger.succeeded > 20 && ledger.poisoned > 20 && killed > 20, "the attack must reach both ends");
}

/// A frame as an honest parent publishes it, or nearly.
fn publish_something(words: MappedWords, dice: &Dice, frames: Frames) {
    let slot = if frames == Frames::One { PipelineSlot::Zero } else { PipelineSlot::ALL[dice.roll(2)] };
    let frame_of = Frame::task(slot);
    let fresh = [FrameState::TaskReady, FrameState::PrepareReady];
    let next = match FrameState::from_raw(words.load(frame_of.at(frame::STATE))) {
        Some(FrameState::Idle | FrameState::TaskDone | FrameState::TaskFailed) if frames == Frames::One => fresh[0],
        Some(FrameState::Idle | FrameState::TaskDone | FrameState::TaskFailed) => fresh[dice.roll(2)],
        Some(FrameState::FrameStaged) => FrameState::Activate,
        _ => return,
    };
    let index = slot.index() as u64;
    if next != FrameState::Activate {
        let dispatch = 1 + dice.roll(1 << 20) as u64;
        for (field, value) in [(0, 2), (8, 1), (16, index), (24, 1), (32, dispatch)] {
            words.write(frame_of.at(frame::TRAILER + field), value);
        }
        for (field, value) in [(frame::LEASE, index), (frame::LEASE + 8, 1), (frame::ARGS, 0), (frame::CONFIG, 0)] {
            words.write(frame_of.at(field), value);
        }
        words.write(frame_of.at(frame::DIGEST), dice.roll(4) as u64);
    } else if dice.roll(4) == 0 {
        words.write(frame_of.at(frame::TRAILER + 32), 0);
    }
    words.store(frame_of.at(frame::STATE), next.raw());
}

/// L-1, L-5, L-31, L-33: a child serves, or leaves and says why; its device is never misused and never left open (it panics
/// then, and the exit status would tell).
pub(crate) fn a_hostile_parent_process_cannot_break_its_child() {
    let (_region, page) = shared_page();
    let clean = Footprint::now();
    let (mut sessions, mut orderly, mut broken) = (0, 0_u64, 0_u64);
    let mut honest = 0_u64;
    while sessions < SESSIONS || page.read(WRITES) < MUTATIONS {
        sessions += 1;
        let kind = KINDS[sessions as usize % 4];
        let bell = Bell::new().expect("a bell");
        let mut seat = Seat::fork(kind, &bell, |words, own, lifeline| {
            serve(words, Device::new(kind, Wire::new(words, page, u64::MAX)), own, &bell, lifeline)
        });
        let dice = Dice::of_seed(sessions);
        // Some attack while it starts.
        if dice.roll(4) > 0 {
            sleep(&bell, std::iter::once(&seat), clock::now().saturating_add(HANGS));
            seat.words.store(frame::STATE, FrameState::Idle.raw());
        }
        let restless = [2, 4, 12][dice.roll(3)];
        let attacker =
            Scribbler { words: seat.words, page, dice: Dice::of_seed(sessions + 1_000_000), counter: WRITES, restless };
        for _ in 0..120 {
            if dice.roll(restless) == 0 {
                attacker.scribble();
            } else {
                honest += 1;
                publish_something(seat.words, &dice, kind.frames());
            }
            if dice.roll(2) == 0 {
                seat.bell.ring();
            }
            if dice.roll(3) == 0 {
                sleep(&bell, std::iter::once(&seat), soon());
            }
            seat.look();
            if seat.gone {
                break;
            }
        }
        let limit = clock::now().saturating_add(HANGS);
        while !seat.gone {
            seat.words.store(frame::SHUTDOWN, 1);
            seat.bell.ring();
            assert!(clock::now() < limit, "seed {sessions}: {kind:?} does not leave");
            sleep(&bell, std::iter::once(&seat), soon());
            seat.look();
        }
        match seat.exit {
            Some(ExitCause::Exited { status: 0, .. }) => orderly += 1,
            Some(ExitCause::Exited { status, .. }) if status == i32::from(EXIT_PROTOCOL) => broken += 1,
            other => panic!("seed {sessions}: {kind:?} ended as {other:?} (a lost device would be {EXIT_DEVICE})"),
        }
    }
    assert_eq!(Footprint::now(), clean, "something is left");
    println!(
        "seeds 1 to {sessions}: {} writes beside {honest} nearly honest ones, {} launches, {orderly} children left in order, \
         {broken} because the protocol was broken",
        page.read(WRITES),
        page.read(scratch::LAUNCHES)
    );
    assert!(page.read(scratch::LAUNCHES) > 20 && orderly > 5 && broken > 5, "the attack must reach both ends");
}
