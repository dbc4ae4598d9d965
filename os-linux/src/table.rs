//! What a child knows: callables by digest, with how often each was registered.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use laneway_core::wire::Digest;

/// Callables of one kind.
pub(crate) struct Table<F> {
    entries: HashMap<Digest, (F, u32), BuildHasherDefault<Prefix>>,
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
        Self { entries: snapshot.into_iter().map(|(digest, function)| (digest, (function, 1))).collect() }
    }

    pub(crate) fn get(&self, digest: &Digest) -> Option<&F> {
        self.entries.get(digest).map(|(function, _)| function)
    }

    /// Raises the count of a known callable; else enters what `make` returns.
    pub(crate) fn install<E>(&mut self, digest: Digest, make: impl FnOnce() -> Result<F, E>) -> Result<(), E> {
        match self.entries.get_mut(&digest) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => drop(self.entries.insert(digest, (make()?, 1))),
        }
        Ok(())
    }

    /// Lowers the count; the last one removes the callable. An unknown one is no error.
    pub(crate) fn remove(&mut self, digest: &Digest) {
        if let Some((_, count)) = self.entries.get_mut(digest) {
            *count -= 1;
            if *count == 0 {
                self.entries.remove(digest);
            }
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
