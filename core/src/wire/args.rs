//! The argument list as it travels: two counts, tensors, scalars. No tags and no schema.
//!
//! The list starts 8 bytes before a multiple of 64, in a frame as in private memory, so that the tensors are aligned.

use core::fmt;
use core::marker::PhantomData;

use bytemuck::TransparentWrapper;
use static_assertions::{const_assert, const_assert_eq};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::chip_tensor::{self, RawChipTensor};
use super::tensor::{self, RawTensor};
use super::{ChipTensor, Protocol, Tensor, TensorFault, WireError, frame, num};

/// Most tensors in one list.
pub const MAX_TENSORS: usize = 256;

/// Most scalars in one list.
pub const MAX_SCALARS: usize = 128;

/// Bytes of the two counts.
pub const HEADER_BYTES: usize = 8;

/// Size of the largest legal list of either protocol.
pub const MAX_BYTES: usize = HEADER_BYTES + MAX_TENSORS * Tensor::BYTES + MAX_SCALARS * 8;

// W-4: a frame holds 256 tensors of either kind and 128 scalars.
const_assert_eq!(size_of::<[ChipTensor; MAX_TENSORS]>(), 33_800 - HEADER_BYTES - MAX_SCALARS * 8);
const_assert_eq!(MAX_BYTES, 37_896);
const_assert!(MAX_BYTES <= frame::ARGS_CAPACITY);

/// One cache line of a list at rest. The counts are the last word of the first line, so that the tensors start on the
/// second.
#[cfg(feature = "engine")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

#[cfg(feature = "engine")]
impl Line {
    pub(crate) const BLANK: Self = Self([0; 8]);

    /// The first line of a list.
    pub(crate) const fn head(counts: Counts) -> Self {
        Self([0, 0, 0, 0, 0, 0, 0, counts.word()])
    }
}

mod sealed {
    use super::WireError;

    /// Only this floor can say that bytes have been judged.
    pub struct Judged(pub(super) ());

    /// What a list is made of.
    pub trait Element: Sized {
        /// Bytes of one.
        const BYTES: usize;
        /// The elements in `bytes`, every one judged; `first` is the index in its list of the first.
        fn judge(bytes: &[u8], first: usize) -> Result<&[Self], WireError>;
        /// Judges one of which all but the first word have been judged as they are, with another first word.
        fn judge_moved(bytes: &[u8], index: usize) -> Result<(), WireError> {
            Self::judge(bytes, index).map(drop)
        }
        /// The elements in bytes that have been judged before.
        fn wrap(bytes: &[u8], judged: Judged) -> &[Self];
    }
}

/// What an argument list is made of: [`ChipTensor`] in protocol 2, [`Tensor`] in protocol 3.
pub trait Element: sealed::Element {}

impl Element for ChipTensor {}
impl Element for Tensor {}

impl sealed::Element for ChipTensor {
    const BYTES: usize = 128;

    fn judge(bytes: &[u8], first: usize) -> Result<&[Self], WireError> {
        judge_each(bytes, first, chip_tensor::judge).map(Self::wrap_slice)
    }

    #[inline]
    fn judge_moved(bytes: &[u8], index: usize) -> Result<(), WireError> {
        let raw = RawChipTensor::ref_from_bytes(bytes).map_err(|_| misaligned(align_of::<RawChipTensor>()))?;
        chip_tensor::judge_address(raw).map_err(|fault| WireError::Argument { index, fault })
    }

    #[inline]
    fn wrap(bytes: &[u8], _: sealed::Judged) -> &[Self] {
        <[RawChipTensor]>::ref_from_bytes(bytes).map(Self::wrap_slice).unwrap_or_default()
    }
}

impl sealed::Element for Tensor {
    const BYTES: usize = 144;

    fn judge(bytes: &[u8], first: usize) -> Result<&[Self], WireError> {
        judge_each(bytes, first, tensor::judge).map(Self::wrap_slice)
    }

    #[inline]
    fn wrap(bytes: &[u8], _: sealed::Judged) -> &[Self] {
        <[RawTensor]>::ref_from_bytes(bytes).map(Self::wrap_slice).unwrap_or_default()
    }
}

