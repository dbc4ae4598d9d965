//! Kernels written down a second time: random operands in random layouts, and what a kernel makes of them, by a walk over
//! indices, one by one.
// Every test binary compiles this module anew and uses a part of it.
#![allow(dead_code)]

use half::{bf16, f16};
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};
use laneway_sim::{Kernel, Profile, scale_factor};
use proptest::prelude::*;

const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::I32];

/// How a tensor lies in its buffer; element (i, j, …) is at `start + i·strides[0] + j·strides[1] + …`.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    shape: Vec<u32>,
    strides: Vec<u32>,
    start: u64,
    /// Elements of the buffer.
    room: usize,
}

impl Layout {
    /// Dimensions in memory order `order`, outermost first, with a gap after each.
    fn new(shape: Vec<u32>, order: &[usize], gaps: &[u32], start: u64) -> Self {
        let mut strides = vec![1; shape.len()];
        let mut stride = 1;
        for (&dimension, gap) in order.iter().rev().zip(gaps) {
            stride *= 1 + gap;
            strides[dimension] = stride;
            stride *= shape[dimension].max(1);
        }
        let room = start as usize + stride as usize + 3;
        Self { shape, strides, start, room }
    }

    fn offset(&self, index: &[u32]) -> usize {
        let steps = index.iter().zip(&self.strides).map(|(&at, &stride)| at as usize * stride as usize);
        self.start as usize + steps.sum::<usize>()
    }

    pub(crate) fn tensor(&self, address: u64, dtype: Dtype, space: AddressSpace) -> ChipTensor {
        let bytes = self.room as u64 * u64::from(dtype.element_bytes());
        ChipTensor::strided(address, bytes, dtype, &self.shape, &self.strides, self.start, space).unwrap()
    }
}

/// Every index of a shape.
fn indices(shape: &[u32]) -> Vec<Vec<u32>> {
    shape.iter().fold(vec![Vec::new()], |all, &size| {
        all.iter().flat_map(|index| (0..size).map(|at| [index.as_slice(), &[at]].concat())).collect()
    })
}

/// An element as its bits.
pub(crate) type Bits = u32;

/// Arithmetic on bits: what the kernels promise, written down a second time.
pub(crate) struct Reference(Dtype);

impl Reference {
    fn float(&self, bits: Bits) -> f32 {
        match self.0 {
            Dtype::F32 => f32::from_bits(bits),
            Dtype::F16 => f16::from_bits(bits as u16).to_f32(),
            Dtype::Bf16 => bf16::from_bits(bits as u16).to_f32(),
            other => panic!("{other} is no float"),
        }
    }

    fn bits(&self, value: f32) -> Bits {
        match self.0 {
            Dtype::F32 => value.to_bits(),
            Dtype::F16 => u32::from(f16::from_f32(value).to_bits()),
            Dtype::Bf16 => u32::from(bf16::from_f32(value).to_bits()),
            other => panic!("{other} is no float"),
        }
    }

    fn add(&self, a: Bits, b: Bits) -> Bits {
        if self.0 == Dtype::I32 { a.wrapping_add(b) } else { self.bits(self.float(a) + self.float(b)) }
    }

    fn mul(&self, a: Bits, b: Bits) -> Bits {
        if self.0 == Dtype::I32 { a.wrapping_mul(b) } else { self.bits(self.float(a) * self.float(b)) }
    }

    fn scale(&self, a: Bits, factor: f64) -> Bits {
        if self.0 == Dtype::I32 {
            a.wrapping_mul(factor as i32 as u32)
        } else {
            self.bits(self.float(a) * factor as f32)
        }
    }

    fn dot(&self, pairs: impl Iterator<Item = (Bits, Bits)>) -> Bits {
        if self.0 == Dtype::I32 {
            return pairs.fold(0, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(b)));
        }
        self.bits(pairs.fold(0.0, |sum, (a, b)| sum + self.float(a) * self.float(b)))
    }

    fn sum(&self, values: impl Iterator<Item = Bits>) -> Bits {
        if self.0 == Dtype::I32 {
            return values.fold(0, u32::wrapping_add);
        }
        self.bits(values.fold(0.0, |sum, value| sum + self.float(value)))
    }

    /// A number that is no NaN, from a seed.
    fn sample(&self, seed: u64) -> Bits {
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        if self.0 == Dtype::I32 { mixed as u32 } else { self.bits(f32::from(mixed as i16) / 64.0) }
    }
}

/// The elements of a buffer, to and from bytes.
pub(crate) fn to_bytes(dtype: Dtype, elements: &[Bits]) -> Vec<u8> {
    elements.iter().flat_map(|bits| bits.to_le_bytes()[..dtype.element_bytes() as usize].to_vec()).collect()
}

