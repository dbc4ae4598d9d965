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
pub(crate) fn measure(rank: u32, shapes: &[u32; MAX_RANK], strides: &[u32; MAX_RANK]) -> Result<Layout, TensorFault> {
    let mut extent = Some(1u64);
    let mut row = 1u64;
    let (mut row_major, mut dense, mut empty) = (true, true, false);
    for (dim, (&shape, &stride)) in shapes.iter().zip(strides).enumerate().take(num::index(rank)).rev() {
        if stride == 0 {
            return Err(TensorFault::ZeroStride { dim });
        }
        let on_row = u64::from(stride) == row;
        row_major &= on_row;
        match shape.checked_sub(1) {
            None => empty = true,
            Some(0) => {}
            Some(last) => {
                dense &= on_row;
                extent = extent.and_then(|reach| reach.checked_add(product(last, stride)));
                row = row.saturating_mul(u64::from(shape));
            }
        }
    }
    if empty {
        return Ok(Layout { extent: Some(0), row_major, dense: true });
    }
    Ok(Layout { extent, row_major, dense })
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