fn judge_each<R: FromBytes + Immutable + KnownLayout>(
    bytes: &[u8],
    first: usize,
    judge: impl Fn(&R) -> Result<(), TensorFault>,
) -> Result<&[R], WireError> {
    let raw = <[R]>::ref_from_bytes(bytes).map_err(|_| misaligned(align_of::<R>()))?;
    for (index, tensor) in raw.iter().enumerate() {
        judge(tensor).map_err(|fault| WireError::Argument { index: first.wrapping_add(index), fault })?;
    }
    Ok(raw)
}

#[cold]
fn misaligned(align: usize) -> WireError {
    WireError::Misaligned { what: "the tensor array of an argument list", align: num::wide(align) }
}

/// The counts at the head of a list, within their caps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Counts {
    tensors: u32,
    scalars: u32,
}

impl Counts {
    /// Of an empty list.
    pub const NONE: Self = Self { tensors: 0, scalars: 0 };

    /// Judges the first word of a list: T in its lower half, S in its upper half (W-7).
    ///
    /// # Errors
    /// [`WireError::ArgCounts`] for a negative count or one over its cap.
    #[inline]
    pub fn parse(word: u64, capacity: usize) -> Result<Self, WireError> {
        let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
        let (tensors, scalars) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if tensors > 256 || scalars > 128 {
            let (tensors, scalars) = (tensors.cast_signed().into(), scalars.cast_signed().into());
            return Err(counts_error(tensors, scalars, capacity));
        }
        Ok(Self { tensors, scalars })
    }

    /// Counts of a list that is about to be written.
    ///
    /// # Errors
    /// [`WireError::ArgCounts`] over a cap.
    pub fn new(tensors: usize, scalars: usize) -> Result<Self, WireError> {
        match (u32::try_from(tensors), u32::try_from(scalars)) {
            (Ok(t @ 0..=256), Ok(s @ 0..=128)) => Ok(Self { tensors: t, scalars: s }),
            _ => {
                let (tensors, scalars) = (i64::try_from(tensors), i64::try_from(scalars));
                Err(counts_error(tensors.unwrap_or(i64::MAX), scalars.unwrap_or(i64::MAX), frame::ARGS_CAPACITY))
            }
        }
    }

    /// Tensors.
    #[must_use]
    pub const fn tensors(self) -> usize {
        num::index(self.tensors)
    }

    /// Scalars.
    #[must_use]
    pub const fn scalars(self) -> usize {
        num::index(self.scalars)
    }

