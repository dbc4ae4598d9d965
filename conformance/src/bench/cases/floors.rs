//! The floors as cases.

use super::super::case::Case;
use super::super::floors::{Floors, IDLE};

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
    ]
}
