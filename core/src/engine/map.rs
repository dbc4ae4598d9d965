//! Who writes which bytes: per run and backing an interval tree over pooled nodes (E-14 to E-17, E-42).
//!
//! The trees are balanced (AVL), ordered by the first byte, and every node knows how far its subtree reaches and, while
//! all of it shares one row length, which part of a row it touches. So a look-up leaves out what lies elsewhere in
//! memory as well as what lies in other columns of the same matrix.

mod entry;
mod tree;
mod vacant;

use alloc::vec::Vec;

use crate::ids::{PipelineSlot, TaskSlot};
use crate::model::Footprint;
use crate::wire::ByteRange;

use super::backing::TreeIndex;
use super::slot::NIL;
use super::window::{Window, windows_meet};
use entry::Entry;

use vacant::Places;

pub(super) use entry::{Plan, Standing};

/// The trees of one run on one backing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Roots {
    /// No writer that there has been since the tree was empty ends behind this byte.
    pub(super) reach: u64,
    /// A range that no node of the tree of writers touches, as a search that found nothing has seen it. A walk through a part of a
    /// buffer goes on in there.
    gap: ByteRange,
    pub(super) writers: u32,
    /// The node of the tree of writers that comes behind all others.
    pub(super) last: u32,
    /// Only kept with `strict_war` (E-19).
    pub(super) readers: u32,
    /// Next on the list of the trees that vacant places may be in, [`UNLISTED`] while on none.
    pub(super) next: u32,
}

const NO_GAP: ByteRange = ByteRange { start: 0, end: 0 };

/// Of a tree that is on no list; the list ends with [`NIL`].
pub(super) const UNLISTED: u32 = NIL - 1;

impl Roots {
    pub(super) const EMPTY: Self =
        Self { reach: 0, gap: NO_GAP, writers: NIL, last: NIL, readers: NIL, next: UNLISTED };

    /// The tree of writers is empty, or given up as it is.
    pub(super) const fn forget_writers(&mut self) {
        (self.reach, self.gap, self.writers, self.last) = (0, NO_GAP, NIL, NIL);
    }

    /// The root of a tree that may have a node that ends behind the first byte of a view, [`NIL`] if there is none.
    #[inline]
    const fn root(&self, access: Access, view: &View<'_>) -> u32 {
        match access {
            // What comes behind all others, as in a walk through a buffer, is told here.
            Access::Write if self.reach <= view.range().start || self.is_in_gap(view.range()) => NIL,
            Access::Write => self.writers,
            Access::Read => self.readers,
        }
    }

    const fn is_in_gap(&self, range: ByteRange) -> bool {
        self.gap.start <= range.start && range.end <= self.gap.end
    }

    /// A writer of this range comes into the tree.
    const fn fill(&mut self, range: ByteRange) {
        if range.start < self.gap.end && self.gap.start < range.end {
            self.gap.start = range.end;
        }
    }

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

/// The bytes that an argument names.
#[derive(Clone, Copy, Debug)]
pub(super) enum View<'a> {
    /// All of a range; against such a view ranges decide.
    Contiguous(ByteRange),
    /// Some of its range: as far as a window tells, and exactly.
    Strided(&'a Window, &'a Footprint),
}

impl View<'_> {
    #[inline]
    const fn range(&self) -> ByteRange {
        match self {
            View::Contiguous(range) => *range,
            View::Strided(window, _) => window.range,
        }
    }
}

/// An entry to be made, with a node of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewEntry<'a> {
    pub(super) slot: TaskSlot,
    pub(super) access: Access,
    pub(super) tree: TreeIndex,
    /// Whose place stays in the tree once it is vacant, if it does: the run's whose tree it is.
    pub(super) stays: Option<PipelineSlot>,
    pub(super) view: View<'a>,
    pub(super) plan: Plan,
}

/// What a search has found, as two chains; [`NIL`] where there is nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Found {
    /// Nodes of entries.
    pub(super) taken: u32,
    /// Nodes that order nothing.
    pub(super) vacant: u32,
}

impl Found {
    const NOTHING: Self = Self { taken: NIL, vacant: NIL };
}

