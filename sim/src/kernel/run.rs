//! Judging the operands of a kernel, and running it.

use half::{bf16, f16};
use laneway_core::chip::{Call, ChipError, DeviceAddress, Reason};
use laneway_core::wire::Dtype;

use super::element::{Element, factor_of};
use super::strided::{Placed, gather, in_place, scatter};
use super::{Kernel, View};
use crate::memory::DeviceMemory;

/// Refuses operands that the kernel cannot compute with. The index in an error counts the kernel's own operands.
pub(crate) fn judge(kernel: Kernel, operands: &[View], scalar: u64) -> Result<(), (usize, Reason)> {
    let expected = kernel.operands().len();
    if operands.len() != expected {
        return Err((0, Reason::new(format_args!("{kernel} takes {expected} tensors, {} given", operands.len()))));
    }
    let Some(first) = operands.first() else { return Ok(()) };
    let dtype = match first.dtype() {
        Some(known @ (Dtype::F32 | Dtype::F16 | Dtype::Bf16 | Dtype::I32)) => known,
        Some(other) => {
            return Err((0, Reason::new(format_args!("{kernel} knows f32, f16, bf16 and i32, not {other}"))));
        }
        None => return Err((0, Reason::new(format_args!("{kernel}: no element type")))),
    };
    for (index, operand) in operands.iter().enumerate() {
        match operand.dtype() {
            Some(found) if found != dtype => {
                return Err((index, Reason::new(format_args!("{kernel} of {dtype} and {found}: one type is needed"))));
            }
            _ if operand.address % u64::from(dtype.element_bytes()) != 0 => {
                return Err((index, Reason::new(format_args!("{:#x} is no boundary of {dtype}", operand.address))));
            }
            _ => {}
        }
    }
    let shape = |index: usize| operands[index].shape();
    let wrong = |index: usize, wanted: &dyn std::fmt::Debug| {
        Err((index, Reason::new(format_args!("{kernel}: shape {:?}, {wanted:?} is needed", shape(index)))))
    };
    match kernel {
        Kernel::Add | Kernel::Mul | Kernel::Scale | Kernel::Copy => {
            if let Some(index) = (1..expected).find(|&index| shape(index) != shape(0)) {
                return wrong(index, &shape(0));
            }
        }
        Kernel::MatMul => {
            let ([m, k], [k2, n]) = (shape(0), shape(1)) else {
                let index = usize::from(shape(0).len() == 2);
                return Err((index, Reason::from("matmul takes tensors of two dimensions")));
            };
            if k != k2 {
                return wrong(1, &[k, n]);
            }
            if shape(2) != [*m, *n] {
                return wrong(2, &[m, n]);
            }
        }
        Kernel::Reduce => {
            let mut wanted = shape(0).to_vec();
            if let Some(last) = wanted.last_mut() {
                *last = 1;
            }
            if shape(1) != wanted {
                return wrong(1, &wanted);
            }
        }
        Kernel::Noop | Kernel::Wait => {}
    }
    if kernel == Kernel::Scale && dtype == Dtype::I32 && <i32 as Element>::factor(factor_of(scalar)).is_none() {
        return Err((0, Reason::new(format_args!("scale of i32 by {}, which is no i32", factor_of(scalar)))));
    }
    Ok(())
}

/// Runs a kernel over operands that [`judge`] let through.
pub(crate) fn execute(
    memory: &mut DeviceMemory,
    kernel: Kernel,
    operands: &[View],
    scalar: u64,
) -> Result<(), ChipError> {
    let placed = operands
        .iter()
        .map(|view| {
            let range = match view.extent() {
                0 => 0..0,
                _ => memory.range(Call::Launch, DeviceAddress(view.address), view.byte_extent())?,
            };
            Ok(Placed { view: *view, range })
        })
        .collect::<Result<Vec<_>, ChipError>>()?;
    let Some(first) = operands.first() else { return Ok(()) };
    if placed.iter().all(|operand| operand.view.extent() == 0) {
        return Ok(());
    }
    let memory = memory.all_mut();
    match first.dtype() {
        Some(Dtype::F32) => compute::<f32>(memory, kernel, &placed, scalar),
        Some(Dtype::F16) => compute::<f16>(memory, kernel, &placed, scalar),
        Some(Dtype::Bf16) => compute::<bf16>(memory, kernel, &placed, scalar),
        Some(Dtype::I32) => compute::<i32>(memory, kernel, &placed, scalar),
        _ => {}
    }
    Ok(())
}

