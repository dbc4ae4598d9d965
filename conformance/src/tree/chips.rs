//! Chips as children: parent → mailbox → child → device → copy-back.

use laneway_linux::{AddressSpace, CallConfig, Error, RunHandle, TaskArgs, Tensor};
use laneway_sim::{Action, FaultPlan, Kernel, Point};

use super::Grove;
use super::grove::Chips;
use crate::backend::Setup;
use crate::case::Case;
use crate::device::diagnostic;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};
use crate::numbers::{COMPUTING, Dice, Problem};

const ADD: &[Kernel] = &[Kernel::Add];
const WITH_WAIT: &[Kernel] = &[Kernel::Add, Kernel::Wait];

/// Random problems per kernel and element type.
const PROBLEMS: usize = 3;

pub(super) fn cases() -> Vec<Case> {
    let faulty = |at, occurrence, action| FaultPlan::none().with(at, occurrence, action);
    vec![
        Case::tree(
            "chips/every_kernel_is_right_through_the_whole_stack",
            &["P-4", "W-7", "T-24"],
            "Each kernel computes what plain arithmetic does, over tensors of the tree in any shape and stride, gaps included.",
            every_kernel,
        )
        .kernels(&COMPUTING),
        Case::tree(
            "chips/runs_overlap_and_stay_apart",
            &["L-12", "L-14", "E-33", "E-34"],
            "Runs of one task each, two of them open at once, all end with their own results.",
            overlap,
        )
        .kernels(ADD),
        Case::tree(
            "chips/several_chips_run_a_group",
            &["E-24", "E-29", "E-31"],
            "A group over two chips runs each member on its chip with its own arguments; two members on one are refused.",
            group,
        )
        .kernels(ADD),
        Case::tree(
            "chips/acceptance_is_seen_while_the_device_works",
            &["L-17", "L-18", "E-8"],
            "wait_accepted returns while the task still runs.",
            accepted,
        )
        .kernels(WITH_WAIT),
        Case::tree(
            "chips/diagnostic_runs_compute_the_same",
            &["L-12", "E-33"],
            "Diagnostic tasks and plain ones can follow each other in any order.",
            diagnostics,
        )
        .kernels(ADD),
        Case::tree(
            "chips/an_incompatible_prepare_is_no_error_of_its_task",
            &["L-16", "T-28"],
            "A successor whose prepare is refused beside the executing run is prepared again, and its task never hears of it.",
            incompatible,
        )
        .kernels(WITH_WAIT)
        .concurrent(true)
        .faults(faulty(Point::Prepare, 2, Action::Incompatible)),
        Case::tree(
            "chips/a_failed_call_is_the_failure_of_its_task_alone",
            &["C-9", "L-15", "L-28"],
            "A prepare or a finalize that fails is its task's failure, with the device's code; the chip goes on.",
            failed,
        )
        .kernels(ADD)
        .faults(FaultPlan::none().with(Point::Prepare, 2, Action::Error(-5)).with(Point::Finalize, 2, Action::Error(-6))),
        Case::tree(
            "chips/a_skipped_acceptance_hangs_no_waiter",
            &["L-18", "E-8"],
            "Where the device gives no acceptance the end of the task settles it.",
            skipped,
        )
        .kernels(ADD)
        .faults(faulty(Point::Launch, 1, Action::SkipAcceptance)),
        Case::tree(
            "chips/a_device_is_not_polled_without_pause",
            &["T-29"],
            "A child that waits for its device looks now and then, not a million times a second.",
            paced,
        )
        .kernels(WITH_WAIT)
        .faults(faulty(Point::Poll, 20_000, Action::Error(-1))),
        Case::tree(
            "chips/a_wrong_worker_id_is_refused",
            &["E-39", "R-12"],
            "A submit to a worker id that does not exist, and of a host function to a chip, are refused.",
            wrong_target,
        )
        .kernels(ADD),
    ]
}

fn every_kernel(grove: &mut Grove<'_>) -> Verdict {
    let mut dice = Dice::new(grove.seed);
    let chips = grove.chips(&[Setup::default()])?;
    for kernel in COMPUTING {
        for &dtype in grove.dtypes() {
            for _ in 0..PROBLEMS {
                solve(&chips, &Problem::random(kernel, dtype, &mut dice))?;
            }
        }
    }
    chips.close(false)
}

fn solve(chips: &Chips, problem: &Problem) -> Verdict {
    let mut memory = Vec::new();
    let mut args = TaskArgs::new();
    for operand in 0..=problem.inputs() {
        let bytes = problem.bytes(operand);
        let buffer: Tensor<u8> = chips.worker.tensor(&[bytes.len() as u32]).must("a tensor")?;
        buffer.copy_from(&bytes).must("copy_from")?;
        let tensor = problem.tensor(operand, buffer.as_arg().addr(), AddressSpace::Host).must("a legal view")?;
        if operand == problem.inputs() {
            args.inout(tensor)
        } else {
            args.input(tensor)
        };
        memory.push(buffer);
    }
    for scalar in problem.scalars() {
        args.scalar(scalar);
    }
    let kernel = chips.kernel(problem.kernel)?;
    let ended = chips.worker.run(|orch| Ok(orch.submit_next_level(kernel, chips.ids[0], &args).map(drop)?));
    ended.must(problem.kernel)?;
    let result = memory.last().must("the result")?.to_vec().must("its bytes")?;
    equal(format_args!("the bytes of {}, gaps included", problem.kernel), result, problem.expected())
}

