//! From tags to edges: who must come before a task, and what later tasks must know of it (E-14 to E-19, E-27).

use crate::ids::{GroupIndex, TaskSlot};
use crate::model::Footprint;
use crate::wire::{AddressSpace, ByteRange, ChipTensor, TensorTag};

use super::backing::Backing;
use super::check::writes;
use super::edge::EdgeKind;
use super::map::{Access, Roots};
use super::ring::Ring;
use super::slot::{ArgsRef, Kind, NIL, TaskState};
use super::submit::{Allocated, Submission};
use super::window::Window;
use super::worker::WorkerIndex;
use super::{Argument, Engine, EngineError, Resource};

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
            for (index, ((tensor, tag), range)) in tensors.enumerate() {
                if tensor.addr() != 0 && !range.is_empty() {
                    self.wire_tensor(slot, Argument { member, tensor: index }, tensor, *tag, *range, poison)?;
                }
            }
        }
        Ok(())
    }

    fn wire_tensor(
        &mut self,
        slot: TaskSlot,
        argument: Argument,
        tensor: &ChipTensor,
        tag: TensorTag,
        range: ByteRange,
        poison: &mut u32,
    ) -> Result<(), EngineError> {
        let run = self.slots[slot].run;
        let backing = match tensor.address_space() {
            AddressSpace::Host => {
                let (backing, owner) = self.host_place(run, range, tag, argument)?;
                if let Some(owner) = owner {
                    // Any argument keeps the slab that it lies in, and does not wait by that alone (E-27).
                    self.connect(owner, slot, EdgeKind::LIFETIME)?;
                }
                backing
            }
            AddressSpace::Device => Backing::Device(self.device_of(slot, argument.member)),
        };
        if tag == TensorTag::NoDep {
            return Ok(());
        }
        let (window, shape) = if tensor.is_contiguous() {
            (Window::contiguous(range), None)
        } else {
            (Window::of(tensor, range, self.backings.base(backing)), Some(Footprint::of(tensor)))
        };
        let roots = *self.backings.roots(backing, run);
        let reads = matches!(tag, TensorTag::Input | TensorTag::InOut);
        if roots.writers != NIL && (reads || self.strict_war) {
            // A pure overwrite is at most ordered: what the earlier writer wrote is not read.
            let found = self.map.overlapping(roots.writers, &window, shape.as_ref());
            self.wire_after(slot, found, reads.then_some(poison))?;
        }
        if roots.readers != NIL && writes(tag) {
            let found = self.map.overlapping(roots.readers, &window, shape.as_ref());
            self.wire_after(slot, found, None)?;
        }
        if self.is_recorded(tag) {
            let access = if writes(tag) { Access::Write } else { Access::Read };
            let first = self.slots[slot].entries;
            self.slots[slot].entries =
                self.map.create(slot, access, backing, window, shape, tag == TensorTag::InOut, first);
        }
        Ok(())
    }

    /// The worker whose device memory an argument of this member names.
    fn device_of(&self, slot: TaskSlot, member: usize) -> WorkerIndex {
        match self.slots[slot].kind {
            Kind::NextLevel(worker) => worker,
            Kind::Group { first, .. } => self.members.members[first as usize + member].target,
            // Refused by the check of the arguments.
            Kind::Sub | Kind::Slab => WorkerIndex(0),
        }
    }

    /// Connects `slot` to the task of every entry of a chain: as a reader of what it writes if `poison` is given, else
    /// only in time.
    fn wire_after(&mut self, slot: TaskSlot, mut entry: u32, mut poison: Option<&mut u32>) -> Result<(), EngineError> {
        while entry != NIL {
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
            entry = self.map.chained(entry);
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
                        let shape = (!tensor.is_contiguous()).then(|| Footprint::of(&tensor));
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
            let mut roots = *self.backings.roots(backing, run);
            if access == Access::Read || !self.replace_covered(&mut roots, entry) {
                self.map.link(&mut roots, entry);
            }
            *self.backings.roots(backing, run) = roots;
            entry = self.map.next(entry);
        }
    }

    /// Unlinks what `entry` replaces; `true` if it has been linked in the place of one that touches the same bytes.
    fn replace_covered(&mut self, roots: &mut Roots, entry: u32) -> bool {
        // A task that waited for all earlier ones stands for them; a pure overwrite only for those that have ended.
        let waited = self.strict_war || self.map.is_update(entry);
        let (window, shape) = self.map.view(entry);
        let (mut covered, mut twin) = (NIL, NIL);
        let mut other = self.map.overlapping(roots.writers, &window, shape.as_ref());
        while other != NIL {
            let next = self.map.chained(other);
            if self.map.covers(entry, other) {
                let owner = self.map.slot(other);
                if !waited && self.is_unended(owner) {
                    if self.slots[owner].state == TaskState::Failed {
                        self.map.mark_overwritten(other);
                    }
                } else if twin == NIL && self.map.same(entry, other) {
                    twin = other;
                } else {
                    covered = self.map.chain(other, covered);
                }
            }
            other = next;
        }
        let mut other = self.map.overlapping(roots.readers, &window, shape.as_ref());
        while other != NIL {
            let next = self.map.chained(other);
            if self.map.covers(entry, other) {
                covered = self.map.chain(other, covered);
            }
            other = next;
        }
        while covered != NIL {
            let next = self.map.chained(covered);
            self.map.unlink(roots, covered);
            covered = next;
        }
        if twin != NIL {
            self.map.supersede(roots, twin, entry);
        }
        twin != NIL
    }

    /// Takes a task's entries out of their trees and frees them (E-17, E-23).
    pub(super) fn free_entries(&mut self, slot: TaskSlot) {
        let run = self.slots[slot].run;
        let mut entry = core::mem::replace(&mut self.slots[slot].entries, NIL);
        while entry != NIL {
            if self.map.is_linked(entry) {
                let (backing, _) = self.map.place(entry);
                self.map.unlink(self.backings.roots(backing, run), entry);
            }
            entry = self.map.free(entry);
        }
    }
}
