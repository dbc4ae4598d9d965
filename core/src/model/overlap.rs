//! Which bytes a view touches, and whether two views touch the same (E-15, E-16).

use crate::wire::{AddressSpace, ByteRange, ChipTensor, Dtype, MAX_RANK};

/// What a view touches, small enough to be kept per entry of a dependency map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Footprint {
    range: ByteRange,
    base: u64,
    dtype: Dtype,
    space: AddressSpace,
    /// Its elements lie back to back; dimensions of 1 have no say, so that a tile of one row counts.
    dense: bool,
    rank: u8,
    shape: [u32; MAX_RANK],
    strides: [u32; MAX_RANK],
}

/// Where a view stands in the matrix that its strides belong to: first element and length per axis.
type Tile = [(u64, u64); MAX_RANK];

impl Footprint {
    /// The footprint of `tensor`.
    #[must_use]
    pub fn of(tensor: &ChipTensor) -> Self {
        let rank = tensor.ndims();
        let (mut shape, mut strides) = ([0; MAX_RANK], [0; MAX_RANK]);
        shape[..rank].copy_from_slice(tensor.shape());
        strides[..rank].copy_from_slice(tensor.strides());
        Self {
            range: tensor.byte_range(),
            base: tensor.addr(),
            dtype: tensor.dtype(),
            space: tensor.address_space(),
            dense: is_dense(tensor),
            rank: rank as u8,
            shape,
            strides,
        }
    }

    /// The addresses between its first and last byte.
    #[must_use]
    pub const fn range(&self) -> ByteRange {
        self.range
    }

    /// Whether the two may touch one byte. Exact for tiles of one matrix, else by their ranges: `true` may be one edge
    /// too many, `false` is certain.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        if self.space != other.space || !self.range.overlaps(other.range) {
            return false;
        }
        match self.tiles(other) {
            Some((a, b)) => a.iter().zip(&b).take(self.rank.into()).all(|((a, m), (b, n))| *a < b + n && *b < a + m),
            None => true,
        }
    }

    /// Whether this one certainly touches every byte that `other` touches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        if other.range.is_empty() {
            return true;
        }
        if self.space != other.space || !self.range.contains(other.range) {
            return false;
        }
        self.dense
            || self.tiles(other).is_some_and(|(a, b)| {
                a.iter().zip(&b).take(self.rank.into()).all(|((a, m), (b, n))| a <= b && b + n <= a + m)
            })
    }

    /// Both as tiles of one matrix: same dtype, rank and strides, the strides row-major for some matrix whose rows
    /// neither of them runs over. Then an element has one place in that matrix, and axes decide.
    fn tiles(&self, other: &Self) -> Option<(Tile, Tile)> {
        let same = self.dtype == other.dtype && self.rank == other.rank && self.strides == other.strides;
        if !same || !self.is_row_major() {
            return None;
        }
        let origin = self.base.min(other.base);
        Some((self.tile(origin)?, other.tile(origin)?))
    }

    fn is_row_major(&self) -> bool {
        let strides = &self.strides[..self.rank.into()];
        strides.last() == Some(&1) && strides.windows(2).all(|pair| pair[0].is_multiple_of(pair[1]))
    }

    fn tile(&self, origin: u64) -> Option<Tile> {
        let element = u64::from(self.dtype.element_bytes());
        let bytes = self.range.start - origin;
        if !bytes.is_multiple_of(element) {
            return None;
        }
        let mut place = bytes / element;
        let mut row = u64::MAX;
        let mut tile = [(0, 0); MAX_RANK];
        for ((axis, &len), &stride) in tile.iter_mut().zip(&self.shape).zip(&self.strides).take(self.rank.into()) {
            let (stride, len) = (u64::from(stride), u64::from(len));
            *axis = (place / stride, len);
            // The outermost axis is open: no row to run over.
            if row != u64::MAX && axis.0 + len > row / stride {
                return None;
            }
            place %= stride;
            row = stride;
        }
        Some(tile)
    }
}

fn is_dense(tensor: &ChipTensor) -> bool {
    let mut row = 1;
    tensor.is_contiguous()
        || tensor.shape().iter().zip(tensor.strides()).rev().filter(|(len, _)| **len != 1).all(|(len, stride)| {
            let on_row = u64::from(*stride) == row;
            row = row.saturating_mul(u64::from(*len));
            on_row
        })
}

/// Whether two tensors may touch one byte; see [`Footprint::overlaps`].
#[must_use]
pub fn overlaps(a: &ChipTensor, b: &ChipTensor) -> bool {
    a.address_space() == b.address_space()
        && a.byte_range().overlaps(b.byte_range())
        && Footprint::of(a).overlaps(&Footprint::of(b))
}
