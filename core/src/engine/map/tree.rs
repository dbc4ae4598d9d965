//! The trees themselves: AVL, linked by index, with summaries of each subtree.

use super::{Access, MIXED, Map, NO_GAP, Node, Roots, Window};
#[cfg(test)]
use super::{NOBODY, Standing};
use crate::engine::slot::NIL;

impl Map {
    /// Puts a node into its tree.
    pub(super) fn insert(&mut self, roots: &mut Roots, index: u32) {
        let Node { window: Window { range, pitch, .. }, access, .. } = self.nodes[index as usize];
        if access == Access::Write {
            roots.fill(range);
        }
        let behind = access == Access::Write && range.start >= roots.reach && pitch == MIXED;
        match self.nodes.get_mut(roots.last as usize) {
            // Above a last node without rows nobody knows of any.
            Some(last) if behind && last.window.pitch == MIXED => {
                last.last = false;
                last.right = index;
                let parent = core::mem::replace(&mut roots.last, index);
                roots.reach = range.end;
                self.add_leaf(index, parent, true);
                self.rise(&mut roots.writers, parent);
            }
            None if behind => {
                (roots.reach, roots.writers, roots.last) = (range.end, index, index);
                self.add_leaf(index, NIL, true);
            }
            _ => self.insert_anywhere(roots, index),
        }
    }

    /// As above, wherever it may be. What the nodes above it say of their subtrees is brought up to date on the way down,
    /// where each is looked at anyway; on the way up then only heights are left, and those seldom change far.
    #[inline(never)]
    fn insert_anywhere(&mut self, roots: &mut Roots, index: u32) {
        let Node { window, access, .. } = self.nodes[index as usize];
        let (start, end, pitch) = (window.range.start, window.range.end, window.pitch);
        let (low, high) = rows(&window);
        let mut parent = NIL;
        let mut at = *roots.of(access);
        while let Some(node) = self.nodes.get_mut(at as usize) {
            parent = at;
            node.reach = node.reach.max(end);
            if node.window.pitch != MIXED {
                node.pitch = shared(node.pitch, pitch);
                (node.low, node.high) =
                    if node.pitch == MIXED { (0, 0) } else { (node.low.min(low), node.high.max(high)) };
            }
            at = if start < node.window.range.start { node.left } else { node.right };
        }
        let mut last = access == Access::Write && parent == roots.last;
        if let Some(node) = self.nodes.get_mut(parent as usize) {
            if start < node.window.range.start {
                node.left = index;
                last = false;
            } else {
                node.right = index;
                node.last &= !last;
            }
        }
        self.add_leaf(index, parent, last);
        if access == Access::Write {
            roots.reach = roots.reach.max(end);
            if last {
                roots.last = index;
            }
        }
        let root = roots.of(access);
        match parent {
            NIL => *root = index,
            above => self.rise(root, above),
        }
    }

    /// What a node says that has just come into a tree, below `parent`.
    #[inline]
    fn add_leaf(&mut self, index: u32, parent: u32, last: bool) {
        let node = &mut self.nodes[index as usize];
        node.left = NIL;
        node.right = NIL;
        node.parent = parent;
        node.height = 1;
        node.last = last;
        node.reach = if last { u64::MAX } else { node.window.range.end };
        node.pitch = node.window.pitch;
        (node.low, node.high) = rows(&node.window);
    }

    /// A subtree of `at` has become higher by one. Balance is restored by one turn at most, after which what is above is
    /// as high as before.
    fn rise(&mut self, root: &mut u32, mut at: u32) {
        while let Some(node) = self.nodes.get(at as usize) {
            let Node { left, right, parent, height, .. } = *node;
            let (left, right) = (self.height(left), self.height(right));
            if left.abs_diff(right) > 1 {
                self.turn(root, at);
                return;
            }
            let higher = left.max(right) + 1;
            if higher == height {
                return;
            }
            self.nodes[at as usize].height = higher;
            at = parent;
        }
    }

