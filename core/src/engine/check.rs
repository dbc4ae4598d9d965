//! What is looked at before a task exists: its target and its arguments.

use alloc::string::String;

use crate::ids::{PipelineSlot, RunId, TaskSlot, WorkerId};
use crate::model::overlap;
use crate::wire::{AddressSpace, ByteRange, ChipTensor, TensorTag};

use super::backing::{HostPlace, Place};
use super::ring::Ring;
use super::slot::Kind;
use super::submit::{List, Submission, Target};
use super::worker::{Life, WorkerIndex};
use super::{Argument, Engine, EngineError, RangeKind, WorkerClass};

/// Up to this many arguments each pair of ranges is compared; beyond it they are sorted first.
const FEW: usize = 16;

/// Most tensors in a list; the builder refuses more.
const MAX_TENSORS: usize = crate::wire::args::MAX_TENSORS;

impl Engine {
    /// The target exists, is alive, and there is one argument list for each of its workers. Returns what the record
    /// starts as; that of a group is nothing in particular until it has its member table.
    pub(super) fn check_target(&self, submission: &Submission<'_>) -> Result<Kind, EngineError> {
        let members = submission.members.len();
        match submission.target {
            Target::NextLevel(worker) if members == 1 => Ok(Kind::NextLevel(self.live_worker(worker)?)),
            _ if members == 0 => Err(EngineError::NoMembers),
            Target::NextLevel(_) => Err(EngineError::MemberCount { targets: 1, members }),
            Target::Sub if members != 1 => Err(EngineError::MemberCount { targets: 1, members }),
            Target::NextLevelGroup(targets) => {
                if targets.len() != members {
                    return Err(EngineError::MemberCount { targets: targets.len(), members });
                }
                for (second, worker) in targets.iter().enumerate() {
                    self.live_worker(*worker)?;
                    if let Some(first) = targets[..second].iter().position(|other| other == worker) {
                        return Err(EngineError::DuplicateTarget { worker: *worker, first, second });
                    }
                }
                Ok(Kind::Slab)
            }
            Target::Sub | Target::SubGroup => {
                if members > self.workers.sub_pool {
                    return Err(EngineError::SubGroupTooLarge { members, pool: self.workers.sub_pool });
                }
                if members > self.workers.live_subs {
                    return Err(self.sub_dead(members));
                }
                Ok(if submission.target == Target::Sub { Kind::Sub } else { Kind::Slab })
            }
        }
    }

    #[inline(always)]
    fn live_worker(&self, worker: WorkerId) -> Result<WorkerIndex, EngineError> {
        match self.workers.next_level(worker) {
            Some(index) if self.workers[index].life == Life::Alive => Ok(index),
            found => Err(self.why_no_worker(worker, found)),
        }
    }

    #[cold]
    fn why_no_worker(&self, worker: WorkerId, found: Option<WorkerIndex>) -> EngineError {
        match found.map(|index| self.workers[index].life) {
            Some(Life::Dead(text)) => EngineError::TargetDead { worker, reason: String::from(self.texts.get(text)) },
            Some(Life::Alive) | None => EngineError::UnknownWorker { worker },
        }
    }

    #[cold]
    fn sub_dead(&self, needed: usize) -> EngineError {
        let last = self.workers.last_dead_sub.map(|index| &self.workers[index]);
        match last.map(|worker| (worker.class, worker.life)) {
            Some((WorkerClass::Sub(last), Life::Dead(text))) => {
                let reason = String::from(self.texts.get(text));
                EngineError::SubDead { needed, live: self.workers.live_subs, last, reason }
            }
            _ => EngineError::SubGroupTooLarge { members: needed, pool: self.workers.live_subs },
        }
    }

