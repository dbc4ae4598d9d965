//! Device memory: allocations, copies, and pointers that belong elsewhere (C-16, T-46).

use laneway_core::chip::{Call, ChipError, DeviceAddress, DeviceRuntime, HostAddress};
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};
use laneway_sim::{Config, Kernel, Profile};

use crate::support::{HostBuffer, PLAIN, ZERO, device, device_of, download, register, storage, upload};

const PROFILE: Profile = Profile::A2a3HostBuildGraph;

#[test]
fn bytes_come_back_as_they_went() {
    let mut device = device(PROFILE);
    let data: Vec<u8> = (0..1000).map(|index| index as u8).collect();
    let address = upload(&mut device, &data);
    assert_eq!(download(&mut device, address, 1000), data);
    assert_eq!(download(&mut device, DeviceAddress(address.0 + 17), 3), data[17..20]);
    device.free(address).unwrap();
    assert_eq!(device.committed_memory(), 0);
}

/// T-46, C-16: of another device, dead, or not the base.
#[test]
fn a_pointer_that_is_not_this_devices_is_refused() {
    let (mut one, mut two) =
        (device(PROFILE), device_of(Config { base: 0x00e0_0000_0000_0000, ..Config::new(PROFILE) }));
    let (mine, other) = (one.malloc(64).unwrap(), two.malloc(64).unwrap());
    let host = HostBuffer::of(&[0; 64]);
    let unknown = |call, address| Err(ChipError::NotDeviceMemory { call, address });
    assert_eq!(one.free(other), unknown(Call::Free, other));
    assert_eq!(one.copy_to(other, host.address(), 64), unknown(Call::CopyTo, other));
    assert_eq!(one.copy_from(host.address(), other, 64), unknown(Call::CopyFrom, other));
    let inside = DeviceAddress(mine.0 + 16);
    assert_eq!(one.free(inside), Err(ChipError::NotABase { address: inside, base: mine }));
    one.free(mine).unwrap();
    assert_eq!(one.free(mine), unknown(Call::Free, mine));
    assert_eq!(one.copy_to(mine, host.address(), 1), unknown(Call::CopyTo, mine));
}

/// What the runtime keeps on the device is not the user's, though it is live.
#[test]
fn memory_of_the_runtime_itself_can_be_neither_freed_nor_copied() {
    let mut device = device(PROFILE);
    let noop = register(&mut device, Kernel::Noop);
    device.run(noop, &storage(&[], &[]), &PLAIN, ZERO).unwrap();
    let bank = device.arena_bank(0).unwrap();
    let host = HostBuffer::of(&[0; 8]);
    assert_eq!(device.free(bank), Err(ChipError::NotDeviceMemory { call: Call::Free, address: bank }));
    let refused = Err(ChipError::NotDeviceMemory { call: Call::CopyTo, address: bank });
    assert_eq!(device.copy_to(bank, host.address(), 8), refused);
}

/// A pointer of one side handed to the other is caught on both sides.
#[test]
fn host_pointers_are_no_device_memory_and_device_pointers_no_host_memory() {
    let mut device = device(PROFILE);
    let copy = register(&mut device, Kernel::Copy);
    let host = HostBuffer::of(&[1; 64]);
    let on_device = upload(&mut device, &[2; 64]);
    let swapped = DeviceAddress(host.address().0);
    assert_eq!(
        device.copy_to(swapped, host.address(), 8),
        Err(ChipError::NotDeviceMemory { call: Call::CopyTo, address: swapped })
    );
    let address = HostAddress(on_device.0);
    assert_eq!(
        device.copy_to(on_device, address, 8),
        Err(ChipError::NotHostMemory { call: Call::CopyTo, address, bytes: 8 })
    );
    let tensor = |address, space| ChipTensor::contiguous(address, 64, Dtype::F32, &[16], space).unwrap();
    let good = tensor(host.address().0, AddressSpace::Host);
    let wrong = [tensor(host.address().0, AddressSpace::Device), tensor(on_device.0, AddressSpace::Host)];
    let error = device.prepare(copy, &storage(&[wrong[0], good], &[]), &PLAIN, ZERO).unwrap_err();
    assert_eq!(error, ChipError::NotDeviceMemory { call: Call::Prepare, address: swapped });
    let error = device.prepare(copy, &storage(&[good, wrong[1]], &[]), &PLAIN, ZERO).unwrap_err();
    assert_eq!(error, ChipError::NotHostMemory { call: Call::Prepare, address, bytes: 64 });
}

/// A tensor may not leave the allocation that it starts in.
#[test]
fn a_device_tensor_past_its_allocation_is_refused() {
    let mut device = device(PROFILE);
    let copy = register(&mut device, Kernel::Copy);
    let from = device.malloc(60).unwrap();
    let to = device.malloc(64).unwrap();
    let tensors =
        [from, to].map(|at| ChipTensor::contiguous(at.0, 64, Dtype::F32, &[16], AddressSpace::Device).unwrap());
    let refused = ChipError::OutOfBounds { call: Call::Prepare, address: from, bytes: 64, base: from, size: 60 };
    assert_eq!(device.prepare(copy, &storage(&tensors, &[]), &PLAIN, ZERO), Err(refused));
}

#[test]
fn a_full_device_refuses_and_an_allocation_of_nothing_does_too() {
    let mut device = device_of(Config::new(PROFILE).with_memory(1 << 16));
    let half = device.malloc(1 << 15).unwrap();
    let error = device.malloc((1 << 15) + 1).unwrap_err();
    let free = 1 << 15;
    assert_eq!(error, ChipError::OutOfMemory { asked: free + 1, free, largest: free, total: 1 << 16 });
    device.free(half).unwrap();
    device.malloc(1 << 16).unwrap();
    assert!(matches!(device.malloc(0), Err(ChipError::Failed { call: Call::Malloc, .. })));
}

/// C-16: what is still live is reported, and released.
#[test]
fn allocations_that_are_live_at_shutdown_are_counted() {
    let mut device = device(PROFILE);
    device.malloc(1).unwrap();
    device.malloc(1).unwrap();
    device.shutdown().unwrap();
    assert_eq!(device.counters().leaked_allocations, 2);
    assert_eq!(device.committed_memory(), 0);
}
