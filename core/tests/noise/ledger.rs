//! What the parent of a hostile child is told.

use std::collections::BTreeSet;

use laneway_core::lane::{Event, Outcome};

/// What a parent was told of its dispatches and its control.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The seed of the attack, for the message of a failure; 0 where a test has but one attack.
    pub(crate) seed: u64,
    pub(crate) open: BTreeSet<u32>,
    pub(crate) accepted: BTreeSet<u32>,
    pub(crate) ended: u64,
    pub(crate) succeeded: u64,
    pub(crate) poisoned: u64,
    pub(crate) control: bool,
}

impl Ledger {
    /// L-3, L-18: what was never sent, or has ended, is not heard of again.
    pub(crate) fn take(&mut self, event: Event<u32, u32>) {
        let seed = self.seed;
        match event {
            Event::Staged { key, .. } => assert!(self.open.contains(&key), "seed {seed}: {key} is staged"),
            Event::Accepted { key } => {
                assert!(self.open.contains(&key) && self.accepted.insert(key), "L-18: {key}, seed {seed}");
            }
            Event::Completed { key, outcome } => {
                assert!(self.open.remove(&key), "seed {seed}: dispatch {key} ended twice, or was never sent");
                self.ended += 1;
                self.succeeded += u64::from(outcome == Outcome::Success);
            }
            Event::Control { .. } => {
                assert!(std::mem::take(&mut self.control), "seed {seed}: a control ended twice");
            }
            Event::Poisoned { .. } => self.poisoned += 1,
        }
    }

    /// L-1, L-27: nothing is owed once the child is gone.
    pub(crate) fn close(&mut self) {
        let seed = self.seed;
        assert!(self.open.is_empty() && !self.control, "seed {seed}: something never ended: {:?}", self.open);
        self.accepted.clear();
    }
}
