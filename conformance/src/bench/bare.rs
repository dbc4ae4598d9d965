//! Processes and bells alone: what more processes than CPUs take when there is no mailbox, no graph and no choice.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::mailbox::Words;
use laneway_linux::sys::clock;
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::lifeline::{LifelineHold, LifelinePipe};
use laneway_linux::sys::park::Bed;
use laneway_linux::sys::words::MappedWords;

use super::Failure;
use super::partner::{FREE, Partner, shared_words, wake};
use super::slice::Slice;
use super::trees::compute;

/// A parent and processes that compute for it. Nobody spins: each side looks once and sleeps.
pub(super) struct BarePool {
    members: Vec<Partner>,
    bed: Bed,
    /// Says whether the parent sleeps.
    parent: MappedWords,
    /// Keeps the bed from being told that its parent is gone.
    _hold: LifelineHold,
}

/// Values of a member's state word.
const FREE_MEMBER: i32 = 0;
const ASKED: i32 = 1;
const DONE: i32 = 2;

/// Where the words of a member lie: its state, how many nanoseconds it shall compute for, and whether it sleeps.
const STATE: usize = FREE;
const NANOS: usize = FREE + 4;
const PARKED: usize = FREE + 64;
const BYTES: usize = 128;

/// Where the parent says that it sleeps.
const PARENT_PARKED: usize = 0;

impl BarePool {
    /// Starts the processes, on whatever CPU the kernel puts them.
    pub(super) fn start(members: usize) -> Result<Self, Failure> {
        let to_parent = Arc::new(Bell::new()?);
        let parent = shared_words("bench-bare-pool", 64)?;
        let member = |_| {
            let up = to_parent.clone();
            Partner::start("bench-bare-member", BYTES, None, &[&to_parent], move |seat| {
                let words = seat.words;
                Ok(Box::new(move |seat| {
                    while seat.goes_on() {
                        if words.load(STATE) != ASKED {
                            seat.park(PARKED, || words.load(STATE) == ASKED);
                            continue;
                        }
                        compute(Duration::from_nanos(words.load_relaxed(NANOS).unsigned_abs().into()));
                        words.store(STATE, DONE);
                        wake(&parent, PARENT_PARKED, &up);
                    }
                }))
            })
        };
        let members = (0..members).map(member).collect::<Result<_, _>>()?;
        let (hold, lifeline) = LifelinePipe::new()?.split();
        Ok(Self { members, bed: Bed::new(&to_parent, &lifeline, None)?, parent, _hold: hold })
    }

    /// `tasks` tasks that compute for `time`, on as many members as there are but one; a sample is a task.
    pub(super) fn busy(&mut self, slice: &mut Slice, tasks: usize, time: Duration) -> Result<(), Failure> {
        self.members.iter().for_each(Partner::go);
        let Self { members, bed, parent, .. } = self;
        let workers = &members[..members.len() - 1];
        slice.repeat(tasks as u64, || {
            let (mut left, mut out) = (tasks, 0);
            while left + out > 0 {
                let mut changed = false;
                for member in workers {
                    if is_done(member) {
                        member.words().store_relaxed(STATE, FREE_MEMBER);
                        out -= 1;
                        changed = true;
                    }
                    if left > 0 && member.words().load_relaxed(STATE) == FREE_MEMBER {
                        ask(member, time);
                        (left, out, changed) = (left - 1, out + 1, true);
                    }
                }
                if !changed {
                    bed.park(&*parent, PARENT_PARKED, None, || workers.iter().any(is_done));
                }
            }
            Ok(())
        })?;
        self.members.iter_mut().try_for_each(Partner::stop)
    }

    /// One member after the other is asked and answers at once, the last one left out.
    pub(super) fn in_turn(&mut self, slice: &mut Slice) -> Result<(), Failure> {
        self.members.iter().for_each(Partner::go);
        let Self { members, bed, parent, .. } = self;
        let mut turns = members[..members.len() - 1].iter().cycle();
        slice.repeat(1, || {
            let member = turns.next().ok_or("no members")?;
            ask(member, Duration::ZERO);
            await_answer(member, bed, parent);
            Ok(())
        })?;
        self.members.iter_mut().try_for_each(Partner::stop)
    }

    /// The same while the last one computes.
    pub(super) fn one_computes(&mut self, slice: &mut Slice) -> Result<(), Failure> {
        self.members.iter().for_each(Partner::go);
        let Self { members, bed, parent, .. } = self;
        let deadline = slice.deadline();
        if let Some((computing, answering)) = members.split_last() {
            ask(computing, slice.length());
            for member in answering.iter().cycle() {
                let start = clock::now();
                ask(member, Duration::ZERO);
                await_answer(member, bed, parent);
                let end = clock::now();
                slice.record(end.since(start), 1);
                if end >= deadline {
                    break;
                }
            }
            await_answer(computing, bed, parent);
        }
        self.members.iter_mut().try_for_each(Partner::stop)
    }
}

fn is_done(member: &Partner) -> bool {
    member.words().load(STATE) == DONE
}

/// Sleeps until this one is done, and frees it.
fn await_answer(member: &Partner, bed: &mut Bed, parent: &MappedWords) {
    while !is_done(member) {
        bed.park(parent, PARENT_PARKED, None, || is_done(member));
    }
    member.words().store_relaxed(STATE, FREE_MEMBER);
}

fn ask(member: &Partner, time: Duration) {
    let words = member.words();
    words.store_relaxed(NANOS, i32::try_from(time.as_nanos()).unwrap_or(i32::MAX));
    words.store(STATE, ASKED);
    wake(&words, PARKED, member.bell());
}
