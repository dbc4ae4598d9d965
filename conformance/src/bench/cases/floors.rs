//! The floors as cases.

use super::super::case::Case;
use super::super::floors::{Floors, IDLE};
use super::crowd::{BUSY, BUSY_TASKS};

pub(super) fn cases(floors: &Floors) -> Vec<Case<'_>> {
    vec![
        Case::pinned("floor_a", "A: one cache line there and back", |slice| floors.line.borrow_mut().measure(slice)),
        Case::pinned("floor_b", "B: state word, 256 B in, 64 B out", |slice| {
            floors.exchange.borrow_mut().measure(slice)
        }),
        Case::free("floor_c", "C: the same through a third process", |slice| floors.relay.borrow_mut().measure(slice)),
        Case::pinned("kernel_wake", "K: eventfd written until a store is seen", |slice| {
            floors.wake.borrow_mut().measure(slice, IDLE)
        }),
        Case::free("bare_pool_8", "processes and bells alone: 100 µs on 8, each", |slice| {
            floors.bare.borrow_mut().busy(slice, BUSY_TASKS, BUSY)
        }),
        Case::free("bare_round_robin", "the same: 8 in turn", |slice| floors.bare.borrow_mut().in_turn(slice)),
        Case::free("bare_one_computes", "the same: 8 in turn while a ninth computes", |slice| {
            floors.bare.borrow_mut().one_computes(slice)
        }),
    ]
}
