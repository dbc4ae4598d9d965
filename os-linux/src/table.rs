//! What a child knows: callables by digest, with how often each was registered.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use laneway_core::wire::Digest;

/// Callables of one kind.
pub(crate) struct Table<F> {
    /// Removed ones leave a gap.
    entries: Vec<Option<Entry<F>>>,
    by_digest: HashMap<Digest, usize, BuildHasherDefault<Prefix>>,
    /// Which one was asked for last: each task asks twice, and the next one is most often of the same callable.
    last: Cell<usize>,
}

struct Entry<F> {
    digest: Digest,
    function: F,
    count: u32,
}

/// The first bytes of a digest, which is a hash already: every task is looked up.
#[derive(Default)]
struct Prefix(u64);

impl Hasher for Prefix {
    /// The digest comes last; its length, which may come before it, is the same for all.
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<F> Table<F> {
    /// The start-up snapshot.
    pub(crate) fn new(snapshot: HashMap<Digest, F>) -> Self {
        let mut table = Self { entries: Vec::new(), by_digest: HashMap::default(), last: Cell::new(0) };
        snapshot.into_iter().for_each(|(digest, function)| table.enter(digest, function));
        table
    }

    #[inline]
    pub(crate) fn get(&self, digest: &Digest) -> Option<&F> {
        match self.entries.get(self.last.get()) {
            Some(Some(entry)) if entry.digest == *digest => Some(&entry.function),
            _ => self.find(digest),
        }
    }

    fn find(&self, digest: &Digest) -> Option<&F> {
        let at = *self.by_digest.get(digest)?;
        self.last.set(at);
        self.entries.get(at)?.as_ref().map(|entry| &entry.function)
    }

    fn get_mut(&mut self, digest: &Digest) -> Option<&mut Entry<F>> {
        self.entries.get_mut(*self.by_digest.get(digest)?)?.as_mut()
    }

    fn enter(&mut self, digest: Digest, function: F) {
        let at = self.entries.iter().position(Option::is_none).unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        self.entries[at] = Some(Entry { digest, function, count: 1 });
        self.by_digest.insert(digest, at);
    }

    /// Raises the count of a known callable; else enters what `make` returns.
    pub(crate) fn install<E>(&mut self, digest: Digest, make: impl FnOnce() -> Result<F, E>) -> Result<(), E> {
        match self.get_mut(&digest) {
            Some(entry) => entry.count = entry.count.saturating_add(1),
            None => {
                let function = make()?;
                self.enter(digest, function);
            }
        }
        Ok(())
    }

    /// Lowers the count; the last one removes the callable. An unknown one is no error.
    pub(crate) fn remove(&mut self, digest: &Digest) {
        let Some(entry) = self.get_mut(digest) else { return };
        entry.count -= 1;
        if entry.count == 0
            && let Some(at) = self.by_digest.remove(digest)
        {
            self.entries[at] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_that_begin_alike_are_told_apart() {
        let digests = [0, 1].map(|last| {
            let mut bytes = [7; 32];
            bytes[31] = last;
            Digest(bytes)
        });
        let table = Table::new(digests.into_iter().zip(['a', 'b']).collect());
        assert_eq!(digests.map(|digest| table.get(&digest).copied()), [Some('a'), Some('b')]);
        assert_eq!(table.get(&Digest([7; 32])), None);
    }

    /// whatever was asked for last.
    #[test]
    fn a_removed_callable_is_not_found_and_its_place_is_given_to_the_next() {
        let digests = [1, 2, 3].map(|byte| Digest([byte; 32]));
        let mut table = Table::new(HashMap::from([(digests[0], 'a'), (digests[1], 'b')]));
        for asked in [0, 1] {
            assert!(table.get(&digests[asked]).is_some());
            table.remove(&digests[0]);
            assert_eq!((table.get(&digests[0]), table.get(&digests[1])), (None, Some(&'b')), "after {asked}");
            table.install(digests[2], || Ok::<_, ()>('c')).unwrap();
            assert_eq!((table.get(&digests[0]), table.get(&digests[2])), (None, Some(&'c')), "after {asked}");
            assert_eq!(table.entries.len(), 2);
            table.remove(&digests[2]);
            table.install(digests[0], || Ok::<_, ()>('a')).unwrap();
        }
    }

    ///
    #[test]
    fn the_last_of_as_many_removals_as_registrations_removes() {
        let digest = Digest([1; 32]);
        let mut table = Table::new(HashMap::from([(digest, 'a')]));
        table.install(digest, || Err("nothing is made for a known one")).unwrap();
        table.remove(&digest);
        assert_eq!(table.get(&digest), Some(&'a'));
        table.remove(&digest);
        assert_eq!(table.get(&digest), None);
        table.remove(&digest);
        assert_eq!(table.install(digest, || Err::<char, _>("refused")), Err("refused"));
        assert_eq!(table.get(&digest), None, "a refused one leaves no entry");
    }
}