pub(crate) fn from_bytes(dtype: Dtype, bytes: &[u8]) -> Vec<Bits> {
    let element = |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, &byte| bits << 8 | Bits::from(byte));
    bytes.chunks(dtype.element_bytes() as usize).map(element).collect()
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kernel: Kernel,
    pub(crate) dtype: Dtype,
    pub(crate) layouts: Vec<Layout>,
    factor: i16,
    seed: u64,
    pub(crate) profile: Profile,
    /// Per operand: on the device, or on the host.
    pub(crate) on_device: [bool; 3],
}

impl Case {
    pub(crate) fn inputs(&self) -> usize {
        self.layouts.len() - 1
    }

    pub(crate) fn expected(&self, buffers: &[Vec<Bits>]) -> Vec<Bits> {
        let reference = Reference(self.dtype);
        let at = |operand: usize, index: &[u32]| buffers[operand][self.layouts[operand].offset(index)];
        let out = &self.layouts[self.inputs()];
        let mut result = buffers[self.inputs()].clone();
        for index in indices(&out.shape) {
            result[out.offset(&index)] = match self.kernel {
                Kernel::Add => reference.add(at(0, &index), at(1, &index)),
                Kernel::Mul => reference.mul(at(0, &index), at(1, &index)),
                Kernel::Scale => reference.scale(at(0, &index), f64::from(self.factor)),
                Kernel::Copy => at(0, &index),
                Kernel::MatMul => {
                    let depth = self.layouts[0].shape[1];
                    reference.dot((0..depth).map(|k| (at(0, &[index[0], k]), at(1, &[k, index[1]]))))
                }
                Kernel::Reduce => {
                    let (outer, width) = (&index[..index.len() - 1], *self.layouts[0].shape.last().unwrap());
                    reference.sum((0..width).map(|k| at(0, &[outer, &[k]].concat())))
                }
                Kernel::Noop | Kernel::Wait => unreachable!(),
            };
        }
        result
    }

    /// The elements of each operand's buffer before the run.
    pub(crate) fn buffers(&self) -> Vec<Vec<Bits>> {
        let reference = Reference(self.dtype);
        let mut seed = self.seed;
        let mut sample = |_| {
            seed = seed.wrapping_add(1);
            reference.sample(seed)
        };
        self.layouts.iter().map(|layout| (0..layout.room).map(&mut sample).collect()).collect()
    }

    /// The scalars of the run.
    pub(crate) fn scalars(&self) -> Vec<u64> {
        let factor = scale_factor(f64::from(self.factor));
        if self.kernel.takes_scalar() { vec![factor] } else { Vec::new() }
    }
}

fn layout(shape: Vec<u32>) -> impl Strategy<Value = Layout> {
    let rank = shape.len();
    let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
    // Half of them dense, which takes other paths.
    let gaps = prop_oneof![Just(vec![0; rank]), prop::collection::vec(0u32..3, rank)];
    let order = prop_oneof![Just((0..rank).collect::<Vec<_>>()), order];
    (order, gaps, 0u64..4).prop_map(move |(order, gaps, start)| Layout::new(shape.clone(), &order, &gaps, start))
}

fn shapes(kernel: Kernel) -> BoxedStrategy<Vec<Vec<u32>>> {
    match kernel {
        Kernel::MatMul => {
            (0u32..6, 0u32..6, 0u32..6).prop_map(|(m, k, n)| vec![vec![m, k], vec![k, n], vec![m, n]]).boxed()
        }
        _ => prop::collection::vec(prop_oneof![Just(0u32), 1u32..6, 1u32..6], 1..=5)
            .prop_map(move |shape| {
                let mut out = shape.clone();
                if kernel == Kernel::Reduce {
                    *out.last_mut().unwrap() = 1;
                }
                let inputs = kernel.operands().len() - 1;
                [vec![shape; inputs], vec![out]].concat()
            })
            .boxed(),
    }
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let computing = [Kernel::Add, Kernel::Mul, Kernel::Scale, Kernel::MatMul, Kernel::Reduce, Kernel::Copy];
    prop::sample::select(computing.to_vec())
        .prop_flat_map(|kernel| (Just(kernel), shapes(kernel)))
        .prop_flat_map(|(kernel, shapes)| {
            let layouts = shapes.into_iter().map(layout).collect::<Vec<_>>();
            let dtype = prop::sample::select(DTYPES.to_vec());
            let profile = prop::sample::select(Profile::ALL.to_vec());
            (Just(kernel), dtype, layouts, any::<i16>(), any::<u64>(), profile, any::<[bool; 3]>())
        })
        .prop_map(|(kernel, dtype, layouts, factor, seed, profile, on_device)| Case {
            kernel,
            dtype,
            layouts,
            factor,
            seed,
            profile,
            on_device,
        })
}
