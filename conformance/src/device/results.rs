//! What is computed, and what is not touched.

use laneway_core::chip::CallableSlot;
use laneway_core::wire::{AddressSpace, ArgDirection, ChipTensor, Dtype};
use laneway_sim::{Kernel, Program, scale_factor};

use super::bench::slot;
use super::{Bench, PLAIN, VectorAdd, ZERO, storage};
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal};
use crate::numbers::{Bits, COMPUTING, Dice, HostBuffer, Numbers, Problem};

const ADD: &[Kernel] = &[Kernel::Add];

/// Random problems per kernel and element type.
const PROBLEMS: usize = 6;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::device(
            "results/every_kernel_agrees_with_plain_arithmetic",
            &["C-6", "T-1", "T-24"],
            "Each kernel computes what plain arithmetic does, bit for bit, over any shape, stride and element type, on either \
             address space.",
            every_kernel,
        )
        .kernels(&COMPUTING)
        .with_memory(),
        Case::device(
            "results/gaps_between_elements_are_not_touched",
            &["T-1", "T-24"],
            "A strided view is read and written element by element; nothing between its elements changes.",
            strided,
        )
        .kernels(ADD),
        Case::device(
            "results/the_last_element_of_a_strided_view_counts",
            &["T-1"],
            "The element at the far edge of a view is computed like every other, and the one behind it is not touched.",
            edge,
        )
        .kernels(ADD),
        Case::device(
            "results/an_input_is_never_written_back",
            &["T-24"],
            "What the host writes into an input after prepare is still there when the run has ended.",
            inputs_stay,
        )
        .kernels(ADD),
        Case::device(
            "results/bf16_is_rounded_to_the_nearest_even",
            &["T-1"],
            "A bf16 sum is computed in f32 and rounded once, ties to even.",
            bf16_rounding,
        )
        .kernels(ADD)
        .of(Dtype::Bf16),
        Case::device(
            "results/f16_is_rounded_to_the_nearest_even",
            &["T-1"],
            "An f16 sum is computed in f32 and rounded once, ties to even; what is too large becomes infinite.",
            f16_rounding,
        )
        .kernels(ADD)
        .of(Dtype::F16),
        Case::device(
            "results/whole_numbers_wrap",
            &["T-1"],
            "i32 sums and products wrap around.",
            whole_numbers,
        )
        .kernels(&[Kernel::Add, Kernel::Mul])
        .of(Dtype::I32),
        Case::device(
            "results/a_view_without_elements_is_legal",
            &["W-7", "T-1"],
            "A view with a dimension of 0 captures no bytes, can be run on, and changes nothing.",
            empty,
        )
        .kernels(ADD),
        Case::device(
            "results/an_output_may_be_an_input",
            &["T-24"],
            "Every input is read before an output is written, so both may be one tensor.",
            in_place,
        )
        .kernels(ADD)
        .with_memory(),
        Case::device(
            "results/steps_of_a_program_see_each_others_results",
            &["C-6"],
            "The kernels of one callable run in order and see what those before them wrote; an INOUT is read as well.",
            chain,
        )
        .kernels(&[Kernel::Add, Kernel::Scale])
        .programs(),
        Case::device(
            "results/many_runs_give_the_same_answer_and_leave_nothing",
            &["L-15", "T-31"],
            "A hundred runs give a hundred right results, and no run leaves a byte on the device.",
            many,
        )
        .kernels(&[Kernel::MatMul]),
        Case::device(
            "results/tensors_larger_than_the_ones_before_are_staged",
            &["C-1"],
            "Runs whose arguments grow and shrink are all right, whatever the device keeps between them.",
            growing,
        )
        .kernels(ADD),
    ]
}

fn every_kernel(device: &mut Bench<'_>) -> Verdict {
    let mut dice = Dice::new(device.seed);
    for (index, kernel) in COMPUTING.into_iter().enumerate() {
        let callable = device.install(index, kernel)?;
        for &dtype in device.dtypes {
            for _ in 0..PROBLEMS {
                solve(device, callable, &Problem::random(kernel, dtype, &mut dice), &mut dice)?;
            }
        }
    }
    Ok(())
}

/// Runs a problem with each operand on the host or on the device.
fn solve(device: &mut Bench<'_>, callable: CallableSlot, problem: &Problem, dice: &mut Dice) -> Verdict {
    let mut tensors = Vec::new();
    let (mut hosts, mut devices) = (Vec::new(), Vec::new());
    for operand in 0..=problem.inputs() {
        let bytes = problem.bytes(operand);
        let tensor = if dice.roll(2) == 0 {
            let base = device.upload(&bytes)?;
            devices.push(base);
            problem.tensor(operand, base.0, AddressSpace::Device)
        } else {
            let buffer = HostBuffer::of(&bytes);
            let tensor = problem.tensor(operand, buffer.address().0, AddressSpace::Host);
            hosts.push(buffer);
            tensor
        };
        tensors.push(tensor.must("a legal view")?);
    }
    device.run(callable, &storage(&tensors, &problem.scalars()), &PLAIN, ZERO).must(problem.kernel)?;
    let expected = problem.expected();
    let seen = match tensors.last().map(ChipTensor::address_space) {
        Some(AddressSpace::Device) => {
            let base = devices.last().must("the base of the result")?;
            device.download(*base, expected.len())?
        }
        _ => hosts.last().must("the buffer of the result")?.bytes(),
    };
    equal(format_args!("the bytes of {} over {tensors:?}", problem.kernel), seen, expected)?;
    devices.into_iter().try_for_each(|base| device.free(base).must("free"))
}

