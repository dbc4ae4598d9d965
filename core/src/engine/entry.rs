//! The map entries of a task: into their trees when it is published, out of them when it is consumed (E-17, E-23).

use crate::ids::{PipelineSlot, TaskSlot};

use super::Engine;
use super::map::{Access, NewEntry, Standing};
use super::slot::{NIL, TaskState};
use super::submit::Wiring;

impl Engine {
    /// Makes an entry of a task that is being submitted, with a node of its own. The caller has seen to it that an entry is
    /// free.
    #[inline(always)]
    pub(super) fn create(&mut self, wiring: &mut Wiring, new: &NewEntry<'_>) {
        if !self.map.has_free_node() {
            self.free_a_node();
        }
        let entry = self.map.create(new);
        self.append(new.slot, wiring, entry);
    }

    /// Puts an entry on the list of its task, in the order of its arguments: those are mostly in the order of their
    /// addresses, which is a help where they come into a tree.
    #[inline(always)]
    pub(super) fn append(&mut self, slot: TaskSlot, wiring: &mut Wiring, entry: u32) {
        match core::mem::replace(&mut wiring.last_entry, entry) {
            NIL => self.slots[slot].entries = entry,
            last => self.map.append(last, entry),
        }
    }

    /// Vacant places are nobody's: there is a node for each free entry.
    #[cold]
    fn free_a_node(&mut self) {
        for run in PipelineSlot::ALL {
            if self.take_out_oldest(run) {
                return;
            }
        }
    }

    /// Takes the place of a run that has been vacant for longest out of its tree; `false` if there is none.
    fn take_out_oldest(&mut self, run: PipelineSlot) -> bool {
        let Some(oldest) = self.map.oldest_vacant(run) else { return false };
        let (tree, _) = self.map.place(oldest);
        self.map.remove(self.backings.roots_mut(tree), oldest);
        true
    }

    /// Two for one that comes in: however many there are, they become fewer.
    #[cold]
    fn take_out_two(&mut self, run: PipelineSlot) {
        self.take_out_oldest(run);
        self.take_out_oldest(run);
    }

    /// Takes the vacant places of a chain out of their tree: whoever meets them pays for that, once.
    #[inline(never)]
    pub(super) fn take_out(&mut self, mut node: u32) {
        while node != NIL {
            let next = self.map.chained(node);
            if self.map.is_vacant(node) {
                let (tree, _) = self.map.place(node);
                self.map.remove(self.backings.roots_mut(tree), node);
            }
            node = next;
        }
    }

    /// Puts the task's entries into their trees; each takes the place of those that it replaces (E-17).
    pub(super) fn insert_entries(&mut self, slot: TaskSlot) {
        let mut entry = self.slots[slot].entries;
        while entry != NIL {
            match self.map.standing(entry) {
                Standing::Heir(node) => self.map.supersede(node, entry, slot),
                Standing::Alone(node) => self.link(node),
                Standing::Search { node, update } => self.replace_covered(slot, entry, node, update),
                Standing::Linked(_) | Standing::Replaced => {}
            }
            entry = self.map.next(entry);
        }
    }

    /// Puts the node of an entry into its tree.
    fn link(&mut self, node: u32) {
        let (tree, stays) = self.map.place(node);
        if let Some(run) = stays {
            self.backings.list(tree, run);
            if self.map.has_too_many_vacant(run) {
                self.take_out_two(run);
            }
        }
        self.map.link(self.backings.roots_mut(tree), node);
    }

    /// Links the node of `entry` and removes what it replaces.
    #[inline(never)]
    fn replace_covered(&mut self, slot: TaskSlot, entry: u32, node: u32, update: bool) {
        let (tree, _) = self.map.place(node);
        let roots = self.backings.roots_mut(tree);
        // A task that waited for all earlier ones stands for them; a pure overwrite only for those that have ended.
        let waited = self.strict_war || update;
        let (mut covered, mut twin) = (NIL, NIL);
        let mut other = self.map.overlapping_node(roots, Access::Write, node).taken;
        while other != NIL {
            let next = self.map.chained(other);
            if self.map.covers(node, other) {
                let owner = self.map.slot(other);
                if !waited && self.is_unended(owner) {
                    if self.slots[owner].state == TaskState::Failed {
                        self.map.mark_overwritten(other);
                    }
                } else if twin == NIL && self.map.same(node, other) {
                    twin = other;
                } else {
                    covered = self.map.chain(other, covered);
                }
            }
            other = next;
        }
        let mut other = self.map.overlapping_node(self.backings.roots_mut(tree), Access::Read, node).taken;
        while other != NIL {
            let next = self.map.chained(other);
            if self.map.covers(node, other) {
                covered = self.map.chain(other, covered);
            }
            other = next;
        }
        while covered != NIL {
            let next = self.map.chained(covered);
            self.map.remove(self.backings.roots_mut(tree), covered);
            covered = next;
        }
        match twin {
            NIL => self.link(node),
            twin => {
                self.map.free_node(node);
                self.map.supersede(twin, entry, slot);
            }
        }
    }

    /// Takes a task's entries out of their trees and frees them (E-17, E-23). Places that stay become vacant.
    pub(super) fn free_entries(&mut self, slot: TaskSlot) {
        let record = &mut self.slots[slot];
        let run = record.run;
        let mut entry = core::mem::replace(&mut record.entries, NIL);
        if entry == NIL {
            return;
        }
        while entry != NIL {
            match self.map.standing(entry) {
                Standing::Replaced => {}
                Standing::Linked(node) => match self.map.place(node) {
                    (_, Some(run)) => self.map.vacate(run, node),
                    (tree, None) => self.map.remove(self.backings.roots_mut(tree), node),
                },
                Standing::Alone(node) | Standing::Search { node, .. } => self.map.free_node(node),
                Standing::Heir(node) => self.map.move_out(node, entry),
            }
            entry = self.map.free(entry);
        }
        if self.map.is_all_vacant(run) {
            self.backings.give_up_listed(run);
            self.map.free_all_vacant(run);
        }
    }
}
