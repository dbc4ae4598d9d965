//! Vacant places: nodes that stay in their tree when the entry that they belonged to is gone (E-17, E-23).
//!
//! Tasks come back to the same bytes, and a task that writes exactly those of a vacant place moves in without any work on
//! the tree. Whatever else meets it takes it out; and when a run has nothing but vacant places, which is how most scopes
//! end, its trees are given up as they are and all their nodes are free in one step.

use super::{Map, NOBODY};
use crate::engine::slot::NIL;
use crate::ids::PipelineSlot;

/// Vacant places that a run may have whatever else it has.
const FEW: u32 = 256;

/// The places of one run, as far as they stay when they become vacant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// Those that are not vacant.
    pub(super) taken: u32,
    /// How many of them there have been at once since the trees were given up last.
    peak: u32,
    vacant: u32,
    oldest: u32,
    youngest: u32,
}

impl Places {
    pub(super) const NONE: Self = Self { taken: 0, peak: 0, vacant: 0, oldest: NIL, youngest: NIL };

    /// One more is not vacant.
    pub(super) fn count_taken(&mut self) {
        self.taken += 1;
        self.peak = self.peak.max(self.taken);
    }
}

impl Map {
    /// The entry of a node in a tree of `run` is gone: the place is vacant.
    #[inline]
    pub(in crate::engine) fn vacate(&mut self, run: PipelineSlot, node: u32) {
        let places = &mut self.places[run.index()];
        let older = core::mem::replace(&mut places.youngest, node);
        places.taken -= 1;
        places.vacant += 1;
        let place = &mut self.nodes[node as usize];
        place.slot = NOBODY;
        place.entry = NIL;
        place.overwritten = false;
        place.older = older;
        place.younger = NIL;
        match self.nodes.get_mut(older as usize) {
            Some(older) => older.younger = node,
            None => places.oldest = node,
        }
    }

    /// A vacant place is kept for an entry, which takes it over when its task is published. It orders nothing before.
    pub(super) fn occupy(&mut self, node: u32, entry: u32) {
        self.unlist_vacant(node);
        let place = &mut self.nodes[node as usize];
        place.entry = entry;
        if let Some(run) = place.stays {
            self.places[run.index()].count_taken();
        }
    }

    /// Takes a vacant place off the list of its run.
    pub(super) fn unlist_vacant(&mut self, node: u32) {
        let place = &self.nodes[node as usize];
        let (older, younger, Some(run)) = (place.older, place.younger, place.stays) else { return };
        let places = &mut self.places[run.index()];
        places.vacant -= 1;
        match self.nodes.get_mut(older as usize) {
            Some(older) => older.younger = younger,
            None => places.oldest = younger,
        }
        match self.nodes.get_mut(younger as usize) {
            Some(younger) => younger.older = older,
            None => places.youngest = older,
        }
    }

    /// Whether nobody has moved into a vacant place meanwhile.
    pub(in crate::engine) fn is_vacant(&self, node: u32) -> bool {
        self.nodes[node as usize].entry == NIL
    }

    /// The place of the run that has been vacant for longest.
    pub(in crate::engine) fn oldest_vacant(&self, run: PipelineSlot) -> Option<u32> {
        let oldest = self.places[run.index()].oldest;
        (oldest != NIL).then_some(oldest)
    }

    /// How many places of a run are vacant.
    #[cfg(test)]
    pub(in crate::engine) fn vacant(&self, run: PipelineSlot) -> u32 {
        self.places[run.index()].vacant
    }

    /// Whether there are more vacant places in a run's trees than there have ever been others, and not just a few: the oldest
    /// are then taken out as new ones come in, so that trees stay as deep and as large as what they are for.
    #[inline]
    pub(in crate::engine) fn has_too_many_vacant(&self, run: PipelineSlot) -> bool {
        let places = &self.places[run.index()];
        places.vacant > places.peak && places.vacant > FEW
    }

    /// Whether the trees of writers of a run hold something, and nothing but vacant places.
    #[inline]
    pub(in crate::engine) fn is_all_vacant(&self, run: PipelineSlot) -> bool {
        let places = &self.places[run.index()];
        places.taken == 0 && places.vacant > 0
    }

    /// Frees all vacant places of a run at once. The caller gives up the trees that they are in.
    pub(in crate::engine) fn free_all_vacant(&mut self, run: PipelineSlot) {
        let Places { oldest, youngest, .. } = core::mem::replace(&mut self.places[run.index()], Places::NONE);
        // Both lists are linked by `older`.
        if let Some(node) = self.nodes.get_mut(oldest as usize) {
            node.older = self.free_node;
            self.free_node = youngest;
        }
    }
}
