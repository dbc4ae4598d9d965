//! The tensor of protocol 2: an address that is valid in the whole process tree, and a strided view of it.

use core::fmt;

use bytemuck::TransparentWrapper;
use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::layout::{self, MAX_RANK};
use super::{AddressSpace, Dtype, TensorFault, num};

/// `owner_task_id` of memory that no task owns.
const EXTERNAL: u64 = u64::MAX;

/// The bytes of a [`ChipTensor`], not yet judged. Not public, so that nothing but judging makes a tensor of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub(crate) struct RawChipTensor {
    pub(super) addr: u64,
    pub(super) bytes: u64,
    pub(super) owner_task_id: u64,
    pub(super) start_offset: u64,
    pub(super) version: i32,
    pub(super) ndims: u32,
    pub(super) dtype: u8,
    pub(super) manual_dep: u8,
    pub(super) is_contiguous: u8,
    pub(super) address_space: u8,
    pub(super) shapes: [u32; MAX_RANK],
    pub(super) extent_elem: u64,
    pub(super) strides: [u32; MAX_RANK],
    pub(super) zero: [u8; 36],
}

const_assert_eq!(size_of::<RawChipTensor>(), 128);
const_assert_eq!(align_of::<RawChipTensor>(), 64);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, addr), 0);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, bytes), 8);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, owner_task_id), 16);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, start_offset), 24);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, version), 32);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, ndims), 36);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, dtype), 40);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, manual_dep), 41);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, is_contiguous), 42);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, address_space), 43);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, shapes), 44);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, extent_elem), 64);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, strides), 72);
const_assert_eq!(core::mem::offset_of!(RawChipTensor, zero), 92);

/// Every gate of an element (W-7). Bytes 92..128 and the entries past the rank are not judged: nobody reads them, and a
/// peer whose compiler leaves padding there is no liar.
#[inline]
pub(crate) fn judge(raw: &RawChipTensor) -> Result<(), TensorFault> {
    if raw.ndims.wrapping_sub(1) >= 5 {
        return Err(TensorFault::Rank { ndims: u64::from(raw.ndims) });
    }
    let Some(dtype) = Dtype::from_code(raw.dtype) else {
        return Err(TensorFault::Dtype { code: u32::from(raw.dtype) });
    };
    if raw.manual_dep > 1 {
        return Err(TensorFault::Flag { field: "manual_dep", value: raw.manual_dep });
    }
    if raw.is_contiguous > 1 {
        return Err(TensorFault::Flag { field: "is_contiguous", value: raw.is_contiguous });
    }
    if raw.address_space > 1 {
        return Err(TensorFault::AddressSpace { value: raw.address_space });
    }
    let layout = layout::measure(num::index(raw.ndims), &raw.shapes, &raw.strides)?;
    if raw.is_contiguous == 1 && !layout.dense {
        return Err(TensorFault::NotRowMajor);
    }
    let Some(extent) = layout.extent else { return Err(TensorFault::ExtentOverflow) };
    if extent != raw.extent_elem {
        return Err(TensorFault::Extent { declared: raw.extent_elem, actual: extent });
    }
    judge_address(raw)?;
    if extent == 0 {
        return Ok(());
    }
    let element = dtype.element_bytes();
    layout::fits(raw.start_offset.checked_mul(u64::from(element)), extent, element, raw.bytes)
}

/// The one gate that the address has a part in.
#[inline]
pub(super) fn judge_address(raw: &RawChipTensor) -> Result<(), TensorFault> {
    match raw.addr.checked_add(raw.bytes) {
        Some(_) => Ok(()),
        None => Err(TensorFault::AddressWraps { addr: raw.addr, bytes: raw.bytes }),
    }
}

/// A half-open range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte; equal to `start` if there is none.
    pub end: u64,
}

impl ByteRange {
    /// Bytes in it.
    #[must_use]
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it holds no byte.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// Whether the two share a byte; an empty range shares none.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end && !self.is_empty() && !other.is_empty()
    }

    /// Whether every byte of `other` lies in this one; an empty range lies in any.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }
}

