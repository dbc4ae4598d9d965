//! Who writes which bytes: per run and backing an interval tree over pooled nodes (E-14 to E-17, E-42).
//!
//! The trees are balanced (AVL), ordered by the first byte, and every node knows how far its subtree reaches and, while
//! all of it shares one row length, which part of a row it touches. So a look-up leaves out what lies elsewhere in
//! memory as well as what lies in other columns of the same matrix.

mod tree;

use alloc::vec::Vec;

use crate::ids::TaskSlot;
use crate::model::Footprint;
use crate::wire::ByteRange;

use super::backing::Backing;
use super::slot::NIL;
use super::window::{Window, windows_meet};

/// The trees of one run on one backing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Roots {
    pub(super) writers: u32,
    /// Only kept with `strict_war` (E-19).
    pub(super) readers: u32,
}

impl Roots {
    pub(super) const EMPTY: Self = Self { writers: NIL, readers: NIL };

    fn of(&mut self, access: Access) -> &mut u32 {
        match access {
            Access::Write => &mut self.writers,
            Access::Read => &mut self.readers,
        }
    }
}

/// Which of the two trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Write,
    Read,
}

/// Deepest tree of 2³² nodes: AVL trees are at most 1.44 · log₂ n deep.
const DEPTH: usize = 48;

/// Row length of a subtree whose nodes do not share one.
const MIXED: u64 = 0;

/// What the search for earlier writers has told about an entry that is to be put into its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hint {
    /// Nothing: a search has to find what it replaces.
    Search,
    /// It overlaps nothing.
    Alone,
    /// It overlaps only this entry, touches the same bytes, and takes its place.
    Twin(u32),
}

/// An entry to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry<'a> {
    pub(super) slot: TaskSlot,
    pub(super) access: Access,
    pub(super) backing: Backing,
    pub(super) window: &'a Window,
    /// Unless the view is contiguous.
    pub(super) shape: Option<&'a Footprint>,
    /// The task reads the bytes as well (INOUT), and so waits for every earlier writer.
    pub(super) update: bool,
}

/// One tensor argument of one live task.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Node {
    window: Window,
    /// Largest end in the subtree.
    reach: u64,
    /// Row length that all of the subtree shares, [`MIXED`] if there is none, and the part of a row that it touches.
    pitch: u64,
    low: u64,
    high: u64,
    left: u32,
    right: u32,
    /// Parent in the tree; next free node while free.
    parent: u32,
    height: u8,
    /// Is in a tree.
    linked: bool,
    /// A pure overwrite has taken its place, but it still orders (its task failed before its producers ended).
    overwritten: bool,
    /// Its task reads the bytes as well (INOUT), and so waits for every earlier writer.
    update: bool,
    access: Access,
    slot: TaskSlot,
    /// Next entry of the same task.
    next: u32,
    /// Next entry to unlink after a search.
    chain: u32,
    hint: Hint,
    backing: Backing,
}

impl Node {
    /// No node of the subtree touches the part of a row that the view touches.
    fn misses_rows(&self, window: &Window) -> bool {
        self.pitch != MIXED
            && self.pitch == window.pitch
            && !windows_meet(self.pitch, (self.low, self.high - self.low), (window.low, window.width))
    }
}

/// The entries of one engine.
#[derive(Clone, Debug)]
pub(super) struct Map {
    nodes: Vec<Node>,
    /// The exact shape of each entry, looked at only where windows do not decide.
    shapes: Vec<Option<Footprint>>,
    /// The path of the search at hand.
    path: [u32; DEPTH],
    #[cfg(test)]
    visited: u64,
    free: u32,
    used: u32,
}

impl Map {
    pub(super) fn new(capacity: u32) -> Self {
        let node = |index: u32| Node {
            window: Window::default(),
            reach: 0,
            pitch: MIXED,
            low: 0,
            high: 0,
            left: NIL,
            right: NIL,
            parent: if index + 1 < capacity { index + 1 } else { NIL },
            height: 0,
            linked: false,
            overwritten: false,
            update: false,
            access: Access::Write,
            slot: TaskSlot(NIL),
            next: NIL,
            chain: NIL,
            hint: Hint::Search,
            backing: Backing::Range(NIL),
        };
        Self {
            nodes: (0..capacity).map(node).collect(),
            shapes: Vec::with_capacity(capacity as usize),
            path: [NIL; DEPTH],
            #[cfg(test)]
            visited: 0,
            free: 0,
            used: 0,
        }
    }

