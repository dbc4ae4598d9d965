//! A graph that is bound to its arguments, as it lies in the arena bank of a run.

use laneway_core::chip::{Call, ChipError, DeviceAddress, Reason};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::kernel::{self, Kernel, MAX_OPERANDS, View};
use crate::memory::DeviceMemory;
use crate::program::{MAX_STEPS, Program};

/// One kernel with its operands: plain words, so that it can lie in device memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Node {
    /// Position in [`Kernel::ALL`].
    kernel: u32,
    operand_count: u32,
    scalar: u64,
    operands: [View; MAX_OPERANDS],
}

/// The most bytes that a graph takes up in its bank.
pub(crate) const MAX_GRAPH_BYTES: u64 = (HEADER + MAX_STEPS * size_of::<Node>()) as u64;

/// The node count.
const HEADER: usize = size_of::<u64>();

/// A bound graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
}

impl Graph {
    /// Binds a program to views of its tensors and to its scalars, and judges every kernel's operands.
    ///
    /// # Errors
    /// [`ChipError::ArgumentRefused`] with the index of the tensor argument.
    pub(crate) fn build(program: &Program, tensors: &[View], scalars: &[u64]) -> Result<Self, ChipError> {
        let nodes = program.steps().iter().map(|step| {
            let operands: Vec<View> = step.tensors().iter().map(|&index| tensors[usize::from(index)]).collect();
            let scalar = step.scalar().map_or(0, |index| scalars[usize::from(index)]);
            kernel::judge(step.kernel(), &operands, scalar).map_err(|(operand, reason)| {
                let index = step.tensors().get(operand).map_or(0, |&index| usize::from(index));
                ChipError::ArgumentRefused { index, reason }
            })?;
            let mut node = Node::with_kernel(step.kernel(), scalar);
            node.operand_count = operands.len() as u32;
            node.operands[..operands.len()].copy_from_slice(&operands);
            Ok(node)
        });
        Ok(Self { nodes: nodes.collect::<Result<_, ChipError>>()? })
    }

    /// Writes the graph to the start of a bank.
    pub(crate) fn store(&self, memory: &mut DeviceMemory, bank: DeviceAddress) -> Result<(), ChipError> {
        let nodes = self.nodes.as_bytes();
        let range = memory.range(Call::Prepare, bank, (HEADER + nodes.len()) as u64)?;
        let (header, body) = memory.bytes_mut(range).split_at_mut(HEADER);
        header.copy_from_slice(&(self.nodes.len() as u64).to_ne_bytes());
        body.copy_from_slice(nodes);
        Ok(())
    }

    /// Reads the graph at the start of a bank, which the device could have overwritten.
    pub(crate) fn load(memory: &DeviceMemory, bank: DeviceAddress) -> Result<Self, ChipError> {
        let refused = |reason| ChipError::Failed { call: Call::Launch, code: -1, reason: Reason::from(reason) };
        let range = memory.range(Call::Launch, bank, MAX_GRAPH_BYTES)?;
        let bytes = memory.bytes(range);
        let (count, rest) = u64::read_from_prefix(bytes).map_err(|_| refused("the arena bank is too small"))?;
        if count > MAX_STEPS as u64 {
            return Err(refused("the arena bank holds no graph"));
        }
        let length = count as usize * size_of::<Node>();
        let nodes = rest[..length].chunks_exact(size_of::<Node>()).map(|bytes| {
            let node = Node::read_from_bytes(bytes).map_err(|_| refused("the arena bank is too small"))?;
            if node.kernel as usize >= Kernel::ALL.len() || node.operand_count as usize > MAX_OPERANDS {
                return Err(refused("the arena bank holds no graph"));
            }
            Ok(node)
        });
        Ok(Self { nodes: nodes.collect::<Result<_, ChipError>>()? })
    }

    /// Runs every kernel, in order.
    pub(crate) fn execute(&self, memory: &mut DeviceMemory) -> Result<(), ChipError> {
        for node in &self.nodes {
            let (kernel, operands) = node.parts();
            kernel::execute(memory, kernel, operands, node.scalar)?;
        }
        Ok(())
    }

    /// What the device spends on it, in nanoseconds: `per_kernel` for each kernel, `per_element` picoseconds for each
    /// element of its largest operand, and what its waits say.
    pub(crate) fn duration(&self, per_kernel: u64, per_element: u64) -> u64 {
        self.nodes.iter().fold(0, |sum: u64, node| {
            let (kernel, operands) = node.parts();
            let elements = operands.iter().map(View::count).max().unwrap_or(0);
            let wait = if kernel == Kernel::Wait { node.scalar } else { 0 };
            sum.saturating_add(per_kernel)
                .saturating_add(elements.saturating_mul(per_element) / 1000)
                .saturating_add(wait)
        })
    }
}

impl Node {
    fn with_kernel(kernel: Kernel, scalar: u64) -> Self {
        use zerocopy::FromZeros;
        Self { kernel: kernel as u32, scalar, ..Self::new_zeroed() }
    }

    /// The kernel and its operands; both were judged when the node was built or loaded.
    fn parts(&self) -> (Kernel, &[View]) {
        (Kernel::ALL[self.kernel as usize], &self.operands[..self.operand_count as usize])
    }
}