/// A strided view of memory as it travels in protocol 2: 128 bytes, two cache lines.
///
/// A value of this type is valid: rank, dtype, flags, strides, extent and buffer bounds have been judged, by the
/// constructor or by the decoder that it came out of. Its bytes can be read (`IntoBytes`) but not made:
///
/// ```compile_fail
/// use zerocopy::FromBytes;
/// let forged = laneway_core::wire::ChipTensor::read_from_bytes(&[0; 128]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, IntoBytes, Immutable, KnownLayout, TransparentWrapper)]
#[repr(transparent)]
pub struct ChipTensor(RawChipTensor);

const_assert_eq!(size_of::<ChipTensor>(), 128);
const_assert_eq!(align_of::<ChipTensor>(), 64);

impl ChipTensor {
    /// A row-major tensor of `shape` over the first bytes of the buffer of `bytes` bytes at `addr`.
    ///
    /// `addr` 0 in an OUTPUT argument asks the engine to allocate the buffer.
    ///
    /// # Errors
    /// A [`TensorFault`]: rank outside 1..=5, a stride that does not fit 32 bits, a buffer that is too small or wraps.
    pub fn contiguous(
        addr: u64,
        bytes: u64,
        dtype: Dtype,
        shape: &[u32],
        space: AddressSpace,
    ) -> Result<Self, TensorFault> {
        Self::blank(addr, bytes, dtype, space).with_row_major(shape, 0)
    }

    /// A tensor of any layout: `strides` in elements, all positive, from element `start_offset` of the buffer on.
    ///
    /// # Errors
    /// A [`TensorFault`] that names what is not legal.
    pub fn strided(
        addr: u64,
        bytes: u64,
        dtype: Dtype,
        shape: &[u32],
        strides: &[u32],
        start_offset: u64,
        space: AddressSpace,
    ) -> Result<Self, TensorFault> {
        Self::blank(addr, bytes, dtype, space).with_layout(shape, strides, start_offset)
    }

    /// A buffer that has no layout yet; not valid until it is given one.
    const fn blank(addr: u64, bytes: u64, dtype: Dtype, space: AddressSpace) -> Self {
        Self(RawChipTensor {
            addr,
            bytes,
            owner_task_id: EXTERNAL,
            start_offset: 0,
            version: 0,
            ndims: 0,
            dtype: dtype.code(),
            manual_dep: 0,
            is_contiguous: 0,
            address_space: space.code(),
            shapes: [0; MAX_RANK],
            extent_elem: 0,
            strides: [0; MAX_RANK],
            zero: [0; 36],
        })
    }

    /// The same buffer under the row-major layout of `shape`, from element `start_offset` on.
    ///
    /// # Errors
    /// A [`TensorFault`] that names what is not legal; above all, leaving the buffer.
    pub fn with_row_major(&self, shape: &[u32], start_offset: u64) -> Result<Self, TensorFault> {
        layout::rank(shape)?;
        let strides = layout::row_major(shape)?;
        self.with_layout(shape, strides.get(..shape.len()).unwrap_or_default(), start_offset)
    }

    /// The same buffer under another layout: `strides` in elements, all positive, from element `start_offset` on.
    ///
    /// # Errors
    /// A [`TensorFault`] that names what is not legal; above all, leaving the buffer.
    pub fn with_layout(&self, shape: &[u32], strides: &[u32], start_offset: u64) -> Result<Self, TensorFault> {
        let ndims = layout::rank(shape)?;
        if strides.len() != shape.len() {
            let (shape, other) = (num::wide(shape.len()), num::wide(strides.len()));
            return Err(TensorFault::RankMismatch { shape, what: "strides", other });
        }
        let (shapes, strides) = (layout::padded(shape), layout::padded(strides));
        let layout = layout::measure(shape.len(), &shapes, &strides)?;
        let raw = RawChipTensor {
            start_offset,
            ndims,
            is_contiguous: u8::from(layout.row_major),
            shapes,
            extent_elem: layout.extent.ok_or(TensorFault::ExtentOverflow)?,
            strides,
            ..self.0
        };
        judge(&raw)?;
        Ok(Self(raw))
    }

