//! When a process kills itself, and what it tells before.

use std::cell::Cell;
use std::rc::Rc;

use laneway_core::mailbox::Words;
use laneway_core::wire::frame;
use laneway_linux::sys::clock;
use laneway_linux::sys::words::MappedWords;
use rustix::process::{Signal, getpid, kill_process};

use crate::child::{is_busy, is_taken_back};

/// Words of a page that all processes of a case share: offsets in bytes.
pub(crate) mod scratch {
    /// When a process killed itself, nanoseconds of the monotonic clock; 0 for not yet.
    pub(crate) const KILLED_AT: usize = 0;
    /// In which phase, as a number.
    pub(crate) const PHASE: usize = 8;
    /// How many task frames were occupied then.
    pub(crate) const BUSY: usize = 16;
    /// Not 0: tasks that hold may end.
    pub(crate) const GATE: usize = 24;
    /// Not 0: slow controls may end.
    pub(crate) const CONTROL_GATE: usize = 32;
    /// How many runs were launched, by all children together (about: they do not count in one step).
    pub(crate) const LAUNCHES: usize = 40;
    /// Not 0: a dispatch was being taken back then (L-38).
    pub(crate) const TAKEN_BACK: usize = 48;
    /// One page.
    pub(crate) const BYTES: usize = 4096;
}

/// What a child is about when it dies.
// The hostile processes share the device and never die by themselves.
#[allow(dead_code)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Phase {
    Init,
    Idle,
    Staging,
    Prepare,
    Launch,
    Run,
    Finalise,
    Done,
    Control,
    Shutdown,
}

/// When its process dies.
pub(crate) struct Wire {
    pub(crate) words: MappedWords,
    pub(crate) scratch: MappedWords,
    /// Places to live through.
    left: Cell<u64>,
    /// The device call that is under way.
    call: Cell<Option<Phase>>,
}

impl Wire {
    pub(crate) fn new(words: MappedWords, scratch: MappedWords, left: u64) -> Rc<Self> {
        Rc::new(Self { words, scratch, left: Cell::new(left), call: Cell::new(None) })
    }

    /// A place to die.
    pub(crate) fn place(&self, phase: impl FnOnce() -> Phase) {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => self.die(self.call.get().unwrap_or_else(phase)),
        }
    }

    fn die(&self, phase: Phase) -> ! {
        let stops = self.words.load_relaxed(frame::SHUTDOWN) != 0;
        let phase = if stops { Phase::Shutdown } else { phase };
        let busy = (1..frame::FRAMES).filter(|index| is_busy(&self.words, *index)).count();
        let taken_back = (1..frame::FRAMES).any(|index| is_taken_back(&self.words, index));
        self.scratch.write(scratch::TAKEN_BACK, taken_back.into());
        self.scratch.write(scratch::PHASE, phase as u64);
        self.scratch.write(scratch::BUSY, busy as u64);
        self.scratch.write(scratch::KILLED_AT, clock::now().as_nanos());
        let _ = kill_process(getpid(), Signal::KILL);
        unreachable!("SIGKILL ends a process before the call returns")
    }

    /// A device call: a place to die at its begin and one at its end.
    pub(crate) fn during<T>(&self, phase: Phase, call: impl FnOnce() -> T) -> T {
        self.call.set(Some(phase));
        self.place(|| phase);
        let value = call();
        self.place(|| phase);
        self.call.set(None);
        value
    }
}
