//! One honest half against another side that writes whatever it likes, also while it is being read.

#[path = "../noise/dice.rs"]
mod dice;
#[path = "../noise/ledger.rs"]
mod ledger;
#[path = "../noise/width.rs"]
mod width;
#[path = "../noise/writes.rs"]
mod writes;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use laneway_core::ids::{Generation, RunId};
use laneway_core::lane::{ExitCause, Frames, Job, Lane};
use laneway_core::mailbox::{ArrayWords, Frame, LongText, Words};
use laneway_core::serve::{Child, ChildSpec, NoBell, Served, publish_ready};
use laneway_core::time::Instant;
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::{self, FRAME_BYTES, REGION_BYTES};
use laneway_core::wire::{CallConfig, FrameState, Protocol, extension};

use crate::support::*;
use dice::Dice;
use ledger::Ledger;
use width::clear;
use writes::{NARROW, WIDE, any_half, any_word};

/// How many writes each test makes; more by LANEWAY_MUTATIONS.
fn mutations() -> u64 {
    std::env::var("LANEWAY_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000)
}

/// A mailbox whose other side may write before any access of ours.
struct Hostile {
    words: ArrayWords,
    dice: Dice,
    /// One access in so many is preceded by a write; 0 for none.
    restless: Cell<usize>,
    touched: RefCell<BTreeSet<usize>>,
    writes: Cell<u64>,
}

impl Hostile {
    fn new(dice: Dice) -> Self {
        Self {
            words: ArrayWords::new(REGION_BYTES),
            dice,
            restless: Cell::new(0),
            touched: RefCell::default(),
            writes: Cell::new(0),
        }
    }

    /// Back to a fresh region.
    fn wipe(&self) {
        for at in std::mem::take(&mut *self.touched.borrow_mut()) {
            clear(&self.words, at);
        }
        self.restless.set(0);
    }

    fn touch(&self, at: usize) {
        self.touched.borrow_mut().insert(at / 8 * 8);
    }

    fn put32(&self, at: usize, value: i32) {
        self.touch(at);
        self.words.store(at, value);
    }

    fn put64(&self, at: usize, value: u64) {
        self.touch(at);
        self.words.write(at, value);
    }

    /// One write of the other side: a legal state at some time, a small number, or anything, somewhere.
    fn scribble(&self) {
        let dice = &self.dice;
        self.writes.set(self.writes.get() + 1);
        let start = dice.roll(3) * FRAME_BYTES;
        match dice.roll(8) {
            0..=3 => {
                let at = NARROW.get(dice.roll(NARROW.len() + 1)).copied().unwrap_or(frame::SHUTDOWN);
                self.put32(start + at, any_half(dice));
            }
            4..=6 => {
                self.put64(start + WIDE[dice.roll(WIDE.len())], any_word(dice));
            }
            _ => {
                // Texts without an end, and bytes that are no text.
                let at = start + [frame::MESSAGE, frame::DETAIL, frame::CONFIG + 120][dice.roll(3)];
                for word in 0..dice.roll(33) {
                    self.put64((at + 8 * word).min(REGION_BYTES - 8), dice.next());
                }
            }
        }
    }

    fn stir(&self) {
        let restless = self.restless.get();
        if restless > 0 && self.dice.roll(restless) == 0 {
            self.scribble();
        }
    }
}

impl Words for Hostile {
    fn load(&self, at: usize) -> i32 {
        self.stir();
        self.words.load(at)
    }
    fn load_relaxed(&self, at: usize) -> i32 {
        self.load(at)
    }
    fn store(&self, at: usize, value: i32) {
        self.stir();
        self.put32(at, value);
    }
    fn store_relaxed(&self, at: usize, value: i32) {
        self.store(at, value);
    }
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.stir();
        self.touch(at);
        self.words.compare_exchange(at, expected, new)
    }
    fn fence(&self) {}
    fn read(&self, at: usize) -> u64 {
        self.stir();
        self.words.read(at)
    }
    fn write(&self, at: usize, value: u64) {
        self.stir();
        self.put64(at, value);
    }
}

fn drain(words: &Hostile, lane: &mut Lane<u32, u32>, ledger: &mut Ledger, text: &mut LongText) {
    for polls in 0.. {
        assert!(polls < 16, "a parent that is kept busy by its child");
        let Some(event) = lane.poll(words, Instant::from_nanos(5), text) else { return };
        ledger.take(event);
    }
}