/// One place in a tree: bytes that tasks write, or read, and the entry that was the last to. It is *vacant* when that
/// entry is gone.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Node {
    // The first line is all that is looked at on the way through a tree of contiguous views.
    window: Window,
    /// Largest end in the subtree. Of the last writer and those above it, which it would change with every step of a walk
    /// through a buffer, this is `u64::MAX`.
    reach: u64,
    left: u32,
    right: u32,
    /// Row length that all of the subtree shares, [`MIXED`] if there is none, and the part of a row that it touches.
    pitch: u64,
    low: u64,
    high: u64,
    /// Parent in the tree.
    parent: u32,
    /// Next node that a search has found.
    chain: u32,
    /// The entry; [`NIL`] while vacant.
    entry: u32,
    /// The task of the entry; none while vacant, and until the task that is to take a vacant place over is published.
    slot: TaskSlot,
    tree: TreeIndex,
    /// Among the vacant places of a run, the next that is younger, and the next that is older; next free node while free.
    younger: u32,
    older: u32,
    height: u8,
    stays: Option<PipelineSlot>,
    /// A pure overwrite has taken its place, but it still orders (its task failed before its producers ended).
    overwritten: bool,
    access: Access,
    /// Comes behind all others in a tree of writers.
    last: bool,
}

// A visit touches one cache line, a change two.
const _: () = assert!(size_of::<Node>() == 128 && core::mem::offset_of!(Node, pitch) == 64);

/// The task of a place that has none.
const NOBODY: TaskSlot = TaskSlot(NIL);

impl Node {
    /// No node of the subtree touches the part of a row that the view touches.
    fn misses_rows(&self, window: &Window) -> bool {
        self.pitch != MIXED
            && self.pitch == window.pitch
            && !windows_meet(self.pitch, (self.low, self.high - self.low), (window.low, window.width))
    }
}

/// The entries of one engine, and the trees over them.
#[derive(Clone, Debug)]
pub(super) struct Map {
    entries: Vec<Entry>,
    free_entry: u32,
    used: u32,
    /// As many as entries: while one of those is free, a node is free or vacant.
    nodes: Vec<Node>,
    free_node: u32,
    /// The places of each run, by its lease.
    places: [Places; PipelineSlot::ALL.len()],
    /// The exact shape of each node that is not contiguous, looked at only where windows do not decide.
    shapes: Vec<Option<Footprint>>,
    /// The path of the search at hand.
    path: [u32; DEPTH],
    #[cfg(test)]
    visited: u64,
}

impl Map {
    pub(super) fn new(capacity: u32) -> Self {
        let next_free = |index: u32| if index + 1 < capacity { index + 1 } else { NIL };
        let node = |index: u32| Node {
            window: Window::default(),
            reach: 0,
            pitch: MIXED,
            low: 0,
            high: 0,
            left: NIL,
            right: NIL,
            parent: NIL,
            chain: NIL,
            entry: NIL,
            slot: NOBODY,
            tree: TreeIndex::NONE,
            younger: NIL,
            older: next_free(index),
            height: 0,
            stays: None,
            overwritten: false,
            access: Access::Write,
            last: false,
        };
        let entry = |index: u32| Entry { standing: Standing::Replaced, next: next_free(index) };
        Self {
            entries: (0..capacity).map(entry).collect(),
            free_entry: 0,
            used: 0,
            nodes: (0..capacity).map(node).collect(),
            free_node: 0,
            places: [Places::NONE; PipelineSlot::ALL.len()],
            shapes: Vec::with_capacity(capacity as usize),
            path: [NIL; DEPTH],
            #[cfg(test)]
            visited: 0,
        }
    }

    /// The task that a node's entry belongs to.
    pub(super) fn slot(&self, node: u32) -> TaskSlot {
        self.nodes[node as usize].slot
    }

    /// The entry that a node belongs to.
    #[cfg(test)]
    pub(super) fn entry(&self, node: u32) -> u32 {
        self.nodes[node as usize].entry
    }

    pub(super) fn is_overwritten(&self, node: u32) -> bool {
        self.nodes[node as usize].overwritten
    }

    pub(super) fn mark_overwritten(&mut self, node: u32) {
        self.nodes[node as usize].overwritten = true;
    }

    /// In which tree a node is or will be, and whether its place stays there once it is vacant.
    #[inline]
    pub(super) fn place(&self, node: u32) -> (TreeIndex, Option<PipelineSlot>) {
        let node = &self.nodes[node as usize];
        (node.tree, node.stays)
    }

    /// The nodes of a tree whose bytes may overlap those of a view (E-16).
    #[inline]
    pub(super) fn overlapping(&mut self, roots: &mut Roots, access: Access, view: &View<'_>) -> Found {
        let root = roots.root(access, view);
        if root == NIL {
            return Found::NOTHING;
        }
        match *view {
            View::Contiguous(range) => self.overlapping_range(roots, access, range),
            View::Strided(window, shape) => self.overlapping_rows(root, window, shape),
        }
    }

