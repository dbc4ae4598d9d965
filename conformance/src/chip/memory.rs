//! Device memory (C-16, T-46).

use laneway_core::chip::{Call, ChipError, DeviceAddress};
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};
use laneway_sim::Kernel;

use super::{Bench, Case, HostBuffer, PLAIN, ZERO, on_every_profile, register, storage};

pub(super) fn cases() -> impl Iterator<Item = Case> {
    on_every_profile("bytes_come_back_from_the_device", &["C-16"], &[], round_trip)
        .chain(on_every_profile("free_takes_the_base_of_a_live_allocation", &["C-16", "T-46"], &[], free))
        .chain(on_every_profile("ranges_stay_inside_an_allocation", &["C-16", "C-13"], &[], ranges))
        .chain(on_every_profile("a_host_pointer_is_no_device_memory", &["C-13"], &[Kernel::Copy], host_pointer))
        .chain(on_every_profile("device_tensors_are_used_where_they_are", &["C-16"], &[Kernel::Add], device_tensors))
}

fn upload(device: &mut Bench<'_>, bytes: &[u8]) -> DeviceAddress {
    let buffer = HostBuffer::of(bytes);
    let address = device.malloc(bytes.len() as u64).expect("malloc");
    device.copy_to(address, buffer.address(), bytes.len() as u64).expect("copy");
    address
}

fn download(device: &mut Bench<'_>, from: DeviceAddress, bytes: usize) -> Vec<u8> {
    let buffer = HostBuffer::of(&vec![0; bytes]);
    device.copy_from(buffer.address(), from, bytes as u64).expect("copy");
    buffer.bytes()
}

fn round_trip(device: &mut Bench<'_>) {
    let before = device.committed_memory();
    let data: Vec<u8> = (0..1000).map(|index| (index * 7) as u8).collect();
    let address = upload(device, &data);
    assert!(device.committed_memory() >= before + 1000);
    assert_eq!(download(device, address, 1000), data);
    assert_eq!(download(device, DeviceAddress(address.0 + 100), 5), data[100..105]);
    device.free(address).expect("free");
    assert_eq!(device.committed_memory(), before);
    assert!(device.malloc(0).is_err());
}

fn free(device: &mut Bench<'_>) {
    let base = device.malloc(64).expect("malloc");
    let inside = DeviceAddress(base.0 + 16);
    assert_eq!(device.free(inside), Err(ChipError::NotABase { address: inside, base }));
    device.free(base).expect("free");
    let dead = |call| Err(ChipError::NotDeviceMemory { call, address: base });
    assert_eq!(device.free(base), dead(Call::Free));
    let buffer = HostBuffer::of(&[0; 8]);
    assert_eq!(device.copy_to(base, buffer.address(), 8), dead(Call::CopyTo));
    assert_eq!(device.copy_from(buffer.address(), base, 8), dead(Call::CopyFrom));
}

fn ranges(device: &mut Bench<'_>) {
    let base = device.malloc(100).expect("malloc");
    let buffer = HostBuffer::of(&[0; 256]);
    for (offset, bytes) in [(0, 101), (99, 2), (0, u64::MAX)] {
        let address = DeviceAddress(base.0 + offset);
        let error = device.copy_from(buffer.address(), address, bytes).expect_err("it leaves the allocation");
        let refused = matches!(error, ChipError::OutOfBounds { .. } | ChipError::NotHostMemory { .. });
        assert!(refused, "{error}");
    }
    device.copy_from(buffer.address(), DeviceAddress(base.0 + 99), 1).expect("the last byte");
}

fn host_pointer(device: &mut Bench<'_>) {
    let copy = register(device, 0, Kernel::Copy);
    let buffer = HostBuffer::of(&[0; 64]);
    let wrong = DeviceAddress(buffer.address().0);
    let unknown = |call| ChipError::NotDeviceMemory { call, address: wrong };
    assert_eq!(device.copy_to(wrong, buffer.address(), 8), Err(unknown(Call::CopyTo)));
    assert_eq!(device.free(wrong), Err(unknown(Call::Free)));
    let tensor = ChipTensor::contiguous(wrong.0, 64, Dtype::F32, &[16], AddressSpace::Device).expect("legal");
    let args = storage(&[tensor, buffer.dense_f32(&[16])], &[]);
    assert_eq!(device.prepare(copy, &args, &PLAIN, ZERO), Err(unknown(Call::Prepare)));
}

fn device_tensors(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let bytes = |value: f32| value.to_ne_bytes().repeat(8);
    let (a, out) = (upload(device, &bytes(1.5)), upload(device, &bytes(0.0)));
    let b = HostBuffer::of(&bytes(2.0));
    let on_device = |address: DeviceAddress| {
        ChipTensor::contiguous(address.0, 32, Dtype::F32, &[8], AddressSpace::Device).expect("legal")
    };
    let args = storage(&[on_device(a), b.dense_f32(&[8]), on_device(out)], &[]);
    device.run(add, &args, &PLAIN, ZERO).expect("run");
    assert_eq!(download(device, out, 32), bytes(3.5));
    assert_eq!(download(device, a, 32), bytes(1.5));
}
