//! How many arguments a callable takes.

use super::{ChipError, Reason};
use crate::wire::{ArgDirection, ChipCallable, ChipStorageTaskArgs, ChipTensor};

/// How many tensors and scalars a callable takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arity {
    tensors: usize,
    scalars: usize,
}

impl Arity {
    /// So many of each.
    #[must_use]
    pub const fn new(tensors: usize, scalars: usize) -> Self {
        Self { tensors, scalars }
    }

    /// What the signature of a callable says.
    #[must_use]
    pub fn of(callable: &ChipCallable<'_>) -> Self {
        let scalars = callable.signature().filter(|direction| *direction == ArgDirection::Scalar).count();
        Self { tensors: callable.signature().len() - scalars, scalars }
    }

    /// The arguments of a run, each judged, if they are as many. `callable` is its name, for the error alone.
    ///
    /// # Errors
    /// [`ChipError::ArgumentRefused`] for a list of another size, or an argument that is not legal: the list may have come
    /// through a foreign interface.
    pub fn judge<'a>(
        self,
        callable: &str,
        args: &'a ChipStorageTaskArgs,
    ) -> Result<(&'a [ChipTensor], &'a [u64]), ChipError> {
        let (tensors, scalars) = (args.tensors()?, args.scalars()?);
        if (tensors.len(), scalars.len()) == (self.tensors, self.scalars) {
            return Ok((tensors, scalars));
        }
        let reason = Reason::new(format_args!(
            "{} tensors and {} scalars given, {} and {} taken by {callable}",
            tensors.len(),
            scalars.len(),
            self.tensors,
            self.scalars
        ));
        Err(ChipError::ArgumentRefused { index: tensors.len().min(self.tensors), reason })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;
    use std::vec;

    use super::*;
    use crate::wire::{AddressSpace, ChipCallableSource, Dtype};

    /// A callable that takes two tensors and, between them, a scalar; and the list of one tensor.
    #[test]
    fn a_list_of_another_size_is_refused_with_both_sizes_and_the_name_of_the_callable() {
        let signature = &[ArgDirection::In, ArgDirection::Scalar, ArgDirection::Out];
        let source = ChipCallableSource { func_name: "f", signature, ..Default::default() };
        let mut blob = vec![0; source.encoded_len().unwrap()];
        source.encode(&mut blob).unwrap();
        let arity = Arity::of(&ChipCallable::parse(&blob).unwrap());
        assert_eq!(arity, Arity::new(2, 1));
        let tensor = ChipTensor::contiguous(64, 16, Dtype::F32, &[4], AddressSpace::Host).unwrap();
        let mut args = ChipStorageTaskArgs::new();
        args.load(crate::model::TaskArgs::new().input(tensor).view());
        let refused = arity.judge("add_rows", &args).unwrap_err();
        let text = "argument 1 refused: 1 tensors and 0 scalars given, 2 and 1 taken by add_rows";
        assert_eq!(refused.to_string(), text);
        args.load(crate::model::TaskArgs::new().input(tensor).output(tensor).scalar(7).view());
        assert_eq!(arity.judge("add_rows", &args), Ok((&[tensor, tensor][..], &[7][..])));
    }
}
