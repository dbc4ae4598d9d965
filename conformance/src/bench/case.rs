//! What is measured: a name, a place, and what one slice does.

use super::Failure;
use super::slice::Slice;

/// Where the processes of a case run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The main process on one CPU, the other side on another, as for the floors.
    Pinned,
    /// Wherever the kernel puts them.
    Free,
}

/// One slice of a case.
pub(super) type Measure<'a> = Box<dyn FnMut(&mut Slice) -> Result<(), Failure> + 'a>;

/// One thing that is measured.
pub(super) struct Case<'a> {
    /// What filters and targets name it by.
    pub(super) id: String,
    /// What a table says.
    pub(super) title: String,
    pub(super) place: Place,
    pub(super) measure: Measure<'a>,
}

impl<'a> Case<'a> {
    pub(super) fn pinned(id: &str, title: &str, measure: impl FnMut(&mut Slice) -> Result<(), Failure> + 'a) -> Self {
        Self { id: id.to_owned(), title: title.to_owned(), place: Place::Pinned, measure: Box::new(measure) }
    }

    pub(super) fn free(id: &str, title: &str, measure: impl FnMut(&mut Slice) -> Result<(), Failure> + 'a) -> Self {
        Self { place: Place::Free, ..Self::pinned(id, title, measure) }
    }
}
