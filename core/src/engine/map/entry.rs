//! The entries of a task, each of which orders others for as long as it holds a node of a tree.

use super::{Map, NewEntry, Node, Roots, View, Window};
use crate::engine::slot::NIL;
use crate::ids::TaskSlot;
use crate::model::Footprint;

/// How an argument stands in the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum Standing {
    /// Has a node that is in no tree yet and overlaps nothing there.
    Alone(u32),
    /// Has a node that is in no tree yet; a search has to find what it replaces.
    Search {
        node: u32,
        /// Its task reads the bytes as well (INOUT), and so waits for every earlier writer.
        update: bool,
    },
    /// Is about to take over this node, which touches the same bytes: that of an earlier task, or a vacant one.
    Heir(u32),
    /// Its node is in its tree.
    Linked(u32),
    /// Another has taken its place.
    Replaced,
}

/// One tensor argument of one live task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) standing: Standing,
    /// Next entry of the same task; next free entry while free.
    pub(super) next: u32,
}

/// What becomes of an entry once its submit cannot fail any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum Plan {
    /// It overlaps nothing: it is linked.
    Link,
    /// What it replaces has to be looked for.
    Search {
        /// Its task reads the bytes as well (INOUT).
        update: bool,
    },
}

impl Map {
    /// Takes an entry with a node that is in no tree yet. The caller has seen to it that one is free, and a
    /// [node](Self::has_free_node) too.
    #[inline]
    pub(in crate::engine) fn create(&mut self, new: &NewEntry<'_>) -> u32 {
        let node = self.take_node(new);
        let entry = self.take_entry(match new.plan {
            Plan::Link => Standing::Alone(node),
            Plan::Search { update } => Standing::Search { node, update },
        });
        self.nodes[node as usize].entry = entry;
        entry
    }

    /// Takes an entry that will take over the node of an earlier one. The caller has seen to it that one is free.
    pub(in crate::engine) fn inherit(&mut self, node: u32) -> u32 {
        self.take_entry(Standing::Heir(node))
    }

    /// Takes an entry that will take over a vacant node, which it keeps meanwhile. The caller has seen to it that one is
    /// free.
    pub(in crate::engine) fn move_in(&mut self, node: u32) -> u32 {
        let entry = self.take_entry(Standing::Heir(node));
        self.occupy(node, entry);
        entry
    }

    fn take_entry(&mut self, standing: Standing) -> u32 {
        let index = self.free_entry;
        let entry = &mut self.entries[index as usize];
        self.free_entry = entry.next;
        self.used += 1;
        *entry = Entry { standing, next: NIL };
        index
    }

    /// Puts an entry behind the last of its task's list.
    #[inline]
    pub(in crate::engine) fn append(&mut self, last: u32, entry: u32) {
        self.entries[last as usize].next = entry;
    }

    /// An entry that was about to take over a node will not: one that was vacant is so again.
    pub(in crate::engine) fn move_out(&mut self, node: u32, entry: u32) {
        let place = &self.nodes[node as usize];
        if place.entry == entry
            && let Some(run) = place.stays
        {
            self.vacate(run, node);
        }
    }

    /// Frees an entry that has no node any more. Returns the next entry of the same task.
    pub(in crate::engine) fn free(&mut self, index: u32) -> u32 {
        let entry = &mut self.entries[index as usize];
        let next = core::mem::replace(&mut entry.next, self.free_entry);
        self.free_entry = index;
        self.used -= 1;
        next
    }

    /// Puts the node of an entry into its tree.
    pub(in crate::engine) fn link(&mut self, roots: &mut Roots, node: u32) {
        self.insert(roots, node);
        let Node { entry, stays, .. } = self.nodes[node as usize];
        self.entries[entry as usize].standing = Standing::Linked(node);
        if let Some(run) = stays {
            self.places[run.index()].count_taken();
        }
    }

