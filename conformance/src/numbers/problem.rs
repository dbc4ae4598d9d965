//! One kernel with operands that lie anyhow.

use laneway_core::wire::{AddressSpace, ChipTensor, Dtype, TensorFault};
use laneway_sim::{Kernel, scale_factor};

use super::{Bits, Dice, Numbers};

/// The element types that the kernels know.
pub(crate) const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::I32];

/// The kernels that compute something.
pub(crate) const COMPUTING: [Kernel; 6] =
    [Kernel::Add, Kernel::Mul, Kernel::Scale, Kernel::MatMul, Kernel::Reduce, Kernel::Copy];

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
    /// Dimensions in any order in memory, half of the time dense in their own, with gaps otherwise.
    fn random(shape: Vec<u32>, dice: &mut Dice) -> Self {
        let rank = shape.len();
        let mut order: Vec<usize> = (0..rank).collect();
        let (shuffled, gaps) = (dice.roll(2) == 1, dice.roll(2) == 1);
        if shuffled {
            for last in (1..rank).rev() {
                order.swap(last, dice.roll(last as u32 + 1) as usize);
            }
        }
        let mut strides = vec![1; rank];
        let mut stride = 1;
        for &dimension in order.iter().rev() {
            stride *= 1 + if gaps { dice.roll(3) } else { 0 };
            strides[dimension] = stride;
            stride *= shape[dimension].max(1);
        }
        let start = u64::from(dice.roll(4));
        let room = start as usize + stride as usize + 3;
        Self { shape, strides, start, room }
    }

    fn offset(&self, index: &[u32]) -> usize {
        let steps = index.iter().zip(&self.strides).map(|(&at, &stride)| at as usize * stride as usize);
        self.start as usize + steps.sum::<usize>()
    }
}

/// A kernel, an element type, and operands with everything around them.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) kernel: Kernel,
    numbers: Numbers,
    layouts: Vec<Layout>,
    factor: i16,
    /// The elements of each operand's buffer, gaps included; the result comes last.
    buffers: Vec<Vec<Bits>>,
}

impl Problem {
    /// A kernel over operands of random shape, stride and content.
    pub(crate) fn random(kernel: Kernel, dtype: Dtype, dice: &mut Dice) -> Self {
        let numbers = Numbers(dtype);
        let layouts: Vec<_> = shapes(kernel, dice).into_iter().map(|shape| Layout::random(shape, dice)).collect();
        let mut sample = |layout: &Layout| (0..layout.room).map(|_| numbers.sample(dice.next())).collect();
        let buffers = layouts.iter().map(&mut sample).collect();
        let factor = dice.next() as i16;
        Self { kernel, numbers, layouts, factor, buffers }
    }

    /// How many operands are read; the last one is written.
    pub(crate) const fn inputs(&self) -> usize {
        self.layouts.len() - 1
    }

    /// The bytes of an operand's buffer before the run.
    pub(crate) fn bytes(&self, operand: usize) -> Vec<u8> {
        self.numbers.to_bytes(&self.buffers[operand])
    }

    /// An operand whose buffer is at `address`.
    pub(crate) fn tensor(&self, operand: usize, address: u64, space: AddressSpace) -> Result<ChipTensor, TensorFault> {
        let (layout, dtype) = (&self.layouts[operand], self.numbers.0);
        let bytes = layout.room as u64 * u64::from(dtype.element_bytes());
        ChipTensor::strided(address, bytes, dtype, &layout.shape, &layout.strides, layout.start, space)
    }

    /// The scalars of the run.
    pub(crate) fn scalars(&self) -> Vec<u64> {
        let factor = scale_factor(f64::from(self.factor));
        if self.kernel.takes_scalar() { vec![factor] } else { Vec::new() }
    }

    /// The bytes of the result's buffer after the run, gaps included.
    pub(crate) fn expected(&self) -> Vec<u8> {
        let numbers = self.numbers;
        let at = |operand: usize, index: &[u32]| self.buffers[operand][self.layouts[operand].offset(index)];
        let out = &self.layouts[self.inputs()];
        let mut result = self.buffers[self.inputs()].clone();
        for index in indices(&out.shape) {
            result[out.offset(&index)] = match self.kernel {
                Kernel::Add => numbers.add(at(0, &index), at(1, &index)),
                Kernel::Mul => numbers.mul(at(0, &index), at(1, &index)),
                Kernel::Scale => numbers.scale(at(0, &index), self.factor),
                Kernel::MatMul => {
                    let depth = self.layouts[0].shape[1];
                    numbers.dot((0..depth).map(|k| (at(0, &[index[0], k]), at(1, &[k, index[1]]))))
                }
                Kernel::Reduce => {
                    let (outer, width) = (&index[..index.len() - 1], self.layouts[0].shape[index.len() - 1]);
                    numbers.sum((0..width).map(|k| at(0, &[outer, &[k]].concat())))
                }
                Kernel::Copy | Kernel::Noop | Kernel::Wait => at(0, &index),
            };
        }
        numbers.to_bytes(&result)
    }
}

/// Every index of a shape.
fn indices(shape: &[u32]) -> Vec<Vec<u32>> {
    shape.iter().fold(vec![Vec::new()], |all, &size| {
        all.iter().flat_map(|index| (0..size).map(|at| [index.as_slice(), &[at]].concat())).collect()
    })
}

/// The shape of each operand; a dimension of 0 is as legal as any.
fn shapes(kernel: Kernel, dice: &mut Dice) -> Vec<Vec<u32>> {
    if kernel == Kernel::MatMul {
        let [m, k, n] = [(); 3].map(|()| dice.roll(6));
        return vec![vec![m, k], vec![k, n], vec![m, n]];
    }
    let rank = 1 + dice.roll(5);
    let shape: Vec<u32> = (0..rank).map(|_| if dice.roll(12) == 0 { 0 } else { 1 + dice.roll(5) }).collect();
    let mut out = shape.clone();
    if kernel == Kernel::Reduce
        && let Some(last) = out.last_mut()
    {
        *last = 1;
    }
    let inputs = kernel.operands().len() - 1;
    [vec![shape; inputs], vec![out]].concat()
}
