//! From tags to edges: who must come before a task, and what later tasks must know of it (E-14 to E-19, E-27).

use crate::ids::{GroupIndex, PipelineSlot, TaskSlot};
use crate::model::Footprint;
use crate::wire::{AddressSpace, ByteRange, ChipTensor, TensorTag};

use super::backing::{Place, TreeIndex};
use super::check::{check_aliases, output_bytes};
use super::edge::EdgeKind;
use super::map::{Access, Found, NewEntry, Plan, View};
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
        let run = self.slots[slot].run;
        for (index, ((tensor, tag), range)) in list.tensors.iter().zip(list.tags).zip(list.ranges).enumerate() {
            let argument = Argument { member, tensor: index };
            if tensor.addr() == 0 {
                wiring.block = wiring.block.saturating_add(output_bytes(tensor, *tag, argument)?);
                wiring.outputs += 1;
                self.check_entry(slot, wiring, 0)?;
            } else if range.start < range.end {
                let place = match tensor.address_space() {
                    AddressSpace::Host => match self.backings.recent(*range, run) {
                        Some(place) => place,
                        None => self.look_up_host(slot, *range, *tag, argument)?,
                    },
                    AddressSpace::Device => self.look_up_device(slot, argument)?,
                };
                if tensor.is_contiguous() {
                    self.wire_view(slot, place.tree, *tag, &View::Contiguous(*range), wiring)?;
                } else {
                    self.wire_strided(slot, place, tensor, *tag, *range, wiring)?;
                }
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn look_up_host(
        &mut self,
        slot: TaskSlot,
        range: ByteRange,
        tag: TensorTag,
        argument: Argument,
    ) -> Result<Place, EngineError> {
        let (place, owner) = self.host_place(self.slots[slot].run, range, tag, argument)?;
        if let Some(owner) = owner {
            // Any argument keeps the slab that it lies in, and does not wait by that alone (E-27).
            self.connect(owner, slot, EdgeKind::LIFETIME)?;
        }
        Ok(place)
    }

    fn look_up_device(&self, slot: TaskSlot, argument: Argument) -> Result<Place, EngineError> {
        match self.device_of(slot, argument.member) {
            Some(worker) => Ok(Place { tree: self.backings.device_tree(worker, self.slots[slot].run), base: 0 }),
            None => Err(EngineError::DeviceOnSub { argument }),
        }
    }

    #[inline(never)]
    fn wire_strided(
        &mut self,
        slot: TaskSlot,
        place: Place,
        tensor: &ChipTensor,
        tag: TensorTag,
        range: ByteRange,
        wiring: &mut Wiring,
    ) -> Result<(), EngineError> {
        let (window, shape) = (Window::of(tensor, range, place.base), Footprint::of(tensor));
        self.wire_view(slot, place.tree, tag, &View::Strided(&window, &shape), wiring)
    }

    /// Connects the task to those that write what it reads or updates, and makes the entry of what it writes.
    #[inline(always)]
    fn wire_view(
        &mut self,
        slot: TaskSlot,
        tree: TreeIndex,
        tag: TensorTag,
        view: &View<'_>,
        wiring: &mut Wiring,
    ) -> Result<(), EngineError> {
        let reads = matches!(tag, TensorTag::Input | TensorTag::InOut);
        let writes = matches!(tag, TensorTag::InOut | TensorTag::Output | TensorTag::OutputExisting);
        if !reads && !writes {
            return Ok(());
        }
        if self.strict_war {
            return self.wire_strictly(slot, tree, (reads, writes), view, wiring);
        }
        // Readers and writers both search: the one for what to wait for, the other for what to replace.
        let found = self.map.overlapping(self.backings.roots_mut(tree), Access::Write, view);
        if reads && found.taken != NIL {
            self.wire_after(slot, found.taken, Some(&mut wiring.poison))?;
        }
        if !writes {
            if found.vacant != NIL && self.map.only(found.vacant).is_none() {
                // One may stay, where a writer of the same bytes may come; more would be met again and again.
                self.take_out(found.vacant);
            }
            return Ok(());
        }
        self.check_entry(slot, wiring, 1)?;
        self.enter_writer(slot, tree, view, reads, found, wiring);
        Ok(())
    }

    /// As above with `strict_war`: who overwrites comes after all earlier writers and readers, and so readers have entries
    /// too (E-19).
    #[inline(never)]
    fn wire_strictly(
        &mut self,
        slot: TaskSlot,
        tree: TreeIndex,
        (reads, writes): (bool, bool),
        view: &View<'_>,
        wiring: &mut Wiring,
    ) -> Result<(), EngineError> {
        let roots = self.backings.roots_mut(tree);
        let found = self.map.overlapping(roots, Access::Write, view);
        // What a pure overwrite only comes after, it does not read.
        self.wire_after(slot, found.taken, reads.then_some(&mut wiring.poison))?;
        self.check_entry(slot, wiring, 1)?;
        if writes && self.backings.roots(tree).readers == NIL {
            self.enter_writer(slot, tree, view, reads, found, wiring);
            return Ok(());
        }
        self.take_out(found.vacant);
        let (access, stays, plan) = if writes {
            let readers = self.map.overlapping(self.backings.roots_mut(tree), Access::Read, view).taken;
            self.wire_after(slot, readers, None)?;
            (Access::Write, self.stays(slot, tree), Plan::Search { update: reads })
        } else {
            (Access::Read, None, Plan::Link)
        };
        self.create(wiring, &NewEntry { slot, access, tree, stays, view: *view, plan });
        Ok(())
    }

    /// Makes the entry of what a task writes; `found` is what of its bytes others wrote before.
    #[inline(always)]
    fn enter_writer(
        &mut self,
        slot: TaskSlot,
        tree: TreeIndex,
        view: &View<'_>,
        update: bool,
        found: Found,
        wiring: &mut Wiring,
    ) {
        let mut plan = Plan::Link;
        if found.taken != NIL {
            if let Some(twin) = self.heritage(slot, found.taken, view, update) {
                let entry = self.map.inherit(twin);
                self.append(slot, wiring, entry);
                return;
            }
            plan = Plan::Search { update };
        }
        if found.vacant != NIL {
            if plan == Plan::Link
                && let Some(place) = self.vacancy(slot, found.vacant, view)
            {
                let entry = self.map.move_in(place);
                self.append(slot, wiring, entry);
                return;
            }
            self.take_out(found.vacant);
        }
        let stays = self.stays(slot, tree);
        self.create(wiring, &NewEntry { slot, access: Access::Write, tree, stays, view: *view, plan });
    }

    /// Whether the place of a writer stays in the tree once it is vacant, and as whose.
    #[inline]
    fn stays(&self, slot: TaskSlot, tree: TreeIndex) -> Option<PipelineSlot> {
        self.backings.outlives_tasks(tree).then_some(self.slots[slot].run)
    }

    /// The one node that a search has found, if it is of the same bytes and the task may take its place (E-17). The
    /// members of a group may name the same bytes; theirs are looked for when they are put into the tree.
    #[inline(always)]
    fn heritage(&self, slot: TaskSlot, found: u32, view: &View<'_>, update: bool) -> Option<u32> {
        let twin = self.map.only(found)?;
        let waited = update || self.strict_war || !self.is_unended(self.map.slot(twin));
        let group = matches!(self.slots[slot].kind, Kind::Group { .. });
        (waited && !group && self.map.is_of(twin, view)).then_some(twin)
    }

    /// The one vacant node that a search has found, if it is of the same bytes; for a group as above.
    fn vacancy(&self, slot: TaskSlot, found: u32, view: &View<'_>) -> Option<u32> {
        let place = self.map.only(found)?;
        let group = matches!(self.slots[slot].kind, Kind::Group { .. });
        (!group && self.map.is_vacant(place) && self.map.is_of(place, view)).then_some(place)
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

    #[inline(always)]
    fn connect(&mut self, producer: TaskSlot, consumer: TaskSlot, kind: EdgeKind) -> Result<(), EngineError> {
        let unended = self.is_unended(producer);
        if self.edges.connect(&mut self.slots, producer, consumer, kind, unended) {
            return Ok(());
        }
        Err(self.edges_full(consumer))
    }

    #[cold]
    fn edges_full(&self, consumer: TaskSlot) -> EngineError {
        // The edges of this very submit come back with it, so it counts them as needed.
        let mut needed = 1;
        let mut at = self.slots[consumer].producers;
        while at != NIL {
            needed += 1;
            at = self.edges[at].next_producer;
        }
        self.blocked(Resource::Edges, needed, self.edges.capacity().into())
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
    #[inline(never)]
    pub(super) fn place_outputs(
        &mut self,
        slot: TaskSlot,
        submission: &Submission<'_>,
        wiring: &mut Wiring,
        allocated: &mut dyn FnMut(Allocated),
    ) {
        let Some(block) = self.slots[slot].block else { return };
        let tree = self.backings.slab_tree(block.ring.into(), block.sequence);
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
                if let Ok(tensor) = tensor.with_address(address)
                    && !tensor.byte_range().is_empty()
                {
                    self.create_output(slot, tree, &tensor, base, wiring);
                }
                address += Ring::footprint(tensor.buffer_bytes()).unwrap_or(0);
            }
        }
    }

    /// Makes the entry of an output whose slab is new: nobody else has named a byte of it.
    fn create_output(&mut self, slot: TaskSlot, tree: TreeIndex, tensor: &ChipTensor, base: u64, wiring: &mut Wiring) {
        let (access, stays, plan, range) = (Access::Write, None, Plan::Link, tensor.byte_range());
        if tensor.is_contiguous() {
            self.create(wiring, &NewEntry { slot, access, tree, stays, view: View::Contiguous(range), plan });
        } else {
            let (window, shape) = (Window::of(tensor, range, base), Footprint::of(tensor));
            self.create(wiring, &NewEntry { slot, access, tree, stays, view: View::Strided(&window, &shape), plan });
        }
    }

    pub(super) fn member_args(&self, slot: TaskSlot, member: usize) -> ArgsRef {
        match self.slots[slot].kind {
            Kind::Group { first, .. } => self.members.members[first as usize + member].args,
            _ => self.slots[slot].args,
        }
    }
}
