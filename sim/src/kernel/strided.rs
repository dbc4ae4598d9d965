//! Elements in and out of device memory.

use std::ops::Range;

use super::View;
use super::element::Element;

/// An operand found in memory: its view and the bytes of its extent.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) view: View,
    /// Into all the bytes of the device; starts on an element boundary.
    pub(crate) range: Range<usize>,
}

/// The elements of an operand, in row-major order.
pub(crate) fn gather<T: Element>(memory: &[u8], from: &Placed) -> Vec<T> {
    let elements: &[T] = bytemuck::cast_slice(&memory[from.range.clone()]);
    if from.view.is_dense() {
        return elements.to_vec();
    }
    let mut all = Vec::with_capacity(from.view.count() as usize);
    from.view.rows(|start, count, stride| all.extend(elements[start..].iter().step_by(stride).take(count)));
    all
}

/// Stores `values`, one per element in row-major order, and touches nothing between the elements.
pub(crate) fn scatter<T: Element>(memory: &mut [u8], to: &Placed, values: &[T]) {
    let elements: &mut [T] = bytemuck::cast_slice_mut(&mut memory[to.range.clone()]);
    let mut next = 0;
    to.view.rows(|start, count, stride| {
        for (element, value) in elements[start..].iter_mut().step_by(stride).zip(&values[next..next + count]) {
            *element = *value;
        }
        next += count;
    });
}

/// The elements of dense operands in place, the last one to be written; `None` if one is not dense or the output
/// shares bytes with an input.
pub(crate) fn in_place<'a, T: Element, const INPUTS: usize>(
    memory: &'a mut [u8],
    inputs: [&Placed; INPUTS],
    output: &Placed,
) -> Option<([&'a [T]; INPUTS], &'a mut [T])> {
    let Range { start, end } = output.range;
    let apart = |input: &Placed| input.range.end <= start || end <= input.range.start;
    if !output.view.is_dense() || inputs.iter().any(|input| !input.view.is_dense() || !apart(input)) {
        return None;
    }
    let (before, rest) = memory.split_at_mut(start);
    let (written, after) = rest.split_at_mut(end - start);
    let (before, after) = (&*before, &*after);
    let inputs = inputs.map(|input| {
        let bytes = match input.range.start.checked_sub(end) {
            Some(from) => &after[from..from + input.range.len()],
            None => &before[input.range.clone()],
        };
        bytemuck::cast_slice(bytes)
    });
    Some((inputs, bytemuck::cast_slice_mut(written)))
}
