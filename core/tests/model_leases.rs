//! The pool of pipeline leases, as whoever hands work down sees it.

use laneway_core::ids::{Generation, PipelineSlot};
use laneway_core::model::{GenerationFilter, ModelError, SlotPool};
use laneway_core::wire::PipelineSlotLease;

fn take(pool: &mut SlotPool) -> PipelineSlotLease {
    pool.try_acquire().expect("generations are left").expect("a slot is free")
}

/// C-4: the lowest free slot comes first, its generation counts up by 1, and a lease is owned until it is given back.
#[test]
fn the_pool_alone_mints_leases_lowest_slot_first_one_generation_at_a_time() {
    for depth in [1, 2] {
        let mut pool = SlotPool::new(depth).expect("a legal depth");
        for generation in 1..=5 {
            let leases: Vec<_> = (0..depth).map(|_| take(&mut pool)).collect();
            for (slot, lease) in leases.iter().enumerate() {
                assert_eq!(*lease, PipelineSlotLease { slot_id: slot as u32, reserved: 0, generation });
                assert!(pool.owns(lease));
            }
            assert_eq!(pool.try_acquire(), Ok(None), "every slot is in use");
            for lease in leases.iter().rev() {
                assert!(pool.release(lease) && !pool.owns(lease));
                assert!(pool.release(lease), "giving the current generation back again is still true");
            }
        }
    }
    for depth in [0, 3] {
        assert_eq!(SlotPool::new(depth).map(|_| ()), Err(ModelError::PipelineDepth { depth }));
    }
}

/// C-4: an older generation, a reserved word, generation 0 and a slot that does not exist give nothing back.
#[test]
fn a_lease_that_is_not_the_current_one_changes_nothing() {
    let mut pool = SlotPool::new(2).expect("a legal depth");
    let old = take(&mut pool);
    assert!(pool.release(&old));
    let current = take(&mut pool);
    assert_eq!((current.slot_id, current.generation), (0, 2));
    let forged = [
        old,
        PipelineSlotLease { generation: 0, ..current },
        PipelineSlotLease { generation: 3, ..current },
        PipelineSlotLease { reserved: 1, ..current },
        PipelineSlotLease { slot_id: 1, ..current },
        PipelineSlotLease { slot_id: 2, ..current },
        PipelineSlotLease { slot_id: u32::MAX, ..current },
    ];
    let before = pool.clone();
    for lease in &forged {
        assert!(!pool.owns(lease) && !pool.release(lease), "{lease:?}");
        assert_eq!(pool, before, "{lease:?}");
    }
    assert!(pool.owns(&current));
}

/// C-4, C-5: a filter lets a lease pass that was given back and has no successor yet; the pool does not own it any more, which
/// is why work is handed down only after the pool was asked.
#[test]
fn the_pool_knows_what_the_replay_filter_of_a_child_cannot() {
    let mut pool = SlotPool::new(1).expect("a legal depth");
    let mut filter = GenerationFilter::new();
    let lease = take(&mut pool);
    let generation = |lease: &PipelineSlotLease| Generation::new(lease.generation).expect("never 0");
    filter.admit(PipelineSlot::Zero, generation(&lease)).expect("the first");
    assert!(pool.release(&lease));
    assert_eq!(filter.check(PipelineSlot::Zero, generation(&lease)), Ok(()));
    assert!(!pool.owns(&lease));
    let next = take(&mut pool);
    filter.admit(PipelineSlot::Zero, generation(&next)).expect("newer");
    assert!(filter.check(PipelineSlot::Zero, generation(&lease)).is_err() && pool.owns(&next));
}
