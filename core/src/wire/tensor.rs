//! The tensor of protocol 3: a self-describing buffer and a strided view of it.

use bytemuck::TransparentWrapper;
use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::buffer::{self, RawBufferDescriptor};
use super::layout::{self, MAX_RANK};
use super::{BufferDescriptor, Dtype, TensorFault, num};

/// The bytes of a [`Tensor`], not yet judged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RawTensor {
    pub(super) buffer: RawBufferDescriptor,
    pub(super) byte_offset: u64,
    pub(super) ndims: u32,
    pub(super) shapes: [u32; MAX_RANK],
    pub(super) strides: [u32; MAX_RANK],
    pub(super) dtype: u8,
    pub(super) zero: [u8; 3],
}

const_assert_eq!(size_of::<RawTensor>(), 144);
const_assert_eq!(align_of::<RawTensor>(), 8);
const_assert_eq!(core::mem::offset_of!(RawTensor, buffer), 0);
const_assert_eq!(core::mem::offset_of!(RawTensor, byte_offset), 88);
const_assert_eq!(core::mem::offset_of!(RawTensor, ndims), 96);
const_assert_eq!(core::mem::offset_of!(RawTensor, shapes), 100);
const_assert_eq!(core::mem::offset_of!(RawTensor, strides), 120);
const_assert_eq!(core::mem::offset_of!(RawTensor, dtype), 140);
const_assert_eq!(core::mem::offset_of!(RawTensor, zero), 141);

/// Every gate of an element (W-7), those of its buffer first.
pub(crate) fn judge(raw: &RawTensor) -> Result<(), TensorFault> {
    buffer::judge(&raw.buffer)?;
    if raw.ndims.wrapping_sub(1) >= 5 {
        return Err(TensorFault::Rank { ndims: u64::from(raw.ndims) });
    }
    let Some(dtype) = Dtype::from_code(raw.dtype) else {
        return Err(TensorFault::Dtype { code: u32::from(raw.dtype) });
    };
    let [a, b, c] = raw.zero;
    if (a | b | c) != 0 {
        return Err(TensorFault::Reserved { value: u32::from_le_bytes([a, b, c, 0]) });
    }
    let rank = num::index(raw.ndims);
    for (field, entries) in [("shapes", &raw.shapes), ("strides", &raw.strides)] {
        if let Some((dim, &value)) = entries.iter().enumerate().skip(rank).find(|(_, value)| **value != 0) {
            return Err(TensorFault::PastRank { field, dim, value, ndims: raw.ndims });
        }
    }
    if let Some(dim) = raw.shapes.iter().take(rank).position(|&extent| extent == 0) {
        return Err(TensorFault::Empty { dim });
    }
    let layout = layout::measure(rank, &raw.shapes, &raw.strides)?;
    let extent = layout.extent.ok_or(TensorFault::ExtentOverflow)?;
    let buffer = BufferDescriptor::wrap_ref(&raw.buffer);
    layout::fits(Some(raw.byte_offset), extent, dtype.element_bytes(), buffer.range().nbytes)
}

/// A strided view of a buffer that describes itself: 144 bytes. A value of this type has passed every gate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, IntoBytes, Immutable, KnownLayout, TransparentWrapper)]
#[repr(transparent)]
pub struct Tensor(RawTensor);

impl Tensor {
    /// Size on the wire in bytes.
    pub const BYTES: usize = 144;

    /// A view of `buffer`: `shape` elements of `dtype`, `strides` in elements, from byte `byte_offset` on.
    ///
    /// # Errors
    /// A [`TensorFault`] that names what is not legal; a dimension of 0 is not.
    pub fn new(
        buffer: BufferDescriptor,
        byte_offset: u64,
        dtype: Dtype,
        shape: &[u32],
        strides: &[u32],
    ) -> Result<Self, TensorFault> {
        let ndims = layout::rank(shape)?;
        if strides.len() != shape.len() {
            let (shape, other) = (num::wide(shape.len()), num::wide(strides.len()));
            return Err(TensorFault::RankMismatch { shape, what: "strides", other });
        }
        let raw = RawTensor {
            buffer: BufferDescriptor::peel(buffer),
            byte_offset,
            ndims,
            shapes: layout::padded(shape),
            strides: layout::padded(strides),
            dtype: dtype.code(),
            zero: [0; 3],
        };
        judge(&raw)?;
        Ok(Self(raw))
    }

    /// A row-major view of `buffer` from byte `byte_offset` on.
    ///
    /// # Errors
    /// A [`TensorFault`] that names what is not legal; a dimension of 0 is not.
    pub fn contiguous(
        buffer: BufferDescriptor,
        byte_offset: u64,
        dtype: Dtype,
        shape: &[u32],
    ) -> Result<Self, TensorFault> {
        layout::rank(shape)?;
        let strides = layout::row_major(shape)?;
        Self::new(buffer, byte_offset, dtype, shape, strides.get(..shape.len()).unwrap_or_default())
    }

    /// Judges the value again; it always passes for a value that safe code made.
    ///
    /// # Errors
    /// The first gate that it fails.
    pub fn validate(&self) -> Result<(), TensorFault> {
        judge(&self.0)
    }

    /// The buffer behind the view.
    #[must_use]
    pub fn buffer(&self) -> &BufferDescriptor {
        BufferDescriptor::wrap_ref(&self.0.buffer)
    }

    /// First byte of the view, counted from the start of the buffer.
    #[must_use]
    pub const fn byte_offset(&self) -> u64 {
        self.0.byte_offset
    }

    /// Number of dimensions, 1..=5.
    #[must_use]
    pub const fn ndims(&self) -> usize {
        num::index(self.0.ndims)
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        // Judged when the value was made.
        Dtype::from_code(self.0.dtype).unwrap_or(Dtype::U8)
    }

    /// Elements per dimension; none is 0.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        self.0.shapes.get(..self.ndims()).unwrap_or_default()
    }

    /// Distance between neighbours per dimension, in elements.
    #[must_use]
    pub fn strides(&self) -> &[u32] {
        self.0.strides.get(..self.ndims()).unwrap_or_default()
    }
}

const_assert_eq!(size_of::<Tensor>(), Tensor::BYTES);

impl core::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tensor")
            .field("buffer", self.buffer())
            .field("byte_offset", &self.byte_offset())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .finish()
    }
}
