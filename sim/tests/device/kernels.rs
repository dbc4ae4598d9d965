//! Every kernel against a reference that walks indices one by one, over random shapes, strides and gaps, on host and on
//! device tensors, with every profile.

use half::{bf16, f16};
use laneway_core::chip::DeviceRuntime;
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};
use laneway_sim::{Kernel, Profile, scale_factor};
use proptest::prelude::*;

use crate::support::{HostBuffer, PLAIN, ZERO, device, download, register, storage, upload};

const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::I32];

/// How a tensor lies in its buffer; element (i, j, …) is at `start + i·strides[0] + j·strides[1] + …`.
#[derive(Clone, Debug)]
struct Layout {
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

    fn tensor(&self, address: u64, dtype: Dtype, space: AddressSpace) -> ChipTensor {
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
type Bits = u32;

/// Arithmetic on bits: what the kernels promise, written down a second time.
struct Reference(Dtype);

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
fn to_bytes(dtype: Dtype, elements: &[Bits]) -> Vec<u8> {
    elements.iter().flat_map(|bits| bits.to_le_bytes()[..dtype.element_bytes() as usize].to_vec()).collect()
}

fn from_bytes(dtype: Dtype, bytes: &[u8]) -> Vec<Bits> {
    let element = |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, &byte| bits << 8 | Bits::from(byte));
    bytes.chunks(dtype.element_bytes() as usize).map(element).collect()
}

#[derive(Clone, Debug)]
struct Case {
    kernel: Kernel,
    dtype: Dtype,
    layouts: Vec<Layout>,
    factor: i16,
    seed: u64,
    profile: Profile,
    /// Per operand: on the device, or on the host.
    on_device: [bool; 3],
}

impl Case {
    fn inputs(&self) -> usize {
        self.layouts.len() - 1
    }

    fn expected(&self, buffers: &[Vec<Bits>]) -> Vec<Bits> {
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

    fn check(&self) {
        let reference = Reference(self.dtype);
        let mut seed = self.seed;
        let buffers: Vec<Vec<Bits>> = self
            .layouts
            .iter()
            .map(|layout| {
                let sample = |_| {
                    seed = seed.wrapping_add(1);
                    reference.sample(seed)
                };
                (0..layout.room).map(sample).collect()
            })
            .collect();
        let expected = self.expected(&buffers);
        let mut device = device(self.profile);
        let callable = register(&mut device, self.kernel);
        let bytes: Vec<Vec<u8>> = buffers.iter().map(|buffer| to_bytes(self.dtype, buffer)).collect();
        let on_host: Vec<HostBuffer> = bytes.iter().map(|bytes| HostBuffer::of(bytes)).collect();
        let mut tensors = Vec::new();
        let mut out_address = None;
        for (operand, layout) in self.layouts.iter().enumerate() {
            tensors.push(if self.on_device[operand] {
                let address = upload(&mut device, &bytes[operand]);
                out_address = Some(address);
                layout.tensor(address.0, self.dtype, AddressSpace::Device)
            } else {
                layout.tensor(on_host[operand].address().0, self.dtype, AddressSpace::Host)
            });
        }
        let scalars = if self.kernel.takes_scalar() { vec![scale_factor(f64::from(self.factor))] } else { Vec::new() };
        device.run(callable, &storage(&tensors, &scalars), &PLAIN, ZERO).unwrap();
        let out = self.inputs();
        let result = match (self.on_device[out], out_address) {
            (true, Some(address)) => download(&mut device, address, bytes[out].len()),
            _ => on_host[out].bytes(),
        };
        assert_eq!(from_bytes(self.dtype, &result), expected, "gaps included");
        for operand in (0..out).filter(|&operand| !self.on_device[operand]) {
            assert_eq!(on_host[operand].bytes(), bytes[operand], "an input changed");
        }
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

fn case() -> impl Strategy<Value = Case> {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_kernel_computes_what_the_reference_does(case in case()) {
        case.check();
    }
}

/// Every input is read before any output is written, so a tensor may be both.
#[test]
fn an_output_may_be_an_input() {
    let mut device = device(Profile::A2a3HostBuildGraph);
    let add = register(&mut device, Kernel::Add);
    let data: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let address = upload(&mut device, &data);
    let at = |start: u64, shape: u32| {
        ChipTensor::strided(address.0, 16, Dtype::F32, &[shape], &[1], start, AddressSpace::Device).unwrap()
    };
    // x[1..4] = x[0..3] + x[1..4], which a loop in place would get wrong.
    device.run(add, &storage(&[at(0, 3), at(1, 3), at(1, 3)], &[]), &PLAIN, ZERO).unwrap();
    let result: Vec<f32> =
        download(&mut device, address, 16).as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
    assert_eq!(result, [1.0, 3.0, 5.0, 7.0]);
}

/// A million elements must not take longer than a person notices; printed, and bounded far above what it takes.
#[test]
fn a_million_elements_are_added_quickly() {
    const COUNT: usize = 1 << 20;
    let mut device = device(Profile::A2a3TensormapAndRingbuffer);
    let add = register(&mut device, Kernel::Add);
    let values: Vec<f32> = (0..COUNT).map(|index| index as f32).collect();
    let (a, b, out) = (HostBuffer::of_f32(&values), HostBuffer::of_f32(&values), HostBuffer::of_f32(&vec![0.0; COUNT]));
    let tensors = [&a, &b, &out].map(|buffer| buffer.tensor(Dtype::F32, &[COUNT as u32]));
    let args = storage(&tensors, &[]);
    device.run(add, &args, &PLAIN, ZERO).unwrap();
    let start = std::time::Instant::now();
    device.run(add, &args, &PLAIN, ZERO).unwrap();
    println!("add of 2^20 f32, copies included: {:?}", start.elapsed());
    assert!(out.f32s().iter().enumerate().all(|(index, &sum)| sum == 2.0 * index as f32));
}
