//! What is looked at before a task exists: its target and its arguments.

use alloc::string::String;

use crate::ids::{PipelineSlot, WorkerId};
use crate::model::{TaskArgs, overlap};
use crate::wire::{AddressSpace, ChipTensor, TensorTag};

use super::backing::HostPlace;
use super::ring::Ring;
use super::submit::{Needs, Submission, Target};
use super::worker::Life;
use super::{Argument, Engine, EngineError, RangeKind, WorkerClass};

/// Up to this many comparisons each pair of arguments is compared; beyond it they are sorted first.
const FEW_PAIRS: usize = 256;

/// Most tensors in a list; the builder refuses more.
const MAX_TENSORS: usize = crate::wire::args::MAX_TENSORS;

impl Engine {
    /// The target exists, is alive, and there is one argument list for each of its workers.
    pub(super) fn check_target(&self, submission: &Submission<'_>) -> Result<(), EngineError> {
        let members = submission.members.len();
        if members == 0 {
            return Err(EngineError::NoMembers);
        }
        match submission.target {
            Target::NextLevel(worker) => {
                if members != 1 {
                    return Err(EngineError::MemberCount { targets: 1, members });
                }
                self.check_worker(worker)
            }
            Target::NextLevelGroup(targets) => {
                if targets.len() != members {
                    return Err(EngineError::MemberCount { targets: targets.len(), members });
                }
                for (second, worker) in targets.iter().enumerate() {
                    self.check_worker(*worker)?;
                    if let Some(first) = targets[..second].iter().position(|other| other == worker) {
                        return Err(EngineError::DuplicateTarget { worker: *worker, first, second });
                    }
                }
                Ok(())
            }
            Target::Sub if members != 1 => Err(EngineError::MemberCount { targets: 1, members }),
            Target::Sub | Target::SubGroup => {
                if members > self.workers.sub_pool {
                    return Err(EngineError::SubGroupTooLarge { members, pool: self.workers.sub_pool });
                }
                if members > self.workers.live_subs {
                    return Err(self.sub_dead(members));
                }
                Ok(())
            }
        }
    }

    fn check_worker(&self, worker: WorkerId) -> Result<(), EngineError> {
        let Some(index) = self.workers.next_level(worker) else { return Err(EngineError::UnknownWorker { worker }) };
        match self.workers[index].life {
            Life::Alive => Ok(()),
            Life::Dead(text) => Err(EngineError::TargetDead { worker, reason: String::from(self.texts.get(text)) }),
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

    /// Every argument may be handed to the children, and no two of one task get in each other's way. Says what the
    /// task needs of the pools.
    pub(super) fn check_arguments(&self, run: PipelineSlot, submission: &Submission<'_>) -> Result<Needs, EngineError> {
        let mut needs = Needs::default();
        let sub = matches!(submission.target, Target::Sub | Target::SubGroup);
        for (member, args) in submission.members.iter().enumerate() {
            args.check().map_err(|error| EngineError::Arguments { member, error })?;
            let tensors = args.tensors();
            if tensors.is_empty() {
                continue;
            }
            let mut written = 0;
            for (index, (tensor, tag)) in tensors.iter().zip(args.tags()).enumerate() {
                let argument = Argument { member, tensor: index };
                needs.entries += u32::from(self.is_recorded(*tag));
                written += usize::from(writes(*tag));
                if tensor.addr() == 0 {
                    needs.block = needs.block.saturating_add(output_bytes(tensor, *tag, argument)?);
                } else if tensor.address_space() == AddressSpace::Device {
                    if sub {
                        return Err(EngineError::DeviceOnSub { argument });
                    }
                } else {
                    self.check_host(run, args, *tag, argument)?;
                }
            }
            if written > 0 && tensors.len() > 1 {
                check_aliases(member, args, written)?;
            }
        }
        Ok(needs)
    }

    /// Whether an argument with this tag leaves an entry in the map.
    pub(super) fn is_recorded(&self, tag: TensorTag) -> bool {
        writes(tag) || (self.strict_war && tag == TensorTag::Input)
    }

    /// Whether children can reach a host argument (E-38), and whether its slab is this run's and alive.
    fn check_host(
        &self,
        run: PipelineSlot,
        args: &TaskArgs,
        tag: TensorTag,
        argument: Argument,
    ) -> Result<(), EngineError> {
        let range = args.ranges()[argument.tensor];
        if range.is_empty() {
            return Ok(());
        }
        let address = range.start;
        let dead = |ring| {
            let run = self.live(run).map_or(crate::ids::RunId::FIRST, |live| live.id);
            Err(EngineError::DeadSlab { argument, address, ring, run })
        };
        match self.backings.host(range) {
            HostPlace::Slab { run: owner, .. } if owner == run => Ok(()),
            HostPlace::Slab { ring, .. } | HostPlace::DeadSlab { ring } => dead(ring),
            HostPlace::Range { kind: RangeKind::Snapshot, .. } if tag != TensorTag::Input => {
                Err(EngineError::SnapshotWrite { argument, address })
            }
            HostPlace::Range { .. } => Ok(()),
            HostPlace::Unknown => Err(EngineError::NotShared { argument, address, bytes: range.len() }),
        }
    }
}

/// Whether a tag says that the task writes the argument.
pub(super) const fn writes(tag: TensorTag) -> bool {
    matches!(tag, TensorTag::Output | TensorTag::InOut | TensorTag::OutputExisting)
}

/// Bytes of the slab for an output without an address.
fn output_bytes(tensor: &ChipTensor, tag: TensorTag, argument: Argument) -> Result<u64, EngineError> {
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
fn check_aliases(member: usize, args: &TaskArgs, written: usize) -> Result<(), EngineError> {
    let (tensors, tags, ranges) = (args.tensors(), args.tags(), args.ranges());
    let clash = |a: usize, b: usize| {
        (writes(tags[a]) || writes(tags[b]))
            && tensors[a].addr() != 0
            && tensors[b].addr() != 0
            && ranges[a].overlaps(ranges[b])
            && overlap::overlaps(&tensors[a], &tensors[b])
    };
    let refuse = |a: usize, b: usize| {
        Err(EngineError::Aliased { first: Argument { member, tensor: a.min(b) }, second: a.max(b) })
    };
    if tensors.len() * written <= FEW_PAIRS {
        for second in 1..tensors.len() {
            if let Some(first) = (0..second).find(|first| clash(*first, second)) {
                return refuse(first, second);
            }
        }
        return Ok(());
    }
    let mut order = [0u16; MAX_TENSORS];
    let order = &mut order[..tensors.len()];
    for (place, index) in order.iter_mut().zip(0..) {
        *place = index;
    }
    order.sort_unstable_by_key(|index| ranges[*index as usize].start);
    for (position, &first) in order.iter().enumerate() {
        let end = ranges[first as usize].end;
        let behind = order[position + 1..].iter().take_while(|second| ranges[**second as usize].start < end);
        if let Some(&second) = behind.into_iter().find(|second| clash(first as usize, **second as usize)) {
            return refuse(first as usize, second as usize);
        }
    }
    Ok(())
}
