//! Which bytes of its range a strided view touches, as far as that can be said in one line.

use crate::wire::{ByteRange, ChipTensor};

/// Bounding range of a view and, where its rows repeat at one distance, the window of each row that it touches.
///
/// Rows and column blocks of one matrix have interleaving ranges but disjoint windows: that is what tells them apart
/// without comparing each with each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Window {
    pub(super) range: ByteRange,
    /// Bytes from one row to the next; 0 = rows do not repeat at one distance.
    pub(super) pitch: u64,
    /// Where the window starts in a row; a row starts at a multiple of `pitch` from the start of the backing.
    pub(super) low: u64,
    /// Bytes of the window. It may run over the end of the row into the next.
    pub(super) width: u64,
    /// Every byte of the range (with a pitch: every byte of it in the window) belongs to the view.
    pub(super) dense: bool,
    /// The view is contiguous as its shape says: against it, ranges decide.
    pub(super) contiguous: bool,
}

impl Window {
    /// The window of `tensor`, which lies in a backing that starts at `base`.
    pub(super) fn of(tensor: &ChipTensor, range: ByteRange, base: u64) -> Self {
        if tensor.is_contiguous() {
            return Self::contiguous(range);
        }
        Self::strided(tensor, range, base)
    }

    /// The window of a contiguous view.
    pub(super) const fn contiguous(range: ByteRange) -> Self {
        Self { range, pitch: 0, low: 0, width: 0, dense: true, contiguous: true }
    }

    fn strided(tensor: &ChipTensor, range: ByteRange, base: u64) -> Self {
        let whole = |dense| Self { range, pitch: 0, low: 0, width: 0, dense, contiguous: false };
        let element = u64::from(tensor.dtype().element_bytes());
        let mut dims = [(0u64, 0u64); 5];
        let mut rank = 0;
        for (size, stride) in tensor.shape().iter().zip(tensor.strides()) {
            if *size > 1 {
                dims[rank] = (u64::from(*stride) * element, u64::from(*size));
                rank += 1;
            }
        }
        let dims = &mut dims[..rank];
        dims.sort_unstable();
        // The innermost dimensions that follow each other without a gap are the window.
        let mut width = element;
        let mut rest = dims.iter();
        let (pitch, mut span, mut dense) = loop {
            match rest.next() {
                None => return whole(true),
                Some((stride, size)) if *stride == width => width = width.saturating_mul(*size),
                Some((stride, size)) => break (*stride, stride.saturating_mul(*size), true),
            }
        };
        for (stride, size) in rest {
            if !stride.is_multiple_of(pitch) {
                return whole(false);
            }
            dense &= *stride == span;
            span = stride.saturating_mul(*size);
        }
        if width > pitch {
            return whole(false);
        }
        Self { range, pitch, low: (range.start - base) % pitch, width, dense, contiguous: false }
    }

    /// Whether the two can share a byte, as far as ranges and windows tell.
    #[cfg(test)]
    pub(super) fn may_overlap(&self, other: &Self) -> bool {
        self.range.overlaps(other.range) && self.rows_meet(other)
    }

    /// Whether two views whose ranges overlap can share a byte, as far as windows tell.
    pub(super) fn rows_meet(&self, other: &Self) -> bool {
        self.pitch == 0
            || self.pitch != other.pitch
            || windows_meet(self.pitch, (self.low, self.width), (other.low, other.width))
    }

    /// Whether [`may_overlap`](Self::may_overlap) is the last word: nothing that strides could add.
    pub(super) const fn decides(&self, other: &Self) -> bool {
        self.contiguous
            || other.contiguous
            || (self.dense && other.dense && self.pitch != 0 && self.pitch == other.pitch)
    }

    /// Whether the two certainly touch the same bytes.
    pub(super) fn same(&self, other: &Self) -> bool {
        if self.contiguous && other.contiguous {
            return self.range == other.range;
        }
        let bounds = self.range == other.range && self.pitch == other.pitch;
        bounds && self.dense && other.dense && self.low == other.low && self.width == other.width
    }

    /// Whether every byte of `other` certainly belongs to this view.
    pub(super) fn covers(&self, other: &Self) -> bool {
        if !self.dense || !self.range.contains(other.range) {
            return false;
        }
        if self.pitch == 0 {
            return true;
        }
        self.pitch == other.pitch && (other.low + self.pitch - self.low) % self.pitch + other.width <= self.width
    }
}

/// Whether two windows of rows of the same length meet; each may run over the end of the row.
pub(super) fn windows_meet(pitch: u64, (a, a_width): (u64, u64), (b, b_width): (u64, u64)) -> bool {
    let ahead = if b >= a { b - a } else { b + pitch - a };
    ahead < a_width || pitch - ahead < b_width || ahead == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{AddressSpace, Dtype};

    fn view(shape: &[u32], strides: &[u32], start: u64) -> (ChipTensor, Window) {
        let tensor =
            ChipTensor::strided(0x1000, 1 << 16, Dtype::U8, shape, strides, start, AddressSpace::Host).expect("valid");
        let window = Window::of(&tensor, tensor.byte_range(), 0x1000);
        (tensor, window)
    }

    fn bytes(shape: &[u32], strides: &[u32], start: u64) -> alloc::vec::Vec<u64> {
        let mut all = alloc::vec![start];
        for (size, stride) in shape.iter().zip(strides) {
            all = all
                .iter()
                .flat_map(|at| (0..u64::from(*size)).map(move |index| at + index * u64::from(*stride)))
                .collect();
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// E-16: a window never denies an overlap that exists, and never claims a cover that is none.
    #[test]
    fn windows_agree_with_the_bytes_that_views_name() {
        let mut views = alloc::vec::Vec::new();
        for start in [0, 1, 3, 5, 8, 13, 20, 21] {
            for (shape, strides) in [
                (&[4u32][..], &[1u32][..]),
                (&[3], &[2]),
                (&[3, 2], &[8, 1]),
                (&[2, 8], &[8, 1]),
                (&[2, 3], &[8, 1]),
                (&[3, 2], &[1, 8]),
                (&[2, 2, 2], &[16, 8, 1]),
                (&[2, 2, 3], &[24, 8, 1]),
                (&[3, 3], &[2, 1]),
                (&[2, 2], &[8, 3]),
                (&[1, 5], &[7, 1]),
            ] {
                views.push((view(shape, strides, start).1, bytes(shape, strides, start)));
            }
        }
        let (mut denied, mut covers) = (0, 0);
        for (a, a_bytes) in &views {
            for (b, b_bytes) in &views {
                let meet = a_bytes.iter().any(|byte| b_bytes.binary_search(byte).is_ok());
                assert!(a.may_overlap(b) || !meet, "{a:?} {b:?}");
                denied += usize::from(!a.may_overlap(b));
                if a.covers(b) {
                    covers += 1;
                    assert!(b_bytes.iter().all(|byte| a_bytes.binary_search(byte).is_ok()), "{a:?} {b:?}");
                }
            }
        }
        assert!(denied > 1000 && covers > 200, "{denied} {covers}");
    }

    /// T-1: column blocks of one matrix have interleaving ranges and disjoint windows.
    #[test]
    fn column_blocks_are_told_apart_by_their_windows() {
        let (_, left) = view(&[16, 8], &[64, 1], 0);
        let (_, right) = view(&[16, 8], &[64, 1], 8);
        assert!(left.range.overlaps(right.range));
        assert!(!left.may_overlap(&right));
    }
}