/// A million ways to be a bad child. L-1, L-3, L-26, L-27. Returns dispatches ended, successes and poisonings.
fn attack_parent(frames: Frames, words: &Hostile, limit: u64) -> (u64, u64, u64) {
    let (mut key, mut ledger, mut text) = (0, Ledger::default(), LongText::new());
    let now = Instant::from_nanos(5);
    while words.writes.get() < limit && !words.dice.is_used_up() {
        words.wipe();
        if words.dice.roll(2) == 0 {
            words.put64(extension::CHILD, extension::CHILD_MAGIC);
        }
        let mut lane: Lane<u32, u32> = Lane::new(spec(frames), words);
        words.restless.set([0, 0, 40, 8][words.dice.roll(4)]);
        for _ in 0..200 {
            let dice = &words.dice;
            match dice.roll(12) {
                0 | 1 => {
                    key += 1;
                    let run = RunId::new(1 + dice.roll(2) as u64).unwrap();
                    let slot = [ZERO, ONE][dice.roll(2)];
                    let (digest, config, prepare_only) = (&KNOWN, &CallConfig::ZERO, dice.roll(2) == 0);
                    let generation = Generation::FIRST;
                    let job =
                        Job { key, run, slot, generation, digest, config, blob: &NO_ARGS, limit: None, prepare_only };
                    if lane.submit(words, &job, now).is_ok() {
                        ledger.open.insert(key);
                    }
                }
                // Refusals are fine; a panic, or a dispatch that ends twice, is not.
                2 => drop(lane.activate(words, RunId::new(1 + dice.roll(2) as u64).unwrap(), now)),
                3 => drop(lane.withdraw(words, key, now)),
                4 => {
                    if lane.control(words, 1, &ControlRequest::Malloc { bytes: 1 }, None, now).is_ok() {
                        ledger.control = true;
                    }
                }
                // What an honest child would do next, so that deep states are reached.
                5..=8 => honest_move(words, frames, [ZERO, ONE][dice.roll(2)]),
                _ => words.scribble(),
            }
            drain(words, &mut lane, &mut ledger, &mut text);
            if lane.poison().is_some() && dice.roll(4) == 0 {
                break;
            }
        }
        lane.child_exited(ExitCause::Vanished { pid: 1 }, now);
        lane.subtree_gone();
        drain(words, &mut lane, &mut ledger, &mut text);
        ledger.close();
        assert!(lane.is_quiet());
    }
    (ledger.ended, ledger.succeeded, ledger.poisoned)
}

fn honest_move(words: &Hostile, frames: Frames, slot: laneway_core::ids::PipelineSlot) {
    let frame_of = Frame::task(slot);
    let next = match (frames, FrameState::from_raw(words.words.load(frame_of.at(frame::STATE)))) {
        (Frames::One, Some(FrameState::TaskReady)) => FrameState::TaskDone,
        (Frames::Two, Some(FrameState::TaskReady | FrameState::PrepareReady)) => {
            words.put32(frame_of.at(frame::PREPARATION), 1 + words.dice.roll(2) as i32);
            FrameState::FrameStaged
        }
        (Frames::Two, Some(FrameState::FrameStaged | FrameState::Activate)) => {
            words.put32(frame_of.at(frame::ACCEPTED), 1);
            FrameState::TaskLaunched
        }
        (Frames::Two, Some(FrameState::TaskLaunched)) => {
            [FrameState::TaskDone, FrameState::TaskFailed][words.dice.roll(2)]
        }
        _ => {
            if words.words.load(frame::STATE) == FrameState::ControlRequest.raw() {
                words.put32(frame::STATE, FrameState::ControlDone.raw());
            }
            return;
        }
    };
    words.put32(frame_of.at(frame::STATE), next.raw());
}

/// Ends in normal completions or a poisoned endpoint, never in a panic or a mix-up.
#[test]
fn a_hostile_child_cannot_confuse_its_parent() {
    for (frames, seed) in [(Frames::One, 11), (Frames::Two, 12)] {
        let words = Hostile::new(Dice::of_seed(seed));
        let (ended, succeeded, poisoned) = attack_parent(frames, &words, mutations() / 2);
        println!(
            "{frames:?}: {} writes, {ended} dispatches ended, {succeeded} well, {poisoned} poisoned",
            mutations() / 2
        );
        assert!(succeeded > 100 && poisoned > 100, "the attack must reach both ends");
    }
}