    /// The same view of a buffer of the same size at another address.
    ///
    /// # Errors
    /// [`TensorFault::AddressWraps`] if the buffer would run over the end of the address space.
    pub fn with_address(mut self, addr: u64) -> Result<Self, TensorFault> {
        if addr.checked_add(self.0.bytes).is_none() {
            return Err(TensorFault::AddressWraps { addr, bytes: self.0.bytes });
        }
        self.0.addr = addr;
        Ok(self)
    }

    /// The same tensor with another owner; `None` = memory that no task owns.
    #[must_use]
    pub const fn with_owner_task(mut self, owner: Option<u64>) -> Self {
        self.0.owner_task_id = match owner {
            Some(id) => id,
            None => EXTERNAL,
        };
        self
    }

    /// The same tensor with another version.
    #[must_use]
    pub const fn with_version(mut self, version: i32) -> Self {
        self.0.version = version;
        self
    }

    /// The same tensor with dependencies tracked by the user (`true`) or by the runtime.
    #[must_use]
    pub const fn with_manual_dep(mut self, manual: bool) -> Self {
        self.0.manual_dep = if manual { 1 } else { 0 };
        self
    }

    /// Judges the value again. It always passes for a value that safe code made; memory that came through a foreign
    /// function is judged with this.
    ///
    /// # Errors
    /// The first gate that it fails.
    pub fn validate(&self) -> Result<(), TensorFault> {
        judge(&self.0)
    }

    /// Address of the buffer; 0 = not yet allocated.
    #[must_use]
    pub const fn addr(&self) -> u64 {
        self.0.addr
    }

    /// Size of the buffer in bytes.
    #[must_use]
    pub const fn buffer_bytes(&self) -> u64 {
        self.0.bytes
    }

    /// The task that owns the buffer; `None` = no task.
    #[must_use]
    pub const fn owner_task(&self) -> Option<u64> {
        if self.0.owner_task_id == EXTERNAL { None } else { Some(self.0.owner_task_id) }
    }

    /// First element, counted from the start of the buffer.
    #[must_use]
    pub const fn start_offset(&self) -> u64 {
        self.0.start_offset
    }

    /// Version of the contents, the user's own.
    #[must_use]
    pub const fn version(&self) -> i32 {
        self.0.version
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

    /// Whether the user tracks dependencies on this tensor.
    #[must_use]
    pub const fn manual_dep(&self) -> bool {
        self.0.manual_dep != 0
    }

    /// Whether the strides are row-major for the shape.
    #[must_use]
    pub const fn is_contiguous(&self) -> bool {
        self.0.is_contiguous != 0
    }

    /// Where the buffer lies.
    #[must_use]
    pub const fn address_space(&self) -> AddressSpace {
        if self.0.address_space == 0 { AddressSpace::Host } else { AddressSpace::Device }
    }

    /// Elements per dimension.
    #[must_use]
    pub fn shape(&self) -> &[u32] {
        self.0.shapes.get(..self.ndims()).unwrap_or_default()
    }

    /// Distance between neighbours per dimension, in elements.
    #[must_use]
    pub fn strides(&self) -> &[u32] {
        self.0.strides.get(..self.ndims()).unwrap_or_default()
    }

    /// How far the view reaches from its first element, in elements; 0 for a view without elements.
    #[must_use]
    pub const fn extent(&self) -> u64 {
        self.0.extent_elem
    }

    /// The addresses between the view's first and last byte; empty for a view without elements.
    #[must_use]
    pub fn byte_range(&self) -> ByteRange {
        if self.0.extent_elem == 0 {
            return ByteRange { start: self.0.addr, end: self.0.addr };
        }
        // Judged when the value was made: neither product nor sum leaves the buffer, and the buffer does not wrap.
        let element = u64::from(self.dtype().element_bytes());
        let start = self.0.addr.wrapping_add(self.0.start_offset.wrapping_mul(element));
        ByteRange { start, end: start.wrapping_add(self.0.extent_elem.wrapping_mul(element)) }
    }
}

impl fmt::Debug for ChipTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChipTensor")
            .field("addr", &format_args!("{:#x}", self.addr()))
            .field("buffer_bytes", &self.buffer_bytes())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("strides", &self.strides())
            .field("start_offset", &self.start_offset())
            .field("space", &self.address_space())
            .finish_non_exhaustive()
    }
}
