//! Mailbox words in which a process kills itself, at the access that it is told.

use std::rc::Rc;

use laneway_core::mailbox::Words;
use laneway_core::wire::FrameState;
use laneway_core::wire::extension;
use laneway_core::wire::frame::{self, FRAME_BYTES};
use laneway_linux::sys::words::MappedWords;

use crate::wire::{Phase, Wire};

/// What a child is about that writes `value` at an offset, or copies there.
fn phase_at(at: usize, value: Option<i32>) -> Phase {
    let (base, field) = (at < FRAME_BYTES, at % FRAME_BYTES);
    let state = value.filter(|_| field == frame::STATE).and_then(FrameState::from_raw);
    match (state, field) {
        (Some(FrameState::InitReady | FrameState::InitFailed), _) => Phase::Init,
        (Some(FrameState::FrameStaged), _) => Phase::Staging,
        (Some(FrameState::TaskLaunched), _) | (_, frame::ACCEPTED) => Phase::Launch,
        (Some(FrameState::TaskDone | FrameState::TaskFailed), _) => Phase::Done,
        (_, extension::PARKED) if base => Phase::Idle,
        (_, extension::CHILD | frame::LEASE) if base => Phase::Init,
        _ if base => Phase::Control,
        (_, frame::PREPARATION) => Phase::Staging,
        (_, frame::ERROR) => Phase::Done,
        (_, at) if at >= frame::MESSAGE || (frame::DETAIL..frame::EXTENSION).contains(&at) => Phase::Done,
        _ => Phase::Staging,
    }
}

/// The mailbox as the process sees it that is to die: a place before and after every store, and at the start, in the middle
/// and at the end of every copy.
pub(crate) struct Tripwire(pub(crate) Rc<Wire>);

impl Tripwire {
    fn around<T>(&self, at: usize, value: Option<i32>, store: impl FnOnce(&MappedWords) -> T) -> T {
        self.0.place(|| phase_at(at, value));
        let result = store(&self.0.words);
        self.0.place(|| phase_at(at, value));
        result
    }

    /// Where a copy of `bytes` bytes is cut in two.
    const fn middle(bytes: usize) -> usize {
        bytes / 16 * 8
    }
}

impl Words for Tripwire {
    fn load(&self, at: usize) -> i32 {
        self.0.words.load(at)
    }
    fn load_relaxed(&self, at: usize) -> i32 {
        self.0.words.load_relaxed(at)
    }
    fn store(&self, at: usize, value: i32) {
        self.around(at, Some(value), |words| words.store(at, value));
    }
    fn store_relaxed(&self, at: usize, value: i32) {
        self.around(at, Some(value), |words| words.store_relaxed(at, value));
    }
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.around(at, Some(new), |words| words.compare_exchange(at, expected, new))
    }
    fn fence(&self) {
        self.0.words.fence();
    }
    fn read(&self, at: usize) -> u64 {
        self.0.words.read(at)
    }
    fn write(&self, at: usize, value: u64) {
        self.around(at, None, |words| words.write(at, value));
    }
    fn copy_in(&self, at: usize, from: &[u8]) {
        let (first, second) = from.split_at(Self::middle(from.len()));
        self.around(at, None, |words| words.copy_in(at, first));
        self.0.words.copy_in(at + first.len(), second);
        self.0.place(|| phase_at(at, None));
    }
    fn copy_out(&self, at: usize, into: &mut [u8]) {
        let (first, second) = into.split_at_mut(Self::middle(into.len()));
        self.around(at, None, |words| words.copy_out(at, first));
        self.0.words.copy_out(at + first.len(), second);
        self.0.place(|| phase_at(at, None));
    }
}
