//! The replay filter of a chip child (C-5).

use crate::ids::{Generation, PipelineSlot};

use super::ModelError;

/// The highest generation seen per slot: what is older has been replayed and is refused (C-5).
///
/// It mints nothing and is weaker than ownership on purpose: a lease that was given back still passes until its
/// successor has shown up. Whoever hands work down must ask [`SlotPool::owns`](super::SlotPool::owns) first. A direct
/// run holds no lease and must not come here (C-18).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct GenerationFilter {
    high_water: [Option<Generation>; PipelineSlot::ALL.len()],
}

impl GenerationFilter {
    /// A filter that has seen nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { high_water: [None; PipelineSlot::ALL.len()] }
    }

    /// Whether `generation` would pass. Does not raise the mark: the prepare that follows may fail, and the retry with
    /// the same generation must pass too (T-28).
    ///
    /// # Errors
    /// [`ModelError::StaleGeneration`] if a later lease of this slot has been admitted.
    pub fn check(&self, slot: PipelineSlot, generation: Generation) -> Result<(), ModelError> {
        match self.high_water[slot.index()] {
            Some(seen) if generation < seen => Err(ModelError::StaleGeneration { slot, generation, seen }),
            _ => Ok(()),
        }
    }

    /// Admits `generation` and raises the mark to it.
    ///
    /// # Errors
    /// As [`check`](Self::check); the mark stays.
    pub fn admit(&mut self, slot: PipelineSlot, generation: Generation) -> Result<(), ModelError> {
        self.check(slot, generation)?;
        self.high_water[slot.index()] = Some(generation);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::println;
    use std::vec::Vec;

    use super::*;

    const GENERATIONS: u64 = 3;

    /// Walks every sequence of asks and admissions; `admitted` is what was let through so far.
    fn walk(filter: GenerationFilter, admitted: &mut Vec<(PipelineSlot, u64)>, length: u32) -> u64 {
        if length == 0 {
            return 1;
        }
        let mut sequences = 1;
        for slot in PipelineSlot::ALL {
            for raw in 1..=GENERATIONS {
                let generation = Generation::new(raw).unwrap();
                let newer_seen = admitted.iter().any(|&(other, seen)| other == slot && seen > raw);
                let mut next = filter;
                assert_eq!(next.check(slot, generation).is_err(), newer_seen);
                assert_eq!(next, filter, "asking raises nothing");
                assert_eq!(next.admit(slot, generation).is_err(), newer_seen);
                if newer_seen {
                    assert_eq!(next, filter, "a refusal raises nothing");
                    sequences += walk(next, admitted, length - 1);
                } else {
                    admitted.push((slot, raw));
                    sequences += walk(next, admitted, length - 1);
                    admitted.pop();
                }
            }
        }
        sequences
    }

    /// C-5
    #[test]
    fn every_sequence_of_seven_admissions_refuses_exactly_what_is_older_than_something_admitted() {
        let sequences = walk(GenerationFilter::new(), &mut Vec::new(), 7);
        println!("generation filter: {sequences} sequences of up to 7 admissions");
        assert!(sequences > 279_936);
    }

    /// C-5, T-28
    #[test]
    fn a_prepare_that_failed_can_be_retried_with_its_generation() {
        let mut filter = GenerationFilter::new();
        let generation = Generation::new(5).unwrap();
        filter.check(PipelineSlot::One, generation).unwrap();
        filter.check(PipelineSlot::One, generation).unwrap();
        filter.admit(PipelineSlot::One, generation).unwrap();
        filter.admit(PipelineSlot::One, generation).unwrap();
        let older = Generation::new(4).unwrap();
        assert_eq!(
            filter.admit(PipelineSlot::One, older),
            Err(ModelError::StaleGeneration { slot: PipelineSlot::One, generation: older, seen: generation })
        );
        filter.admit(PipelineSlot::Zero, older).unwrap();
    }
}
