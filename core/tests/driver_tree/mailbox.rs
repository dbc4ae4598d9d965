//! Mailboxes on plain arrays, and one in which its child dies at a write.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use laneway_core::mailbox::{ArrayWords, Words};
use laneway_core::wire::frame::REGION_BYTES;

use crate::width::clear;

thread_local! {
    /// Mailboxes to be used again: ten thousand worlds would not fit into memory.
    static POOL: RefCell<Vec<&'static ArrayWords>> = const { RefCell::new(Vec::new()) };
}

/// An empty mailbox.
pub(crate) fn mailbox() -> &'static ArrayWords {
    let pooled = POOL.with_borrow_mut(Vec::pop);
    let words = pooled.unwrap_or_else(|| Box::leak(Box::new(ArrayWords::new(REGION_BYTES))));
    // What these tests write lies in these pieces of each frame.
    for frame in 0..3 {
        let start = frame * 65_536;
        for at in (0..1_400).step_by(8).chain((57_344..57_600).step_by(8)).chain((61_440..61_800).step_by(8)) {
            clear(words, start + at);
        }
        for at in (65_216..65_536).step_by(8) {
            clear(words, start + at);
        }
    }
    words
}

/// Gives a mailbox back that nobody uses any more.
pub(crate) fn put_back(words: &'static ArrayWords) {
    POOL.with_borrow_mut(|pool| pool.push(words));
}

/// A mailbox as its child sees it, in which the child dies after a number of writes: SIGKILL between two instructions.
#[derive(Debug)]
pub(crate) struct Tripwire {
    words: &'static ArrayWords,
    left: Rc<Cell<u64>>,
}

/// Thrown where a child dies.
pub(crate) struct Died;

impl Tripwire {
    pub(crate) fn new(words: &'static ArrayWords, left: Rc<Cell<u64>>) -> Self {
        Self { words, left }
    }

    /// The words without the wire.
    pub(crate) fn words(&self) -> &'static ArrayWords {
        self.words
    }

    fn count(&self) {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => std::panic::resume_unwind(Box::new(Died)),
        }
    }
}

impl Words for Tripwire {
    fn load(&self, at: usize) -> i32 {
        self.words.load(at)
    }
    fn load_relaxed(&self, at: usize) -> i32 {
        self.words.load_relaxed(at)
    }
    fn store(&self, at: usize, value: i32) {
        self.count();
        self.words.store(at, value);
    }
    fn store_relaxed(&self, at: usize, value: i32) {
        self.count();
        self.words.store_relaxed(at, value);
    }
    fn compare_exchange(&self, at: usize, expected: i32, new: i32) -> Result<(), i32> {
        self.count();
        self.words.compare_exchange(at, expected, new)
    }
    fn fence(&self) {}
    fn read(&self, at: usize) -> u64 {
        self.words.read(at)
    }
    fn write(&self, at: usize, value: u64) {
        self.count();
        self.words.write(at, value);
    }
}
