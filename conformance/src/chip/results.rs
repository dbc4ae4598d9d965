//! What is computed, and what is not touched.

use laneway_core::chip::ChipError;
use laneway_core::wire::{AddressSpace, ArgDirection, ChipTensor, Dtype};
use laneway_sim::{Kernel, Program, scale_factor};

use super::{Bench, Case, HostBuffer, PLAIN, ZERO, on_every_profile, register, slot, storage};

pub(super) fn cases() -> impl Iterator<Item = Case> {
    on_every_profile("gaps_between_elements_are_not_touched", &["T-1", "T-24"], &[Kernel::Add], strided)
        .chain(
            on_every_profile("steps_of_a_program_see_each_others_results", &[], &[], chain)
                .map(|case| Case { programs: true, ..case }),
        )
        .chain(on_every_profile("many_runs_give_the_same_answer_and_leave_nothing", &["L-15"], &[Kernel::MatMul], many))
        .chain(on_every_profile("arguments_that_do_not_fit_are_refused", &["C-13"], &[Kernel::Add], misfits))
}

fn strided(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let values: Vec<f32> = (0..64).map(|index| index as f32).collect();
    let (a, b, out) = (HostBuffer::of_f32(&values), HostBuffer::of_f32(&values), HostBuffer::of_f32(&[-1.0; 64]));
    let view = |buffer: &HostBuffer, strides: [u32; 2], start| {
        ChipTensor::strided(buffer.address().0, 256, Dtype::F32, &[3, 4], &strides, start, AddressSpace::Host)
            .expect("inside the buffer")
    };
    // Rows of a, columns of b, every other element of out.
    let args = storage(&[view(&a, [8, 1], 0), view(&b, [1, 8], 2), view(&out, [16, 2], 5)], &[]);
    device.run(add, &args, &PLAIN, ZERO).expect("run");
    let mut expected = vec![-1.0; 64];
    for row in 0..3 {
        for column in 0..4 {
            expected[5 + 16 * row + 2 * column] = values[8 * row + column] + values[2 + row + 8 * column];
        }
    }
    assert_eq!(out.f32s(), expected);
    assert_eq!((a.f32s(), b.f32s()), (values.clone(), values));
}

fn chain(device: &mut Bench<'_>) {
    let directions = [ArgDirection::In, ArgDirection::In, ArgDirection::Out, ArgDirection::InOut];
    let program = Program::new("chain", &directions, 1)
        .and_then(|program| program.step(Kernel::Add, &[0, 1, 2], None))
        .and_then(|program| program.step(Kernel::Scale, &[2, 2], Some(0)))
        .and_then(|program| program.step(Kernel::Add, &[2, 3, 3], None))
        .expect("a legal program");
    let blob = device.callables.program(&program).expect("a case runs only where its programs are");
    device.register(slot(5), &blob).expect("register");
    let [a, b, sum, total] = [1.0, 2.0, 0.0, 100.0].map(|value| HostBuffer::of_f32(&[value; 4]));
    let tensors = [&a, &b, &sum, &total].map(|buffer| buffer.dense_f32(&[4]));
    let args = storage(&tensors, &[scale_factor(10.0)]);
    device.run(slot(5), &args, &PLAIN, ZERO).expect("run");
    assert_eq!((sum.f32s(), total.f32s()), (vec![30.0; 4], vec![130.0; 4]));
    device.run(slot(5), &args, &PLAIN, ZERO).expect("run");
    assert_eq!(total.f32s(), [160.0; 4], "an INOUT is read as well");
}

fn many(device: &mut Bench<'_>) {
    let matmul = register(device, 0, Kernel::MatMul);
    let a = HostBuffer::of_f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = HostBuffer::of_f32(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let out = HostBuffer::of_f32(&[0.0; 4]);
    let args = storage(&[a.dense_f32(&[2, 3]), b.dense_f32(&[3, 2]), out.dense_f32(&[2, 2])], &[]);
    device.run(matmul, &args, &PLAIN, ZERO).expect("run");
    let settled = device.committed_memory();
    for _ in 0..100 {
        device.run(matmul, &args, &PLAIN, ZERO).expect("run");
        assert_eq!(out.f32s(), [4.0, 5.0, 10.0, 11.0]);
    }
    assert_eq!(device.committed_memory(), settled);
}

fn misfits(device: &mut Bench<'_>) {
    let add = register(device, 0, Kernel::Add);
    let buffer = HostBuffer::of_f32(&[0.0; 16]);
    let four = buffer.dense_f32(&[4]);
    let lists = [
        storage(&[four, four], &[]),
        storage(&[four, four, four], &[1]),
        storage(&[four, buffer.dense_f32(&[5]), four], &[]),
    ];
    let settled = device.committed_memory();
    for args in lists {
        let error = device.prepare(add, &args, &PLAIN, ZERO).expect_err("it does not fit");
        let refused = matches!(error, ChipError::ArgumentRefused { .. } | ChipError::Failed { .. });
        assert!(refused, "{error}");
    }
    device.run(add, &storage(&[four, four, four], &[]), &PLAIN, ZERO).expect("run");
    assert!(device.committed_memory() >= settled);
}