fn compute<T: Element>(memory: &mut [u8], kernel: Kernel, operands: &[Placed], scalar: u64) {
    match (kernel, operands) {
        (Kernel::Add, [a, b, out]) => zip::<T>(memory, a, b, out, |a, b| T::narrow(T::add(a.widen(), b.widen()))),
        (Kernel::Mul, [a, b, out]) => zip::<T>(memory, a, b, out, |a, b| T::narrow(T::mul(a.widen(), b.widen()))),
        (Kernel::Scale, [a, out]) => {
            if let Some(factor) = T::factor(factor_of(scalar)) {
                map::<T>(memory, a, out, |a| T::narrow(T::mul(a.widen(), factor)));
            }
        }
        (Kernel::Copy, [a, out]) => map::<T>(memory, a, out, |a| a),
        (Kernel::MatMul, [a, b, out]) => matmul::<T>(memory, a, b, out),
        (Kernel::Reduce, [a, out]) => reduce::<T>(memory, a, out),
        _ => {}
    }
}

fn zip<T: Element>(memory: &mut [u8], a: &Placed, b: &Placed, out: &Placed, op: impl Fn(T, T) -> T) {
    if let Some(([a, b], out)) = in_place::<T, 2>(memory, [a, b], out) {
        for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
            *out = op(a, b);
        }
        return;
    }
    let (mut a, b) = (gather::<T>(memory, a), gather::<T>(memory, b));
    for (a, &b) in a.iter_mut().zip(&b) {
        *a = op(*a, b);
    }
    scatter(memory, out, &a);
}

fn map<T: Element>(memory: &mut [u8], a: &Placed, out: &Placed, op: impl Fn(T) -> T) {
    if let Some(([a], out)) = in_place::<T, 1>(memory, [a], out) {
        for (out, &a) in out.iter_mut().zip(a) {
            *out = op(a);
        }
        return;
    }
    let mut a = gather::<T>(memory, a);
    for a in &mut a {
        *a = op(*a);
    }
    scatter(memory, out, &a);
}

fn matmul<T: Element>(memory: &mut [u8], a: &Placed, b: &Placed, out: &Placed) {
    let (depth, columns) = (a.view.shape()[1] as usize, b.view.shape()[1] as usize);
    let (left, right) = (gather::<T>(memory, a), gather::<T>(memory, b));
    let mut result = Vec::with_capacity(out.view.count() as usize);
    let mut row = vec![T::ZERO; columns];
    for m in 0..a.view.shape()[0] as usize {
        row.fill(T::ZERO);
        for k in 0..depth {
            let factor = left[m * depth + k].widen();
            for (sum, value) in row.iter_mut().zip(&right[k * columns..(k + 1) * columns]) {
                *sum = T::add(*sum, T::mul(factor, value.widen()));
            }
        }
        result.extend(row.iter().map(|&sum| T::narrow(sum)));
    }
    scatter(memory, out, &result);
}

fn reduce<T: Element>(memory: &mut [u8], a: &Placed, out: &Placed) {
    let width = a.view.shape().last().map_or(0, |&size| size as usize);
    let values = gather::<T>(memory, a);
    let sum = |row: &[T]| T::narrow(row.iter().fold(T::ZERO, |sum, value| T::add(sum, value.widen())));
    // A sum over nothing is zero, and there are as many of them as the output has elements.
    let sums: Vec<T> = match width {
        0 => vec![T::narrow(T::ZERO); out.view.count() as usize],
        _ => values.chunks_exact(width).map(sum).collect(),
    };
    scatter(memory, out, &sums);
}
