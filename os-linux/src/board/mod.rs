//! The status board: one shared page or more, in which a worker keeps the facts about itself and its children that only it knows,
//! for [`health`](crate::Worker::health) and for other processes that [`observe`] it.
//!
//! The parent alone writes it. What a child says of itself stands in the child's own mailbox (P-31).

mod attach;
mod layout;
mod look;

use laneway_core::ids::EndpointIndex;
use laneway_core::lane::{ExitCause, Frames, Label};
use laneway_core::mailbox::Words;
use laneway_core::time::Instant;
use laneway_core::wire::Digest;

use crate::Error;
use crate::supervisor::Child;
use crate::sys::region::{Region, Sharing};
use crate::sys::words::{Length, MappedWords};
use crate::worker::WorkerState;
pub use attach::observe;
use layout::{Header, Place, Record, Standing};
pub(crate) use look::look;

/// What does not change while a worker runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) level: u32,
    /// Nanoseconds of the plain spin window, and of a wake through the kernel.
    pub(crate) window: u64,
    pub(crate) wake: u64,
}

/// The parent's side of the board.
pub(crate) struct Board {
    words: MappedWords,
    _region: Region,
    children: usize,
}

impl Board {
    /// A board for children that are ready, with what is known of them.
    pub(crate) fn new<'a>(
        facts: Facts,
        count: usize,
        children: impl Iterator<Item = (&'a Child, Frames)>,
        now: Instant,
    ) -> Result<Self, Error> {
        let region = Region::new(layout::NAME, layout::bytes(count), Sharing::Shown)?;
        #[expect(unsafe_code, reason = "the memory of the board becomes words here")]
        // SAFETY: the region is kept beside the words.
        let words = unsafe { MappedWords::new(&region) };
        let board = Self { words, _region: region, children: count };
        for (i, (child, frames)) in (0..count).zip(children) {
            board.write(Place::record(i), &Record::new(child, frames));
        }
        let started = now.as_nanos();
        let header = Header::new(facts, count, started, WorkerState::Ready);
        board.write(Place::HEADER, &header);
        // Whoever sees the magic sees the rest.
        words.fence();
        words.write(Place::MAGIC, layout::MAGIC);
        Ok(board)
    }

    fn write(&self, at: usize, value: &(impl zerocopy::IntoBytes + zerocopy::Immutable)) {
        for (i, word) in value.as_bytes().chunks_exact(8).enumerate() {
            self.words.write(at + 8 * i, u64::from_le_bytes(word.try_into().expect("a chunk of 8 bytes")));
        }
    }

    pub(crate) fn words(&self) -> &MappedWords {
        &self.words
    }

    /// The worker is in this state from here on.
    pub(crate) fn state(&self, state: WorkerState) {
        self.words.write(Place::STATE, state as u64);
    }

    /// A driver spun for so many nanoseconds. Called by one driver at a time, under the worker's lock.
    pub(crate) fn spun(&self, nanos: u64) {
        self.words.write(Place::SPUN, self.words.read(Place::SPUN).wrapping_add(nanos));
    }

    /// Something was published to this child at `now`.
    pub(crate) fn published(&self, endpoint: EndpointIndex, now: Instant) {
        self.words.write(Place::sent(endpoint.index()), now.as_nanos());
    }

    /// This child accepts nothing any more.
    pub(crate) fn poisoned(&self, endpoint: EndpointIndex, reason: &str) {
        let at = Place::record(endpoint.index());
        self.write(at + Place::REASON, &layout::text::<{ layout::REASON_BYTES }>(reason));
        if Standing::read(&self.words, at) == Standing::Serving {
            Standing::Poisoned.write(&self.words, at);
        }
    }

    /// This child has ended.
    pub(crate) fn exited(&self, endpoint: EndpointIndex, cause: ExitCause) {
        Standing::Ended(cause).write(&self.words, Place::record(endpoint.index()));
    }

    /// Children are going to be asked for this callable. Called under the worker's lock.
    pub(crate) fn named(&self, digest: &Digest, name: &str) {
        let written = self.words.read(Place::NAMED);
        if name.is_empty() || look::name(&self.words, self.children, digest).is_some() {
            return;
        }
        let at = Place::name(self.children, written as usize % layout::NAMES);
        self.write(at, &[0_u8; 32]);
        self.words.fence();
        self.write(at + Place::NAME, &layout::text::<{ layout::NAME_BYTES }>(name));
        self.words.fence();
        self.write(at, &digest.0);
        self.words.write(Place::NAMED, written + 1);
    }

    /// How many children it tells of.
    pub(crate) const fn len(&self) -> usize {
        self.children
    }
}

/// Memory that is only looked at, whoever writes it.
pub(crate) trait Sight {
    /// The 32-bit word at `at`.
    fn half(&self, at: usize) -> i32;
    /// The 64-bit word at `at`.
    fn whole(&self, at: usize) -> u64;
}

impl<L: Length> Sight for MappedWords<L> {
    fn half(&self, at: usize) -> i32 {
        self.load_relaxed(at)
    }

    fn whole(&self, at: usize) -> u64 {
        self.read(at)
    }
}

/// What users call a child, in one word.
fn label_word(label: Label) -> u64 {
    match label {
        Label::Worker(id) => u64::from(id.get().unsigned_abs()),
        Label::Sub(id) => 1 << 32 | u64::from(id.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R-8 limits chip callables alone; of others there may come any number.
    #[test]
    fn the_last_names_are_kept_and_none_is_kept_twice() {
        let facts = Facts { level: 3, window: 0, wake: 0 };
        let board = Board::new(facts, 0, std::iter::empty(), Instant::from_nanos(1)).unwrap();
        let digest = |number: usize| Digest(std::array::from_fn(|i| (number + i) as u8));
        let found = |number| look::name(board.words(), 0, &digest(number));
        for number in 0..200 {
            board.named(&digest(number), &format!("callable {number}"));
            board.named(&digest(number), "again");
            assert_eq!(found(number), Some(format!("callable {number}")));
        }
        let kept: Vec<_> = (0..200).filter(|number| found(*number).is_some()).collect();
        assert_eq!(kept, (200 - layout::NAMES..200).collect::<Vec<_>>());
        board.named(&digest(7), &"ä".repeat(layout::NAME_BYTES));
        assert_eq!(found(7), Some("ä".repeat((layout::NAME_BYTES - 3) / 2) + "…"), "cut where a character ends");
    }
}
