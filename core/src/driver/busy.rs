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

    pub(super) fn insert(&mut self, endpoint: EndpointIndex) {
        self.words[endpoint.index() / 64] |= 1 << (endpoint.index() % 64);
    }

    pub(super) fn remove(&mut self, endpoint: EndpointIndex) {
        self.words[endpoint.index() / 64] &= !(1 << (endpoint.index() % 64));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The first member at or after `from`.
    pub(super) fn next_from(&self, from: usize) -> Option<EndpointIndex> {
        let mut at = from / 64;
        let mut word = self.words.get(at)? & (u64::MAX << (from % 64));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(EndpointIndex((at * 64) as u16 + word.trailing_zeros() as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_across_words() {
        let mut set = BusySet::new(256);
        assert!(set.is_empty() && set.next_from(0).is_none());
        for index in [255, 0, 64, 63] {
            set.insert(EndpointIndex(index));
        }
        set.remove(EndpointIndex(64));
        let mut seen = Vec::new();
        let mut from = 0;
        while let Some(endpoint) = set.next_from(from) {
            seen.push(endpoint.0);
            from = endpoint.index() + 1;
        }
        assert_eq!(seen, [0, 63, 255]);
    }
}