    #[inline(never)]
    fn overlapping_range(&mut self, roots: &mut Roots, access: Access, range: ByteRange) -> Found {
        let (found, gap) = self.search(*roots.of(access), range, |_| false, |_, _| true);
        if access == Access::Write && found == Found::NOTHING {
            roots.gap = gap;
        }
        found
    }

    #[inline(never)]
    fn overlapping_rows(&mut self, root: u32, window: &Window, shape: &Footprint) -> Found {
        let misses = |node: &Node| node.misses_rows(window);
        let meets = |map: &Self, at: u32| {
            let own = &map.nodes[at as usize].window;
            own.rows_meet(window) && (own.decides(window) || map.shape_meets(at, shape))
        };
        self.search(root, window.range, misses, meets).0
    }

    /// The nodes whose range overlaps `range` and for which `meets` holds, without the subtrees that `misses` leaves out. If it
    /// leaves out none and nothing is found, also a range around `range` that no node touches.
    #[inline]
    fn search(
        &mut self,
        root: u32,
        range: ByteRange,
        misses: impl Fn(&Node) -> bool,
        meets: impl Fn(&Self, u32) -> bool,
    ) -> (Found, ByteRange) {
        let ByteRange { start, end } = range;
        let mut found = Found::NOTHING;
        let mut gap = ByteRange { start: 0, end: u64::MAX };
        let mut depth = 0;
        let mut at = root;
        loop {
            #[cfg(test)]
            {
                self.visited += 1;
            }
            let node = &self.nodes[at as usize];
            let mut next = NIL;
            if node.reach <= start {
                gap.start = gap.start.max(node.reach);
            } else if !misses(node) {
                next = node.left;
                let own = node.window.range;
                if own.start < end {
                    let right = node.right;
                    if own.end <= start {
                        gap.start = gap.start.max(own.end);
                    } else if meets(self, at) {
                        let node = &mut self.nodes[at as usize];
                        let chain = if node.slot == NOBODY { &mut found.vacant } else { &mut found.taken };
                        node.chain = core::mem::replace(chain, at);
                    }
                    if next == NIL {
                        next = right;
                    } else if right != NIL {
                        self.path[depth] = right;
                        depth += 1;
                    }
                } else {
                    gap.end = gap.end.min(own.start);
                }
            }
            if next == NIL {
                if depth == 0 {
                    return (found, gap);
                }
                depth -= 1;
                next = self.path[depth];
            }
            at = next;
        }
    }

    /// The nodes of a tree whose bytes may overlap those of a node that is in no tree.
    pub(super) fn overlapping_node(&mut self, roots: &mut Roots, access: Access, node: u32) -> Found {
        let window = self.nodes[node as usize].window;
        match self.shapes[node as usize] {
            Some(shape) if !window.contiguous => self.overlapping(roots, access, &View::Strided(&window, &shape)),
            _ => self.overlapping(roots, access, &View::Contiguous(window.range)),
        }
    }

    /// Whether every byte of node `other` certainly belongs to node `index`.
    pub(super) fn covers(&self, index: u32, other: u32) -> bool {
        let (own, others) = (&self.nodes[index as usize].window, &self.nodes[other as usize].window);
        if own.covers(others) {
            return true;
        }
        // A contiguous view is covered as its range is, and covers only what lies in its range.
        !own.contiguous
            && !others.contiguous
            && match (&self.shapes[index as usize], &self.shapes[other as usize]) {
                (Some(shape), Some(other)) => shape.covers(other),
                _ => false,
            }
    }

    fn shape_meets(&self, node: u32, shape: &Footprint) -> bool {
        self.shapes[node as usize].as_ref().is_none_or(|own| own.overlaps(shape))
    }

    /// Whether `test` holds for the task of a node of either tree.
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
                if node.slot != NOBODY && test(node.slot) {
                    return true;
                }
                at = node.right;
            }
        }
        false
    }

    /// Puts a node at the head of a chain; returns it.
    pub(super) fn chain(&mut self, node: u32, rest: u32) -> u32 {
        self.nodes[node as usize].chain = rest;
        node
    }

    /// What comes after a node on a chain.
    pub(super) fn chained(&self, node: u32) -> u32 {
        self.nodes[node as usize].chain
    }

    /// How many nodes searches have looked at.
    #[cfg(test)]
    pub(super) const fn visited(&self) -> u64 {
        self.visited
    }
}
