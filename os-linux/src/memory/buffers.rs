//! Which parts of the buffer region are taken: first fit over an address-ordered free list, in whole pages, so that the
//! pages of a freed buffer can go back to the system.

use std::collections::BTreeMap;

/// Free and taken spans of one region, as offsets from its base.
#[derive(Debug)]
pub(crate) struct Spans {
    /// Granularity in bytes, a page of the system: freed memory is returned page by page.
    unit: u64,
    free: BTreeMap<u64, u64>,
    taken: BTreeMap<u64, u64>,
}

impl Spans {
    /// One free span of `bytes` bytes, handed out in multiples of `unit`.
    pub(crate) fn new(bytes: u64, unit: u64) -> Self {
        Self { unit, free: BTreeMap::from([(0, bytes / unit * unit)]), taken: BTreeMap::new() }
    }

    /// Takes `bytes` (rounded up to whole units) at the lowest place where they fit.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<u64> {
        let want = bytes.max(1).checked_next_multiple_of(self.unit)?;
        let (&at, &span) = self.free.iter().find(|&(_, &span)| span >= want)?;
        self.free.remove(&at);
        if span > want {
            self.free.insert(at + want, span - want);
        }
        self.taken.insert(at, want);
        Some(at)
    }

    /// Gives the span that starts at `at` back and joins it with its free neighbours; the length that became free.
    pub(crate) fn give_back(&mut self, at: u64) -> Option<u64> {
        let bytes = self.taken.remove(&at)?;
        let (mut start, mut end) = (at, at + bytes);
        if let Some((&before, &span)) = self.free.range(..at).next_back()
            && before + span == at
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(span) = self.free.remove(&end) {
            end += span;
        }
        self.free.insert(start, end - start);
        Some(bytes)
    }

    /// Taken spans: start and length.
    pub(crate) fn taken(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.taken.iter().map(|(&at, &bytes)| (at, bytes))
    }

    /// Length of the taken span that starts at `at`.
    pub(crate) fn len_of(&self, at: u64) -> Option<u64> {
        self.taken.get(&at).copied()
    }

    /// The longest span that could be taken now, in bytes.
    pub(crate) fn largest_free(&self) -> u64 {
        self.free.values().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 65_536;

    #[test]
    fn a_freed_span_joins_both_neighbours() {
        let mut spans = Spans::new(4 * PAGE, PAGE);
        let at: Vec<u64> = (0..4).map(|_| spans.take(1).unwrap()).collect();
        assert_eq!(spans.take(1), None);
        for i in [0, 2, 3, 1] {
            assert_eq!(spans.give_back(at[i]), Some(PAGE));
        }
        assert_eq!(spans.take(4 * PAGE), Some(0));
    }

    #[test]
    fn a_span_is_given_back_once() {
        let mut spans = Spans::new(4 * PAGE, PAGE);
        let at = spans.take(PAGE + 1).unwrap();
        assert_eq!(spans.give_back(at), Some(2 * PAGE));
        assert_eq!(spans.give_back(at), None);
        assert_eq!(spans.largest_free(), 4 * PAGE);
    }

    #[test]
    fn a_size_that_wraps_is_refused() {
        assert_eq!(Spans::new(PAGE, PAGE).take(u64::MAX), None);
    }
}
