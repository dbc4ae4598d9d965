//! The words of a mailbox in a small world, and a side that is cut at each access to one of them.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use laneway_core::mailbox::Words;
use laneway_core::wire::extension;
use laneway_core::wire::frame::{self, FRAME_BYTES};

use crate::world::World;

/// The words that are modelled: state, error, shutdown of the base frame; state, error, accepted, preparation and dispatch of
/// each task frame.
pub(crate) const WORDS: usize = 13;

pub(crate) type Model = [i64; WORDS];

/// Which modelled word lies at a region offset.
fn modelled(at: usize) -> Option<usize> {
    let (index, offset) = (at / FRAME_BYTES, at % FRAME_BYTES);
    const DISPATCH: usize = frame::TRAILER + 32;
    match (index, offset) {
        (0, frame::STATE) => Some(0),
        (0, frame::ERROR) => Some(1),
        (0, frame::SHUTDOWN) => Some(2),
        (0, _) => None,
        (_, frame::STATE) => Some(5 * index - 2),
        (_, frame::ERROR) => Some(5 * index - 1),
        (_, frame::ACCEPTED) => Some(5 * index),
        (_, frame::PREPARATION) => Some(5 * index + 1),
        (_, DISPATCH) => Some(5 * index + 2),
        _ => None,
    }
}

/// What every other word holds for the whole life of a world.
fn constant(at: usize, world: &World) -> u64 {
    let (index, offset) = (at / FRAME_BYTES, at % FRAME_BYTES);
    let slot = index.saturating_sub(1) as u64;
    const RUN: usize = frame::TRAILER + 8;
    const SLOT: usize = frame::TRAILER + 16;
    const GENERATION: usize = frame::TRAILER + 24;
    const LEASED: usize = frame::LEASE + 8;
    match (index, offset) {
        (0, extension::PARENT) => extension::PARENT_MAGIC,
        (0, extension::CHILD) => extension::CHILD_MAGIC,
        (0, frame::SUBCOMMAND) => world.request().command().raw(),
        (0, _) => 0,
        (_, frame::TRAILER) => 2,
        (_, RUN) => slot + 1,
        (_, SLOT) | (_, frame::LEASE) => slot,
        (_, GENERATION) | (_, LEASED) => 1,
        _ => 0,
    }
}

/// Thrown where a side is set aside.
struct SetAside;

/// One side's view of the words: old answers first, then one new access, then the end.
pub(crate) struct Probe<'a> {
    world: &'a World,
    model: &'a RefCell<Model>,
    log: &'a RefCell<Vec<i64>>,
    at: Cell<usize>,
    fresh: Cell<bool>,
}

impl<'a> Probe<'a> {
    pub(crate) const fn new(world: &'a World, model: &'a RefCell<Model>, log: &'a RefCell<Vec<i64>>) -> Self {
        Self { world, model, log, at: Cell::new(0), fresh: Cell::new(false) }
    }

    fn access(&self, perform: impl FnOnce(&mut Model) -> i64) -> i64 {
        let at = self.at.replace(self.at.get() + 1);
        if let Some(answer) = self.log.borrow().get(at) {
            return *answer;
        }
        if self.fresh.replace(true) {
            resume_unwind(Box::new(SetAside));
        }
        let answer = perform(&mut self.model.borrow_mut());
        self.log.borrow_mut().push(answer);
        answer
    }
}

impl Words for Probe<'_> {
    fn load(&self, at: usize) -> i32 {
        match modelled(at) {
            Some(word) => self.access(|model| model[word]) as i32,
            None => 0,
        }
    }

    fn load_relaxed(&self, at: usize) -> i32 {
        self.load(at)
    }

    fn store(&self, at: usize, value: i32) {
        if let Some(word) = modelled(at) {
            self.access(|model| {
                model[word] = value.into();
                0
            });
        }
    }

    fn store_relaxed(&self, at: usize, value: i32) {
        self.store(at, value);
    }

    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        let word = modelled(at).expect("only modelled words are exchanged");
        let found = self.access(|model| {
            let found = model[word];
            if found == i64::from(expected) && !self.world.exchanges_nothing {
                model[word] = new.into();
            }
            found
        }) as i32;
        if found == expected { Ok(()) } else { Err(found) }
    }

    fn fence(&self) {}

    fn read(&self, at: usize) -> u64 {
        match modelled(at) {
            Some(word) => self.access(|model| model[word]) as u64,
            None => constant(at, self.world),
        }
    }

    fn write(&self, at: usize, value: u64) {
        if let Some(word) = modelled(at) {
            self.access(|model| {
                model[word] = value as i64;
                0
            });
        }
    }
}

/// Runs a side until its end (`true`) or until it is set aside (`false`).
pub(crate) fn run(side: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(side)) {
        Ok(()) => true,
        Err(thrown) if thrown.is::<SetAside>() => false,
        Err(panic) => resume_unwind(panic),
    }
}
