//! The arguments of a run, as its device sees them.

use std::ops::Range;

use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, CallConfig, ChipTensor};

use super::Block;
use crate::Error;
use crate::element::Element;
use crate::sub::SubArgs;
use crate::view::View;

/// What a [`BlockingDevice`](super::BlockingDevice) is called with.
///
/// A tensor in HOST space is seen where it lies, and so is one in the device's memory if that is a
/// [`ProcessMemory`](super::ProcessMemory). Views touch the elements of a tensor alone, not the bytes between them, which
/// may belong to another task.
#[derive(Clone, Copy)]
pub struct RunArgs<'a> {
    args: SubArgs<'a>,
    config: &'a CallConfig,
    blocks: &'a [Block],
}

impl<'a> RunArgs<'a> {
    pub(super) fn new(
        args: &'a TaskArgs,
        shared: &'a [Range<u64>],
        config: &'a CallConfig,
        blocks: &'a [Block],
    ) -> Self {
        Self { args: SubArgs::new(args.view(), shared), config, blocks }
    }

    /// All tensors as they came: address, space, shape, strides.
    #[must_use]
    pub fn tensors(&self) -> &'a [ChipTensor] {
        self.args.tensors()
    }

    /// One tensor's elements.
    ///
    /// # Errors
    /// [`Error::NoSuchArgument`]; [`Error::Argument`] if its elements are not `T`, or if it lies in device memory that is not
    /// memory of this process.
    #[expect(unsafe_code, reason = "the address range is checked here")]
    pub fn tensor<T: Element>(&self, index: usize) -> Result<View<'a, T>, Error> {
        let Some(tensor) = self.tensors().get(index).filter(|it| it.address_space() == AddressSpace::Device) else {
            return self.args.tensor(index);
        };
        let bytes = tensor.byte_range();
        if !bytes.is_empty() && !self.blocks.iter().any(|block| block.contains(bytes)) {
            return Err(Error::Argument { index, fault: Box::new(Error::NotHostMemory { address: tensor.addr() }) });
        }
        // SAFETY: judged when it came in, and inside a block that this list keeps alive and that is reached by atomics alone.
        let view = unsafe { View::mapped(tensor) };
        view.map_err(|fault| Error::Argument { index, fault: Box::new(fault) })
    }

    /// All scalars.
    #[must_use]
    pub fn scalars(&self) -> &'a [u64] {
        self.args.scalars()
    }

    /// One scalar: the 64 bits that it was submitted as.
    ///
    /// # Errors
    /// [`Error::NoSuchArgument`].
    pub fn scalar(&self, index: usize) -> Result<u64, Error> {
        self.args.scalar(index)
    }

    /// The config of the task.
    #[must_use]
    pub const fn config(&self) -> &'a CallConfig {
        self.config
    }
}
