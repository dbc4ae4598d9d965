//! The tensors that programs name.

use laneway_core::wire::{AddressSpace, ChipTensor, Dtype, TensorTag};

use super::engine_support::BUFFER;
use super::program::View;
use super::sim::Sim;

impl Sim {
    fn tensor(&self, view: View, tag: TensorTag) -> Option<ChipTensor> {
        let f32s = |shape: &[u32], strides: &[u32], start: u64| {
            ChipTensor::strided(BUFFER, 256, Dtype::F32, shape, strides, start, AddressSpace::Host).ok()
        };
        let flat = |address: u64, bytes: u64, space| {
            ChipTensor::contiguous(address, bytes, Dtype::U8, &[bytes as u32], space).ok()
        };
        match view {
            View::Slice { at, len } => flat(BUFFER + u64::from(at) * 16, u64::from(len) * 16, AddressSpace::Host),
            View::Tile { row, column, rows, columns } => {
                let (rows, columns) = (rows.min(8 - row), columns.min(8 - column));
                f32s(&[rows.into(), columns.into()], &[8, 1], u64::from(row) * 8 + u64::from(column))
            }
            View::Whole => f32s(&[8, 8], &[8, 1], 0),
            View::Slab { which, half } => {
                let slabs: Vec<_> = self.model.tasks.iter().filter_map(|task| task.slab).collect();
                let (start, end) = *slabs.get(usize::from(which) % slabs.len().max(1))?;
                match half {
                    0 => flat(start, end - start, AddressSpace::Host),
                    1 => flat(start, 512, AddressSpace::Host),
                    _ => flat(start + 512, 512, AddressSpace::Host),
                }
            }
            View::Device { at, len } => flat(0x9000 + u64::from(at) * 16, u64::from(len) * 16, AddressSpace::Device),
            View::Fresh { kib } if tag == TensorTag::Output => flat(0, u64::from(kib) * 1000, AddressSpace::Host),
            View::Fresh { .. } => None,
            View::Transposed { row, column, rows, columns } => {
                let (rows, columns) = (rows.min(8 - row), columns.min(8 - column));
                f32s(&[columns.into(), rows.into()], &[1, 8], u64::from(row) * 8 + u64::from(column))
            }
            View::Strided { at, count, step } => f32s(&[count.into()], &[step.into()], at.into()),
            View::Rebased { at, len } => {
                let base = BUFFER + 64;
                let start = u64::from(at) * 16 - 64;
                let len = u32::from(len) * 16;
                ChipTensor::strided(base, 4096, Dtype::U8, &[len], &[1], start, AddressSpace::Host).ok()
            }
            View::Cube { plane, row, column, columns } => {
                let columns = columns.min(8 - column);
                let start = u64::from(plane) * 32 + u64::from(row) * 8 + u64::from(column);
                f32s(&[2 - u32::from(plane), 4 - u32::from(row), columns.into()], &[32, 8, 1], start)
            }
        }
    }

    pub(crate) fn list(&self, arguments: &[(View, u8)]) -> Vec<(ChipTensor, TensorTag)> {
        const TAGS: [TensorTag; 5] =
            [TensorTag::Input, TensorTag::Output, TensorTag::InOut, TensorTag::OutputExisting, TensorTag::NoDep];
        let tagged = arguments.iter().map(|(view, tag)| (view, TAGS[usize::from(*tag) % 5]));
        tagged.filter_map(|(view, tag)| Some((self.tensor(*view, tag)?, tag))).collect()
    }
}
