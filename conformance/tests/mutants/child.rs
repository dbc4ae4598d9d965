//! A child half that is wrong on purpose: that of laneway-core, with one word of its mailbox changed on the way.

use std::cell::{Cell, RefCell};

use laneway_conformance::Tape;
use laneway_core::mailbox::Words;
use laneway_core::wire::frame::{self as at, FRAME_BYTES};

/// What is wrong with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slip {
    ForgetsTheAcceptanceWord,
    WritesTheAcceptanceTwice,
    AcceptsWhenItStages,
    AcceptsAfterTheEnd,
    WritesPreparationAfterTheState,
    ForgetsThePreparation,
    WritesTheErrorAfterTheState,
    ForgetsTheLongForm,
    ForgetsTheMessage,
    WritesIntoTheLease,
    EndsTwice,
    FailsWithTaskDone,
    StagesTwice,
    StagesInOneFrame,
    HidesTheErrorOfAControl,
    BelievesTheTrailer,
    TakesAnyGeneration,
    TakesAnyProtocol,
    SeesNoWithdrawal,
    SeesNoChange,
    SeesNoShutdown,
    WritesALongFormToAStranger,
}

/// The words of a child with a slip.
pub(crate) struct Slipping<'a> {
    tape: &'a Tape,
    slip: Slip,
    /// Words that are written after the next state word.
    late: RefCell<Vec<(usize, i32)>>,
    /// The first identity that was read of each task frame, and the highest generation.
    first_run: [Cell<u64>; 3],
    highest: Cell<u64>,
}

impl<'a> Slipping<'a> {
    pub(crate) fn new(tape: &'a Tape, slip: Slip) -> Self {
        let first_run = [Cell::new(0), Cell::new(0), Cell::new(0)];
        Self { tape, slip, late: RefCell::default(), first_run, highest: Cell::new(0) }
    }

    fn is(&self, slip: Slip) -> bool {
        self.slip == slip
    }

    /// A 32-bit word; `write` is how it is written.
    fn put(&self, at: usize, value: i32, write: impl Fn(usize, i32)) {
        let (frame, field) = (at / FRAME_BYTES, at % FRAME_BYTES);
        let (task, start) = (frame > 0, frame * FRAME_BYTES);
        let is_end = task && field == at::STATE && [2, 10].contains(&value);
        match self.slip {
            Slip::ForgetsTheAcceptanceWord if field == at::ACCEPTED => return,
            Slip::WritesTheAcceptanceTwice if field == at::ACCEPTED => write(at, value),
            Slip::AcceptsWhenItStages if task && field == at::STATE && value == 8 => write(start + at::ACCEPTED, 1),
            Slip::AcceptsAfterTheEnd if field == at::ACCEPTED => return self.late.borrow_mut().push((at, value)),
            Slip::WritesPreparationAfterTheState if field == at::PREPARATION => {
                return self.late.borrow_mut().push((at, value));
            }
            Slip::ForgetsThePreparation if field == at::PREPARATION => return,
            Slip::WritesTheErrorAfterTheState if task && field == at::ERROR => {
                return self.late.borrow_mut().push((at, value));
            }
            Slip::HidesTheErrorOfAControl if !task && field == at::ERROR => return write(at, 0),
            Slip::WritesIntoTheLease if is_end => self.tape.write(start + at::LEASE, 0),
            Slip::FailsWithTaskDone if task && field == at::STATE && value == 10 => return write(at, 2),
            Slip::StagesTwice if task && field == at::STATE && value == 8 => write(at, value),
            Slip::StagesInOneFrame if is_end => write(at, 8),
            _ => {}
        }
        write(at, value);
        if task && field == at::STATE && (is_end || self.is(Slip::WritesPreparationAfterTheState)) {
            for (at, value) in self.late.take() {
                write(at, value);
            }
        }
        if self.is(Slip::EndsTwice) && is_end {
            write(at, value);
        }
        if self.is(Slip::WritesALongFormToAStranger) && is_end {
            self.tape.write(start + at::DETAIL, 0);
        }
    }
}

impl Words for Slipping<'_> {
    fn load(&self, at: usize) -> i32 {
        if self.is(Slip::SeesNoShutdown) && at == at::SHUTDOWN { 0 } else { self.tape.load(at) }
    }

    fn load_relaxed(&self, at: usize) -> i32 {
        if self.is(Slip::SeesNoShutdown) && at == at::SHUTDOWN { 0 } else { self.tape.load_relaxed(at) }
    }

    fn store(&self, at: usize, value: i32) {
        self.put(at, value, |at, value| self.tape.store(at, value));
    }

    fn store_relaxed(&self, at: usize, value: i32) {
        self.put(at, value, |at, value| self.tape.store_relaxed(at, value));
    }

    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.tape.compare_exchange(at, expected, new)
    }

    fn fence(&self) {
        self.tape.fence();
    }

    fn read(&self, at: usize) -> u64 {
        let (frame, field) = (at / FRAME_BYTES, at % FRAME_BYTES);
        let value = self.tape.read(at);
        let trailer = |word: usize| self.tape.read(frame * FRAME_BYTES + at::TRAILER + 8 * word);
        match self.slip {
            _ if frame == 0 => value,
            Slip::BelievesTheTrailer if field == at::LEASE => trailer(2) & 1,
            Slip::BelievesTheTrailer if field == at::LEASE + 8 => trailer(3),
            Slip::TakesAnyGeneration
                if field == at::TRAILER + 24 || (field == at::LEASE + 8 && value == trailer(3)) =>
            {
                self.highest.set(self.highest.get().max(value));
                self.highest.get()
            }
            Slip::TakesAnyProtocol if field == at::TRAILER => 2,
            Slip::SeesNoWithdrawal if field == at::TRAILER + 32 => value.max(1),
            Slip::SeesNoChange if field == at::TRAILER + 8 => {
                if self.tape.load(frame * FRAME_BYTES) != 11 {
                    self.first_run[frame].set(value);
                }
                self.first_run[frame].get()
            }
            _ => value,
        }
    }

    fn write(&self, at: usize, value: u64) {
        let (frame, field) = (at / FRAME_BYTES, at % FRAME_BYTES);
        let in_field = |start: usize, bytes: usize| frame > 0 && (start..start + bytes).contains(&field);
        if self.is(Slip::ForgetsTheLongForm) && in_field(at::DETAIL, at::DETAIL_BYTES)
            || self.is(Slip::ForgetsTheMessage) && in_field(at::MESSAGE, at::MESSAGE_BYTES)
        {
            return;
        }
        self.tape.write(at, value);
    }
}
