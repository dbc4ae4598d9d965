//! Views and overlap against a model that lists every element.

use std::collections::BTreeSet;

use laneway_core::model::overlap::{self, Footprint};
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype, TensorFault};
use proptest::prelude::*;
use proptest::sample::Index;

mod wire_properties;

use wire_properties::chip_tensor_is_legal;

/// Every element of a tensor, in row-major order of its own shape, counted from the start of the buffer.
fn elements(tensor: &ChipTensor) -> Vec<u64> {
    let mut all = vec![tensor.start_offset()];
    for (&extent, &stride) in tensor.shape().iter().zip(tensor.strides()) {
        all = all.iter().flat_map(|at| (0..extent).map(move |i| at + u64::from(i) * u64::from(stride))).collect();
    }
    all
}

/// The bytes that a tensor touches.
fn bytes(tensor: &ChipTensor) -> BTreeSet<u64> {
    let width = u64::from(tensor.dtype().element_bytes());
    let byte = |element: u64| (0..width).map(move |i| element * width + i);
    elements(tensor).into_iter().flat_map(byte).map(|byte| tensor.addr() + byte).collect()
}

/// A tensor as a plain list: shape, and elements in order.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    shape: Vec<u32>,
    elements: Vec<u64>,
}

impl Model {
    fn of(tensor: &ChipTensor) -> Self {
        Self { shape: tensor.shape().to_vec(), elements: elements(tensor) }
    }

    /// The elements at the places that `place` gives for each index of `shape`; `None` if one of them does not exist.
    fn gather(&self, shape: Vec<u32>, place: impl Fn(&[u32]) -> Vec<u64>) -> Option<Self> {
        let mut elements = vec![];
        let count: u32 = shape.iter().product();
        for mut flat in 0..count {
            let mut index = vec![0; shape.len()];
            for (i, &extent) in index.iter_mut().zip(&shape).rev() {
                *i = flat % extent;
                flat /= extent;
            }
            let mut at = 0;
            for (&i, &extent) in place(&index).iter().zip(&self.shape) {
                if i >= u64::from(extent) {
                    return None;
                }
                at = at * u64::from(extent) + i;
            }
            elements.push(self.elements[at as usize]);
        }
        Some(Self { shape, elements })
    }

    fn apply(&self, op: &Op) -> Option<Self> {
        let ndims = self.shape.len();
        match op {
            Op::View { shape, offsets } => {
                let at =
                    |index: &[u32]| index.iter().zip(offsets).map(|(&i, &o)| u64::from(i) + u64::from(o)).collect();
                (shape.len() == ndims && offsets.len() == ndims).then(|| self.gather(shape.clone(), at))?
            }
            Op::Transpose { a, b } => {
                let mut order: Vec<_> = (0..ndims).collect();
                (*a < ndims && *b < ndims).then(|| order.swap(*a, *b))?;
                self.permute(&order)
            }
            Op::Permute { order } => {
                let named: BTreeSet<_> = order.iter().copied().collect();
                (order.len() == ndims && named.iter().copied().eq(0..ndims)).then(|| self.permute(order))?
            }
            Op::Slice { dim, start, end, step } => {
                if *dim >= ndims || *step == 0 || start > end || *end > self.shape[*dim] {
                    return None;
                }
                let mut shape = self.shape.clone();
                shape[*dim] = (*start..*end).step_by(*step as usize).count() as u32;
                self.gather(shape, |index| {
                    let mut at: Vec<_> = index.iter().map(|&i| u64::from(i)).collect();
                    at[*dim] = u64::from(*start) + at[*dim] * u64::from(*step);
                    at
                })
            }
            Op::Reshape { shape } => {
                let count: u32 = shape.iter().product();
                let legal = (1..=5).contains(&shape.len()) && count as usize == self.elements.len();
                legal.then(|| Self { shape: shape.clone(), elements: self.elements.clone() })
            }
        }
    }

    fn permute(&self, order: &[usize]) -> Option<Self> {
        self.gather(order.iter().map(|&dim| self.shape[dim]).collect(), |index| {
            let mut at = vec![0; index.len()];
            order.iter().zip(index).for_each(|(&dim, &i)| at[dim] = u64::from(i));
            at
        })
    }
}

