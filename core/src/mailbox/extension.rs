//! The extension block in the base frame (W-6): who speaks our dialect, and who sleeps.
//!
//! Each word has one writer, except the child's parked word: the child announces with 0 → 1, the parent takes the
//! announcement back with 1 → 0 *after* its publish and *before* the kernel wake. The other way round the sleeper could
//! announce again in between and that announcement would be lost.

use super::Words;
use crate::wire::DispatchIdentity;
use crate::wire::extension::{self as at, ChildActivity};

/// Whether the other side showed its magic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Peer {
    /// It did: it writes nothing in a task frame but what belongs to it, knows the detail area and announces its sleep.
    Known,
    /// It did not: it polls, and nothing may be taken for granted.
    Stranger,
}

/// Parent, before the fork: shows the parent's magic.
pub fn show_parent<W: Words>(words: &W) {
    words.write(at::PARENT, at::PARENT_MAGIC);
}

/// Child, before INIT_READY: shows the child's magic.
pub fn show_child<W: Words>(words: &W) {
    words.write(at::CHILD, at::CHILD_MAGIC);
}

/// Child: what the parent is.
#[inline]
pub fn parent<W: Words>(words: &W) -> Peer {
    peer(words.read(at::PARENT) == at::PARENT_MAGIC)
}

/// Parent, after INIT_READY: what the child is.
#[inline]
pub fn child<W: Words>(words: &W) -> Peer {
    peer(words.read(at::CHILD) == at::CHILD_MAGIC)
}

const fn peer(known: bool) -> Peer {
    if known { Peer::Known } else { Peer::Stranger }
}

/// Child: announces that it is about to sleep. It must look for work once more after this and before it sleeps.
pub fn announce_sleep<W: Words>(words: &W) {
    words.store_relaxed(at::PARKED, 1);
    words.fence();
}

/// Child: takes the announcement back, awake again for whatever reason.
pub fn announce_awake<W: Words>(words: &W) {
    words.store_relaxed(at::PARKED, 0);
}

/// Parent: whether the child had announced that it sleeps. It may be awake by now.
#[inline]
pub fn sleeps<W: Words>(words: &W) -> bool {
    words.load_relaxed(at::PARKED) == 1
}

/// Parent, after a publish: fences, looks whether the child sleeps, and takes its announcement back. `true` obliges the
/// caller to wake the child in the kernel.
#[inline]
pub fn take_sleeper<W: Words>(words: &W) -> bool {
    words.fence();
    words.load_relaxed(at::PARKED) == 1 && words.compare_exchange(at::PARKED, 1, 0).is_ok()
}

/// Which side of a mailbox.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The process that publishes tasks.
    Parent,
    /// The process that serves them.
    Child,
}

impl Side {
    const fn cpu(self) -> usize {
        match self {
            Self::Parent => at::PARENT_CPU,
            Self::Child => at::CHILD_CPU,
        }
    }

    /// Says which CPU this side runs on. Call it when that changed: the other side keeps the line in its cache.
    pub fn show_cpu<W: Words>(self, words: &W, cpu: u16) {
        words.store_relaxed(self.cpu(), i32::from(cpu) + 1);
    }

    /// The CPU that this side last said it ran on, if it said one. A hint: it may be wrong by now, or a lie, and it decides
    /// nothing but how long a wait spins.
    pub fn cpu_hint<W: Words>(self, words: &W) -> Option<u16> {
        u16::try_from(words.load_relaxed(self.cpu()).checked_sub(1)?).ok()
    }
}

/// Parent: whether it and its children at work are more than the CPUs, so that spinning takes a CPU from one of them. Call it
/// when that changed.
pub fn show_crowd<W: Words>(words: &W, crowded: bool) {
    words.store_relaxed(at::PARENT_CROWDED, i32::from(crowded));
}

/// Child: whether the parent said so.
pub fn is_crowded<W: Words>(words: &W) -> bool {
    words.load_relaxed(at::PARENT_CROWDED) == 1
}

/// What a child says it is doing: its status words. They are looked at by people and decide nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Status {
    /// What it is doing.
    pub activity: ChildActivity,
    /// The dispatch of the task that it is at, or was at last; 0 = none yet.
    pub dispatch: u64,
    /// When the activity began, nanoseconds of the monotonic clock.
    pub since: u64,
    /// Tasks finished since it started, failed ones included.
    pub tasks: u64,
    /// Nanoseconds spent in tasks.
    pub busy: u64,
    /// Nanoseconds spent spinning for work.
    pub spun: u64,
}

