//! Device memory (C-16, T-46).

use laneway_core::chip::{Call, ChipError, DeviceAddress, HostAddress};
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};
use laneway_sim::Kernel;

use super::bench::fails_with;
use super::{Bench, PLAIN, ZERO, storage};
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};
use crate::numbers::{Dice, HostBuffer};

/// Bytes of the device whose memory runs out.
const SMALL: u64 = 8 << 20;

pub(super) fn cases() -> Vec<Case> {
    let none = Case::device(
        "memory/a_device_without_memory_refuses_every_call_about_it",
        &["C-9", "C-16"],
        "Each call about device memory is unsupported, nothing more is committed, and runs on host memory work.",
        none,
    );
    let with_memory = memory_cases().into_iter().map(Case::with_memory);
    with_memory.chain([none.kernels(&[Kernel::Add]).without_memory()]).collect()
}

fn memory_cases() -> Vec<Case> {
    vec![
        Case::device(
            "memory/bytes_come_back_from_the_device",
            &["C-16"],
            "What was copied to the device comes back byte for byte, from the base and from inside.",
            round_trip,
        ),
        Case::device(
            "memory/a_copy_touches_its_bytes_alone",
            &["C-13", "C-16"],
            "A copy of any length to any offset changes no byte beside it, on the device or on the host.",
            exact,
        ),
        Case::device(
            "memory/live_allocations_are_apart",
            &["C-16"],
            "No two live allocations share a byte, whatever was freed in between.",
            apart,
        ),
        Case::device(
            "memory/free_gives_everything_back",
            &["C-16", "T-31"],
            "Committed bytes rise with an allocation and fall with its free; an allocation of nothing is refused.",
            gives_back,
        ),
        Case::device(
            "memory/free_takes_the_base_of_a_live_allocation",
            &["C-16", "T-46"],
            "Free takes the exact base of a live allocation, once; an address inside it or a dead one is refused.",
            free,
        ),
        Case::device(
            "memory/ranges_stay_inside_an_allocation",
            &["C-13", "C-16"],
            "A copy may end with the last byte of an allocation, and not one further.",
            ranges,
        ),
        Case::device(
            "memory/dead_memory_is_not_copied",
            &["C-16", "T-46"],
            "Neither copy takes an address whose allocation was freed.",
            dead,
        ),
        Case::device(
            "memory/a_host_pointer_is_no_device_memory",
            &["C-13"],
            "A host pointer is refused wherever device memory is meant: in copies, in free, in a DEVICE tensor.",
            host_pointer,
        )
        .kernels(&[Kernel::Copy]),
        Case::device(
            "memory/device_tensors_are_used_where_they_are",
            &["C-16"],
            "A DEVICE tensor is read and written in place, beside tensors of the host.",
            device_tensors,
        )
        .kernels(&[Kernel::Add]),
        Case::device(
            "memory/a_device_tensor_stays_inside_its_allocation",
            &["C-13", "C-16"],
            "A DEVICE tensor whose buffer leaves its allocation is refused before anything runs.",
            tensor_past_the_end,
        )
        .kernels(&[Kernel::Copy]),
        Case::device(
            "memory/running_out_is_an_error_and_leaves_the_device_usable",
            &["C-9", "C-16"],
            "An allocation that does not fit is an error that says what was asked, and the device goes on.",
            out_of_memory,
        )
        .kernels(&[Kernel::Add])
        .memory(SMALL),
    ]
}

fn round_trip(device: &mut Bench<'_>) -> Verdict {
    let data: Vec<u8> = (0..1000).map(|index| (index * 7) as u8).collect();
    let address = device.upload(&data)?;
    equal("1000 bytes", device.download(address, 1000)?, data.as_slice())?;
    equal("bytes 100 to 105", device.download(DeviceAddress(address.0 + 100), 5)?, &data[100..105])?;
    device.free(address).must("free")
}