#[derive(Clone, Debug)]
enum Op {
    View { shape: Vec<u32>, offsets: Vec<u32> },
    Transpose { a: usize, b: usize },
    Permute { order: Vec<usize> },
    Slice { dim: usize, start: u32, end: u32, step: u32 },
    Reshape { shape: Vec<u32> },
}

fn apply(tensor: &ChipTensor, op: &Op) -> Result<ChipTensor, laneway_core::model::ModelError> {
    match op {
        Op::View { shape, offsets } => tensor.view(shape, offsets),
        Op::Transpose { a, b } => tensor.transpose(*a, *b),
        Op::Permute { order } => tensor.permute(order),
        Op::Slice { dim, start, end, step } => tensor.slice(*dim, *start, *end, *step),
        Op::Reshape { shape } => tensor.reshape(shape),
    }
}

/// Operations that mostly fit a tensor of the given rank and of extents up to 6.
fn op(rank: usize) -> impl Strategy<Value = Op> {
    let small = || prop::collection::vec(0..5u32, rank);
    let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
    prop_oneof![
        4 => (small(), prop::collection::vec(0..3u32, rank)).prop_map(|(shape, offsets)| Op::View { shape, offsets }),
        1 => (0..5usize, 0..5usize).prop_map(|(a, b)| Op::Transpose { a, b }),
        2 => order.prop_map(|order| Op::Permute { order }),
        1 => prop::collection::vec(0..6usize, 0..6).prop_map(|order| Op::Permute { order }),
        4 => (0..rank, 0..4u32, 0..7u32, 0..4u32)
            .prop_map(|(dim, start, end, step)| Op::Slice { dim, start, end, step }),
        2 => prop::collection::vec(0..7u32, 0..7).prop_map(|shape| Op::Reshape { shape }),
        2 => prop::collection::vec(1..5u32, 1..4).prop_map(|shape| Op::Reshape { shape }),
    ]
}