    /// Takes a node out of its tree.
    pub(super) fn unlink(&mut self, roots: &mut Roots, index: u32) {
        let Node { left, right, parent, access, last, .. } = self.nodes[index as usize];
        if last {
            // Nothing is to its right.
            roots.last = if left == NIL { parent } else { left };
            match self.nodes.get_mut(roots.last as usize) {
                Some(node) => (node.last, node.reach) = (true, u64::MAX),
                None => (roots.reach, roots.gap) = (0, NO_GAP),
            }
        }
        let root = roots.of(access);
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

    fn height(&self, index: u32) -> u8 {
        self.nodes.get(index as usize).map_or(0, |node| node.height)
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
    #[inline]
    fn summary(&self, index: u32) -> (u8, u64, u64, u64, u64) {
        let node = &self.nodes[index as usize];
        let mut height = 0;
        let mut reach = if node.last { u64::MAX } else { node.window.range.end };
        if let Some(left) = self.nodes.get(node.left as usize) {
            height = left.height;
            reach = reach.max(left.reach);
        }
        if let Some(right) = self.nodes.get(node.right as usize) {
            height = height.max(right.height);
            reach = reach.max(right.reach);
        }
        let (pitch, low, high) = if node.window.pitch == MIXED { (MIXED, 0, 0) } else { self.rows_below(node) };
        (height + 1, reach, pitch, low, high)
    }

    /// The row length that all of a subtree shares, and the part of a row that it touches.
    #[inline(never)]
    fn rows_below(&self, node: &Node) -> (u64, u64, u64) {
        let pitch = node.window.pitch;
        let (mut low, mut high) = rows(&node.window);
        for child in [node.left, node.right] {
            let Some(child) = self.nodes.get(child as usize) else { continue };
            if child.pitch != pitch {
                return (MIXED, 0, 0);
            }
            low = low.min(child.low);
            high = high.max(child.high);
        }
        (pitch, low, high)
    }

    /// Restores balance and summaries from `at` up to the root.
    fn rebalance(&mut self, root: &mut u32, mut at: u32) {
        while at != NIL {
            let Node { left, right, parent, .. } = self.nodes[at as usize];
            let mut changed = self.summarise(at);
            if self.height(left).abs_diff(self.height(right)) > 1 {
                self.turn(root, at);
                changed = true;
            }
            if !changed {
                return;
            }
            at = parent;
        }
    }

    /// Restores the balance of `at`, one of whose subtrees is higher than the other by two. What it says about its own is
    /// true but for the height.
    fn turn(&mut self, root: &mut u32, at: u32) {
        let Node { left, right, .. } = self.nodes[at as usize];
        if self.height(left) > self.height(right) {
            let Node { left: outer, right: inner, .. } = self.nodes[left as usize];
            if self.height(outer) < self.height(inner) {
                self.rotate_left(root, left);
            }
            self.rotate_right(root, at);
        } else {
            let Node { left: inner, right: outer, .. } = self.nodes[right as usize];
            if self.height(outer) < self.height(inner) {
                self.rotate_right(root, right);
            }
            self.rotate_left(root, at);
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
        self.raise(at, up);
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
        self.raise(at, up);
    }

    /// `up` stands where its child `at` stood, for the same subtree.
    #[inline]
    fn raise(&mut self, at: u32, up: u32) {
        let summary = self.summary(at);
        let node = &mut self.nodes[at as usize];
        let Node { reach, pitch, low, high, .. } = *node;
        node.parent = up;
        (node.height, node.reach, node.pitch, node.low, node.high) = summary;
        let Node { left, right, .. } = self.nodes[up as usize];
        let height = self.height(left).max(self.height(right)) + 1;
        let node = &mut self.nodes[up as usize];
        (node.height, node.reach, node.pitch, node.low, node.high) = (height, reach, pitch, low, high);
    }

    /// Panics unless both trees are balanced, ordered and summarised truly.
    #[cfg(test)]
    pub(in crate::engine) fn check(&self, roots: &Roots) {
        let mut last = roots.writers;
        while let Some(node) = self.nodes.get(last as usize).filter(|node| node.right != NIL) {
            last = node.right;
        }
        assert_eq!(roots.last, last);
        for root in [roots.writers, roots.readers] {
            if root != NIL {
                assert_eq!(self.nodes[root as usize].parent, NIL);
                self.check_below(roots, root);
            }
        }
    }

    #[cfg(test)]
    fn check_below(&self, roots: &Roots, index: u32) -> u8 {
        let node = &self.nodes[index as usize];
        assert_eq!(node.last, index == roots.last);
        assert!(node.access == Access::Read || node.window.range.end <= roots.reach);
        let (own, gap) = (node.window.range, roots.gap);
        assert!(node.access == Access::Read || own.end <= gap.start || own.start >= gap.end, "no gap");
        match node.entry {
            NIL => assert_eq!(node.slot, NOBODY, "a vacant place is nobody's"),
            entry => assert_eq!(self.standing(entry), Standing::Linked(index)),
        }
        let [left, right] = [node.left, node.right].map(|child| {
            if child == NIL {
                return 0;
            }
            assert_eq!(self.nodes[child as usize].parent, index);
            self.check_below(roots, child)
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

/// The part of a row that a window touches.
const fn rows(window: &Window) -> (u64, u64) {
    if window.pitch == MIXED {
        return (0, 0);
    }
    let end = window.low + window.width;
    // One that runs over the end of the row touches both ends.
    if end > window.pitch { (0, window.pitch) } else { (window.low, end) }
}

/// The row length that two subtrees share.
const fn shared(pitch: u64, other: u64) -> u64 {
    if pitch == other { pitch } else { MIXED }
}
