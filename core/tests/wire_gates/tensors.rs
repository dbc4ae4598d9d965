//! Tensors of both protocols and the buffers that they name.

use laneway_core::wire::args;
use laneway_core::wire::*;
use zerocopy::IntoBytes;

use crate::snapshot;

pub(crate) fn chip_tensor() -> Vec<u8> {
    let tensor = ChipTensor::contiguous(0x1000, 128, Dtype::F32, &[4, 8], AddressSpace::Host).expect("fits");
    tensor.as_bytes().to_vec()
}

/// The fault of the chip tensor whose bytes from `at` on are `bytes`.
fn chip_fault(at: usize, bytes: &[u8]) -> TensorFault {
    let mut raw = chip_tensor();
    raw[at..at + bytes.len()].copy_from_slice(bytes);
    let snapshot = snapshot(1, &raw);
    match args::decode(snapshot.blob(), args::MAX_BYTES) {
        Err(WireError::Argument { index: 0, fault }) => fault,
        other => panic!("{other:?}"),
    }
}

/// W-7
#[test]
fn each_gate_of_a_chip_tensor_has_its_own_fault() {
    use TensorFault as F;
    assert_eq!(chip_fault(36, &0u32.to_le_bytes()), F::Rank { ndims: 0 });
    assert_eq!(chip_fault(36, &6u32.to_le_bytes()), F::Rank { ndims: 6 });
    assert_eq!(chip_fault(40, &[15]), F::Dtype { code: 15 });
    assert_eq!(chip_fault(41, &[2]), F::Flag { field: "manual_dep", value: 2 });
    assert_eq!(chip_fault(42, &[255]), F::Flag { field: "is_contiguous", value: 255 });
    assert_eq!(chip_fault(43, &[2]), F::AddressSpace { value: 2 });
    assert_eq!(chip_fault(76, &0u32.to_le_bytes()), F::ZeroStride { dim: 1 });
    assert_eq!(chip_fault(76, &2u32.to_le_bytes()), F::NotRowMajor);
    assert_eq!(chip_fault(64, &33u64.to_le_bytes()), F::Extent { declared: 33, actual: 32 });
    assert_eq!(
        chip_fault(24, &1u64.to_le_bytes()),
        F::OutOfBuffer { offset_bytes: 4, extent: 32, element_bytes: 4, buffer_bytes: 128 }
    );
    assert_eq!(
        chip_fault(24, &u64::MAX.to_le_bytes()),
        F::OutOfBuffer { offset_bytes: u64::MAX, extent: 32, element_bytes: 4, buffer_bytes: 128 }
    );
    assert_eq!(
        chip_fault(8, &127u64.to_le_bytes()),
        F::OutOfBuffer { offset_bytes: 0, extent: 32, element_bytes: 4, buffer_bytes: 127 }
    );
    assert_eq!(chip_fault(0, &u64::MAX.to_le_bytes()), F::AddressWraps { addr: u64::MAX, bytes: 128 });
    let mut huge = [0; 20];
    huge.as_mut_slice().fill(0xFF);
    let mut raw = chip_tensor();
    raw[36..40].copy_from_slice(&5u32.to_le_bytes());
    raw[42] = 0;
    raw[44..64].copy_from_slice(&huge);
    raw[72..92].copy_from_slice(&huge);
    let private = snapshot(1, &raw);
    let refused = args::decode(private.blob(), args::MAX_BYTES);
    assert_eq!(refused, Err(WireError::Argument { index: 0, fault: F::ExtentOverflow }));
}

/// What nobody reads is not judged: a peer's compiler may leave padding there.
#[test]
fn padding_of_a_chip_tensor_is_not_judged() {
    let mut raw = chip_tensor();
    raw[92..128].fill(0xEE);
    raw[52..64].fill(0xEE);
    let private = snapshot(1, &raw);
    let view = args::decode(private.blob(), args::MAX_BYTES).expect("legal");
    assert_eq!(view.tensors()[0].shape(), [4, 8]);
}

/// Legal at any offset in protocol 2, refused in protocol 3.
#[test]
fn a_tensor_without_elements_is_legal_in_protocol_2_only() {
    let matrix = ChipTensor::contiguous(0x1000, 128, Dtype::F32, &[4, 8], AddressSpace::Host).expect("fits");
    let far = matrix.view(&[0, 8], &[u32::MAX, 0]).expect("no elements");
    assert_eq!((far.extent(), far.byte_range().is_empty()), (0, true));
    let private = snapshot(1, far.as_bytes());
    assert_eq!(args::decode(private.blob(), args::MAX_BYTES).expect("legal").tensors(), [far]);
    let refused = Tensor::contiguous(buffer(), 0, Dtype::F32, &[4, 0]);
    assert_eq!(refused, Err(TensorFault::Empty { dim: 1 }));
}