    /// Takes a node out of its tree and frees it: it is vacant, or its entry orders nothing any more.
    pub(in crate::engine) fn remove(&mut self, roots: &mut Roots, node: u32) {
        self.unlink(roots, node);
        let Node { entry, stays, .. } = self.nodes[node as usize];
        match self.entries.get_mut(entry as usize) {
            Some(entry) => {
                entry.standing = Standing::Replaced;
                if let Some(run) = stays {
                    self.places[run.index()].taken -= 1;
                }
            }
            None => self.unlist_vacant(node),
        }
        self.free_node(node);
    }

    /// Takes every node out of both trees.
    pub(in crate::engine) fn remove_all(&mut self, roots: &mut Roots) {
        while roots.writers != NIL {
            let root = roots.writers;
            self.remove(roots, root);
        }
        while roots.readers != NIL {
            let root = roots.readers;
            self.remove(roots, root);
        }
    }

    /// Gives entry `heir` of task `slot` a node that touches the same bytes and was another's. The tree stays as it is.
    pub(in crate::engine) fn supersede(&mut self, node: u32, heir: u32, slot: TaskSlot) {
        let place = &mut self.nodes[node as usize];
        place.slot = slot;
        place.overwritten = false;
        let old = core::mem::replace(&mut place.entry, heir);
        self.entries[old as usize].standing = Standing::Replaced;
        self.entries[heir as usize].standing = Standing::Linked(node);
    }

    /// How an entry stands.
    pub(in crate::engine) fn standing(&self, index: u32) -> Standing {
        self.entries[index as usize].standing
    }

    /// The next entry of the same task.
    pub(in crate::engine) fn next(&self, index: u32) -> u32 {
        self.entries[index as usize].next
    }

    /// How many entries a task's list has.
    pub(in crate::engine) fn count(&self, mut first: u32) -> u32 {
        let mut count = 0;
        while let Some(entry) = self.entries.get(first as usize) {
            count += 1;
            first = entry.next;
        }
        count
    }

    pub(in crate::engine) fn capacity(&self) -> u32 {
        self.entries.len() as u32
    }

    pub(in crate::engine) fn used(&self) -> u32 {
        self.used
    }

    /// Whether a node is free: if not, one is vacant as long as an entry is free.
    pub(in crate::engine) const fn has_free_node(&self) -> bool {
        self.free_node != NIL
    }

    fn take_node(&mut self, new: &NewEntry<'_>) -> u32 {
        let index = self.free_node;
        let node = &mut self.nodes[index as usize];
        self.free_node = node.older;
        let (window, shape) = match new.view {
            View::Contiguous(range) => (Window::contiguous(range), None),
            View::Strided(window, shape) => (*window, Some(shape)),
        };
        node.window = window;
        node.overwritten = false;
        node.access = new.access;
        node.stays = new.stays;
        node.slot = new.slot;
        node.tree = new.tree;
        // Nodes are handed out in order the first time round.
        if shape.is_some() || index as usize == self.shapes.len() {
            self.keep_shape(index, shape);
        }
        index
    }

    #[inline(never)]
    fn keep_shape(&mut self, index: u32, shape: Option<&Footprint>) {
        match self.shapes.get_mut(index as usize) {
            Some(place) => *place = shape.copied(),
            None => self.shapes.push(shape.copied()),
        }
    }

    /// Frees a node that is in no tree.
    pub(in crate::engine) fn free_node(&mut self, node: u32) {
        self.nodes[node as usize].older = self.free_node;
        self.free_node = node;
    }

    /// Whether two nodes certainly touch the same bytes.
    pub(in crate::engine) fn same(&self, node: u32, other: u32) -> bool {
        self.nodes[node as usize].window.same(&self.nodes[other as usize].window)
    }

    /// Whether a node certainly touches the bytes of `view` and no others.
    #[inline(always)]
    pub(in crate::engine) fn is_of(&self, node: u32, view: &View<'_>) -> bool {
        let own = &self.nodes[node as usize].window;
        match view {
            View::Contiguous(range) => own.contiguous && own.range == *range,
            View::Strided(window, _) => own.same(window),
        }
    }

    /// The node at the head of a chain if it is the only one.
    pub(in crate::engine) fn only(&self, head: u32) -> Option<u32> {
        let node = self.nodes.get(head as usize)?;
        (node.chain == NIL).then_some(head)
    }
}
