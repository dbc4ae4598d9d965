//! The arguments of a host function.

use std::ops::Range;

use laneway_core::wire::{ChipTensor, TaskArgsView};

use crate::Error;
use crate::element::Element;
use crate::view::View;

/// What a host function is called with: every tensor mapped in this process, the scalars beside them. Tags are gone: what
/// a function may read and write is what its submitter declared.
///
/// ```no_run
/// # use laneway_linux::{BoxError, SubArgs};
/// fn add(args: &SubArgs<'_>) -> Result<(), BoxError> {
///     let (a, b) = (args.tensor::<f32>(0)?, args.tensor::<f32>(1)?);
///     let (sum, factor) = (args.tensor::<f32>(2)?, args.scalar(0)? as f32);
///     for (i, (a, b)) in a.iter().zip(b.iter()).enumerate() {
///         sum.set(i, (a + b) * factor)?;
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy)]
pub struct SubArgs<'a> {
    args: TaskArgsView<'a>,
    shared: &'a [Range<u64>],
}

impl<'a> SubArgs<'a> {
    /// The arguments of one call in a process that has `shared` mapped for writing.
    pub(crate) fn new(args: TaskArgsView<'a>, shared: &'a [Range<u64>]) -> Self {
        Self { args, shared }
    }

    /// Number of tensors.
    #[must_use]
    pub fn tensor_count(&self) -> usize {
        self.args.tensors().len()
    }

    /// All tensors as they came, for passing on.
    #[must_use]
    pub fn tensors(&self) -> &'a [ChipTensor] {
        self.args.tensors()
    }

    /// All scalars.
    #[must_use]
    pub fn scalars(&self) -> &'a [u64] {
        self.args.scalars()
    }

    /// One scalar: the 64 bits that [`TaskArgs::scalar`](laneway_core::model::TaskArgs::scalar) was given. A number of
    /// another type comes back with `f64::from_bits` or `as i64`.
    ///
    /// # Errors
    /// [`Error::NoSuchArgument`].
    pub fn scalar(&self, index: usize) -> Result<u64, Error> {
        let scalars = self.scalars();
        let missing = Error::NoSuchArgument { what: "scalar", index, count: scalars.len() };
        scalars.get(index).copied().ok_or(missing)
    }

    /// One tensor's elements.
    ///
    /// # Errors
    /// [`Error::NoSuchArgument`]; [`Error::Argument`] if its elements are not `T`; [`Error::NotShared`] if its bytes are not
    /// memory of this tree, which a correct parent refuses at submit.
    #[expect(unsafe_code, reason = "the address range is checked here")]
    pub fn tensor<T: Element>(&self, index: usize) -> Result<View<'a, T>, Error> {
        let tensors = self.tensors();
        let missing = Error::NoSuchArgument { what: "tensor", index, count: tensors.len() };
        let tensor = tensors.get(index).ok_or(missing)?;
        let bytes = tensor.byte_range();
        if !bytes.is_empty() && !self.shared.iter().any(|r| r.start <= bytes.start && bytes.end <= r.end) {
            return Err(Error::NotShared { index, start: bytes.start, end: bytes.end });
        }
        // SAFETY: judged by the decoder, and inside a range that this process has mapped for life.
        let view = unsafe { View::new(tensor) };
        view.map_err(|fault| Error::Argument { index, fault: Box::new(fault) })
    }
}
