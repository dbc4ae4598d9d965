//! Which endpoints have anything under way.

use alloc::vec::Vec;

use crate::ids::EndpointIndex;

/// A set of endpoints, one bit each: a round over 256 idle endpoints looks at four words.
#[derive(Clone, Debug)]
pub(super) struct BusySet {
    words: Vec<u64>,
}

impl BusySet {
    /// An empty set for endpoints below `len`.
    pub(super) fn new(len: usize) -> Self {
        Self { words: alloc::vec![0; len.div_ceil(64)] }
    }

    #[inline]
    pub(super) fn insert(&mut self, endpoint: EndpointIndex) {
        self.words[endpoint.index() / 64] |= 1 << (endpoint.index() % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, endpoint: EndpointIndex) {
        self.words[endpoint.index() / 64] &= !(1 << (endpoint.index() % 64));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The members of a group of 64 endpoints as they are now, lowest first: who comes or goes meanwhile changes nothing.
    /// `None` behind the last group.
    #[inline]
    pub(super) fn members(&self, group: usize) -> Option<Members> {
        self.words.get(group).map(|bits| Members { bits: *bits, first: group as u16 * 64 })
    }

    /// All members, lowest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = EndpointIndex> + '_ {
        (0..self.words.len()).filter_map(|group| self.members(group)).flatten()
    }
}

/// Some members of a set.
pub(super) struct Members {
    bits: u64,
    first: u16,
}

impl Iterator for Members {
    type Item = EndpointIndex;

    #[inline]
    fn next(&mut self) -> Option<EndpointIndex> {
        if self.bits == 0 {
            return None;
        }
        let lowest = self.bits.trailing_zeros() as u16;
        self.bits &= self.bits - 1;
        Some(EndpointIndex(self.first + lowest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_across_words() {
        let mut set = BusySet::new(256);
        assert!(set.is_empty() && set.iter().next().is_none());
        for index in [255, 0, 64, 63] {
            set.insert(EndpointIndex(index));
        }
        set.remove(EndpointIndex(64));
        let seen: Vec<_> = set.iter().map(|endpoint| endpoint.0).collect();
        assert_eq!(seen, [0, 63, 255]);
    }
}