fn strided(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let values: Vec<f32> = (0..64).map(|index| index as f32).collect();
    let (a, b, out) = (HostBuffer::of_f32(&values), HostBuffer::of_f32(&values), HostBuffer::of_f32(&[-1.0; 64]));
    // Rows of a, columns of b, every other element of out.
    let args = [view(&a, &[3, 4], &[8, 1], 0)?, view(&b, &[3, 4], &[1, 8], 2)?, view(&out, &[3, 4], &[16, 2], 5)?];
    device.run(add, &storage(&args, &[]), &PLAIN, ZERO).must("a run")?;
    let mut expected = vec![-1.0; 64];
    for row in 0..3 {
        for column in 0..4 {
            expected[5 + 16 * row + 2 * column] = values[8 * row + column] + values[2 + row + 8 * column];
        }
    }
    equal("the whole output buffer", out.f32s(), expected)?;
    equal("the first input", a.f32s(), values.as_slice())?;
    equal("the second input", b.f32s(), values)
}

/// A view of f32 in a whole buffer.
fn view(buffer: &HostBuffer, shape: &[u32], strides: &[u32], start: u64) -> Result<ChipTensor, Violation> {
    let bytes = buffer.bytes().len() as u64;
    ChipTensor::strided(buffer.address().0, bytes, Dtype::F32, shape, strides, start, AddressSpace::Host)
        .must("a legal view")
}

fn edge(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let (a, out) = (HostBuffer::of_f32(&[1.0; 12]), HostBuffer::of_f32(&[-1.0; 12]));
    // Elements 1, 4, 7 and 10: one more lies behind the last.
    let args = [view(&a, &[4], &[3], 1)?, view(&a, &[4], &[3], 1)?, view(&out, &[4], &[3], 1)?];
    device.run(add, &storage(&args, &[]), &PLAIN, ZERO).must("a run")?;
    let expected: Vec<f32> = (0..12).map(|index| if index % 3 == 1 { 2.0 } else { -1.0 }).collect();
    equal("the whole output buffer", out.f32s(), expected)
}

fn inputs_stay(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let work = VectorAdd::new();
    let run = device.launched(add, &work)?;
    device.wait(run).must("wait")?;
    for input in &work.inputs {
        input.fill_f32(-7.0);
    }
    device.finalize(run).must("finalize")?;
    work.is_done()?;
    equal("the inputs", [work.inputs[0].f32s(), work.inputs[1].f32s()], [[-7.0; 4], [-7.0; 4]])
}

/// Adds element by element and compares bits.
fn sums(device: &mut Bench<'_>, dtype: Dtype, kernel: Kernel, table: &[[Bits; 3]]) -> Verdict {
    let add = device.install(kernel as usize, kernel)?;
    let numbers = Numbers(dtype);
    let column = |index: usize| numbers.to_bytes(&table.iter().map(|row| row[index]).collect::<Vec<_>>());
    let buffers = [HostBuffer::of(&column(0)), HostBuffer::of(&column(1)), HostBuffer::of(&vec![0; column(2).len()])];
    let mut tensors = Vec::new();
    for buffer in &buffers {
        let (address, bytes) = (buffer.address().0, buffer.bytes().len() as u64);
        let shape = [table.len() as u32];
        tensors.push(ChipTensor::contiguous(address, bytes, dtype, &shape, AddressSpace::Host).must("a legal tensor")?);
    }
    device.run(add, &storage(&tensors, &[]), &PLAIN, ZERO).must("a run")?;
    let expected: Vec<_> = table.iter().map(|row| row[2]).collect();
    equal(format_args!("the bits of {kernel} in {dtype}"), numbers.elements(&buffers[2].bytes()), expected)
}

fn bf16_rounding(device: &mut Bench<'_>) -> Verdict {
    // 1 + 2^-8 is half-way to the next bf16: the even one is below; with 3·2^-8 the even one is above.
    let table =
        [[0x3f80, 0x3b80, 0x3f80], [0x3f80, 0x3c40, 0x3f82], [0x3f80, 0x3b81, 0x3f81], [0x4000, 0xbf80, 0x3f80]];
    sums(device, Dtype::Bf16, Kernel::Add, &table)
}