fn start() -> impl Strategy<Value = (ChipTensor, Vec<Op>)> {
    (prop::collection::vec(0..=5u32, 1..=4), any::<Index>()).prop_flat_map(|(shape, dtype)| {
        let dtype = *dtype.get(&Dtype::ALL);
        let count: u32 = shape.iter().product();
        let bytes = u64::from(count * dtype.element_bytes());
        let tensor = ChipTensor::contiguous(0x1000, bytes, dtype, &shape, AddressSpace::Host).expect("it fits exactly");
        (Just(tensor), prop::collection::vec(op(shape.len()), 1..6))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// A chain of operations addresses exactly the elements that the model says, and is refused where the model refuses.
    /// The one exception: a reshape that would need a copy is refused although the model could do it.
    #[test]
    fn operations_address_what_the_model_addresses((tensor, ops) in start()) {
        let whole = elements(&tensor).len() as u64;
        let mut tensor = tensor;
        for op in &ops {
            let model = Model::of(&tensor).apply(op);
            match apply(&tensor, op) {
                Ok(next) => {
                    chip_tensor_is_legal(&next);
                    prop_assert_eq!(Some(Model::of(&next)), model, "{:?} of {:?}", op, tensor);
                    prop_assert!(elements(&next).iter().all(|&element| element < whole));
                    prop_assert_eq!((next.addr(), next.buffer_bytes()), (tensor.addr(), tensor.buffer_bytes()));
                    tensor = next;
                }
                Err(error) => {
                    let needs_copy = matches!(op, Op::Reshape { .. }) && !tensor.is_contiguous();
                    prop_assert!(model.is_none() || needs_copy, "{:?} of {:?}: {}", op, tensor, error);
                }
            }
        }
    }

    /// No shape, stride, offset or size of any magnitude wraps: a layout is legal exactly when wide arithmetic says so.
    #[test]
    fn a_layout_is_legal_exactly_when_wide_arithmetic_says_so(
        shape in prop::collection::vec(number(), 0..7),
        strides in prop::collection::vec(number(), 0..7),
        same_rank in prop::bool::weighted(0.9),
        addr in wide(), bytes in wide(), start in wide(), dtype in any::<Index>(),
    ) {
        let mut strides = strides;
        if same_rank {
            strides.resize(shape.len(), 1);
        }
        let dtype = *dtype.get(&Dtype::ALL);
        let legal = {
            let element = u128::from(dtype.element_bytes());
            let reach = shape.iter().zip(&strides).map(|(&n, &s)| u128::from(n.saturating_sub(1)) * u128::from(s));
            let extent = reach.sum::<u128>() + 1;
            let empty = shape.contains(&0);
            let fits = (u128::from(start) + extent) * element <= u128::from(bytes);
            let wraps = u128::from(addr) + u128::from(bytes) > u128::from(u64::MAX);
            let rank = (1..=5).contains(&shape.len()) && strides.len() == shape.len();
            rank && strides.iter().all(|&stride| stride > 0) && !wraps && (empty || fits)
        };
        let tensor = ChipTensor::strided(addr, bytes, dtype, &shape, &strides, start, AddressSpace::Device);
        prop_assert_eq!(tensor.is_ok(), legal, "{:?}", tensor);
        if let Ok(tensor) = tensor {
            chip_tensor_is_legal(&tensor);
        }
    }

    /// Operations on tensors of any magnitude never leave the buffer and never panic.
    #[test]
    fn operations_of_any_magnitude_stay_in_the_buffer(
        shape in prop::collection::vec(number(), 1..=5),
        dtype in any::<Index>(),
        ops in prop::collection::vec(large_op(), 1..4),
    ) {
        let dtype = *dtype.get(&Dtype::ALL);
        let Ok(mut tensor) = ChipTensor::contiguous(64, u64::MAX - 64, dtype, &shape, AddressSpace::Device) else {
            return Ok(());
        };
        for op in &ops {
            if let Ok(next) = apply(&tensor, op) {
                chip_tensor_is_legal(&next);
                tensor = next;
            }
        }
    }

    /// E-16: two tiles of one matrix overlap exactly when they share an element, whatever their address is called.
    #[test]
    fn tiles_of_one_matrix_are_told_apart_exactly(
        (matrix, a, b) in matrix_and_two_tiles(),
    ) {
        let (a, b) = (matrix.view(&a.0, &a.1).expect("inside"), matrix.view(&b.0, &b.1).expect("inside"));
        let share = !bytes(&a).is_disjoint(&bytes(&b));
        prop_assert_eq!(overlap::overlaps(&a, &b), share);
        prop_assert_eq!(overlap::overlaps(&b, &a), share);
        let (a, b, whole) = (Footprint::of(&a), Footprint::of(&b), Footprint::of(&matrix));
        prop_assert!(whole.covers(&a) && whole.covers(&b) && a.covers(&a));
        prop_assert_eq!(a.overlaps(&a), !a.range().is_empty());
        prop_assert_eq!(a.overlaps(&b), share);
    }

    /// E-15, E-16: whatever two views are, "no overlap" and "covers" are never said wrongly.
    #[test]
    fn no_overlap_is_missed_and_no_cover_is_invented(
        (a, ops_a) in start(), (b, ops_b) in start(), shift in 0..64u64,
    ) {
        let view = |tensor: ChipTensor, ops: &[Op]| {
            ops.iter().fold(tensor, |tensor, op| apply(&tensor, op).unwrap_or(tensor))
        };
        let a = view(a, &ops_a);
        let b = view(b, &ops_b).with_address(0x1000 + shift).expect("a low address");
        let (touched_a, touched_b) = (bytes(&a), bytes(&b));
        let (foot_a, foot_b) = (Footprint::of(&a), Footprint::of(&b));
        prop_assert!(foot_a.overlaps(&foot_b) || touched_a.is_disjoint(&touched_b), "{:?} {:?}", a, b);
        prop_assert_eq!(foot_a.overlaps(&foot_b), foot_b.overlaps(&foot_a));
        prop_assert!(!foot_a.covers(&foot_b) || touched_a.is_superset(&touched_b), "{:?} {:?}", a, b);
    }
}

/// Numbers where arithmetic goes wrong.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        6 => 0..9u32,
        2 => Just(u32::MAX),
        1 => Just(u32::MAX - 1),
        1 => Just(1 << 31),
        1 => Just((1 << 31) + 1),
        1 => Just(1 << 16),
        2 => any::<u32>(),
    ]
}

fn wide() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..4_096u64,
        2 => Just(u64::MAX),
        1 => Just(1 << 63),
        1 => (0..64u64).prop_map(|less| u64::MAX - less),
        2 => any::<u64>(),
    ]
}

