//! From tags to edges: who must come before a task, and what later tasks must know of it (E-14 to E-19, E-27).

use crate::ids::{GroupIndex, PipelineSlot, TaskSlot};
use crate::model::Footprint;
use crate::wire::{AddressSpace, ByteRange, ChipTensor, TensorTag};

use super::backing::{Backing, HostPlace};
use super::check::writes;
use super::edge::EdgeKind;
use super::map::{Access, Search};
use super::ring::Ring;
use super::slot::{ArgsRef, Kind, NIL, TaskState};
use super::submit::{Allocated, Submission};
use super::window::Window;
use super::{Engine, EngineError, Resource};

impl Engine {
    /// Finds the producers of every argument and connects them, and makes the entries of the written ones; none is in
    /// a tree yet, so that the members of a group do not see each other (E-18). `poison` becomes the first producer
    /// that has failed (E-12).
    pub(super) fn wire(
        &mut self,
        slot: TaskSlot,
        submission: &Submission<'_>,
        poison: &mut u32,
    ) -> Result<(), EngineError> {
        for (member, args) in submission.members.iter().enumerate() {
            let tensors = args.tensors().iter().zip(args.tags()).zip(args.ranges());
            for ((tensor, tag), range) in tensors {
                if tensor.addr() != 0 && !range.is_empty() {
                    self.wire_tensor(slot, member, tensor, *tag, *range, poison)?;
                }
            }
        }
        Ok(())
    }

    fn wire_tensor(
        &mut self,
        slot: TaskSlot,
        member: usize,
        tensor: &ChipTensor,
        tag: TensorTag,
        range: ByteRange,
        poison: &mut u32,
    ) -> Result<(), EngineError> {
        let Some((backing, owner)) = self.backing_of(slot, member, tensor, range) else { return Ok(()) };
        if let Some(owner) = owner {
            // Any argument keeps the slab that it lies in, and does not wait by that alone (E-27).
            self.connect(owner, slot, EdgeKind::LIFETIME)?;
        }
        if tag == TensorTag::NoDep {
            return Ok(());
        }
        let run = self.slots[slot].run;
        let window = Window::of(tensor, range, self.backings.base(backing));
        let shape = Footprint::of(tensor);
        let roots = *self.backings.roots(backing, run);
        match tag {
            TensorTag::Input | TensorTag::InOut => {
                self.wire_after(slot, Search::new(roots.writers, window), &shape, Some(poison))?;
            }
            // Order only; what the earlier writer wrote is not read.
            _ if self.strict_war => self.wire_after(slot, Search::new(roots.writers, window), &shape, None)?,
            _ => {}
        }
        if self.strict_war && writes(tag) {
            self.wire_after(slot, Search::new(roots.readers, window), &shape, None)?;
        }
        if self.is_recorded(tag) {
            let access = if writes(tag) { Access::Write } else { Access::Read };
            let first = self.slots[slot].entries;
            self.slots[slot].entries =
                self.map.create(slot, access, backing, window, shape, tag == TensorTag::InOut, first);
        }
        Ok(())
    }

    /// The memory that an argument lies in, and the task that owns it if it is a slab.
    fn backing_of(
        &self,
        slot: TaskSlot,
        member: usize,
        tensor: &ChipTensor,
        range: ByteRange,
    ) -> Option<(Backing, Option<TaskSlot>)> {
        if tensor.address_space() == AddressSpace::Device {
            let worker = match self.slots[slot].kind {
                Kind::NextLevel(worker) => worker,
                Kind::Group { first, sub: false } => self.members.members[first as usize + member].target,
                _ => return None,
            };
            return Some((Backing::Device(worker), None));
        }
        match self.backings.host(range) {
            HostPlace::Slab { backing, owner, .. } => Some((backing, Some(owner))),
            HostPlace::Range { backing, .. } => Some((backing, None)),
            // Refused by the check of the arguments.
            HostPlace::DeadSlab { .. } | HostPlace::Unknown => None,
        }
    }

    /// Connects `slot` to every task that the search finds: as a reader of what it writes if `poison` is given, else
    /// only in time.
    fn wire_after(
        &mut self,
        slot: TaskSlot,
        mut search: Search,
        shape: &Footprint,
        mut poison: Option<&mut u32>,
    ) -> Result<(), EngineError> {
        while let Some(entry) = search.next(&self.map, shape) {
            let producer = self.map.slot(entry);
            let reads = poison.is_some() && !self.map.is_overwritten(entry);
            self.connect(producer, slot, if reads { EdgeKind::DATA } else { EdgeKind::ORDER })?;
            if let Some(poison) = &mut poison
                && reads
                && **poison == NIL
                && self.slots[producer].state == TaskState::Failed
            {
                **poison = producer.0;
            }
        }
        Ok(())
    }

