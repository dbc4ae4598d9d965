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
    /// [`ChipError::ArgumentRefused`] for a list of another size, or an argument that is not legal,
    /// [`ChipError::ArgumentsRefused`] for a list that cannot be read: it may have come through a foreign interface.
    pub fn judge<'a>(
        self,
        callable: &str,
        args: &'a ChipStorageTaskArgs,
    ) -> Result<(&'a [ChipTensor], &'a [u64]), ChipError> {
        let tensors = args.tensors().map_err(ChipError::arguments)?;
        let scalars = args.scalars().map_err(ChipError::arguments)?;
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

    use zerocopy::IntoBytes as _;

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

    /// C-14: what came through a foreign interface is blamed as exactly as it can be.
    #[test]
    fn a_list_that_cannot_be_read_is_no_fault_of_its_first_argument() {
        let tensor = ChipTensor::contiguous(64, 16, Dtype::F32, &[4], AddressSpace::Host).unwrap();
        let mut args = ChipStorageTaskArgs::new();
        let mut refused = |at: std::ops::Range<usize>| {
            args.load(crate::model::TaskArgs::new().input(tensor).output(tensor).view());
            args.as_mut_bytes()[at].fill(0xff);
            Arity::new(2, 0).judge("add_rows", &args).unwrap_err().to_string()
        };
        // The second tensor, and the number of scalars.
        let one = refused(128..256);
        assert!(one.starts_with("argument 1 refused: ") && one.matches("argument").count() == 1, "{one}");
        let list = refused(33_796..33_800);
        assert!(list.starts_with("argument list refused: argument list declares 2 tensors and -1 scalars"), "{list}");
    }
}
