extern crate std;

use std::println;
use std::vec::Vec;

use super::*;

/// The same rules written as a history: what happened to each slot, never a state.
#[derive(Clone, Default)]
struct History {
    /// Per slot: how often it was handed out, and whether the last event that concerned it was a hand-out.
    slots: [(u64, bool); 2],
    depth: usize,
}

impl History {
    fn acquire(&mut self) -> Option<(u32, u64)> {
        let free = (0..self.depth).find(|&slot| !self.slots[slot].1)?;
        self.slots[free].0 += 1;
        self.slots[free].1 = true;
        Some((free as u32, self.slots[free].0))
    }

    fn is_latest(&self, lease: &PipelineSlotLease) -> bool {
        let slot = lease.slot_id as usize;
        slot < self.depth && lease.reserved == 0 && lease.generation != 0 && self.slots[slot].0 == lease.generation
    }

    fn release(&mut self, lease: &PipelineSlotLease) -> bool {
        let latest = self.is_latest(lease);
        if latest {
            self.slots[lease.slot_id as usize].1 = false;
        }
        latest
    }

    fn owns(&self, lease: &PipelineSlotLease) -> bool {
        self.is_latest(lease) && self.slots[lease.slot_id as usize].1
    }
}

fn every_lease(slots: u32, generations: u64, reserved: u32) -> Vec<PipelineSlotLease> {
    let mut all = Vec::new();
    for slot_id in 0..slots {
        for generation in 0..=generations {
            for reserved in 0..=reserved {
                all.push(PipelineSlotLease { slot_id, reserved, generation });
            }
        }
    }
    all
}

/// Walks every sequence of operations up to `length` and returns how many there are.
fn walk(pool: &SlotPool, history: &History, leases: &[PipelineSlotLease], length: u32) -> u64 {
    for lease in leases {
        assert_eq!(pool.owns(lease), history.owns(lease), "owns {lease:?} in {pool:?}");
    }
    assert_eq!(pool.leased(), history.slots.iter().filter(|slot| slot.1).count());
    if length == 0 {
        return 1;
    }
    let (mut next_pool, mut next_history) = (pool.clone(), history.clone());
    let got = next_pool.try_acquire().expect("no generation is near its end");
    assert_eq!(got.map(|lease| (lease.slot_id, lease.generation)), next_history.acquire());
    assert!(got.is_none_or(|lease| lease.reserved == 0));
    let mut sequences = 1 + walk(&next_pool, &next_history, leases, length - 1);
    for lease in leases {
        let (mut next_pool, mut next_history) = (pool.clone(), history.clone());
        assert_eq!(next_pool.release(lease), next_history.release(lease), "release {lease:?} in {pool:?}");
        sequences += walk(&next_pool, &next_history, leases, length - 1);
    }
    sequences
}

/// C-4, with forged leases of every kind: reserved word set, generation 0, future generations, slots that do not exist.
#[test]
fn every_sequence_of_four_operations_with_forged_leases_follows_the_history() {
    for depth in 1..=2 {
        let leases = every_lease(3, 3, 1);
        let history = History { depth, ..History::default() };
        let sequences = walk(&SlotPool::new(depth).unwrap(), &history, &leases, 4);
        println!("slot pool of depth {depth}: {sequences} sequences of up to 4 operations from {}", leases.len() + 1);
        assert!(sequences > 300_000);
    }
}

/// C-4, deeper, with the leases that a run can really hold.
#[test]
fn every_sequence_of_seven_operations_with_minted_leases_follows_the_history() {
    for depth in 1..=2 {
        let leases = every_lease(depth as u32, 3, 0);
        let history = History { depth, ..History::default() };
        let sequences = walk(&SlotPool::new(depth).unwrap(), &history, &leases, 7);
        println!("slot pool of depth {depth}: {sequences} sequences of up to 7 operations from {}", leases.len() + 1);
        assert!(sequences > 70_000);
    }
}

/// C-4, T-27: what the first holder gives back a second time must not free the slot under the second holder.
#[test]
fn a_released_lease_does_not_free_its_successor() {
    let mut pool = SlotPool::new(1).unwrap();
    let first = pool.try_acquire().unwrap().unwrap();
    assert!(pool.release(&first));
    assert!(pool.release(&first), "giving back twice is harmless");
    let second = pool.try_acquire().unwrap().unwrap();
    assert_eq!((second.slot_id, second.generation), (0, 2));
    assert!(!pool.release(&first));
    assert!(pool.owns(&second) && !pool.owns(&first));
}

/// C-4
#[test]
fn the_end_of_the_generations_is_an_error_and_changes_nothing() {
    let last = Generation::new(u64::MAX);
    let mut pool = SlotPool { slots: [Slot::Free { last }; 2], depth: 2 };
    let before = pool.clone();
    assert_eq!(pool.try_acquire(), Err(ModelError::GenerationExhausted { slot: PipelineSlot::Zero }));
    assert_eq!(pool, before);
}

/// C-2: a pipeline is one or two deep.
#[test]
fn a_depth_outside_one_and_two_is_refused() {
    for depth in [0, 3, usize::MAX] {
        assert_eq!(SlotPool::new(depth), Err(ModelError::PipelineDepth { depth }));
    }
}

/// L-35
#[test]
fn a_retired_slot_is_never_leased_again() {
    let mut pool = SlotPool::new(2).unwrap();
    let first = pool.try_acquire().unwrap().unwrap();
    let second = pool.try_acquire().unwrap().unwrap();
    assert!(pool.retire(&first));
    assert!(!pool.retire(&first) && !pool.owns(&first));
    assert!(pool.release(&first), "it is still the latest lease of its slot");
    assert!(pool.release(&second));
    assert_eq!(pool.usable(), 1);
    assert_eq!(pool.try_acquire().unwrap().unwrap().slot_id, 1);
    assert_eq!(pool.try_acquire(), Ok(None));
}
