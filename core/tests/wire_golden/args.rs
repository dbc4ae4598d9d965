//! Tensors, and the lists of them that a task gets.

use laneway_core::wire::args::{self, ArgsSnapshot};
use laneway_core::wire::*;
use zerocopy::{FromBytes, IntoBytes};

use crate::golden::golden;
use crate::values::{at_address, buffer, by_name, contiguous, five, nth, nth_described, scalars};

fn decode_one(bytes: &[u8]) -> ChipTensor {
    let mut snapshot = ArgsSnapshot::new();
    snapshot.words_mut()[0] = 1;
    snapshot.words_mut()[1..17].as_mut_bytes().copy_from_slice(bytes);
    args::decode(snapshot.blob(), args::MAX_BYTES).expect("legal").tensors()[0]
}

#[test]
fn chip_tensors() {
    let vectors = [
        ("chip_tensor_contiguous", contiguous()),
        ("chip_tensor_strided", contiguous().slice(1, 1, 8, 2).expect("a slice")),
        ("chip_tensor_transposed", contiguous().transpose(0, 1).expect("two dimensions")),
        ("chip_tensor_empty", contiguous().view(&[0, 8], &[4, 0]).expect("no elements")),
        ("chip_tensor_five", five()),
    ];
    for (name, value) in vectors {
        let bytes = golden(name);
        assert_eq!(decode_one(&bytes), value, "{name}");
        assert_eq!(value.as_bytes(), bytes, "{name}");
    }
}

#[test]
fn self_describing_tensors() {
    use Access::{Read, ReadWrite, Write};
    use AddressSpace::{Device, Host};
    let remote = {
        let (identity, range) = buffer(Device, Write, 4, 4096);
        BufferDescriptor::remote(identity, range).expect("legal")
    };
    let vectors = [
        ("tensor_fork_shm", at_address(Backend::ForkShm, Host, ReadWrite, 1, 4096, 0x7f00_0000_1000), 16, 16),
        ("tensor_posix_shm", by_name(2, 4096, "psm_0123456789abcdef0123456789ab"), 0, 8),
        ("tensor_vmm_window", at_address(Backend::VmmWindow, Device, ReadWrite, 3, 4096, 0x10_0000), 0, 8),
        ("tensor_remote_sidecar", remote, 0, 8),
        ("tensor_device_malloc", at_address(Backend::DeviceMalloc, Device, ReadWrite, 5, 4096, 0x20_0000), 0, 8),
        ("tensor_fork_cow", at_address(Backend::ForkCow, Host, Read, 6, 4096, 0x30_0000), 0, 8),
    ];
    for (name, buffer, byte_offset, row) in vectors {
        let value = Tensor::new(buffer, byte_offset, Dtype::F32, &[4, 8], &[row, 1]).expect("legal");
        let bytes = golden(name);
        assert_eq!(value.as_bytes(), bytes, "{name}");
        let mut snapshot = ArgsSnapshot::new();
        snapshot.words_mut()[0] = 1;
        snapshot.words_mut()[1..19].as_mut_bytes().copy_from_slice(&bytes);
        let list = args::decode_described(snapshot.blob(), args::MAX_BYTES).expect("legal");
        assert_eq!(list.tensors(), [value], "{name}");
    }
}

fn snapshot(bytes: &[u8]) -> ArgsSnapshot {
    let mut snapshot = ArgsSnapshot::new();
    snapshot.words_mut().as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
    snapshot
}

/// W-4, W-7
#[test]
fn argument_lists() {
    for tensors in [0, 1, 256] {
        for scalar_count in [0, 128] {
            let scalars = scalars(scalar_count);
            let mut out = vec![0xEE; args::MAX_BYTES];

            let bytes = golden(&format!("args_v2_t{tensors}_s{scalar_count}"));
            let list: Vec<_> = (0..tensors).map(nth).collect();
            let private = snapshot(&bytes);
            let view = args::decode(private.blob(), bytes.len()).expect("legal");
            assert_eq!((view.tensors(), view.scalars()), (&list[..], &scalars[..]));
            let len = args::encode(&list, &scalars, &mut out).expect("room");
            assert_eq!(&out[..len], bytes);
            assert_eq!(args::encoded_len(list.len(), scalar_count, Protocol::ChipTensors), Ok(len));

            let bytes = golden(&format!("args_v3_t{tensors}_s{scalar_count}"));
            let list: Vec<_> = (0..tensors).map(nth_described).collect();
            let private = snapshot(&bytes);
            let view = args::decode_described(private.blob(), bytes.len()).expect("legal");
            assert_eq!((view.tensors(), view.scalars()), (&list[..], &scalars[..]));
            let len = args::encode_described(&list, &scalars, &mut out).expect("room");
            assert_eq!(&out[..len], bytes);
            assert_eq!(args::encoded_len(list.len(), scalar_count, Protocol::Tensors), Ok(len));
        }
    }
}

#[test]
fn chip_storage() {
    let bytes = golden("chip_storage");
    let decoded = ChipStorageTaskArgs::read_from_bytes(&bytes).expect("33,856 bytes");
    assert_eq!(decoded.tensors(), Ok(&[contiguous(), five()][..]));
    assert_eq!(decoded.scalars(), Ok(&[42][..]));
    let mut list = vec![0; 1024];
    let len = args::encode(&[contiguous(), five()], &[42], &mut list).expect("room");
    let private = snapshot(&list[..len]);
    let mut storage = ChipStorageTaskArgs::new();
    storage.load(args::decode(private.blob(), len).expect("legal"));
    assert_eq!(storage.as_bytes(), bytes);
}
