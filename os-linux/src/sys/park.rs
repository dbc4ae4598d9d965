//! The sleep of a child: on its own bell, its lifeline and its parent.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use laneway_core::mailbox::Words;

use super::epoll::{Events, Poller, Token, Watch};
use super::eventfd::Bell;
use super::lifeline::Lifeline;
use crate::Error;

const BELL: Token = Token(0);
const PARENT: Token = Token(1);

/// Values of the parked word: the child announces its sleep, the parent takes the announcement back before it rings.
const AWAKE: i32 = 0;
const PARKED: i32 = 1;

/// Why a sleep ended, or did not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woke {
    /// The last look before the sleep found something to do.
    Work,
    /// The bell rang: look for work. There may be none, if the ring was meant for a sleep that ended before it came.
    Bell,
    /// The time was over.
    TimedOut,
    /// The parent is gone: leave, in order.
    ParentGone,
    /// This process cannot sleep here any more, nor hear its parent: something in it closed what it sleeps on.
    CutOff,
}

/// Where a child sleeps.
pub struct Bed {
    poller: Poller,
    events: Events,
    in_own_process: bool,
}

impl Bed {
    /// Made in the child. `parent` is the pidfd that the parent opened of itself before the fork, where there are pidfds.
    ///
    /// # Errors
    /// [`Error::System`] where no descriptor is free.
    pub fn new(bell: &Bell, lifeline: &Lifeline, parent: Option<BorrowedFd<'_>>) -> Result<Self, Error> {
        let poller = Poller::new()?;
        // By edge, so that a wake costs no read; a ring between two sleeps ends the next one at once.
        poller.add(bell, BELL, Watch::Edge)?;
        poller.add(lifeline, PARENT, Watch::Level)?;
        if let Some(parent) = parent {
            poller.add(parent, PARENT, Watch::Level)?;
        }
        Ok(Self { poller, events: Events::new(), in_own_process: lifeline.is_armed() })
    }

    /// Whether who sleeps here is a process of its own.
    pub(crate) const fn is_in_own_process(&self) -> bool {
        self.in_own_process
    }

    /// Announces the sleep in the parked word at `word`, looks once more, then sleeps until rung.
    ///
    /// No wake is lost: the announcement is stored before `has_work` looks, and the parent looks at the announcement after
    /// it has published, with a full fence between the two on either side, so one of them sees the other. The parent takes
    /// the announcement back before it rings, never after, or it could take back the next one.
    pub fn park<W: Words>(
        &mut self,
        words: &W,
        word: usize,
        timeout: Option<Duration>,
        has_work: impl FnOnce() -> bool,
    ) -> Woke {
        words.store_relaxed(word, PARKED);
        words.fence();
        let woke = if has_work() { Woke::Work } else { self.sleep(timeout) };
        words.store_relaxed(word, AWAKE);
        woke
    }

    /// Sleeps unannounced, for a peer that rings nobody: never without a time limit (L-33, W-6).
    pub fn nap(&mut self, time: Duration) -> Woke {
        self.sleep(Some(time))
    }

    fn sleep(&mut self, timeout: Option<Duration>) -> Woke {
        if self.poller.wait(&mut self.events, timeout).is_err() {
            return Woke::CutOff;
        }
        if self.events.iter().any(|ready| ready.token == PARENT) {
            Woke::ParentGone
        } else if self.events.is_empty() {
            Woke::TimedOut
        } else {
            Woke::Bell
        }
    }
}

/// The naps of a child whose parent rings nobody: short at first, never over a millisecond.
#[derive(Clone, Copy, Debug)]
pub struct Backoff(Duration);

impl Backoff {
    const FIRST: Duration = Duration::from_micros(50);
    const LONGEST: Duration = Duration::from_millis(1);

    /// Starts over, as after something happened.
    #[must_use]
    pub const fn new() -> Self {
        Self(Self::FIRST)
    }

    /// How long to nap now.
    pub fn next_nap(&mut self) -> Duration {
        let now = self.0;
        self.0 = (now * 2).min(Self::LONGEST);
        now
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::lifeline::LifelinePipe;
    use laneway_core::mailbox::ArrayWords;

    const WORD: usize = 8;

    #[test]
    fn work_that_came_before_the_sleep_cancels_it_and_the_announcement() {
        let bell = Bell::new().unwrap();
        let (_hold, child) = LifelinePipe::new().unwrap().split();
        let mut bed = Bed::new(&bell, &child, None).unwrap();
        let words = ArrayWords::new(64);
        let woke = bed.park(&words, WORD, None, || words.load_relaxed(WORD) == PARKED);
        assert_eq!((woke, words.load_relaxed(WORD)), (Woke::Work, AWAKE));
    }

    #[test]
    fn a_ring_before_the_sleep_is_not_lost() {
        let bell = Bell::new().unwrap();
        let (_hold, child) = LifelinePipe::new().unwrap().split();
        let mut bed = Bed::new(&bell, &child, None).unwrap();
        let words = ArrayWords::new(64);
        bell.ring();
        assert_eq!(bed.park(&words, WORD, None, || false), Woke::Bell);
        assert_eq!(bed.park(&words, WORD, Some(Duration::ZERO), || false), Woke::TimedOut);
    }

    /// L-32
    #[test]
    fn the_end_of_the_parent_wakes_and_is_told_apart() {
        let bell = Bell::new().unwrap();
        let (hold, child) = LifelinePipe::new().unwrap().split();
        let mut bed = Bed::new(&bell, &child, None).unwrap();
        bell.ring();
        drop(hold);
        assert_eq!(bed.park(&ArrayWords::new(64), WORD, None, || false), Woke::ParentGone);
        assert_eq!(bed.nap(Duration::from_secs(60)), Woke::ParentGone);
    }

    #[test]
    fn naps_grow_to_a_millisecond_and_no_further() {
        let mut backoff = Backoff::new();
        let naps: Vec<_> = (0..8).map(|_| backoff.next_nap().as_micros()).collect();
        assert_eq!(naps, [50, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
    }
}
