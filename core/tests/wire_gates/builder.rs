//! The builder of argument lists.

use laneway_core::model::{ModelError, TaskArgs};
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype, TensorTag};

fn small(i: u64) -> ChipTensor {
    ChipTensor::contiguous(0x1000 + 64 * i, 64, Dtype::F32, &[16], AddressSpace::Host).expect("fits")
}

/// T-23
#[test]
fn the_builder_keeps_its_first_error_and_counts_on() {
    let mut args = TaskArgs::new();
    for i in 0..256 {
        args.input(small(i));
    }
    assert_eq!(args.check(), Ok(()));
    args.input(small(256)).input(small(257));
    assert_eq!(args.check(), Err(ModelError::TooManyTensors { tensors: 258, max: 256 }));
    args.clear();
    for i in 0..128 {
        args.scalar(i);
    }
    assert_eq!(args.check(), Ok(()));
    args.scalar(128);
    assert_eq!(args.check(), Err(ModelError::TooManyScalars { scalars: 129, max: 128 }));
    args.input(small(0));
    assert_eq!(args.check(), Err(ModelError::TooManyScalars { scalars: 129, max: 128 }));
    args.clear();
    args.input(small(0)).scalar(5).output(small(1));
    assert_eq!(args.check(), Err(ModelError::TensorAfterScalar { index: 1, scalars: 1 }));
    assert_eq!((args.tensors(), args.scalars()), (&[small(0)][..], &[5][..]));
}

#[test]
fn the_builder_holds_what_was_put_in_and_reuses_its_memory() {
    let mut args = TaskArgs::with_capacity(5, 9);
    let mut places = vec![];
    for round in 0..3 {
        args.clear();
        args.input(small(1)).output(small(2)).inout(small(3)).output_existing(small(4)).no_dep(small(5));
        (0..9).for_each(|i| {
            args.scalar(round * 100 + i);
        });
        assert_eq!(args.check(), Ok(()));
        assert_eq!(args.tensors(), [1, 2, 3, 4, 5].map(small));
        assert!(args.scalars().iter().copied().eq((0..9).map(|i| round * 100 + i)));
        assert_eq!(args.tags(), TensorTag::ALL);
        assert!(args.ranges().iter().copied().eq(args.tensors().iter().map(|tensor| tensor.byte_range())));
        let view = args.view();
        assert_eq!((view.tensors(), view.scalars()), (args.tensors(), args.scalars()));
        places.push((args.tensors().as_ptr(), args.tags().as_ptr(), args.ranges().as_ptr()));
    }
    assert!(places.iter().all(|place| *place == places[0]));
    let empty = TaskArgs::new();
    assert!(empty.tensors().is_empty() && empty.scalars().is_empty());
}