/// A run of one task, which adds.
fn submit_add(chips: &Chips, out: &Tensor<f32>, config: &CallConfig) -> Result<RunHandle, Violation> {
    let (a, b) = (chips.vector(1.0)?, chips.vector(2.0)?);
    let (add, id) = (chips.kernel(Kernel::Add)?, chips.ids[0]);
    let mut args = TaskArgs::new();
    args.input(&a).input(&b).output(out);
    chips.worker.submit(|orch| Ok(orch.submit_next_level_with(add, id, &args, config).map(drop)?)).must("submit")
}

fn overlap(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.chips(&[Setup::default()])?;
    overlapping(&chips, &[CallConfig::ZERO])?;
    chips.close(false)
}

fn overlapping(chips: &Chips, configs: &[CallConfig]) -> Verdict {
    let mut runs = Vec::new();
    for number in 0..16 {
        let out = chips.vector(0.0)?;
        runs.push((submit_add(chips, &out, &configs[number % configs.len()])?, out));
    }
    for (number, (run, out)) in runs.iter().enumerate() {
        run.wait().must(format_args!("run {number}"))?;
        equal(format_args!("the sum of run {number}"), out.to_vec().must("the sum")?, [3.0; 16])?;
    }
    Ok(())
}

fn diagnostics(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.chips(&[Setup::default()])?;
    let mut config = diagnostic()?;
    config.set_output_prefix(std::env::temp_dir().join("laneway").as_os_str().as_encoded_bytes()).must("a prefix")?;
    overlapping(&chips, &[CallConfig::ZERO, config, config])?;
    chips.close(false)
}

fn group(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.chips(&[Setup::default(), Setup::default()])?;
    let add = chips.kernel(Kernel::Add)?;
    let (mut lists, mut outs) = (Vec::new(), Vec::new());
    for value in [1.0, 10.0] {
        let (a, out) = (chips.vector(value)?, chips.vector(0.0)?);
        let mut args = TaskArgs::new();
        args.input(&a).input(&a).output(&out);
        lists.push((args, a));
        outs.push(out);
    }
    let members = [&lists[0].0, &lists[1].0];
    let run = chips.worker.run(|orch| Ok(orch.submit_next_level_group(add, &chips.ids, &members, None).map(drop)?));
    run.must("a group over two chips")?;
    let sums = (outs[0].to_vec().must("a sum")?, outs[1].to_vec().must("a sum")?);
    equal("the sums", sums, (vec![2.0; 16], vec![20.0; 16]))?;
    let twice = [chips.ids[0], chips.ids[0]];
    let run = chips.worker.run(|orch| Ok(orch.submit_next_level_group(add, &twice, &members, None).map(drop)?));
    refused("a group with one chip twice", run, "an error", |_| true)?;
    chips.adds(1)?;
    chips.close(false)
}

/// A run of one task that takes this long on the device.
fn occupied(chips: &Chips, nanos: u64) -> Result<RunHandle, Violation> {
    let (wait, id) = (chips.kernel(Kernel::Wait)?, chips.ids[0]);
    let args = TaskArgs::new().scalar(nanos).clone();
    chips.worker.submit(|orch| Ok(orch.submit_next_level(wait, id, &args).map(drop)?)).must("submit")
}

fn accepted(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.chips(&[Setup::default()])?;
    let run = occupied(&chips, 100_000_000)?;
    run.wait_accepted().must("wait_accepted")?;
    equal("whether the run has ended when it was accepted", run.is_done(), false)?;
    run.wait().must("wait")?;
    chips.close(false)
}

fn incompatible(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(0)?;
    let first = occupied(&chips, 50_000_000)?;
    first.wait_accepted().must("wait_accepted")?;
    let out = chips.vector(0.0)?;
    let second = submit_add(&chips, &out, &CallConfig::ZERO)?;
    second.wait().must("the second run")?;
    first.wait().must("the first run")?;
    equal("the sum", out.to_vec().must("the sum")?, [3.0; 16])?;
    chips.close(false)
}

fn failed(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(0)?;
    chips.adds(0)?;
    for code in ["code -5", "code -6"] {
        mentions("the error", &chips.add_fails(0)?, &["worker 0: ", code])?;
    }
    chips.adds(0)?;
    chips.close(false)
}

fn skipped(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(0)?;
    let out = chips.vector(0.0)?;
    let run = submit_add(&chips, &out, &CallConfig::ZERO)?;
    run.wait_accepted().must("wait_accepted")?;
    run.wait().must("wait")?;
    equal("the sum", out.to_vec().must("the sum")?, [3.0; 16])?;
    chips.close(false)
}

fn paced(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.one_faulty(0)?;
    // 20,000 looks in 200 ms are 100,000 a second.
    occupied(&chips, 200_000_000)?.wait().must("a run of 200 ms")?;
    chips.close(false)
}

fn wrong_target(grove: &mut Grove<'_>) -> Verdict {
    let chips = grove.chips(&[Setup::default()])?;
    let add = chips.kernel(Kernel::Add)?;
    let nobody = laneway_linux::WorkerId::new(7).must("an id")?;
    let run = chips.worker.run(|orch| Ok(orch.submit_next_level(add, nobody, TaskArgs::new()).map(drop)?));
    let error = refused("a task for worker 7", run, "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["7"])?;
    let run = chips.worker.run(|orch| Ok(orch.submit_sub(add, TaskArgs::new()).map(drop)?));
    refused("a chip callable for SUB children", run, "an error", |error| !matches!(error, Error::RunFailed { .. }))?;
    let ids = chips.ids.len();
    holds("the chip is still there", ids == 1, || ids)?;
    chips.adds(0)?;
    chips.close(false)
}