    fn connect(&mut self, producer: TaskSlot, consumer: TaskSlot, kind: EdgeKind) -> Result<(), EngineError> {
        let unended = self.is_unended(producer);
        if self.edges.connect(&mut self.slots, producer, consumer, kind, unended) {
            return Ok(());
        }
        // The edges of this very submit come back with it, so it counts them as needed.
        let mut needed = 1;
        let mut at = self.slots[consumer].producers;
        while at != NIL {
            needed += 1;
            at = self.edges[at].next_producer;
        }
        Err(self.blocked(Resource::Edges, needed, self.edges.capacity().into()))
    }

    /// Whether later tasks may still have to wait for this one: it has not ended, or it failed before its producers
    /// ended.
    pub(super) fn is_unended(&self, slot: TaskSlot) -> bool {
        let record = &self.slots[slot];
        match record.state {
            TaskState::Completed => false,
            TaskState::Failed => record.pending > 0,
            _ => true,
        }
    }

    /// Takes the edges of a submit that failed back (E-11).
    pub(super) fn unwire(&mut self, slot: TaskSlot) {
        while self.slots[slot].producers != NIL {
            let index = self.slots[slot].producers;
            let edge = self.edges[index];
            self.slots[slot].producers = edge.next_producer;
            self.edges.retract(&mut self.slots, index);
        }
    }

    /// Tells every output that the submit allocated where it is, and makes their entries.
    pub(super) fn place_outputs(
        &mut self,
        slot: TaskSlot,
        submission: &Submission<'_>,
        allocated: &mut dyn FnMut(Allocated),
    ) {
        let Some(block) = self.slots[slot].block else { return };
        let backing = Backing::Slab { ring: block.ring, sequence: block.sequence };
        let base = self.block_start(slot);
        let mut address = base;
        for (member, args) in submission.members.iter().enumerate() {
            let stored = self.member_args(slot, member);
            for (index, tensor) in args.tensors().iter().enumerate() {
                if tensor.addr() != 0 {
                    continue;
                }
                allocated(Allocated { member: GroupIndex(member as u16), tensor: index, address });
                // The list was encoded from these very tensors, and the block lies within the address space.
                let placed = crate::wire::args::place(self.arena.blob_mut(stored), index, address);
                debug_assert!(placed.is_ok(), "the list has this tensor");
                if let Ok(tensor) = tensor.with_address(address) {
                    let range = tensor.byte_range();
                    if !range.is_empty() {
                        let window = Window::of(&tensor, range, base);
                        let first = self.slots[slot].entries;
                        let shape = Footprint::of(&tensor);
                        self.slots[slot].entries =
                            self.map.create(slot, Access::Write, backing, window, shape, false, first);
                    }
                }
                address += Ring::footprint(tensor.buffer_bytes()).unwrap_or(0);
            }
        }
    }

    pub(super) fn member_args(&self, slot: TaskSlot, member: usize) -> ArgsRef {
        match self.slots[slot].kind {
            Kind::Group { first, .. } => self.members.members[first as usize + member].args,
            _ => self.slots[slot].args,
        }
    }

    /// Puts the task's entries into their trees; each takes the place of those that it replaces (E-17).
    pub(super) fn insert_entries(&mut self, slot: TaskSlot) {
        let run = self.slots[slot].run;
        let mut entry = self.slots[slot].entries;
        while entry != NIL {
            let (backing, access) = self.map.place(entry);
            if access == Access::Write {
                self.replace_covered(entry, backing, run);
            }
            self.map.link(self.backings.roots(backing, run), entry);
            entry = self.map.next(entry);
        }
    }

    fn replace_covered(&mut self, entry: u32, backing: Backing, run: PipelineSlot) {
        let roots = *self.backings.roots(backing, run);
        let (window, shape) = self.map.view(entry);
        // A task that waited for all earlier ones stands for them; a pure overwrite only for those that have ended.
        let waited = self.strict_war || self.map.is_update(entry);
        let mut covered = NIL;
        let mut search = Search::new(roots.writers, window);
        while let Some(other) = search.next(&self.map, &shape) {
            if !self.map.covers(entry, other) {
                continue;
            }
            let owner = self.map.slot(other);
            if waited || !self.is_unended(owner) {
                covered = self.map.chain(other, covered);
            } else if self.slots[owner].state == TaskState::Failed {
                self.map.mark_overwritten(other);
            }
        }
        let mut search = Search::new(roots.readers, window);
        while let Some(other) = search.next(&self.map, &shape) {
            if self.map.covers(entry, other) {
                covered = self.map.chain(other, covered);
            }
        }
        while covered != NIL {
            let next = self.map.chained(covered);
            self.map.unlink(self.backings.roots(backing, run), covered);
            covered = next;
        }
    }

    /// Takes a task's entries out of their trees and frees them (E-17, E-23).
    pub(super) fn free_entries(&mut self, slot: TaskSlot) {
        let run = self.slots[slot].run;
        let mut entry = core::mem::replace(&mut self.slots[slot].entries, NIL);
        while entry != NIL {
            let (backing, _) = self.map.place(entry);
            entry = self.map.free(self.backings.roots(backing, run), entry);
        }
    }
}