fn exact(device: &mut Bench<'_>) -> Verdict {
    let mut dice = Dice::new(device.seed);
    let mut mirror: Vec<u8> = (0..64).collect();
    let base = device.upload(&mirror)?;
    for round in 0..40 {
        let (offset, length) = (dice.roll(32) as usize, 1 + dice.roll(32) as usize);
        let fresh: Vec<u8> = (0..length).map(|_| dice.next() as u8).collect();
        let host = HostBuffer::of(&fresh);
        device
            .copy_to(DeviceAddress(base.0 + offset as u64), host.address(), length as u64)
            .must("a copy to inside")?;
        mirror[offset..offset + length].copy_from_slice(&fresh);
        equal(format_args!("all bytes after copy {round}"), device.download(base, 64)?, mirror.as_slice())?;
        let room = HostBuffer::of(&[0xaa; 80]);
        let into = HostAddress(room.address().0 + 8);
        device.copy_from(into, DeviceAddress(base.0 + offset as u64), length as u64).must("a copy from inside")?;
        let mut expected = vec![0xaa; 80];
        expected[8..8 + length].copy_from_slice(&fresh);
        equal(format_args!("host bytes around copy {round}"), room.bytes(), expected)?;
    }
    Ok(())
}

fn apart(device: &mut Bench<'_>) -> Verdict {
    let mut dice = Dice::new(device.seed);
    let mut live: Vec<(DeviceAddress, Vec<u8>)> = Vec::new();
    for _ in 0..60 {
        if live.len() > 8 {
            let (base, _) = live.swap_remove(dice.roll(live.len() as u32) as usize);
            device.free(base).must("free")?;
        }
        let data = vec![dice.next() as u8; 1 + dice.roll(300) as usize];
        let base = device.upload(&data)?;
        let clash = live
            .iter()
            .find(|(other, bytes)| base.0 < other.0 + bytes.len() as u64 && other.0 < base.0 + data.len() as u64);
        holds("a new allocation lies in no live one", clash.is_none(), || format!("{base} in {clash:?}"))?;
        live.push((base, data));
    }
    for (base, data) in live {
        equal(format_args!("the bytes at {base}"), device.download(base, data.len())?, data)?;
    }
    Ok(())
}

fn gives_back(device: &mut Bench<'_>) -> Verdict {
    let before = device.committed_memory();
    let one = device.malloc(1000).must("malloc")?;
    let committed = device.committed_memory();
    holds("1000 bytes more are committed", committed >= before + 1000, || format!("{before} → {committed}"))?;
    let two = device.malloc(3000).must("malloc")?;
    device.free(one).must("free")?;
    device.free(two).must("free")?;
    device.still_commits("after everything was freed", before)?;
    refused("an allocation of 0 bytes", device.malloc(0), "an error", |_| true)?;
    device.still_commits("after the refusal", before)
}

fn free(device: &mut Bench<'_>) -> Verdict {
    let base = device.malloc(64).must("malloc")?;
    let inside = DeviceAddress(base.0 + 16);
    fails_with("free inside", device.free(inside), ChipError::NotABase { address: inside, base })?;
    device.free(base).must("free")?;
    let dead = ChipError::NotDeviceMemory { call: Call::Free, address: base };
    fails_with("a second free", device.free(base), dead)
}

fn ranges(device: &mut Bench<'_>) -> Verdict {
    let base = device.malloc(100).must("malloc")?;
    let buffer = HostBuffer::of(&[0; 256]);
    let host = buffer.address();
    let leaves = |error: &ChipError| matches!(error, ChipError::OutOfBounds { .. } | ChipError::NotHostMemory { .. });
    for (offset, bytes) in [(0, 101), (99, 2), (0, u64::MAX)] {
        let address = DeviceAddress(base.0 + offset);
        let what = format!("a copy of {bytes} bytes at {offset} of 100");
        refused(format_args!("{what}, to the host"), device.copy_from(host, address, bytes), "out of bounds", leaves)?;
        refused(format_args!("{what}, to the device"), device.copy_to(address, host, bytes), "out of bounds", leaves)?;
    }
    device.copy_from(host, DeviceAddress(base.0 + 99), 1).must("a copy of the last byte")?;
    device.copy_to(base, host, 100).must("a copy of all bytes")
}

fn dead(device: &mut Bench<'_>) -> Verdict {
    let base = device.malloc(64).must("malloc")?;
    device.free(base).must("free")?;
    let buffer = HostBuffer::of(&[0; 8]);
    let dead = |call| ChipError::NotDeviceMemory { call, address: base };
    fails_with("a copy to it", device.copy_to(base, buffer.address(), 8), dead(Call::CopyTo))?;
    fails_with("a copy from it", device.copy_from(buffer.address(), base, 8), dead(Call::CopyFrom))
}

