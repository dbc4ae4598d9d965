//! Copies between private bytes and a run of atomic words: what an implementation of [`Words`](super::Words) over shared
//! memory is made of, once it has checked that the run is as long as the bytes. Most are of a few words whose number the
//! caller knows: inlined they have no loop, hence the attributes.

use core::sync::atomic::{AtomicU64, Ordering};

/// Words of a cache line.
const LINE: usize = 8;

/// Copies bytes into a run.
#[inline]
pub fn copy_in(run: &[AtomicU64], from: &[u8]) {
    for (word, bytes) in run.iter().zip(from.as_chunks().0) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
}

/// Copies bytes into a run where they differ. A line is compared before it is written: it seldom differs.
#[inline(always)]
pub fn copy_in_changed(run: &[AtomicU64], from: &[u8]) {
    let (lines, rest) = run.as_chunks::<LINE>();
    let (from_lines, from_rest) = from.as_chunks::<{ 8 * LINE }>();
    for (line, bytes) in lines.iter().zip(from_lines) {
        if !holds(line, bytes) {
            write_changed(line, bytes);
        }
    }
    write_changed(rest, from_rest);
}

#[inline(always)]
fn write_changed(run: &[AtomicU64], from: &[u8]) {
    for (word, bytes) in run.iter().zip(from.as_chunks().0) {
        let value = u64::from_le_bytes(*bytes);
        if word.load(Ordering::Relaxed) != value {
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// Whether a run holds these bytes. Each word has its own branch: a sum over all of them keeps every loaded word in a
/// register, and there are too few.
#[inline(always)]
#[must_use]
pub fn holds(run: &[AtomicU64], bytes: &[u8]) -> bool {
    let mut words = run.iter().zip(bytes.as_chunks().0);
    words.all(|(word, bytes)| word.load(Ordering::Relaxed) == u64::from_le_bytes(*bytes))
}

/// Copies a run into private bytes.
#[inline]
pub fn copy_out(run: &[AtomicU64], into: &mut [u8]) {
    for (word, bytes) in run.iter().zip(into.as_chunks_mut().0) {
        *bytes = word.load(Ordering::Relaxed).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// W-8: whatever the length, and whichever word differs.
    #[test]
    fn a_changed_copy_leaves_what_a_copy_leaves() {
        for words in 0..20 {
            let bytes: Vec<u8> = (0..words * 8).map(|index| index as u8 + 1).collect();
            for other in 0..=words {
                let run: Vec<_> =
                    bytes.as_chunks().0.iter().map(|word| AtomicU64::new(u64::from_le_bytes(*word))).collect();
                assert!(holds(&run, &bytes));
                if let Some(word) = run.get(other) {
                    word.store(7, Ordering::Relaxed);
                    assert!(!holds(&run, &bytes), "word {other} of {words}");
                }
                copy_in_changed(&run, &bytes);
                assert!(holds(&run, &bytes), "word {other} of {words}");
                let mut back = std::vec![0; words * 8];
                copy_out(&run, &mut back);
                assert_eq!(back, bytes);
            }
        }
    }
}
