//! Shape and strides: how far they reach and whether they are row-major. No behaviour, arithmetic that cannot wrap.

use super::num::product;
use super::{TensorFault, num};

/// Most dimensions that a tensor can have.
pub const MAX_RANK: usize = 5;

/// What shape and strides amount to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// 1 + Σ (shape−1)·stride in elements; 0 with a dimension of 0; `None` past 64 bits (five dimensions need 67).
    pub(crate) extent: Option<u64>,
    /// The strides are exactly those that [`row_major`] gives.
    pub(crate) row_major: bool,
    /// The elements lie back to back in row-major order; dimensions of 1 have no say, nor has any without elements.
    pub(crate) dense: bool,
}

/// Measures the first `rank` dimensions. A stride of 0 is refused: it would name one element twice.
///
/// Every child runs this for every tensor of every task: one pass without a branch, the sum in 128 bits.
#[inline]
pub(crate) fn measure(rank: usize, shapes: &[u32; MAX_RANK], strides: &[u32; MAX_RANK]) -> Result<Layout, TensorFault> {
    let shape = shapes.get(..rank).unwrap_or(shapes);
    let strides = strides.get(..rank).unwrap_or(strides);
    let mut reach = 1u128;
    let mut row = 1u64;
    let (mut row_major, mut dense, mut empty, mut zero_stride) = (true, true, false, false);
    for (&extent, &stride) in shape.iter().zip(strides).rev() {
        let on_row = u64::from(stride) == row;
        row_major &= on_row;
        dense &= on_row | (extent <= 1);
        empty |= extent == 0;
        zero_stride |= stride == 0;
        // Five products of 64 bits: 67 bits at most.
        reach = reach.wrapping_add(product(extent.saturating_sub(1), stride).into());
        row = row.saturating_mul(extent.max(1).into());
    }
    if zero_stride {
        return Err(zero_stride_at(strides));
    }
    if empty {
        return Ok(Layout { extent: Some(0), row_major, dense: true });
    }
    Ok(Layout { extent: u64::try_from(reach).ok(), row_major, dense })
}

#[cold]
fn zero_stride_at(strides: &[u32]) -> TensorFault {
    TensorFault::ZeroStride { dim: strides.iter().rposition(|&stride| stride == 0).unwrap_or(0) }
}

/// The row-major strides of `shape`, in elements; dimensions of 0 count as 1, so that no stride is 0.
pub(crate) fn row_major(shape: &[u32]) -> Result<[u32; MAX_RANK], TensorFault> {
    let mut strides = [0; MAX_RANK];
    let mut row = 1u64;
    for (dim, (stride, &extent)) in strides.iter_mut().zip(shape).enumerate().take(shape.len()).rev() {
        *stride = u32::try_from(row).map_err(|_| TensorFault::StrideTooLarge { dim, stride: row })?;
        row = row.saturating_mul(u64::from(extent.max(1)));
    }
    Ok(strides)
}

/// The rank of a shape that a caller gave.
pub(crate) fn rank(shape: &[u32]) -> Result<u32, TensorFault> {
    match u32::try_from(shape.len()) {
        Ok(rank @ 1..=5) => Ok(rank),
        _ => Err(TensorFault::Rank { ndims: num::wide(shape.len()) }),
    }
}

/// `shape` in a field of five, the rest 0.
pub(crate) fn padded(shape: &[u32]) -> [u32; MAX_RANK] {
    let mut field = [0; MAX_RANK];
    for (to, from) in field.iter_mut().zip(shape) {
        *to = *from;
    }
    field
}

/// Whether `extent` elements of `element_bytes` from byte `offset_bytes` on stay within `buffer_bytes`.
#[inline]
pub(crate) fn fits(
    offset_bytes: Option<u64>,
    extent: u64,
    element_bytes: u32,
    buffer_bytes: u64,
) -> Result<(), TensorFault> {
    let end = extent
        .checked_mul(u64::from(element_bytes))
        .and_then(|bytes| offset_bytes.and_then(|offset| offset.checked_add(bytes)));
    match end {
        Some(end) if end <= buffer_bytes => Ok(()),
        _ => Err(TensorFault::OutOfBuffer {
            offset_bytes: offset_bytes.unwrap_or(u64::MAX),
            extent,
            element_bytes,
            buffer_bytes,
        }),
    }
}
