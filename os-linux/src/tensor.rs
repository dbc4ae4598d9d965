//! Shared tensors: memory of the buffer region with a shape and an element type.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use laneway_core::wire::{AddressSpace, ChipTensor};

use crate::element::Element;
use crate::error::Error;
use crate::memory::{BufferPool, Space};
use crate::sys::lineage::Lineage;
use crate::view::View;

/// Owns the bytes; freed with the last tensor that names them.
struct Buffer {
    pool: Arc<BufferPool>,
    address: u64,
    bytes: u64,
    lineage: Lineage,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // A copy that came through a fork: the memory is the other process's to give back.
        if self.lineage.is_inherited() {
            return;
        }
        if let Some(worker) = self.pool.give_back_unowned(self.address) {
            worker.free_buffer(self.address..self.address + self.bytes);
        }
    }
}

/// A tensor that every process of the worker's tree sees at the same address.
///
/// Clones name the same memory; it goes back to the region with the last one. A tensor outlives its worker: as long as one does,
/// it keeps the buffer region of that worker mapped, one descriptor of it open, and nothing else. Access from the parent to bytes that an
/// unfinished task names is refused with [`Error::InUse`] (P-19).
#[derive(Clone)]
pub struct Tensor<T> {
    buffer: Arc<Buffer>,
    tensor: ChipTensor,
    element: PhantomData<T>,
}

impl<T: Element> Tensor<T> {
    /// Takes memory of `space`, and makes it known to the worker that runs on it, if one does yet.
    pub(crate) fn new(space: &Arc<Space>, shape: &[u32]) -> Result<Self, Error> {
        let bytes = bytes_of::<T>(shape)?;
        let pool = space.buffers().clone();
        let address = pool.take(bytes)?;
        if let Some(worker) = pool.owner()
            && let Err(error) = worker.lock().add_buffer(&(address..address + bytes))
        {
            pool.give_back(address);
            return Err(error.into());
        }
        let buffer = Arc::new(Buffer { pool, address, bytes, lineage: Lineage::here() });
        let tensor = ChipTensor::contiguous(address, bytes, T::DTYPE, shape, AddressSpace::Host)?;
        Ok(Self { buffer, tensor, element: PhantomData })
    }

    /// The tensor as a task argument.
    #[must_use]
    pub fn as_arg(&self) -> ChipTensor {
        self.tensor
    }

    /// Extent of each dimension, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        self.tensor.shape()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.buffer.bytes / size_of::<T>() as u64) as usize
    }

    /// Whether the tensor has no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements, for reading and writing in this process.
    ///
    /// # Errors
    /// [`Error::InUse`] while a task that is neither finished nor cancelled names bytes of this tensor: wait for its run.
    /// That is judged here, once: a view that is kept over a submit sees what the task does meanwhile.
    #[expect(unsafe_code, reason = "the buffer that keeps the mapping is here")]
    pub fn view(&self) -> Result<View<'_, T>, Error> {
        let bytes = self.bytes();
        // In a child that captured the tensor, what its task may touch is what the tags say.
        let worker = if self.buffer.lineage.is_of_a_parent() { None } else { self.buffer.pool.owner() };
        if worker.is_some_and(|worker| worker.is_named(&bytes)) {
            return Err(Error::InUse { start: bytes.start, end: bytes.end });
        }
        // SAFETY: `contiguous` checked the tensor, and `buffer` keeps its mapping for as long as `self` lives.
        unsafe { View::new(&self.tensor) }
    }

    /// Overwrites all elements.
    ///
    /// # Errors
    /// As [`Tensor::view`]; [`Error::ElementCount`] unless `from` has as many elements as the tensor.
    pub fn copy_from(&self, from: &[T]) -> Result<(), Error> {
        self.view()?.copy_from(from)
    }

    /// Overwrites each element with what `value` returns for its index.
    ///
    /// # Errors
    /// As [`Tensor::view`].
    pub fn fill_with(&self, value: impl FnMut(usize) -> T) -> Result<(), Error> {
        self.view()?.fill_with(value);
        Ok(())
    }

    /// A copy of all elements in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::view`].
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        Ok(self.view()?.iter().collect())
    }

    fn bytes(&self) -> Range<u64> {
        self.buffer.address..self.buffer.address + self.buffer.bytes
    }
}

impl<T: Element> From<&Tensor<T>> for ChipTensor {
    fn from(tensor: &Tensor<T>) -> Self {
        tensor.as_arg()
    }
}

impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{:?}>{:?} at {:#x}", T::DTYPE, self.shape(), self.buffer.address)
    }
}

/// An output that the engine allocates from the heap ring of the current scope when the task is submitted; the submit
/// returns the tensor with its address.
///
/// # Errors
/// A shape without elements.
pub fn unallocated<T: Element>(shape: &[u32]) -> Result<ChipTensor, Error> {
    let bytes = bytes_of::<T>(shape)?;
    Ok(ChipTensor::contiguous(0, bytes, T::DTYPE, shape, AddressSpace::Host)?)
}

/// Bytes of a contiguous tensor; refuses rank 0, more than 5 dimensions, no elements, and products that overflow.
pub(crate) fn bytes_of<T: Element>(shape: &[u32]) -> Result<u64, Error> {
    let refuse = || Error::Shape { shape: shape.to_vec() };
    if shape.is_empty() || shape.len() > 5 {
        return Err(refuse());
    }
    let product = shape.iter().try_fold(size_of::<T>() as u64, |bytes, &n| bytes.checked_mul(u64::from(n)));
    product.filter(|&bytes| bytes > 0).ok_or_else(refuse)
}