    /// The first word of the list.
    #[must_use]
    pub const fn word(self) -> u64 {
        let [a, b, c, d] = self.tensors.to_le_bytes();
        let [e, f, g, h] = self.scalars.to_le_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Bytes of the whole list in `protocol`, counts included.
    #[inline]
    #[must_use]
    pub const fn encoded_len(self, protocol: Protocol) -> usize {
        self.len_with(protocol.tensor_bytes())
    }

    /// One more tensor.
    #[cfg(feature = "engine")]
    pub(crate) const fn plus_tensor(self) -> Self {
        Self { tensors: self.tensors.saturating_add(1), ..self }
    }

    /// One more scalar.
    #[cfg(feature = "engine")]
    pub(crate) const fn plus_scalar(self) -> Self {
        Self { scalars: self.scalars.saturating_add(1), ..self }
    }

    const fn len_with(self, width: usize) -> usize {
        // At most 37,896: the counts are within their caps.
        let tensors = self.tensors().wrapping_mul(width);
        HEADER_BYTES.wrapping_add(tensors).wrapping_add(self.scalars().wrapping_mul(8))
    }
}

#[cold]
fn counts_error(tensors: i64, scalars: i64, capacity: usize) -> WireError {
    WireError::ArgCounts { tensors, scalars, max_tensors: 256, max_scalars: 128, capacity: num::wide(capacity) }
}

/// Bytes of a list of `tensors` and `scalars` in `protocol`.
///
/// # Errors
/// [`WireError::ArgCounts`] over 256 tensors or 128 scalars.
pub fn encoded_len(tensors: usize, scalars: usize, protocol: Protocol) -> Result<usize, WireError> {
    Ok(Counts::new(tensors, scalars)?.encoded_len(protocol))
}

/// Writes a list of protocol 2 and returns its length in bytes. `out` needs no alignment.
///
/// # Errors
/// [`WireError::ArgCounts`] over a cap, [`WireError::ArgSize`] if `out` is too small.
pub fn encode(tensors: &[ChipTensor], scalars: &[u64], out: &mut [u8]) -> Result<usize, WireError> {
    encode_elements(tensors.as_bytes(), tensors.len(), size_of::<ChipTensor>(), scalars, out)
}

/// Writes a list of protocol 3 and returns its length in bytes. `out` needs no alignment.
///
/// # Errors
/// [`WireError::ArgCounts`] over a cap, [`WireError::ArgSize`] if `out` is too small.
pub fn encode_described(tensors: &[Tensor], scalars: &[u64], out: &mut [u8]) -> Result<usize, WireError> {
    encode_elements(tensors.as_bytes(), tensors.len(), size_of::<Tensor>(), scalars, out)
}

fn encode_elements(
    tensors: &[u8],
    count: usize,
    width: usize,
    scalars: &[u64],
    out: &mut [u8],
) -> Result<usize, WireError> {
    let counts = Counts::new(count, scalars.len())?;
    let need = counts.len_with(width);
    let capacity = out.len();
    let mut cursor = out;
    let mut put = |bytes: &[u8]| match core::mem::take(&mut cursor).split_at_mut_checked(bytes.len()) {
        Some((here, rest)) => {
            here.copy_from_slice(bytes);
            cursor = rest;
            true
        }
        None => false,
    };
    if capacity >= need && put(&counts.word().to_le_bytes()) && put(tensors) && put(scalars.as_bytes()) {
        return Ok(need);
    }
    Err(size_error(counts, need, capacity))
}

#[cold]
fn size_error(counts: Counts, need: usize, capacity: usize) -> WireError {
    WireError::ArgSize {
        tensors: counts.tensors,
        scalars: counts.scalars,
        need: num::wide(need),
        capacity: num::wide(capacity),
    }
}

/// Puts `addr` into tensor `index` of an encoded list of protocol 2: the address of a buffer that the engine allocated.
/// The caller has judged the address with [`ChipTensor::with_address`].
///
/// # Errors
/// [`WireError::Short`] if the list has no such tensor.
pub fn place(blob: &mut [u8], index: usize, addr: u64) -> Result<(), WireError> {
    let have = num::wide(blob.len());
    let at = index.saturating_mul(size_of::<ChipTensor>()).saturating_add(HEADER_BYTES);
    match blob.get_mut(at..).and_then(|tail| tail.first_chunk_mut()) {
        Some(field) => {
            *field = addr.to_le_bytes();
            Ok(())
        }
        None => Err(WireError::Short { what: "argument list", have, need: num::wide(at.saturating_add(8)) }),
    }
}

/// Decodes a list of protocol 2 that was copied to private memory: `blob` starts 8 bytes before a multiple of 64, and
/// at most `capacity` bytes of it belong to the list. Every element is judged (W-7).
///
/// # Errors
/// Counts and capacity if they do not go together, or the first argument that is not valid.
pub fn decode(blob: &[u8], capacity: usize) -> Result<TaskArgsView<'_>, WireError> {
    ArgsView::decode(blob, capacity)
}

/// Decodes a list of protocol 3, as [`decode`] does.
///
/// # Errors
/// Counts and capacity if they do not go together, or the first argument that is not valid.
pub fn decode_described(blob: &[u8], capacity: usize) -> Result<ArgsView<'_, Tensor>, WireError> {
    ArgsView::decode(blob, capacity)
}

/// A decoded argument list of either protocol: counts and where the elements are, 24 bytes. It owns nothing and lives
/// as long as the private memory that it looks at, never a frame that the other side can write.
#[repr(C)]
pub struct ArgsView<'a, E> {
    tensors: u32,
    scalars: u32,
    /// Tensors, then scalars; long enough for both, aligned for the tensors, judged.
    body: &'a [u64],
    elements: PhantomData<&'a [E]>,
}

/// An argument list of protocol 2.
pub type TaskArgsView<'a> = ArgsView<'a, ChipTensor>;

const_assert_eq!(size_of::<TaskArgsView<'static>>(), 24);

impl<E> Clone for ArgsView<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for ArgsView<'_, E> {}

impl<E> Default for ArgsView<'_, E> {
    fn default() -> Self {
        Self { tensors: 0, scalars: 0, body: &[], elements: PhantomData }
    }
}