    /// Where a host argument lies: somewhere that children can reach (E-38), and if in a slab, in a live one of `run`,
    /// whose owner comes with it.
    pub(super) fn host_place(
        &mut self,
        run: PipelineSlot,
        range: ByteRange,
        tag: TensorTag,
        argument: Argument,
    ) -> Result<(Place, Option<TaskSlot>), EngineError> {
        let address = range.start;
        match self.backings.host(range, run) {
            HostPlace::Slab { place, owner, run: of, .. } if of == run => Ok((place, Some(owner))),
            HostPlace::Slab { ring, .. } | HostPlace::DeadSlab { ring } => {
                let run = self.live(run).map_or(RunId::FIRST, |live| live.id);
                Err(EngineError::DeadSlab { argument, address, ring, run })
            }
            HostPlace::Range { kind: RangeKind::Snapshot, .. } if tag != TensorTag::Input => {
                Err(EngineError::SnapshotWrite { argument, address })
            }
            HostPlace::Range { place, .. } => Ok((place, None)),
            HostPlace::Unknown => Err(EngineError::NotShared { argument, address, bytes: range.len() }),
        }
    }
}

/// Whether a tag says that the task writes the argument.
const fn writes(tag: TensorTag) -> bool {
    matches!(tag, TensorTag::Output | TensorTag::InOut | TensorTag::OutputExisting)
}

/// Bytes of the slab for an output without an address.
pub(super) fn output_bytes(tensor: &ChipTensor, tag: TensorTag, argument: Argument) -> Result<u64, EngineError> {
    if tag != TensorTag::Output || tensor.address_space() == AddressSpace::Device {
        return Err(EngineError::NoAddress { argument });
    }
    match Ring::footprint(tensor.buffer_bytes()) {
        Some(0) => Err(EngineError::EmptyOutput { argument }),
        Some(bytes) => Ok(bytes),
        None => Ok(u64::MAX),
    }
}

/// No two arguments of one list name overlapping bytes when either is written (T-5).
pub(super) fn check_aliases(member: usize, list: &List<'_>) -> Result<(), EngineError> {
    let ranges = list.ranges;
    // What lies outside everything before it needs no comparison with each.
    let (mut low, mut high) = (u64::MAX, 0);
    for (index, range) in ranges.iter().enumerate() {
        if range.start < high && low < range.end {
            let meets = |other: &ByteRange| range.start < other.end && other.start < range.end;
            if index > FEW || ranges[..index].iter().any(meets) {
                // Two ranges meet, or there are many: whether that is an alias is seldom asked.
                return check_many_aliases(member, list);
            }
        }
        low = low.min(range.start);
        high = high.max(range.end);
    }
    Ok(())
}

/// As above, in the order of the first bytes: cost follows the number of neighbours, not the square of the list.
#[cold]
fn check_many_aliases(member: usize, list: &List<'_>) -> Result<(), EngineError> {
    let ranges = list.ranges;
    let mut order = [0u16; MAX_TENSORS];
    let order = &mut order[..ranges.len()];
    for (place, index) in order.iter_mut().zip(0..) {
        *place = index;
    }
    order.sort_unstable_by_key(|index| ranges[*index as usize].start);
    for (position, &a) in order.iter().enumerate() {
        let end = ranges[a as usize].end;
        let mut behind = order[position + 1..].iter().take_while(|b| ranges[**b as usize].start < end);
        if let Some(&b) = behind.find(|b| clash(list, a.into(), (**b).into())) {
            let (first, second) = (usize::from(a.min(b)), usize::from(a.max(b)));
            return Err(EngineError::Aliased { first: Argument { member, tensor: first }, second });
        }
    }
    Ok(())
}

/// Whether two arguments share a byte and one of them is written.
fn clash(list: &List<'_>, a: usize, b: usize) -> bool {
    let List { tensors, tags, .. } = *list;
    (writes(tags[a]) || writes(tags[b]))
        && tensors[a].addr() != 0
        && tensors[b].addr() != 0
        && overlap::overlaps(&tensors[a], &tensors[b])
}
