//! The argument list that a user builds for one task.

use alloc::vec::Vec;

use zerocopy::{FromBytes, IntoBytes};

use super::ModelError;
use crate::wire::args::{Counts, Line, MAX_SCALARS, MAX_TENSORS};
use crate::wire::{ByteRange, ChipTensor, Protocol, TaskArgsView, TensorTag};

const LINES_PER_TENSOR: usize = 2;
const WORDS_PER_LINE: usize = 8;

/// The arguments of one task and how it uses them. Tensors first, then scalars.
///
/// Nothing here returns an error: the first one sticks and submit reports it, so that a list reads as a list. Cleared
/// and filled again, a builder allocates nothing.
///
/// ```
/// use laneway_core::model::TaskArgs;
/// use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let x = ChipTensor::contiguous(0x1000, 64, Dtype::F32, &[16], AddressSpace::Host)?;
/// let mut args = TaskArgs::new();
/// args.input(x.slice(0, 0, 8, 1)?).output(x.slice(0, 8, 16, 1)?).scalar(3);
/// assert_eq!((args.tensors().len(), args.scalars()), (2, &[3][..]));
///
/// args.input(x); // a tensor after a scalar: the first fault is kept …
/// assert!(args.check().is_err()); // … and reported here, or by submit
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskArgs {
    /// The list as it will stand in a frame: a line that ends with the counts, tensors, scalars. No line at all without
    /// arguments.
    lines: Vec<Line>,
    counts: Counts,
    tags: Vec<TensorTag>,
    ranges: Vec<ByteRange>,
    fault: Option<ModelError>,
}

impl TaskArgs {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: Vec::new(), counts: Counts::NONE, tags: Vec::new(), ranges: Vec::new(), fault: None }
    }

    /// An empty list with room for `tensors` and `scalars`.
    #[must_use]
    pub fn with_capacity(tensors: usize, scalars: usize) -> Self {
        Self {
            lines: Vec::with_capacity(1 + tensors * LINES_PER_TENSOR + scalars.div_ceil(WORDS_PER_LINE)),
            tags: Vec::with_capacity(tensors),
            ranges: Vec::with_capacity(tensors),
            ..Self::new()
        }
    }

    /// Empties the list, forgets the error and keeps the memory.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.counts = Counts::NONE;
        self.tags.clear();
        self.ranges.clear();
        self.fault = None;
    }

    /// A tensor that the task reads.
    pub fn input(&mut self, tensor: impl Into<ChipTensor>) -> &mut Self {
        self.push(tensor.into(), TensorTag::Input)
    }

    /// A tensor that the task writes whole; with address 0 the engine allocates its buffer.
    pub fn output(&mut self, tensor: impl Into<ChipTensor>) -> &mut Self {
        self.push(tensor.into(), TensorTag::Output)
    }

    /// A tensor that the task reads and writes.
    pub fn inout(&mut self, tensor: impl Into<ChipTensor>) -> &mut Self {
        self.push(tensor.into(), TensorTag::InOut)
    }

    /// A tensor that the task writes whole, in memory that exists.
    pub fn output_existing(&mut self, tensor: impl Into<ChipTensor>) -> &mut Self {
        self.push(tensor.into(), TensorTag::OutputExisting)
    }

    /// A tensor that is handed over without any ordering.
    pub fn no_dep(&mut self, tensor: impl Into<ChipTensor>) -> &mut Self {
        self.push(tensor.into(), TensorTag::NoDep)
    }

    /// A tensor with its tag.
    pub fn push(&mut self, tensor: ChipTensor, tag: TensorTag) -> &mut Self {
        let (index, scalars) = (self.counts.tensors(), self.counts.scalars());
        if scalars > 0 {
            return self.fail(ModelError::TensorAfterScalar { index, scalars });
        }
        if index == MAX_TENSORS {
            if let Some(ModelError::TooManyTensors { tensors, .. }) = &mut self.fault {
                *tensors += 1;
            }
            return self.fail(ModelError::TooManyTensors { tensors: index + 1, max: MAX_TENSORS });
        }
        let lines: [Line; LINES_PER_TENSOR] = zerocopy::transmute!(tensor);
        self.count(self.counts.plus_tensor());
        self.lines.extend_from_slice(&lines);
        self.tags.push(tag);
        self.ranges.push(tensor.byte_range());
        self
    }

    /// A scalar: 64 bits. A number of another type travels as its bits: `value.to_bits()` of an `f64`, `value as u64` of an
    /// `i64`.
    pub fn scalar(&mut self, value: u64) -> &mut Self {
        let index = self.counts.scalars();
        if index == MAX_SCALARS {
            if let Some(ModelError::TooManyScalars { scalars, .. }) = &mut self.fault {
                *scalars += 1;
            }
            return self.fail(ModelError::TooManyScalars { scalars: index + 1, max: MAX_SCALARS });
        }
        self.count(self.counts.plus_scalar());
        if index.is_multiple_of(WORDS_PER_LINE) {
            self.lines.push(Line::BLANK);
        }
        if let Some(Line(words)) = self.lines.last_mut() {
            words[index % WORDS_PER_LINE] = value;
        }
        self
    }

    fn count(&mut self, counts: Counts) {
        self.counts = counts;
        match self.lines.first_mut() {
            Some(first) => *first = Line::head(counts),
            None => self.lines.push(Line::head(counts)),
        }
    }

    fn fail(&mut self, fault: ModelError) -> &mut Self {
        self.fault.get_or_insert(fault);
        self
    }

    /// The first thing that went wrong, if anything did.
    ///
    /// # Errors
    /// That error; the list is then not what its user meant, and submit refuses it.
    pub fn check(&self) -> Result<(), ModelError> {
        match &self.fault {
            None => Ok(()),
            Some(fault) => Err(*fault),
        }
    }

    /// Whether it holds neither tensors nor scalars, nor an error.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.counts.word() == 0 && self.fault.is_none()
    }

    /// The list as a task sees it.
    #[must_use]
    pub fn view(&self) -> TaskArgsView<'_> {
        // Every line behind the tensors holds scalars; the last may be filled in part.
        let words = self.counts.tensors() * (LINES_PER_TENSOR * 8) + self.counts.scalars();
        let all = <[u64]>::ref_from_bytes(self.lines.as_bytes()).unwrap_or_default();
        TaskArgsView::judged(self.counts, all.get(WORDS_PER_LINE..WORDS_PER_LINE + words).unwrap_or_default())
    }

    /// The whole list as it travels, in full lines.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Bytes of the list as it travels, from the counts on.
    pub(crate) const fn encoded_len(&self) -> usize {
        self.counts.encoded_len(Protocol::ChipTensors)
    }

    /// The tensors, in order.
    #[must_use]
    pub fn tensors(&self) -> &[ChipTensor] {
        self.view().tensors()
    }

    /// How the task uses each tensor.
    #[must_use]
    pub fn tags(&self) -> &[TensorTag] {
        &self.tags
    }

    /// The addresses that each tensor spans, computed when it was added.
    #[must_use]
    pub fn ranges(&self) -> &[ByteRange] {
        &self.ranges
    }

    /// The scalars, in order.
    #[must_use]
    pub fn scalars(&self) -> &[u64] {
        self.view().scalars()
    }
}
