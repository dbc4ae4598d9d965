//! A strided view of device memory.

use std::ops::Range;

use laneway_core::wire::{ChipTensor, Dtype};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most dimensions of a tensor.
const MAX_RANK: usize = 5;

/// Where the elements of an operand lie on the device. Plain words, because a built graph lies in device memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct View {
    /// Device address of the element with all indices 0.
    pub(crate) address: u64,
    /// Elements per dimension, 1 in dimensions that do not exist, outermost first.
    shape: [u32; MAX_RANK],
    /// Elements from one index to the next, per dimension.
    strides: [u32; MAX_RANK],
    rank: u32,
    dtype: u32,
}

impl View {
    /// The view of a tensor whose first element lies at `address` on the device.
    pub(crate) fn of(tensor: &ChipTensor, address: u64) -> Self {
        let (mut shape, mut strides) = ([1; MAX_RANK], [1; MAX_RANK]);
        // Missing dimensions go in front, where they repeat nothing.
        let missing = MAX_RANK - tensor.ndims();
        shape[missing..].copy_from_slice(tensor.shape());
        strides[missing..].copy_from_slice(tensor.strides());
        Self { address, shape, strides, rank: tensor.ndims() as u32, dtype: u32::from(tensor.dtype().code()) }
    }

    /// Elements per dimension.
    pub(crate) fn shape(&self) -> &[u32] {
        &self.shape[MAX_RANK - (self.rank as usize).min(MAX_RANK)..]
    }

    /// The element type, `None` if the words are no view.
    pub(crate) fn dtype(&self) -> Option<Dtype> {
        u8::try_from(self.dtype).ok().and_then(Dtype::from_code)
    }

    /// How many elements there are.
    pub(crate) fn count(&self) -> u64 {
        self.shape.iter().fold(1u64, |count, &size| count.saturating_mul(u64::from(size)))
    }

    /// Elements from the first to behind the last, 0 if there is none.
    pub(crate) fn extent(&self) -> u64 {
        if self.shape.contains(&0) {
            return 0;
        }
        self.shape.iter().zip(&self.strides).fold(1u64, |extent, (&size, &stride)| {
            extent.saturating_add(u64::from(size - 1).saturating_mul(u64::from(stride)))
        })
    }

    /// Whether the elements lie back to back in row-major order.
    pub(crate) fn is_dense(&self) -> bool {
        let mut expected = 1u64;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size > 1 && u64::from(stride) != expected {
                return false;
            }
            expected = expected.saturating_mul(u64::from(size));
        }
        true
    }

    /// The element offsets of the view from its first element, one call per innermost row: where it starts, how many
    /// elements it has, and from one to the next.
    pub(crate) fn rows(&self, mut row: impl FnMut(usize, usize, usize)) {
        if self.shape.contains(&0) {
            return;
        }
        let outer = &self.shape[..MAX_RANK - 1];
        let mut index = [0u32; MAX_RANK - 1];
        loop {
            let start: usize =
                index.iter().zip(&self.strides).map(|(&at, &stride)| at as usize * stride as usize).sum();
            row(start, self.shape[MAX_RANK - 1] as usize, self.strides[MAX_RANK - 1] as usize);
            let Some(dimension) = (0..outer.len()).rev().find(|&dimension| index[dimension] + 1 < outer[dimension])
            else {
                return;
            };
            index[dimension] += 1;
            index[dimension + 1..].fill(0);
        }
    }

    /// The bytes of the extent, relative to the first element.
    pub(crate) fn byte_extent(&self) -> u64 {
        let element = self.dtype().map_or(1, Dtype::element_bytes);
        self.extent().saturating_mul(u64::from(element))
    }

    /// The ranges of bytes that the elements take up, relative to the first element, as few as possible in row order.
    pub(crate) fn byte_runs(&self, mut run: impl FnMut(Range<usize>)) {
        let element = self.dtype().map_or(1, Dtype::element_bytes) as usize;
        if self.is_dense() {
            let bytes = self.byte_extent() as usize;
            if bytes > 0 {
                run(0..bytes);
            }
            return;
        }
        self.rows(|start, count, stride| {
            if stride == 1 {
                run(start * element..(start + count) * element);
            } else {
                for at in 0..count {
                    let first = (start + at * stride) * element;
                    run(first..first + element);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::wire::AddressSpace;

    use super::*;

    fn view(shape: &[u32], strides: &[u32]) -> View {
        let tensor = ChipTensor::strided(0, 1 << 20, Dtype::F16, shape, strides, 0, AddressSpace::Device).unwrap();
        View::of(&tensor, 0)
    }

    fn offsets(view: &View) -> Vec<usize> {
        let mut all = Vec::new();
        view.rows(|start, count, stride| all.extend((0..count).map(|at| start + at * stride)));
        all
    }

    #[test]
    fn rows_come_in_row_major_order() {
        assert_eq!(offsets(&view(&[2, 3], &[10, 2])), [0, 2, 4, 10, 12, 14]);
        assert_eq!(offsets(&view(&[3, 2], &[1, 3])), [0, 3, 1, 4, 2, 5]);
        assert_eq!(offsets(&view(&[2, 1, 2, 1, 2], &[100, 50, 10, 7, 1])), [0, 1, 10, 11, 100, 101, 110, 111]);
        assert!(offsets(&view(&[2, 0], &[1, 1])).is_empty());
    }

    #[test]
    fn runs_of_bytes_leave_the_gaps_out() {
        let runs = |view: View| {
            let mut all = Vec::new();
            view.byte_runs(|range| all.push((range.start, range.end)));
            all
        };
        assert_eq!(runs(view(&[2, 3], &[3, 1])), [(0, 12)]);
        assert_eq!(runs(view(&[2, 3], &[4, 1])), [(0, 6), (8, 14)]);
        assert_eq!(runs(view(&[2, 2], &[8, 2])), [(0, 2), (4, 6), (16, 18), (20, 22)]);
        assert!(runs(view(&[0], &[1])).is_empty());
        assert_eq!((view(&[2, 3], &[4, 1]).extent(), view(&[2, 3], &[4, 1]).byte_extent()), (7, 14));
    }
}
