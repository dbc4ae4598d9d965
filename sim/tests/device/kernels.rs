//! Every kernel against a reference that walks indices one by one, over random shapes, strides and gaps, on host and on
//! device tensors, with every profile.

use laneway_core::chip::DeviceRuntime;
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};
use laneway_sim::{Kernel, Profile};
use proptest::prelude::*;

use crate::reference::{Case, case, from_bytes, to_bytes};
use crate::support::{HostBuffer, PLAIN, ZERO, device, download, register, storage, upload};

fn check(case: &Case) {
    let buffers = case.buffers();
    let expected = case.expected(&buffers);
    let mut device = device(case.profile);
    let callable = register(&mut device, case.kernel);
    let bytes: Vec<Vec<u8>> = buffers.iter().map(|buffer| to_bytes(case.dtype, buffer)).collect();
    let on_host: Vec<HostBuffer> = bytes.iter().map(|bytes| HostBuffer::of(bytes)).collect();
    let mut tensors = Vec::new();
    let mut out_address = None;
    for (operand, layout) in case.layouts.iter().enumerate() {
        tensors.push(if case.on_device[operand] {
            let address = upload(&mut device, &bytes[operand]);
            out_address = Some(address);
            layout.tensor(address.0, case.dtype, AddressSpace::Device)
        } else {
            layout.tensor(on_host[operand].address().0, case.dtype, AddressSpace::Host)
        });
    }
    device.run(callable, &storage(&tensors, &case.scalars()), &PLAIN, ZERO).unwrap();
    let out = case.inputs();
    let result = match (case.on_device[out], out_address) {
        (true, Some(address)) => download(&mut device, address, bytes[out].len()),
        _ => on_host[out].bytes(),
    };
    assert_eq!(from_bytes(case.dtype, &result), expected, "gaps included");
    for operand in (0..out).filter(|&operand| !case.on_device[operand]) {
        assert_eq!(on_host[operand].bytes(), bytes[operand], "an input changed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_kernel_computes_what_the_reference_does(case in case()) {
        check(&case);
    }
}

/// Every input is read before any output is written, so a tensor may be both.
#[test]
fn an_output_may_be_an_input() {
    let mut device = device(Profile::A2a3HostBuildGraph);
    let add = register(&mut device, Kernel::Add);
    let data: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
    let address = upload(&mut device, &data);
    let at = |start: u64, shape: u32| {
        ChipTensor::strided(address.0, 16, Dtype::F32, &[shape], &[1], start, AddressSpace::Device).unwrap()
    };
    // x[1..4] = x[0..3] + x[1..4], which a loop in place would get wrong.
    device.run(add, &storage(&[at(0, 3), at(1, 3), at(1, 3)], &[]), &PLAIN, ZERO).unwrap();
    let result: Vec<f32> =
        download(&mut device, address, 16).as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect();
    assert_eq!(result, [1.0, 3.0, 5.0, 7.0]);
}

/// A million elements must not take longer than a person notices; printed, and bounded far above what it takes.
#[test]
fn a_million_elements_are_added_quickly() {
    const COUNT: usize = 1 << 20;
    let mut device = device(Profile::A2a3TensormapAndRingbuffer);
    let add = register(&mut device, Kernel::Add);
    let values: Vec<f32> = (0..COUNT).map(|index| index as f32).collect();
    let (a, b, out) = (HostBuffer::of_f32(&values), HostBuffer::of_f32(&values), HostBuffer::of_f32(&vec![0.0; COUNT]));
    let tensors = [&a, &b, &out].map(|buffer| buffer.tensor(Dtype::F32, &[COUNT as u32]));
    let args = storage(&tensors, &[]);
    device.run(add, &args, &PLAIN, ZERO).unwrap();
    let start = std::time::Instant::now();
    device.run(add, &args, &PLAIN, ZERO).unwrap();
    println!("add of 2^20 f32, copies included: {:?}", start.elapsed());
    assert!(out.f32s().iter().enumerate().all(|(index, &sum)| sum == 2.0 * index as f32));
}