/// A hostile parent against the child half: it serves or leaves, and finalises each run once (the device asserts that).
/// Returns launches and children that left.
fn attack_child(frames: Frames, words: &Hostile, limit: u64) -> (usize, u64) {
    let (mut exits, mut launches) = (0_u64, 0_usize);
    while words.writes.get() < limit && !words.dice.is_used_up() {
        words.wipe();
        if words.dice.roll(2) == 0 {
            words.put64(extension::PARENT, extension::PARENT_MAGIC);
        }
        let script = Script { concurrent: words.dice.roll(2) == 0, polls: Some(2), ..Script::default() };
        let device = Device(std::rc::Rc::new(RefCell::new(script)));
        publish_ready(words, 2);
        let child_spec = ChildSpec { frames, protocol: Protocol::ChipTensors, depth: 2 };
        let mut child = Child::new(words, device.clone(), child_spec);
        words.put32(frame::STATE, FrameState::Idle.raw());
        words.restless.set([0, 0, 60, 10][words.dice.roll(4)]);
        for _ in 0..200 {
            match words.dice.roll(6) {
                0 => words.scribble(),
                1 | 2 => publish_something(words, frames),
                _ => {}
            }
            let _ = child.has_work();
            if let Served::Exit(code) = child.step(&mut NoBell) {
                exits += 1;
                assert_eq!(child.step(&mut NoBell), Served::Exit(code), "it stays gone");
                break;
            }
        }
        if !device.0.borrow().shut {
            child.orphaned();
            assert_eq!(child.step(&mut NoBell), Served::Exit(0));
        }
        assert!(device.0.borrow().shut, "L-31: the device is closed whatever happened");
        launches += device.take_log().iter().filter(|line| line.starts_with("launch")).count();
    }
    (launches, exits)
}

#[test]
fn a_hostile_parent_cannot_break_its_child() {
    for (frames, seed) in [(Frames::One, 21), (Frames::Two, 22)] {
        let words = Hostile::new(Dice::of_seed(seed));
        let (launches, exits) = attack_child(frames, &words, mutations() / 2);
        println!("{frames:?}: {} writes, {launches} launches, {exits} children left", mutations() / 2);
        assert!(launches > 1_000 && exits > 100, "the attack must reach both ends");
    }
}

/// The same attacks with a fuzzer's input for dice: the targets `hostile_child` and `hostile_parent`.
pub(crate) fn hostile_child(input: &[u8]) {
    for frames in [Frames::One, Frames::Two] {
        let words = Hostile::new(Dice::of_input(input));
        attack_parent(frames, &words, u64::MAX);
    }
}

/// See [`hostile_child`].
pub(crate) fn hostile_parent(input: &[u8]) {
    for frames in [Frames::One, Frames::Two] {
        let words = Hostile::new(Dice::of_input(input));
        attack_child(frames, &words, u64::MAX);
    }
}

/// What the fuzz targets call, over inputs of no meaning.
#[test]
fn the_attacks_of_the_fuzzer_hold_on_bytes_of_no_meaning() {
    let dice = Dice::of_seed(31);
    for _ in 0..200 {
        let input: Vec<u8> = (0..dice.roll(2_000)).map(|_| dice.byte()).collect();
        hostile_child(&input);
        hostile_parent(&input);
    }
}

/// A frame as an honest parent publishes it, or nearly.
fn publish_something(words: &Hostile, frames: Frames) {
    let slot = match frames {
        Frames::One => ZERO,
        Frames::Two => [ZERO, ONE][words.dice.roll(2)],
    };
    let frame_of = Frame::task(slot);
    let state = words.words.load(frame_of.at(frame::STATE));
    let fresh = [FrameState::TaskReady, FrameState::PrepareReady];
    let next = match FrameState::from_raw(state) {
        Some(FrameState::Idle | FrameState::TaskDone | FrameState::TaskFailed) => fresh[words.dice.roll(2)],
        Some(FrameState::FrameStaged) => FrameState::Activate,
        _ => return,
    };
    if frames == Frames::One && next != FrameState::TaskReady {
        return;
    }
    if next != FrameState::Activate {
        let index = slot.index() as u64;
        let dispatch = 1 + words.dice.roll(1 << 20) as u64;
        for (field, value) in [(0, 2), (8, 1), (16, index), (24, 1), (32, dispatch)] {
            words.put64(frame_of.at(frame::TRAILER + field), value);
        }
        words.put64(frame_of.at(frame::LEASE), index);
        words.put64(frame_of.at(frame::LEASE + 8), 1);
        words.put64(frame_of.at(frame::ARGS), 0);
        words.put64(frame_of.at(frame::CONFIG), 0);
    } else if words.dice.roll(4) == 0 {
        words.put64(frame_of.at(frame::TRAILER + 32), 0);
    }
    words.put32(frame_of.at(frame::STATE), next.raw());
}