    pub(super) fn capacity(&self) -> u32 {
        self.nodes.len() as u32
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// The task that an entry belongs to.
    pub(super) fn slot(&self, index: u32) -> TaskSlot {
        self.nodes[index as usize].slot
    }

    pub(super) fn is_overwritten(&self, index: u32) -> bool {
        self.nodes[index as usize].overwritten
    }

    pub(super) fn is_update(&self, index: u32) -> bool {
        self.nodes[index as usize].update
    }

    pub(super) fn mark_overwritten(&mut self, index: u32) {
        self.nodes[index as usize].overwritten = true;
    }

    /// The entries of a tree whose bytes may overlap a view's (E-16), as a chain; `shape` is the view's, if it is not
    /// contiguous. [`NIL`] if there is none.
    pub(super) fn overlapping(&mut self, root: u32, window: &Window, shape: Option<&Footprint>) -> u32 {
        if root == NIL {
            return NIL;
        }
        let ByteRange { start, end } = window.range;
        let mut found = NIL;
        let mut depth = 0;
        let mut at = root;
        loop {
            #[cfg(test)]
            {
                self.visited += 1;
            }
            let node = &self.nodes[at as usize];
            let (mut left, mut right) = (NIL, NIL);
            let mut hit = false;
            if node.reach > start && !node.misses_rows(window) {
                left = node.left;
                if node.window.range.start < end {
                    right = node.right;
                    let own = &node.window;
                    hit = own.range.end > start
                        && own.rows_meet(window)
                        && (own.decides(window) || self.shape_meets(at, shape));
                }
            }
            if hit {
                found = self.chain(at, found);
            }
            if left != NIL {
                if right != NIL {
                    self.path[depth] = right;
                    depth += 1;
                }
                at = left;
            } else if right != NIL {
                at = right;
            } else if depth > 0 {
                depth -= 1;
                at = self.path[depth];
            } else {
                return found;
            }
        }
    }

    /// The entries of a tree whose bytes may overlap those of an entry that is in no tree.
    pub(super) fn overlapping_entry(&mut self, root: u32, entry: u32) -> u32 {
        if root == NIL {
            return NIL;
        }
        let window = self.nodes[entry as usize].window;
        if window.contiguous {
            return self.overlapping(root, &window, None);
        }
        let shape = self.shapes[entry as usize];
        self.overlapping(root, &window, shape.as_ref())
    }

    /// Takes an entry and puts it before `next` on its task's list; it is in no tree yet. The caller has seen to it
    /// that one is free.
    pub(super) fn create(&mut self, new: &NewEntry<'_>, next: u32) -> u32 {
        let NewEntry { slot, access, backing, window, shape, update } = *new;
        let index = self.free;
        let node = &mut self.nodes[index as usize];
        self.free = node.parent;
        self.used += 1;
        node.window = *window;
        node.linked = false;
        node.overwritten = false;
        node.update = update;
        node.access = access;
        node.slot = slot;
        node.next = next;
        node.hint = Hint::Search;
        node.backing = backing;
        // Nodes are handed out in order the first time round.
        match self.shapes.get_mut(index as usize) {
            Some(place) => *place = shape.copied(),
            None => self.shapes.push(shape.copied()),
        }
        index
    }

    /// Where an entry belongs.
    pub(super) fn place(&self, index: u32) -> (Backing, Access) {
        let node = &self.nodes[index as usize];
        (node.backing, node.access)
    }

    pub(super) fn hint(&self, index: u32) -> Hint {
        self.nodes[index as usize].hint
    }

    pub(super) fn set_hint(&mut self, index: u32, hint: Hint) {
        self.nodes[index as usize].hint = hint;
    }

    /// The next entry of the same task.
    pub(super) fn next(&self, index: u32) -> u32 {
        self.nodes[index as usize].next
    }

    /// Whether every byte of entry `other` certainly belongs to entry `index`.
    pub(super) fn covers(&self, index: u32, other: u32) -> bool {
        if self.nodes[index as usize].window.covers(&self.nodes[other as usize].window) {
            return true;
        }
        match (&self.shapes[index as usize], &self.shapes[other as usize]) {
            (Some(shape), Some(other)) => shape.covers(other),
            // A contiguous view is covered as its range is, and covers only what lies in its range.
            _ => false,
        }
    }

    fn shape_meets(&self, index: u32, shape: Option<&Footprint>) -> bool {
        match (&self.shapes[index as usize], shape) {
            (Some(own), Some(shape)) => own.overlaps(shape),
            _ => true,
        }
    }

    /// Gives entry `new`, which is in no tree, the place of `old`, which touches the same bytes; `old` is then in no
    /// tree. Costs no search and no balancing.
    pub(super) fn supersede(&mut self, roots: &mut Roots, old: u32, new: u32) {
        let node = &mut self.nodes[old as usize];
        node.linked = false;
        let Node { reach, pitch, low, high, left, right, parent, height, access, .. } = *node;
        let node = &mut self.nodes[new as usize];
        (node.reach, node.pitch, node.low, node.high, node.height) = (reach, pitch, low, high, height);
        (node.left, node.right, node.linked) = (left, right, true);
        for child in [left, right] {
            if let Some(child) = self.nodes.get_mut(child as usize) {
                child.parent = new;
            }
        }
        self.replace_child(roots.of(access), parent, old, new);
    }

    /// Whether two entries certainly touch the same bytes.
    pub(super) fn same(&self, index: u32, other: u32) -> bool {
        self.nodes[index as usize].window.same(&self.nodes[other as usize].window)
    }

    /// Whether an entry is in its tree.
    pub(super) fn is_linked(&self, index: u32) -> bool {
        self.nodes[index as usize].linked
    }

    /// Frees an entry that is in no tree; returns the next entry of the same task.
    pub(super) fn free(&mut self, index: u32) -> u32 {
        let node = &mut self.nodes[index as usize];
        node.parent = self.free;
        self.free = index;
        self.used -= 1;
        node.next
    }

    /// Whether `test` holds for the task of an entry of either tree.
    pub(super) fn any(&self, roots: &Roots, test: impl Fn(TaskSlot) -> bool) -> bool {
        let mut stack = [NIL; DEPTH];
        let mut depth = 0;
        for root in [roots.writers, roots.readers] {
            let mut at = root;
            loop {
                while at != NIL {
                    stack[depth] = at;
                    depth += 1;
                    at = self.nodes[at as usize].left;
                }
                if depth == 0 {
                    break;
                }
                depth -= 1;
                let node = &self.nodes[stack[depth] as usize];
                if test(node.slot) {
                    return true;
                }
                at = node.right;
            }
        }
        false
    }

    /// Takes every entry out of both trees.
    pub(super) fn unlink_all(&mut self, roots: &mut Roots) {
        while roots.writers != NIL {
            let root = roots.writers;
            self.unlink(roots, root);
        }
        while roots.readers != NIL {
            let root = roots.readers;
            self.unlink(roots, root);
        }
    }

    /// Remembers `index` as the head of a chain of entries to unlink after a search; returns it.
    pub(super) fn chain(&mut self, index: u32, rest: u32) -> u32 {
        self.nodes[index as usize].chain = rest;
        index
    }

    /// The entry at the head of a chain if it is the only one, else [`NIL`].
    pub(super) fn only(&self, head: u32) -> u32 {
        if self.nodes[head as usize].chain == NIL { head } else { NIL }
    }

    /// How many entries a task's list has.
    pub(super) fn count(&self, mut first: u32) -> u32 {
        let mut count = 0;
        while let Some(node) = self.nodes.get(first as usize) {
            count += 1;
            first = node.next;
        }
        count
    }

    /// What comes after `index` on a chain.
    pub(super) fn chained(&self, index: u32) -> u32 {
        self.nodes[index as usize].chain
    }

    /// How many entries searches have looked at.
    #[cfg(test)]
    pub(super) const fn visited(&self) -> u64 {
        self.visited
    }
}
