//! The argument storage that a device runtime reads.

use core::fmt;

use static_assertions::const_assert_eq;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::args::{Counts, MAX_SCALARS, MAX_TENSORS};
use super::chip_tensor::{self, RawChipTensor};
use super::{ChipTensor, TaskArgsView, WireError, num};
use bytemuck::TransparentWrapper;

/// The arguments of a native run in the fixed form of the device runtimes: 33,856 bytes.
///
/// What lies behind the counts is never read, so filling a storage costs what its arguments cost.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
pub struct ChipStorageTaskArgs {
    pub(super) tensors: [RawChipTensor; MAX_TENSORS],
    pub(super) scalars: [u64; MAX_SCALARS],
    pub(super) tensor_count: i32,
    pub(super) scalar_count: i32,
    pub(super) unused: [u8; 56],
}

const_assert_eq!(size_of::<ChipStorageTaskArgs>(), 33_856);
const_assert_eq!(align_of::<ChipStorageTaskArgs>(), 64);
const_assert_eq!(core::mem::offset_of!(ChipStorageTaskArgs, tensors), 0);
const_assert_eq!(core::mem::offset_of!(ChipStorageTaskArgs, scalars), 32_768);
const_assert_eq!(core::mem::offset_of!(ChipStorageTaskArgs, tensor_count), 33_792);
const_assert_eq!(core::mem::offset_of!(ChipStorageTaskArgs, scalar_count), 33_796);

impl ChipStorageTaskArgs {
    /// A storage without arguments.
    #[must_use]
    pub fn new() -> Self {
        Self::new_zeroed()
    }

    /// Replaces the arguments by those of `args`.
    pub fn load(&mut self, args: TaskArgsView<'_>) {
        let (tensors, scalars) = (ChipTensor::peel_slice(args.tensors()), args.scalars());
        for (to, from) in self.tensors.iter_mut().zip(tensors) {
            *to = *from;
        }
        for (to, from) in self.scalars.iter_mut().zip(scalars) {
            *to = *from;
        }
        // A view holds at most 256 and 128.
        self.tensor_count = i32::try_from(tensors.len()).unwrap_or(0);
        self.scalar_count = i32::try_from(scalars.len()).unwrap_or(0);
    }

    /// The counts, judged.
    ///
    /// # Errors
    /// [`WireError::ArgCounts`] for a count that is negative or over its cap.
    pub fn counts(&self) -> Result<Counts, WireError> {
        match (usize::try_from(self.tensor_count), usize::try_from(self.scalar_count)) {
            (Ok(tensors @ 0..=MAX_TENSORS), Ok(scalars @ 0..=MAX_SCALARS)) => Counts::new(tensors, scalars),
            _ => Err(WireError::ArgCounts {
                tensors: self.tensor_count.into(),
                scalars: self.scalar_count.into(),
                max_tensors: 256,
                max_scalars: 128,
                capacity: num::wide(size_of::<Self>()),
            }),
        }
    }

    /// The tensors, each judged: a storage may have come through a foreign function.
    ///
    /// # Errors
    /// Counts out of range, or the first argument that is not valid.
    pub fn tensors(&self) -> Result<&[ChipTensor], WireError> {
        let raw = self.tensors.get(..self.counts()?.tensors()).unwrap_or_default();
        for (index, tensor) in raw.iter().enumerate() {
            chip_tensor::judge(tensor).map_err(|fault| WireError::Argument { index, fault })?;
        }
        Ok(ChipTensor::wrap_slice(raw))
    }

    /// The scalars.
    ///
    /// # Errors
    /// Counts out of range.
    pub fn scalars(&self) -> Result<&[u64], WireError> {
        Ok(self.scalars.get(..self.counts()?.scalars()).unwrap_or_default())
    }
}

impl Default for ChipStorageTaskArgs {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for ChipStorageTaskArgs {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl fmt::Debug for ChipStorageTaskArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChipStorageTaskArgs")
            .field("tensors", &self.tensors())
            .field("scalars", &self.scalars())
            .finish()
    }
}