fn large_op() -> impl Strategy<Value = Op> {
    let list = || prop::collection::vec(number(), 1..=5);
    prop_oneof![
        (list(), list()).prop_map(|(shape, offsets)| Op::View { shape, offsets }),
        (0..6usize, 0..6usize).prop_map(|(a, b)| Op::Transpose { a, b }),
        prop::collection::vec(0..6usize, 1..=5).prop_map(|order| Op::Permute { order }),
        (0..6usize, number(), number(), number()).prop_map(|(dim, start, end, step)| Op::Slice {
            dim,
            start,
            end,
            step
        }),
        list().prop_map(|shape| Op::Reshape { shape }),
    ]
}

type Box = (Vec<u32>, Vec<u32>);

fn matrix_and_two_tiles() -> impl Strategy<Value = (ChipTensor, Box, Box)> {
    prop::collection::vec(1..=6u32, 1..=4).prop_flat_map(|shape| {
        let tile = |shape: &[u32]| {
            let per_axis: Vec<_> =
                shape.iter().map(|&n| (0..=n).prop_flat_map(move |offset| (Just(offset), 0..=n - offset))).collect();
            per_axis
                .prop_map(|axes| (axes.iter().map(|axis| axis.1).collect(), axes.iter().map(|axis| axis.0).collect()))
        };
        let bytes = 2 * u64::from(shape.iter().product::<u32>());
        let matrix = ChipTensor::contiguous(0x1000, bytes, Dtype::F16, &shape, AddressSpace::Host).expect("it fits");
        (Just(matrix), tile(&shape), tile(&shape))
    })
}

/// T-1, E-16: disjoint rows and disjoint column blocks of one matrix do not wait for each other; the whole waits for all.
#[test]
fn rows_and_column_blocks_are_independent() {
    let matrix = ChipTensor::contiguous(0x1000, 64 * 64 * 4, Dtype::F32, &[64, 64], AddressSpace::Host).expect("fits");
    let row = |i| matrix.view(&[1, 64], &[i, 0]).expect("a row");
    let block = |j| matrix.view(&[64, 16], &[0, j]).expect("a block of columns");
    assert!(!overlap::overlaps(&row(3), &row(4)));
    assert!(!overlap::overlaps(&block(0), &block(16)));
    assert!(overlap::overlaps(&block(0), &block(15)));
    assert!(overlap::overlaps(&row(3), &block(16)));
    for part in [row(0), row(63), block(0), block(48)] {
        assert!(overlap::overlaps(&matrix, &part));
        assert!(Footprint::of(&matrix).covers(&Footprint::of(&part)));
        assert!(!Footprint::of(&part).covers(&Footprint::of(&matrix)));
    }
}

/// E-15: the pointer that names the bytes does not matter.
#[test]
fn the_same_bytes_under_two_addresses_overlap() {
    let matrix = |addr, rows| {
        ChipTensor::contiguous(addr, u64::from(rows) * 256, Dtype::F32, &[rows, 64], AddressSpace::Host).expect("fits")
    };
    let (whole, below) = (matrix(0x1000, 16), matrix(0x1000 + 4 * 256, 12));
    let row = |tensor: &ChipTensor, i| tensor.view(&[1, 64], &[i, 0]).expect("a row");
    assert!(overlap::overlaps(&row(&whole, 5), &row(&below, 1)));
    assert!(!overlap::overlaps(&row(&whole, 5), &row(&below, 2)));
    assert!(!overlap::overlaps(&row(&whole, 3), &below));
}

/// T-44: equal numbers in two address spaces are two memories.
#[test]
fn host_and_device_never_overlap() {
    let at = |space| ChipTensor::contiguous(0x1000, 64, Dtype::F32, &[16], space).expect("fits");
    assert!(!overlap::overlaps(&at(AddressSpace::Host), &at(AddressSpace::Device)));
    assert!(!Footprint::of(&at(AddressSpace::Host)).covers(&Footprint::of(&at(AddressSpace::Device))));
}

/// T-2: a stride that would wrap the extent to a small number is refused.
#[test]
fn an_extent_that_would_wrap_is_refused() {
    let f32 = |shape: &[u32], strides: &[u32]| {
        ChipTensor::strided(0x1000, 4, Dtype::F32, shape, strides, 0, AddressSpace::Host)
    };
    assert!(matches!(f32(&[2_147_483_649], &[2_147_483_648]), Err(TensorFault::OutOfBuffer { .. })));
    let all = [u32::MAX; 5];
    assert_eq!(f32(&all, &all), Err(TensorFault::ExtentOverflow));
}
