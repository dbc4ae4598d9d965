//! A child half with everything it works on.

use core::hint::black_box;

use super::leaf::{ParentBell, Runner};
use super::machine::{ChildSpec, Machine, Memory, Served};
use crate::mailbox::{Frame, Words, extension};
use crate::wire::frame as at;

/// One child: the machine, the mailbox that it serves, the runner that does the work, and private memory for the frames
/// that it takes in. About 80 KiB; keep it where it was built.
#[derive(Debug)]
pub struct Child<W, R: Runner> {
    words: W,
    runner: R,
    machine: Machine<R::Token>,
    memory: Memory,
}

impl<W: Words, R: Runner> Child<W, R> {
    /// A child that serves `words` with `runner`; [`publish_ready`](super::publish_ready) comes before the first step.
    #[must_use]
    pub fn new(words: W, runner: R, spec: ChildSpec) -> Self {
        let machine = Machine::new(spec, extension::parent(&words));
        Self { words, runner, machine, memory: Memory::new() }
    }

    /// One bounded round; see [`Served`]. Only the runner can make it wait.
    pub fn step(&mut self, bell: &mut impl ParentBell) -> Served {
        self.machine.step(&self.words, &mut self.runner, &mut self.memory, bell)
    }

    /// Leaves in order although nobody asked through the mailbox: the parent is gone (L-32). The next step returns
    /// [`Served::Exit`].
    pub fn orphaned(&mut self) {
        self.machine.orphaned();
    }

    /// Whether a step would find something to do. Look once more after [`announce_sleep`](extension::announce_sleep) and
    /// before sleeping.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.machine.has_work(&self.words)
    }

    /// As [`has_work`](Self::has_work), for a spin. What a step compares first in a new frame is read along, and before: those lines
    /// come together with the word that tells of the frame, not after it, which nothing read later could.
    #[inline]
    #[must_use]
    pub fn spots_work(&self) -> bool {
        for slot in self.machine.slots() {
            for at in [at::TRAILER, at::LEASE] {
                black_box(self.words.read(Frame::task(*slot).at(at)));
            }
        }
        self.has_work()
    }

    /// The mailbox.
    #[must_use]
    pub const fn words(&self) -> &W {
        &self.words
    }

    /// What does the work.
    #[must_use]
    pub const fn runner(&self) -> &R {
        &self.runner
    }

    /// Whether anything of this child is occupied, for display.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.machine.holds.iter().any(Option::is_some)
    }
}
