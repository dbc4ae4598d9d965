//! Who writes which bytes: per run and backing an interval tree over pooled nodes (E-14 to E-17, E-42).
//!
//! The trees are balanced (AVL), ordered by the first byte, and every node knows how far its subtree reaches and, while
//! all of it shares one row length, which part of a row it touches. So a look-up leaves out what lies elsewhere in
//! memory as well as what lies in other columns of the same matrix.

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
                        && own.may_overlap(window)
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

    /// Puts an entry into its tree.
    pub(super) fn link(&mut self, roots: &mut Roots, index: u32) {
        let root = roots.of(self.nodes[index as usize].access);
        let start = self.nodes[index as usize].window.range.start;
        let mut parent = NIL;
        let mut at = *root;
        while at != NIL {
            parent = at;
            let node = &self.nodes[at as usize];
            at = if start < node.window.range.start { node.left } else { node.right };
        }
        let node = &mut self.nodes[index as usize];
        node.left = NIL;
        node.right = NIL;
        node.parent = parent;
        node.linked = true;
        self.summarise(index);
        match parent {
            NIL => *root = index,
            above => {
                let node = &mut self.nodes[above as usize];
                if start < node.window.range.start {
                    node.left = index
                } else {
                    node.right = index
                }
                self.rebalance(root, above);
            }
        }
    }

    /// Takes an entry out of its tree, if it is in one.
    pub(super) fn unlink(&mut self, roots: &mut Roots, index: u32) {
        let node = &mut self.nodes[index as usize];
        if !core::mem::take(&mut node.linked) {
            return;
        }
        let root = roots.of(node.access);
        let (left, right, parent) = (node.left, node.right, node.parent);
        if left == NIL || right == NIL {
            let child = if left == NIL { right } else { left };
            self.replace_child(root, parent, index, child);
            self.rebalance(root, parent);
        } else {
            let mut heir = right;
            while self.nodes[heir as usize].left != NIL {
                heir = self.nodes[heir as usize].left;
            }
            let above = self.nodes[heir as usize].parent;
            let changed = if above == index {
                heir
            } else {
                let orphan = self.nodes[heir as usize].right;
                self.replace_child(root, above, heir, orphan);
                self.nodes[heir as usize].right = right;
                self.nodes[right as usize].parent = heir;
                above
            };
            self.nodes[heir as usize].left = left;
            self.nodes[left as usize].parent = heir;
            self.replace_child(root, parent, index, heir);
            // The heir stands for the subtree that `index` stood for, until it is looked at again.
            let Node { reach, pitch, low, high, height, .. } = self.nodes[index as usize];
            let node = &mut self.nodes[heir as usize];
            (node.height, node.reach, node.pitch, node.low, node.high) = (height, reach, pitch, low, high);
            self.rebalance(root, changed);
            self.rebalance(root, heir);
        }
    }

    /// `parent` (or the root) points to `new` where it pointed to `old`.
    fn replace_child(&mut self, root: &mut u32, parent: u32, old: u32, new: u32) {
        match self.nodes.get_mut(parent as usize) {
            None => *root = new,
            Some(parent) if parent.left == old => parent.left = new,
            Some(parent) => parent.right = new,
        }
        if let Some(node) = self.nodes.get_mut(new as usize) {
            node.parent = parent;
        }
    }

    fn height(&self, index: u32) -> i32 {
        self.nodes.get(index as usize).map_or(0, |node| i32::from(node.height))
    }

    /// Recomputes what a node says about its subtree; `true` if that changed.
    fn summarise(&mut self, index: u32) -> bool {
        let after = self.summary(index);
        let node = &mut self.nodes[index as usize];
        let before = (node.height, node.reach, node.pitch, node.low, node.high);
        (node.height, node.reach, node.pitch, node.low, node.high) = after;
        before != after
    }

    /// Height, reach, shared row length and the part of a row that is touched, of the subtree of a node.
    fn summary(&self, index: u32) -> (u8, u64, u64, u64, u64) {
        let node = &self.nodes[index as usize];
        let window = &node.window;
        let mut height = 0;
        let mut reach = window.range.end;
        let (mut pitch, mut low, mut high) = (window.pitch, window.low, window.low + window.width);
        if high > pitch {
            // The window runs over the end of the row: it touches both ends.
            (low, high) = (0, pitch);
        }
        for child in [node.left, node.right] {
            if let Some(child) = self.nodes.get(child as usize) {
                height = height.max(child.height);
                reach = reach.max(child.reach);
                if child.pitch != pitch {
                    pitch = MIXED;
                }
                low = low.min(child.low);
                high = high.max(child.high);
            }
        }
        (height + 1, reach, pitch, low, high)
    }

    /// Restores balance and summaries from `at` up to the root.
    fn rebalance(&mut self, root: &mut u32, mut at: u32) {
        while at != NIL {
            let Node { left, right, parent, .. } = self.nodes[at as usize];
            let lean = self.height(left) - self.height(right);
            let changed = if lean > 1 {
                let Node { left: outer, right: inner, .. } = self.nodes[left as usize];
                if self.height(outer) < self.height(inner) {
                    self.rotate_left(root, left);
                }
                self.rotate_right(root, at);
                true
            } else if lean < -1 {
                let Node { left: inner, right: outer, .. } = self.nodes[right as usize];
                if self.height(outer) < self.height(inner) {
                    self.rotate_right(root, right);
                }
                self.rotate_left(root, at);
                true
            } else {
                self.summarise(at)
            };
            if !changed {
                return;
            }
            at = parent;
        }
    }

    fn rotate_left(&mut self, root: &mut u32, at: u32) {
        let Node { right: up, parent, .. } = self.nodes[at as usize];
        let inner = self.nodes[up as usize].left;
        self.replace_child(root, parent, at, up);
        self.nodes[at as usize].right = inner;
        if let Some(inner) = self.nodes.get_mut(inner as usize) {
            inner.parent = at;
        }
        self.nodes[up as usize].left = at;
        self.nodes[at as usize].parent = up;
        self.summarise(at);
        self.summarise(up);
    }

    fn rotate_right(&mut self, root: &mut u32, at: u32) {
        let Node { left: up, parent, .. } = self.nodes[at as usize];
        let inner = self.nodes[up as usize].right;
        self.replace_child(root, parent, at, up);
        self.nodes[at as usize].left = inner;
        if let Some(inner) = self.nodes.get_mut(inner as usize) {
            inner.parent = at;
        }
        self.nodes[up as usize].right = at;
        self.nodes[at as usize].parent = up;
        self.summarise(at);
        self.summarise(up);
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

    /// Panics unless both trees are balanced, ordered and summarised truly.
    #[cfg(test)]
    pub(super) fn check(&self, roots: &Roots) {
        for root in [roots.writers, roots.readers] {
            if root != NIL {
                assert_eq!(self.nodes[root as usize].parent, NIL);
                self.check_below(root);
            }
        }
    }

    #[cfg(test)]
    fn check_below(&self, index: u32) -> u8 {
        let node = &self.nodes[index as usize];
        assert!(node.linked);
        let [left, right] = [node.left, node.right].map(|child| {
            if child == NIL {
                return 0;
            }
            assert_eq!(self.nodes[child as usize].parent, index);
            self.check_below(child)
        });
        assert!(left.abs_diff(right) <= 1, "out of balance");
        let start = |child: u32| self.nodes.get(child as usize).map(|node| node.window.range.start);
        assert!(start(node.left).is_none_or(|start| start <= node.window.range.start));
        assert!(start(node.right).is_none_or(|start| start >= node.window.range.start));
        let stored = (node.height, node.reach, node.pitch, node.low, node.high);
        assert_eq!(stored, self.summary(index), "a summary is stale");
        left.max(right) + 1
    }
}
