//! A typed window on tensor memory that other processes may write.
#![allow(unsafe_code)]

use core::marker::PhantomData;

use laneway_core::wire::{AddressSpace, ChipTensor};

use crate::element::Element;
use crate::error::Error;

/// A bounds-checked view of a tensor's elements in this process (P-19).
///
/// Indices count elements in row-major order of the view's shape, whatever its strides are. Reads and writes are relaxed
/// atomics: what the tags of the tasks ordered is exact, what they did not order may be stale.
///
/// ```no_run
/// # use laneway_linux::{Error, Tensor};
/// # fn example(x: &Tensor<f32>) -> Result<(), Error> {
/// let view = x.view()?; // refused while a task has the tensor
/// view.set(0, 1.0)?;
/// assert_eq!(view.get(view.len()), None, "past the end");
/// let mut copy = vec![0.0; view.len()];
/// view.copy_to(&mut copy)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    first: *mut T,
    shape: [u32; 5],
    strides: [u32; 5],
    ndims: usize,
    len: usize,
    contiguous: bool,
    memory: PhantomData<&'a ()>,
}

impl<'a, T: Element> View<'a, T> {
    /// The view of a validated tensor.
    ///
    /// # Safety
    /// `tensor` passed its gates, and its bytes lie in a writable mapping that outlives `'a`.
    pub(crate) unsafe fn new(tensor: &ChipTensor) -> Result<Self, Error> {
        if tensor.address_space() != AddressSpace::Host {
            return Err(Error::NotHostMemory { address: tensor.addr() });
        }
        // SAFETY: promised by the caller.
        unsafe { Self::mapped(tensor) }
    }

    /// As [`View::new`], of a tensor in either space: memory of a device may be memory of this process.
    ///
    /// # Safety
    /// As for [`View::new`].
    pub(crate) unsafe fn mapped(tensor: &ChipTensor) -> Result<Self, Error> {
        if tensor.dtype() != T::DTYPE {
            return Err(Error::ElementType { asked: T::DTYPE, found: tensor.dtype() });
        }
        let first = tensor.byte_range().start;
        if !first.is_multiple_of(size_of::<T>() as u64) {
            return Err(Error::Misaligned { address: first, align: size_of::<T>() });
        }
        let (mut shape, mut strides) = ([0; 5], [0; 5]);
        let ndims = tensor.shape().len();
        shape[..ndims].copy_from_slice(tensor.shape());
        strides[..ndims].copy_from_slice(tensor.strides());
        // A validated tensor lies in its buffer, so the count of its elements fits the address space.
        let len = tensor.shape().iter().map(|&n| n as usize).product();
        let contiguous = tensor.is_contiguous();
        Ok(Self { first: first as *mut T, shape, strides, ndims, len, contiguous, memory: PhantomData })
    }

    /// Extent of each dimension, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        &self.shape[..self.ndims]
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element at `index`, or `None` past the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<T> {
        // SAFETY: `element` is aligned and inside the tensor, whose mapping outlives the view.
        self.element(index).map(|at| unsafe { T::load(at) })
    }

    /// Writes the element at `index`.
    ///
    /// # Errors
    /// [`Error::ElementIndex`] past the end.
    pub fn set(&self, index: usize, value: T) -> Result<(), Error> {
        let at = self.element(index).ok_or(Error::ElementIndex { index, len: self.len })?;
        // SAFETY: as in `get`; tensor regions are mapped for writing.
        unsafe { T::store(at, value) };
        Ok(())
    }

    /// All elements in row-major order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len).filter_map(|i| self.get(i))
    }

    /// Copies all elements out.
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless `into` has exactly [`View::len`] elements.
    pub fn copy_to(&self, into: &mut [T]) -> Result<(), Error> {
        self.same_len(into.len())?;
        for (into, value) in into.iter_mut().zip(self.iter()) {
            *into = value;
        }
        Ok(())
    }

    /// Overwrites all elements.
    ///
    /// # Errors
    /// [`Error::ElementCount`] unless `from` has exactly [`View::len`] elements.
    pub fn copy_from(&self, from: &[T]) -> Result<(), Error> {
        self.same_len(from.len())?;
        self.fill_with(|i| from[i]);
        Ok(())
    }

    /// Overwrites each element with what `value` returns for its index.
    pub fn fill_with(&self, mut value: impl FnMut(usize) -> T) {
        for i in 0..self.len {
            if let Some(at) = self.element(i) {
                // SAFETY: as in `set`.
                unsafe { T::store(at, value(i)) };
            }
        }
    }

    /// The elements as a slice, if they lie next to each other.
    ///
    /// # Safety
    /// Nobody writes these elements while the slice lives: the tags of all tasks that may run now order their writes before
    /// or after the task that holds it.
    #[must_use]
    pub unsafe fn as_slice(&self) -> Option<&'a [T]> {
        // An empty tensor may lie anywhere, also at address 0.
        let first = if self.len == 0 { core::ptr::NonNull::dangling().as_ptr() } else { self.first };
        // SAFETY: contiguous, aligned and mapped for `'a`, or empty; the caller excludes writers.
        self.contiguous.then(|| unsafe { core::slice::from_raw_parts(first, self.len) })
    }

    /// The elements as a mutable slice, if they lie next to each other.
    ///
    /// # Safety
    /// Nobody else reads or writes these elements while the slice lives, through this view or any other.
    #[must_use]
    pub unsafe fn as_mut_slice(&self) -> Option<&'a mut [T]> {
        let first = if self.len == 0 { core::ptr::NonNull::dangling().as_ptr() } else { self.first };
        // SAFETY: contiguous, aligned, writable and mapped for `'a`, or empty; the caller excludes everyone else.
        self.contiguous.then(|| unsafe { core::slice::from_raw_parts_mut(first, self.len) })
    }

    fn same_len(&self, given: usize) -> Result<(), Error> {
        if given == self.len { Ok(()) } else { Err(Error::ElementCount { given, len: self.len }) }
    }

    /// The address of the element at `index`, inside the tensor by its validated extent.
    fn element(&self, index: usize) -> Option<*mut T> {
        if index >= self.len {
            return None;
        }
        if self.contiguous {
            return Some(self.first.wrapping_add(index));
        }
        let (mut rest, mut offset) = (index, 0);
        for (&extent, &stride) in self.shape().iter().zip(&self.strides).rev() {
            offset += rest % extent as usize * stride as usize;
            rest /= extent as usize;
        }
        Some(self.first.wrapping_add(offset))
    }
}
