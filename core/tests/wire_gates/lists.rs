//! Argument lists: their counts, their size and where they lie.

use laneway_core::wire::args::{self, Counts};
use laneway_core::wire::{AddressSpace, ChipStorageTaskArgs, ChipTensor, Dtype, Protocol, TensorFault, WireError};
use zerocopy::{FromBytes, IntoBytes};

use crate::snapshot;
use crate::tensors::chip_tensor;

/// W-7, T-23
#[test]
fn counts_over_their_caps_are_refused_with_counts_and_capacity() {
    let word = |tensors: i32, scalars: i32| u64::from(tensors as u32) | u64::from(scalars as u32) << 32;
    for (tensors, scalars) in [(-1, 0), (0, -1), (257, 0), (0, 129), (i32::MAX, i32::MAX), (i32::MIN, 1)] {
        let (max_tensors, max_scalars, capacity) = (256, 128, 1_000);
        let refused = WireError::ArgCounts {
            tensors: tensors.into(),
            scalars: scalars.into(),
            max_tensors,
            max_scalars,
            capacity,
        };
        assert_eq!(Counts::parse(word(tensors, scalars), 1_000), Err(refused));
        let private = snapshot(word(tensors, scalars), &[]);
        assert_eq!(args::decode(private.blob(), 1_000), Err(refused));
        assert_eq!(args::decode_described(private.blob(), 1_000).err(), Some(refused));
    }
    assert!(args::encoded_len(256, 128, Protocol::Tensors).is_ok());
    assert!(args::encoded_len(257, 0, Protocol::Tensors).is_err());
    assert!(args::encoded_len(0, 129, Protocol::Tensors).is_err());
}

/// W-7: one byte short is refused; the bytes behind the capacity do not count, even if they are there.
#[test]
fn a_list_that_does_not_fit_is_refused_with_counts_and_capacity() {
    let private = snapshot(1 | 1 << 32, &chip_tensor());
    assert!(args::decode(private.blob(), 144).is_ok());
    let refused = WireError::ArgSize { tensors: 1, scalars: 1, need: 144, capacity: 143 };
    assert_eq!(args::decode(private.blob(), 143), Err(refused));
    assert_eq!(args::decode(&private.blob()[..143], 144), Err(refused));
    let what = "argument list";
    assert_eq!(args::decode(private.blob(), 7), Err(WireError::Short { what, have: 7, need: 8 }));
    assert_eq!(
        args::encode(&[], &[1], &mut [0; 15]),
        Err(WireError::ArgSize { tensors: 0, scalars: 1, need: 16, capacity: 15 })
    );
}

/// Private memory that is not aligned as a frame's is refused, not read badly.
#[test]
fn a_misaligned_list_is_refused() {
    let private = snapshot(0, &[&1u64.to_le_bytes()[..], &chip_tensor()].concat());
    let refused = args::decode(&private.blob()[8..], 136);
    assert!(matches!(refused, Err(WireError::Misaligned { align: 64, .. })), "{refused:?}");
}

#[test]
fn an_address_can_be_put_into_an_encoded_list() {
    let unplaced = ChipTensor::contiguous(0, 128, Dtype::F32, &[4, 8], AddressSpace::Host).expect("fits");
    let mut blob = [0; 264];
    args::encode(&[unplaced, unplaced], &[], &mut blob).expect("room");
    args::place(&mut blob, 1, 0x4000).expect("the second tensor");
    let private = snapshot(2, &blob[8..]);
    let view = args::decode(private.blob(), 264).expect("legal");
    assert_eq!(view.tensors(), [unplaced, unplaced.with_address(0x4000).expect("low")]);
    assert!(args::place(&mut blob, 2, 0x4000).is_err());
    assert!(args::place(&mut blob, usize::MAX, 0x4000).is_err());
}

/// A storage may come through a foreign function: its counts and tensors are judged when they are read.
#[test]
fn a_storage_with_false_counts_is_refused() {
    let mut bytes = ChipStorageTaskArgs::new().as_bytes().to_vec();
    bytes[33_792..33_796].copy_from_slice(&257i32.to_le_bytes());
    let storage = ChipStorageTaskArgs::read_from_bytes(&bytes).expect("33,856 bytes");
    assert!(matches!(storage.tensors(), Err(WireError::ArgCounts { tensors: 257, .. })));
    bytes[33_792..33_796].copy_from_slice(&1i32.to_le_bytes());
    let storage = ChipStorageTaskArgs::read_from_bytes(&bytes).expect("33,856 bytes");
    let fault = TensorFault::Rank { ndims: 0 };
    assert_eq!(storage.tensors(), Err(WireError::Argument { index: 0, fault }));
    bytes[33_796..33_800].copy_from_slice(&(-1i32).to_le_bytes());
    let storage = ChipStorageTaskArgs::read_from_bytes(&bytes).expect("33,856 bytes");
    assert!(storage.scalars().is_err());
}
