//! Views of a tensor: another shape over the same bytes. Nothing is copied and nothing leaves the buffer.
//!
//! A dimension of 0 makes a view without elements: it captures no bytes and is legal at any offset.

use super::ModelError;
use crate::wire::{ChipTensor, MAX_RANK, TensorFault};

impl ChipTensor {
    /// The box of `shape` elements that starts at `offsets`, one of each per dimension.
    ///
    /// ```
    /// use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let matrix = ChipTensor::contiguous(0x1000, 4 * 64, Dtype::F32, &[8, 8], AddressSpace::Host)?;
    /// let tile = matrix.view(&[2, 4], &[6, 0])?; // rows 6 and 7, columns 0 to 3
    /// assert_eq!((tile.shape(), tile.strides(), tile.start_offset()), (&[2, 4][..], &[8, 1][..], 48));
    /// assert!(matrix.view(&[2, 4], &[7, 0]).is_err(), "there is no row 8");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ModelError::OutOfShape`] if it reaches past this tensor in some dimension.
    pub fn view(&self, shape: &[u32], offsets: &[u32]) -> Result<Self, ModelError> {
        self.same_rank("offsets", offsets.len())?;
        self.same_rank("view shape", shape.len())?;
        let empty = shape.contains(&0);
        let mut start = self.start_offset();
        for (dim, ((&len, &offset), (&extent, &stride))) in
            shape.iter().zip(offsets).zip(self.shape().iter().zip(self.strides())).enumerate()
        {
            if !empty && u64::from(offset) + u64::from(len) > u64::from(extent) {
                return Err(ModelError::OutOfShape { dim, offset, len, extent });
            }
            start = start.saturating_add(u64::from(offset) * u64::from(stride));
        }
        Ok(self.with_layout(shape, self.strides(), start)?)
    }

    /// Dimensions `a` and `b` exchanged.
    ///
    /// # Errors
    /// [`ModelError::NoSuchDimension`].
    pub fn transpose(&self, a: usize, b: usize) -> Result<Self, ModelError> {
        let ndims = self.ndims();
        for dim in [a, b] {
            if dim >= ndims {
                return Err(ModelError::NoSuchDimension { dim, ndims });
            }
        }
        let mut order = [0, 1, 2, 3, 4];
        order.swap(a, b);
        self.permute(&order[..ndims])
    }

    /// Dimensions in another order: dimension `i` of the result is dimension `order[i]` of this tensor.
    ///
    /// # Errors
    /// [`ModelError::NotAPermutation`], [`ModelError::NoSuchDimension`], or an order of another rank.
    pub fn permute(&self, order: &[usize]) -> Result<Self, ModelError> {
        let ndims = self.ndims();
        self.same_rank("order", order.len())?;
        let (mut shape, mut strides, mut seen) = ([0; MAX_RANK], [0; MAX_RANK], [false; MAX_RANK]);
        for (to, &dim) in order.iter().enumerate() {
            if dim >= ndims {
                return Err(ModelError::NoSuchDimension { dim, ndims });
            }
            if core::mem::replace(&mut seen[dim], true) {
                return Err(ModelError::NotAPermutation { dim, ndims });
            }
            shape[to] = self.shape()[dim];
            strides[to] = self.strides()[dim];
        }
        Ok(self.with_layout(&shape[..ndims], &strides[..ndims], self.start_offset())?)
    }

    /// Every `step`-th element of dimension `dim` from `start` up to, not including, `end`.
    ///
    /// # Errors
    /// Step 0, a range that is reversed or reaches past the dimension, or a stride that no longer fits 32 bits.
    pub fn slice(&self, dim: usize, start: u32, end: u32, step: u32) -> Result<Self, ModelError> {
        let ndims = self.ndims();
        let Some(&extent) = self.shape().get(dim) else { return Err(ModelError::NoSuchDimension { dim, ndims }) };
        if step == 0 {
            return Err(ModelError::ZeroStep { dim });
        }
        let Some(span) = end.checked_sub(start) else { return Err(ModelError::SliceReversed { dim, start, end }) };
        if end > extent {
            return Err(ModelError::OutOfShape { dim, offset: start, len: span, extent });
        }
        let len = span.div_ceil(step);
        let stride = self.strides()[dim];
        let wide = u64::from(stride) * u64::from(step);
        let stepped = match u32::try_from(wide) {
            Ok(stepped) => stepped,
            // With one element or none the stride has nothing to say.
            Err(_) if len <= 1 => stride,
            Err(_) => return Err(TensorFault::StrideTooLarge { dim, stride: wide }.into()),
        };
        let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
        shape[..ndims].copy_from_slice(self.shape());
        strides[..ndims].copy_from_slice(self.strides());
        shape[dim] = len;
        strides[dim] = stepped;
        let first = self.start_offset().saturating_add(u64::from(start) * u64::from(stride));
        Ok(self.with_layout(&shape[..ndims], &strides[..ndims], first)?)
    }

    /// The same elements in the same order under another shape.
    ///
    /// # Errors
    /// [`ModelError::NotContiguous`], or [`ModelError::ElementCount`] for a shape of another number of elements.
    pub fn reshape(&self, shape: &[u32]) -> Result<Self, ModelError> {
        if !self.is_contiguous() {
            return Err(ModelError::NotContiguous);
        }
        let (from, to) = (elements(self.shape()), elements(shape));
        if from != to {
            return Err(ModelError::ElementCount { from, to });
        }
        Ok(self.with_row_major(shape, self.start_offset())?)
    }

    fn same_rank(&self, what: &'static str, other: usize) -> Result<(), TensorFault> {
        if other == self.ndims() {
            return Ok(());
        }
        Err(TensorFault::RankMismatch { shape: self.ndims() as u64, what, other: other as u64 })
    }
}

/// Elements of a shape. Five dimensions need up to 160 bits, so a shape of any size saturates rather than wraps.
fn elements(shape: &[u32]) -> u128 {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(1, |count: u128, &extent| count.saturating_mul(extent.into()))
}