impl<'a, E: Element> ArgsView<'a, E> {
    /// Decodes a list made of `E`; see [`decode`].
    ///
    /// # Errors
    /// Counts and capacity if they do not go together, or the first argument that is not valid.
    pub fn decode(blob: &'a [u8], capacity: usize) -> Result<Self, WireError> {
        let capacity = capacity.min(blob.len());
        let Some((word, rest)) = blob.split_first_chunk().filter(|_| capacity >= HEADER_BYTES) else {
            let (have, need) = (num::wide(capacity), num::wide(HEADER_BYTES));
            return Err(WireError::Short { what: "argument list", have, need });
        };
        let counts = Counts::parse(u64::from_le_bytes(*word), capacity)?;
        let need = counts.len_with(E::BYTES);
        let Some(body) = rest.get(..need.wrapping_sub(HEADER_BYTES)).filter(|_| need <= capacity) else {
            return Err(size_error(counts, need, capacity));
        };
        Self::over(counts, body)
    }

    /// A view of `body`, which holds exactly the elements that `counts` declares; judges each tensor.
    fn over(counts: Counts, body: &'a [u8]) -> Result<Self, WireError> {
        if counts.tensors | counts.scalars == 0 {
            return Ok(Self::default());
        }
        let (head, _) = body
            .split_at_checked(counts.tensors().wrapping_mul(E::BYTES))
            .ok_or_else(|| misaligned(align_of::<E>()))?;
        E::judge(head, 0)?;
        let body = <[u64]>::ref_from_bytes(body).map_err(|_| misaligned(align_of::<E>()))?;
        Ok(Self { tensors: counts.tensors, scalars: counts.scalars, body, elements: PhantomData })
    }

    /// The tensors, in order.
    #[must_use]
    pub fn tensors(&self) -> &'a [E] {
        // Length and alignment were compared when the view was made.
        let words = num::index(self.tensors).wrapping_mul(E::BYTES / 8);
        let head = self.body.get(..words).unwrap_or_default();
        E::wrap(head.as_bytes(), sealed::Judged(()))
    }

    /// The scalars, in order.
    #[must_use]
    pub fn scalars(&self) -> &'a [u64] {
        // Length was compared when the view was made.
        let words = num::index(self.tensors).wrapping_mul(E::BYTES / 8);
        self.body.get(words..).unwrap_or_default()
    }

    /// Counts of both.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        Counts { tensors: self.tensors, scalars: self.scalars }
    }
}

impl<'a, E: Element> ArgsView<'a, E> {
    /// A view of elements that were judged before, or are valid by type; `body` is as long as `counts` call for.
    pub(crate) const fn judged(counts: Counts, body: &'a [u64]) -> Self {
        Self { tensors: counts.tensors, scalars: counts.scalars, body, elements: PhantomData }
    }
}

impl<E: Element + fmt::Debug> fmt::Debug for ArgsView<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgsView").field("tensors", &self.tensors()).field("scalars", &self.scalars()).finish()
    }
}

impl<E: Element + PartialEq> PartialEq for ArgsView<'_, E> {
    fn eq(&self, other: &Self) -> bool {
        self.tensors() == other.tensors() && self.scalars() == other.scalars()
    }
}

impl<E: Element + Eq> Eq for ArgsView<'_, E> {}

/// Words of the largest legal list.
const MAX_WORDS: usize = MAX_BYTES / 8;

/// Private memory for one list, aligned as [`decode`] wants it. A child copies a frame's list here once, word by word,
/// and judges the copy (W-8).
#[derive(Clone, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub struct ArgsSnapshot {
    before: [u64; 7],
    words: [u64; MAX_WORDS],
}

const_assert_eq!(core::mem::offset_of!(ArgsSnapshot, words) % 64, 56);
const_assert_eq!(MAX_BYTES % 8, 0);

impl ArgsSnapshot {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { before: [0; 7], words: [0; MAX_WORDS] }
    }

    /// The words to copy into, counts first.
    pub const fn words_mut(&mut self) -> &mut [u64; MAX_WORDS] {
        &mut self.words
    }

    /// The words, counts first.
    pub(crate) const fn words(&self) -> &[u64; MAX_WORDS] {
        &self.words
    }

    /// The bytes to decode.
    #[must_use]
    pub fn blob(&self) -> &[u8] {
        self.words.as_bytes()
    }
}

impl Default for ArgsSnapshot {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ArgsSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgsSnapshot").field("counts", &self.words.first()).finish_non_exhaustive()
    }
}
