//! From tags to edges: who must come before a task, and what later tasks must know of it (E-14 to E-19, E-27).

use crate::ids::{GroupIndex, TaskSlot};
use crate::model::Footprint;
use crate::wire::{AddressSpace, ByteRange, ChipTensor, TensorTag};

use super::backing::Backing;
use super::check::{check_aliases, output_bytes};
use super::edge::EdgeKind;
use super::map::{Access, Hint, NewEntry, Roots};
use super::ring::Ring;
use super::slot::{ArgsRef, Kind, NIL, TaskState};
use super::submit::{Allocated, List, Submission, Wiring};
use super::window::Window;
use super::worker::WorkerIndex;
use super::{Argument, Engine, EngineError, Resource};

impl Engine {
    /// Finds the producers of every tensor of a list and connects them, and makes the entries of the written ones; none
    /// is in a tree yet, so that the members of a group do not see each other (E-18).
    pub(super) fn wire_list(
        &mut self,
        slot: TaskSlot,
        member: usize,
        list: List<'_>,
        wiring: &mut Wiring,
    ) -> Result<(), EngineError> {
        if list.tensors.len() > 1 {
            check_aliases(member, &list)?;
        }
        let count = list.tensors.len();
        let (tags, ranges) = (&list.tags[..count], &list.ranges[..count]);
        for index in 0..count {
            let (tensor, tag, range) = (&list.tensors[index], tags[index], ranges[index]);
            let argument = Argument { member, tensor: index };
            if tensor.addr() == 0 {
                wiring.block = wiring.block.saturating_add(output_bytes(tensor, tag, argument)?);
                wiring.outputs += 1;
                self.check_entry(slot, wiring, 0)?;
            } else if range.start < range.end {
                self.wire_tensor(slot, argument, tensor, tag, range, wiring)?;
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
        wiring: &mut Wiring,
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
            AddressSpace::Device => match self.device_of(slot, argument.member) {
                Some(worker) => Backing::Device(worker),
                None => return Err(EngineError::DeviceOnSub { argument }),
            },
        };
        let (reads, written) = match tag {
            TensorTag::Input => (true, false),
            TensorTag::InOut => (true, true),
            TensorTag::Output | TensorTag::OutputExisting => (false, true),
            TensorTag::NoDep => return Ok(()),
        };
        let strided;
        let (window, shape) = if tensor.is_contiguous() {
            (&Window::contiguous(range), None)
        } else {
            strided = Footprint::of(tensor);
            (&Window::of(tensor, range, self.backings.base(backing)), Some(&strided))
        };
        let roots = *self.backings.roots(backing, run);
        // Readers and writers both search: the one for what to wait for, the other for what to replace.
        let found = self.map.overlapping(roots.writers, window, shape);
        if found != NIL && (reads || self.strict_war) {
            // A pure overwrite is at most ordered: what the earlier writer wrote is not read.
            self.wire_after(slot, found, reads.then_some(&mut wiring.poison))?;
        }
        if !written && !self.strict_war {
            return Ok(());
        }
        self.check_entry(slot, wiring, 1)?;
        let access = if written { Access::Write } else { Access::Read };
        let update = reads && written;
        let first = self.slots[slot].entries;
        let entry = self.map.create(&NewEntry { slot, access, backing, window, shape, update }, first);
        self.slots[slot].entries = entry;
        if roots.readers != NIL && written {
            let found = self.map.overlapping(roots.readers, window, shape);
            return self.wire_after(slot, found, None);
        }
        if found == NIL {
            self.map.set_hint(entry, Hint::Alone);
        } else if self.map.only(found) != NIL
            && self.map.same(entry, found)
            && (update || self.strict_war || !self.is_unended(self.map.slot(found)))
        {
            self.map.set_hint(entry, Hint::Twin(found));
        }
        Ok(())
    }

    /// Whether the map has room for the outputs of this submit and `more` entries.
    fn check_entry(&self, slot: TaskSlot, wiring: &Wiring, more: u32) -> Result<(), EngineError> {
        let (used, capacity) = (self.map.used(), self.map.capacity());
        let needed = wiring.outputs + more;
        if needed <= capacity - used {
            return Ok(());
        }
        Err(self.entries_full(slot, needed))
    }

    #[cold]
    fn entries_full(&self, slot: TaskSlot, needed: u32) -> EngineError {
        let needed = self.map.count(self.slots[slot].entries) + needed;
        self.blocked(Resource::MapEntries, needed.into(), self.map.capacity().into())
    }

    /// The worker whose device memory an argument of this member names.
    fn device_of(&self, slot: TaskSlot, member: usize) -> Option<WorkerIndex> {
        match self.slots[slot].kind {
            Kind::NextLevel(worker) => Some(worker),
            Kind::Group { first, sub: false } => Some(self.members.members[first as usize + member].target),
            Kind::Group { sub: true, .. } | Kind::Sub | Kind::Slab => None,
        }
    }

    /// Connects `slot` to the task of every entry of a chain: as a reader of what it writes if `poison` is given, else
    /// only in time.
    #[inline(never)]
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
                        self.slots[slot].entries = self.map.create(
                            &NewEntry {
                                slot,
                                access: Access::Write,
                                backing,
                                window: &window,
                                shape: shape.as_ref(),
                                update: false,
                            },
                            first,
                        );
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
            match self.map.hint(entry) {
                _ if access == Access::Read => self.map.link(&mut roots, entry),
                Hint::Alone => self.map.link(&mut roots, entry),
                // Another member of the group may have taken the place.
                Hint::Twin(twin) if self.map.is_linked(twin) => self.map.supersede(&mut roots, twin, entry),
                Hint::Twin(_) | Hint::Search => self.replace_covered(&mut roots, entry),
            }
            *self.backings.roots(backing, run) = roots;
            entry = self.map.next(entry);
        }
    }

    /// Links `entry` and unlinks what it replaces.
    fn replace_covered(&mut self, roots: &mut Roots, entry: u32) {
        // A task that waited for all earlier ones stands for them; a pure overwrite only for those that have ended.
        let waited = self.strict_war || self.map.is_update(entry);
        let (mut covered, mut twin) = (NIL, NIL);
        let mut other = self.map.overlapping_entry(roots.writers, entry);
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
        let mut other = self.map.overlapping_entry(roots.readers, entry);
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
        match twin {
            NIL => self.map.link(roots, entry),
            twin => self.map.supersede(roots, twin, entry),
        }
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