fn f16_rounding(device: &mut Bench<'_>) -> Verdict {
    // 1 + 2^-11 is half-way to the next f16; 65504 + 65504 is beyond the largest.
    let table =
        [[0x3c00, 0x1000, 0x3c00], [0x3c00, 0x1600, 0x3c02], [0x3c00, 0x1001, 0x3c01], [0x7bff, 0x7bff, 0x7c00]];
    sums(device, Dtype::F16, Kernel::Add, &table)
}

fn whole_numbers(device: &mut Bench<'_>) -> Verdict {
    let most = i32::MAX.cast_unsigned();
    sums(device, Dtype::I32, Kernel::Add, &[[most, 1, 0x8000_0000], [7, u32::MAX, 6], [0x0100_0001, 2, 0x0100_0003]])?;
    sums(device, Dtype::I32, Kernel::Mul, &[[most, 2, u32::MAX - 1], [0x0001_0000, 0x0001_0000, 0], [3, 5, 15]])
}

fn empty(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let out = HostBuffer::of_f32(&[-1.0; 4]);
    let nothing = view(&out, &[0], &[1], 0)?;
    device.run(add, &storage(&[nothing, nothing, nothing], &[]), &PLAIN, ZERO).must("a run over nothing")?;
    equal("the buffer behind a view without elements", out.f32s(), [-1.0; 4])
}

fn in_place(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    let base = device.upload(&[1.0_f32, 2.0, 3.0, 4.0].map(f32::to_ne_bytes).concat())?;
    let tensor = ChipTensor::contiguous(base.0, 16, Dtype::F32, &[4], AddressSpace::Device).must("a legal tensor")?;
    device.run(add, &storage(&[tensor, tensor, tensor], &[]), &PLAIN, ZERO).must("a run in place")?;
    equal("twice the numbers", device.download(base, 16)?, [2.0_f32, 4.0, 6.0, 8.0].map(f32::to_ne_bytes).concat())
}

fn chain(device: &mut Bench<'_>) -> Verdict {
    let directions = [ArgDirection::In, ArgDirection::In, ArgDirection::Out, ArgDirection::InOut];
    let program = Program::new("chain", &directions, 1)
        .and_then(|program| program.step(Kernel::Add, &[0, 1, 2], None))
        .and_then(|program| program.step(Kernel::Scale, &[2, 2], Some(0)))
        .and_then(|program| program.step(Kernel::Add, &[2, 3, 3], None))
        .must("a legal program")?;
    let blob = device.program(&program)?;
    device.register(slot(5)?, &blob).must("register")?;
    let [a, b, sum, total] = [1.0, 2.0, 0.0, 100.0].map(|value| HostBuffer::of_f32(&[value; 4]));
    let tensors = [&a, &b, &sum, &total].map(|buffer| buffer.dense_f32(&[4]));
    let args = storage(&tensors, &[scale_factor(10.0)]);
    device.run(slot(5)?, &args, &PLAIN, ZERO).must("a run")?;
    equal("sum and total", (sum.f32s(), total.f32s()), (vec![30.0; 4], vec![130.0; 4]))?;
    device.run(slot(5)?, &args, &PLAIN, ZERO).must("a second run")?;
    equal("the total, which is read as well", total.f32s(), [160.0; 4])
}

fn many(device: &mut Bench<'_>) -> Verdict {
    let matmul = device.install(0, Kernel::MatMul)?;
    let a = HostBuffer::of_f32(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let b = HostBuffer::of_f32(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let out = HostBuffer::of_f32(&[0.0; 4]);
    let args = storage(&[a.dense_f32(&[2, 3]), b.dense_f32(&[3, 2]), out.dense_f32(&[2, 2])], &[]);
    device.run(matmul, &args, &PLAIN, ZERO).must("a run")?;
    let settled = device.committed_memory();
    for run in 0..100 {
        out.fill_f32(0.0);
        device.run(matmul, &args, &PLAIN, ZERO).must("a run")?;
        equal(format_args!("the product of run {run}"), out.f32s(), [4.0, 5.0, 10.0, 11.0])?;
    }
    device.still_commits("after a hundred runs", settled)
}

fn growing(device: &mut Bench<'_>) -> Verdict {
    let add = device.install(0, Kernel::Add)?;
    for elements in [4, 4096, 16, 60_000, 1] {
        let (a, out) = (HostBuffer::of_f32(&vec![1.5; elements]), HostBuffer::of_f32(&vec![0.0; elements]));
        let (a, b) = (a.dense_f32(&[elements as u32]), &out);
        let args = storage(&[a, a, b.dense_f32(&[elements as u32])], &[]);
        device.run(add, &args, &PLAIN, ZERO).must(format_args!("a run of {elements} elements"))?;
        let wrong = out.f32s().iter().position(|value| *value != 3.0);
        equal(format_args!("the first wrong element of {elements}"), wrong, None::<usize>)?;
    }
    Ok(())
}