impl Status {
    /// Reads the words through `read`, which takes an offset in the region. They are not of one moment.
    pub fn read(read: impl Fn(usize) -> u64) -> Self {
        Self {
            activity: ChildActivity::from_raw(read(at::STATUS_ACTIVITY)),
            dispatch: read(at::STATUS_DISPATCH),
            since: read(at::STATUS_SINCE_NANOS),
            tasks: read(at::STATUS_TASKS),
            busy: read(at::STATUS_BUSY_NANOS),
            spun: read(at::STATUS_SPIN_NANOS),
        }
    }
}

/// Child: it does something else from `since` on, nanoseconds of the monotonic clock.
pub fn show_activity<W: Words>(words: &W, activity: ChildActivity, since: u64) {
    words.write(at::STATUS_ACTIVITY, activity.raw());
    words.write(at::STATUS_SINCE_NANOS, since);
}

/// Child: whose task it begins.
pub fn show_task<W: Words>(words: &W, identity: &DispatchIdentity) {
    words.write(at::STATUS_RUN, identity.run.get());
    words.write(at::STATUS_DISPATCH, identity.dispatch.get());
}

/// Parent: whether the child says that it is at this task. A hint, as [`Side::cpu_hint`]: people read it, and nothing depends
/// on it.
pub fn says_running<W: Words>(words: &W, identity: &DispatchIdentity) -> bool {
    child(words) == Peer::Known
        && words.read(at::STATUS_ACTIVITY) == ChildActivity::Task.raw()
        && words.read(at::STATUS_RUN) == identity.run.get()
        && words.read(at::STATUS_DISPATCH) == identity.dispatch.get()
}

/// Child: how many tasks it has finished, and the nanoseconds that it spent in them.
pub fn show_tasks<W: Words>(words: &W, tasks: u64, busy: u64) {
    words.write(at::STATUS_TASKS, tasks);
    words.write(at::STATUS_BUSY_NANOS, busy);
}

/// Parent: what the child last counted, tasks and the nanoseconds in them; zeros of a stranger. A hint, as [`Side::cpu_hint`].
#[inline]
pub fn tasks<W: Words>(words: &W) -> (u64, u64) {
    (words.read(at::STATUS_TASKS), words.read(at::STATUS_BUSY_NANOS))
}

/// Child: the nanoseconds that it spent spinning.
pub fn show_spun<W: Words>(words: &W, spun: u64) {
    words.write(at::STATUS_SPIN_NANOS, spun);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::ArrayWords;
    use crate::wire::frame::REGION_BYTES;

    /// W-6
    #[test]
    fn a_region_of_zeros_is_a_stranger_and_never_asks_for_a_wake() {
        let words = ArrayWords::new(REGION_BYTES);
        assert_eq!((parent(&words), child(&words)), (Peer::Stranger, Peer::Stranger));
        assert!(!take_sleeper(&words));
        show_parent(&words);
        assert_eq!((parent(&words), child(&words)), (Peer::Known, Peer::Stranger));
        show_child(&words);
        assert_eq!(child(&words), Peer::Known);
    }

    #[test]
    fn an_announcement_is_taken_once() {
        let words = ArrayWords::new(REGION_BYTES);
        announce_sleep(&words);
        assert!(take_sleeper(&words));
        assert!(!take_sleeper(&words));
        announce_sleep(&words);
        announce_awake(&words);
        assert!(!take_sleeper(&words));
    }
    #[test]
    fn a_cpu_is_a_hint_that_a_stranger_does_not_give_and_a_liar_cannot_abuse() {
        let words = ArrayWords::new(REGION_BYTES);
        for side in [Side::Parent, Side::Child] {
            assert_eq!(side.cpu_hint(&words), None);
            side.show_cpu(&words, 0);
            assert_eq!(side.cpu_hint(&words), Some(0));
        }
        for lie in [i32::MIN, -1, i32::MAX] {
            words.store_relaxed(at::CHILD_CPU, lie);
            assert_eq!(Side::Child.cpu_hint(&words), None);
        }
        for crowded in [true, false] {
            show_crowd(&words, crowded);
            assert_eq!(is_crowded(&words), crowded);
        }
    }

    /// P-20
    #[test]
    fn what_a_child_says_of_itself_is_read_back_and_nonsense_is_unknown() {
        let words = ArrayWords::new(REGION_BYTES);
        show_activity(&words, ChildActivity::Task, 9);
        show_tasks(&words, 3, 70);
        assert_eq!(tasks(&words), (3, 70));
        show_spun(&words, 5);
        let status = Status::read(|at| words.read(at));
        let expected = Status { activity: ChildActivity::Task, dispatch: 0, since: 9, tasks: 3, busy: 70, spun: 5 };
        assert_eq!(status, expected);
        words.write(at::STATUS_ACTIVITY, u64::MAX);
        assert_eq!(Status::read(|at| words.read(at)).activity, ChildActivity::Unknown);
    }
}