fn host_pointer(device: &mut Bench<'_>) -> Verdict {
    let copy = device.install(0, Kernel::Copy)?;
    let buffer = HostBuffer::of(&[0; 64]);
    let wrong = DeviceAddress(buffer.address().0);
    let unknown = |call| ChipError::NotDeviceMemory { call, address: wrong };
    fails_with("a copy to it", device.copy_to(wrong, buffer.address(), 8), unknown(Call::CopyTo))?;
    fails_with("a free of it", device.free(wrong), unknown(Call::Free))?;
    let args = storage(&[on_device(wrong, 16)?, buffer.dense_f32(&[16])], &[]);
    fails_with("a run with it", device.prepare(copy, &args, &PLAIN, ZERO), unknown(Call::Prepare))
}

fn on_device(address: DeviceAddress, elements: u32) -> Result<ChipTensor, Violation> {
    let bytes = u64::from(elements) * 4;
    ChipTensor::contiguous(address.0, bytes, Dtype::F32, &[elements], AddressSpace::Device).must("a legal tensor")
}

fn device_tensors(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let bytes = |value: f32| value.to_ne_bytes().repeat(8);
    let (a, out) = (device.upload(&bytes(1.5))?, device.upload(&bytes(0.0))?);
    let b = HostBuffer::of(&bytes(2.0));
    let args = storage(&[on_device(a, 8)?, b.dense_f32(&[8]), on_device(out, 8)?], &[]);
    device.run(add, &args, &PLAIN, ZERO).must("a run")?;
    equal("the result on the device", device.download(out, 32)?, bytes(3.5))?;
    equal("the input on the device", device.download(a, 32)?, bytes(1.5))
}

fn tensor_past_the_end(device: &mut Bench<'_>) -> Verdict {
    let copy = device.install(0, Kernel::Copy)?;
    let base = device.malloc(32).must("malloc")?;
    let (fits, leaves) = (HostBuffer::of_f32(&[1.0; 8]), HostBuffer::of_f32(&[1.0; 9]));
    let args = storage(&[leaves.dense_f32(&[9]), on_device(base, 9)?], &[]);
    let result = device.prepare(copy, &args, &PLAIN, ZERO);
    refused("a tensor of 36 bytes in an allocation of 32", result, "out of bounds", |error| {
        matches!(error, ChipError::OutOfBounds { .. } | ChipError::NotDeviceMemory { .. })
    })?;
    let args = storage(&[fits.dense_f32(&[8]), on_device(base, 8)?], &[]);
    device.run(copy, &args, &PLAIN, ZERO).must("a tensor that fits")
}

fn out_of_memory(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let before = device.committed_memory();
    let error = refused("twice the memory there is", device.malloc(2 * SMALL), "out of memory", |error| {
        matches!(error, ChipError::OutOfMemory { .. } | ChipError::Failed { .. })
    })?;
    mentions("the error", &error.to_string(), &[&(2 * SMALL).to_string()])?;
    if let ChipError::OutOfMemory { asked, free, total, largest } = error {
        equal("asked and total", (asked, total), (2 * SMALL, SMALL))?;
        holds("free and largest", largest <= free && free <= total, || format!("free {free}, largest {largest}"))?;
    }
    device.still_commits("after the refusal", before)?;
    device.adds(add)
}

fn none(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    // Of the callable, which may lie on the device.
    let before = device.committed_memory();
    let buffer = HostBuffer::of(&[0; 64]);
    let (host, address) = (buffer.address(), DeviceAddress(0x1000));
    let answers = [
        (Call::Malloc, device.malloc(64).map(|_| ())),
        (Call::Free, device.free(address)),
        (Call::CopyTo, device.copy_to(address, host, 64)),
        (Call::CopyFrom, device.copy_from(host, address, 64)),
    ];
    for (asked, answer) in answers {
        refused(
            asked,
            answer,
            "unsupported, and which call",
            |error| matches!(error, ChipError::Unsupported { call, .. } if *call == asked),
        )?;
    }
    device.still_commits("by a device without memory", before)?;
    let args = storage(&[on_device(address, 4)?, on_device(address, 4)?, on_device(address, 4)?], &[]);
    let result = device.prepare(add, &args, &PLAIN, ZERO);
    fails_with("a tensor on it", result, ChipError::NotDeviceMemory { call: Call::Prepare, address })?;
    device.adds(add)
}