fn buffer() -> BufferDescriptor {
    let identity = BufferIdentity { owner: *b"OWNER--1", buffer_id: 1, generation: 9 };
    let range = BufferRange { space: AddressSpace::Host, access: Access::ReadWrite, nbytes: 256, owner_path: 0 };
    BufferDescriptor::at_address(Backend::ForkShm, identity, range, 0x1000).expect("legal")
}

fn posix(name: &str) -> Result<BufferDescriptor, BufferFault> {
    BufferDescriptor::posix(buffer().identity(), buffer().range(), name)
}

fn tensor() -> Vec<u8> {
    Tensor::contiguous(buffer(), 0, Dtype::F32, &[4, 8]).expect("fits").as_bytes().to_vec()
}

/// The fault of the tensor with these changes.
fn fault(changes: &[(usize, &[u8])]) -> TensorFault {
    let mut raw = tensor();
    for (at, bytes) in changes {
        raw[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    let private = snapshot(1, &raw);
    match args::decode_described(private.blob(), args::MAX_BYTES) {
        Err(WireError::Argument { index: 0, fault }) => fault,
        other => panic!("{other:?}"),
    }
}

/// Every gate of a buffer descriptor, and no two share a variant.
#[test]
fn each_gate_of_a_buffer_descriptor_has_its_own_fault() {
    use BufferFault as B;
    let faults = [
        (fault(&[(0, &[0x43, 0x53])]), B::Magic { found: 0x5343 }),
        (fault(&[(2, &[2])]), B::AddressSpace { value: 2 }),
        (fault(&[(3, &[3])]), B::Access { value: 3 }),
        (fault(&[(4, &[6])]), B::Backend { value: 6 }),
        (
            fault(&[(4, &[Backend::DeviceMalloc.code()])]),
            B::BackendSpace { backend: Backend::DeviceMalloc, space: AddressSpace::Host },
        ),
        (fault(&[(24, &[0; 4])]), B::Generation),
        (fault(&[(54, &[1, 0])]), B::Reserved { value: 1 }),
        (fault(&[(52, &[33, 0])]), B::BodyTooLong { len: 33 }),
        (fault(&[(52, &[7, 0])]), B::AddressLength { len: 7, backend: Backend::ForkShm }),
        (fault(&[(56, &[0; 8])]), B::NullAddress),
        (fault(&[(56, &[0xFF; 8])]), B::AddressWraps { addr: u64::MAX, bytes: 256 }),
        (fault(&[(4, &[1]), (52, &[0, 0])]), B::NameEmpty),
        (fault(&[(4, &[1]), (56, b"psm/1234")]), B::NameByte { at: 3, byte: b'/' }),
        (fault(&[(4, &[Backend::ForkCow.code()])]), B::CowAccess { access: Access::ReadWrite }),
        (fault(&[(64, &[7])]), B::BodyPadding { at: 8, byte: 7 }),
    ];
    for (found, expected) in faults {
        assert_eq!(found, TensorFault::Buffer(expected));
    }
    for device in [Backend::VmmWindow, Backend::DeviceMalloc] {
        assert_eq!(device.space(), Some(AddressSpace::Device));
    }
    assert_eq!(posix("a\u{7f}"), Err(B::NameByte { at: 1, byte: 0x7F }));
    assert_eq!(posix(&"x".repeat(33)), Err(B::BodyTooLong { len: 33 }));
    assert!(posix(&"x".repeat(32)).is_ok());
}

#[test]
fn each_gate_of_a_self_describing_tensor_has_its_own_fault() {
    use TensorFault as F;
    assert_eq!(fault(&[(96, &[6, 0, 0, 0])]), F::Rank { ndims: 6 });
    assert_eq!(fault(&[(140, &[15])]), F::Dtype { code: 15 });
    assert_eq!(fault(&[(141, &[0, 1, 0])]), F::Reserved { value: 0x100 });
    assert_eq!(fault(&[(108, &[1])]), F::PastRank { field: "shapes", dim: 2, value: 1, ndims: 2 });
    assert_eq!(fault(&[(136, &[1])]), F::PastRank { field: "strides", dim: 4, value: 1, ndims: 2 });
    assert_eq!(fault(&[(104, &[0])]), F::Empty { dim: 1 });
    assert_eq!(fault(&[(124, &[0])]), F::ZeroStride { dim: 1 });
    assert_eq!(
        fault(&[(88, &[129])]),
        F::OutOfBuffer { offset_bytes: 129, extent: 32, element_bytes: 4, buffer_bytes: 256 }
    );
    assert_eq!(
        fault(&[(88, &[0xFF; 8])]),
        F::OutOfBuffer { offset_bytes: u64::MAX, extent: 32, element_bytes: 4, buffer_bytes: 256 }
    );
}
