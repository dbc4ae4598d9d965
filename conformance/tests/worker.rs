//! The same devices as chip children of a worker: parent → mailbox → child → device → copy-back.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;
mod library;
#[path = "../../sim/tests/reference/mod.rs"]
mod reference;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use laneway_ascend::{HostRuntime, Installation, LogThreshold};
use laneway_core::chip::{Call, ChipError};
use laneway_linux::{
    AddressSpace, CallableHandle, Chip, ChipTensor, DeviceAddress, Dtype, Error, ExitCause, Label, Leftover, RunHandle,
    TaskArgs, Tensor, Worker, WorkerBuilder, WorkerId,
};
use laneway_sim::{Action, Config, FaultPlan, HostMemory, Kernel, Point, Profile, Simulator, callable};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rustix::process::getpid;

use library::Folder;
use reference::{case, from_bytes, to_bytes};

fn main() -> ExitCode {
    library::build();
    harness::main_in_both_modes(
        harness::cases![
            every_kernel_is_right_through_the_whole_stack,
            a_device_that_is_lost_ends_its_endpoint_and_no_other,
            an_incompatible_prepare_is_deferred_and_no_error_of_its_task,
            overlapping_runs_are_right_where_nothing_is_prepared_beside_another,
            a_failed_prepare_is_the_failure_of_its_task_alone,
            a_child_does_not_poll_its_device_without_pause,
            device_memory_belongs_to_the_worker_it_came_from,
            device_memory_that_a_task_names_is_in_use,
        ],
        harness::cases![
            a_library_computes_in_the_chip_child_and_is_mapped_nowhere_else,
            a_device_that_ends_its_process_is_reported_with_the_signal,
            close_does_not_wait_for_a_device_that_hangs,
            a_run_past_its_deadline_ends_its_child_and_no_other,
        ],
    )
}

const HBG: Profile = Profile::A2a3HostBuildGraph;
/// Cases per run of the whole stack; each is a random kernel, type and layout.
const RANDOM_CASES: usize = 300;

/// A chip child with a simulator.
fn simulated(config: Config) -> Chip {
    let profile = config.profile;
    Chip::new(profile.platform(), profile.runtime(), move |shared| {
        // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and this child makes no
        // reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(config.clone(), host)
    })
}

/// A chip child with the simulator behind the vendor's interface.
fn behind_the_interface(installation: Installation) -> Chip {
    Chip::new(installation.platform(), installation.runtime(), move |_| {
        // SAFETY: it is our own library; and as above.
        let runtime = unsafe { HostRuntime::bind(&installation, LogThreshold::Error) }?;
        runtime.open(0, None)
    })
}

/// A worker with chips, and a callable per kernel.
struct Bench {
    worker: Worker,
    chips: Vec<WorkerId>,
    kernels: Vec<CallableHandle>,
}

impl Bench {
    fn new(chips: Vec<Chip>, profile: Profile) -> Self {
        Self::of(harness::builder!(), chips, profile)
    }

    fn of(builder: WorkerBuilder, chips: Vec<Chip>, profile: Profile) -> Self {
        let worker = builder.build().unwrap();
        let chips = chips.into_iter().map(|chip| worker.add_chip(chip).unwrap()).collect();
        let (platform, runtime) = (profile.platform(), profile.runtime());
        let register = |kernel| worker.register_chip(platform, runtime, &callable(kernel)).unwrap();
        let kernels = Kernel::ALL.map(register).into();
        worker.init().unwrap();
        Self { worker, chips, kernels }
    }

    fn kernel(&self, kernel: Kernel) -> &CallableHandle {
        &self.kernels[Kernel::ALL.iter().position(|&other| other == kernel).unwrap()]
    }

    /// Memory of the tree that holds these bytes.
    fn bytes(&self, bytes: &[u8]) -> Tensor<u8> {
        let tensor = self.worker.tensor(&[bytes.len() as u32]).unwrap();
        tensor.copy_from(bytes).unwrap();
        tensor
    }

    fn vector(&self, value: f32) -> Tensor<f32> {
        let tensor = self.worker.tensor(&[16]).unwrap();
        tensor.fill_with(|_| value).unwrap();
        tensor
    }

    /// Adds on a chip and checks the sum.
    fn add(&self, chip: usize) -> Result<(), Error> {
        let (a, b, out) = (self.vector(1.0), self.vector(2.0), self.vector(0.0));
        self.worker.run(|orch| {
            let mut args = TaskArgs::new();
            args.input(&a).input(&b).output(&out);
            Ok(orch.submit_next_level(self.kernel(Kernel::Add), self.chips[chip], args).map(drop)?)
        })?;
        assert_eq!(out.to_vec().unwrap(), [3.0; 16]);
        Ok(())
    }
}

/// Random kernels, types, shapes, strides and gaps, on every profile.
fn every_kernel_is_right_through_the_whole_stack() {
    let benches = Profile::ALL.map(|profile| Bench::new(vec![simulated(Config::new(profile))], profile));
    let mut runner = TestRunner::deterministic();
    let strategy = case();
    for number in 0..RANDOM_CASES {
        let case = strategy.new_tree(&mut runner).expect("a case").current();
        let bench = &benches[Profile::ALL.iter().position(|&profile| profile == case.profile).unwrap()];
        let buffers = case.buffers();
        let memory: Vec<_> = buffers.iter().map(|buffer| bench.bytes(&to_bytes(case.dtype, buffer))).collect();
        let mut args = TaskArgs::new();
        for (operand, (layout, memory)) in case.layouts.iter().zip(&memory).enumerate() {
            let tensor = layout.tensor(memory.as_arg().addr(), case.dtype, AddressSpace::Host);
            if operand == case.inputs() {
                args.inout(tensor)
            } else {
                args.input(tensor)
            };
        }
        for scalar in case.scalars() {
            args.scalar(scalar);
        }
        let kernel = bench.kernel(case.kernel);
        bench.worker.run(|orch| Ok(orch.submit_next_level(kernel, bench.chips[0], args).map(drop)?)).unwrap();
        let result = from_bytes(case.dtype, &memory[case.inputs()].to_vec().unwrap());
        assert_eq!(result, case.expected(&buffers), "case {number}, gaps included: {case:?}");
    }
    for bench in benches {
        bench.worker.close().unwrap();
    }
}

/// Whether a process has the library mapped.
fn maps_the_library(pid: &str) -> bool {
    let name = library::path().file_name().unwrap().to_str().unwrap().to_owned();
    std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().contains(&name)
}

/// P-26: never in the parent, nor in a child beside it.
fn a_library_computes_in_the_chip_child_and_is_mapped_nowhere_else() {
    let folder = Folder::new();
    let installation = library::installation(&folder, HBG.platform(), HBG.runtime());
    let bench = Bench::new(vec![behind_the_interface(installation), simulated(Config::new(HBG))], HBG);
    for _ in 0..10 {
        bench.add(0).unwrap();
        bench.add(1).unwrap();
    }
    assert!(!maps_the_library("self"));
    let children = harness::children_of(getpid());
    let with_it = children.iter().filter(|pid| maps_the_library(&pid.to_string())).count();
    assert_eq!((children.len(), with_it), (2, 1));
    bench.worker.close().unwrap();
}

/// C-9, E-41: the report says that the completion is unproven; the endpoint is dead, the other chip goes on.
fn a_device_that_is_lost_ends_its_endpoint_and_no_other() {
    for (at, action) in [(Point::Poll, Action::Error(-9)), (Point::Launch, Action::HalfLaunch)] {
        let faulty = Config::new(HBG).with_faults(FaultPlan::none().with(at, 2, action));
        let bench = Bench::new(vec![simulated(faulty), simulated(Config::new(HBG))], HBG);
        // A poll is counted each time the child looks, so only the half launch leaves the first run alone.
        if at == Point::Launch {
            bench.add(0).unwrap();
        }
        let mut text = String::new();
        for _ in 0..2 {
            if let Err(error) = bench.add(0) {
                text = error.to_string();
                break;
            }
        }
        assert!(text.contains("unproven"), "{text}");
        bench.add(1).unwrap();
        assert!(bench.add(0).is_err(), "dead for the worker's life");
        bench.add(1).unwrap();
        // The child leaves by itself after its report; if that is seen only now, close says so (P-15).
        match bench.worker.close() {
            Ok(()) => {}
            Err(Error::AbnormalExits { children }) => {
                assert!(
                    matches!(children[..], [(Label::Worker(id), ExitCause::Exited { .. })] if id == bench.chips[0])
                );
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// L-16, T-28: a successor whose prepare is refused beside the executing run is prepared again later, under the same
/// generation, and its task never hears of it.
fn an_incompatible_prepare_is_deferred_and_no_error_of_its_task() {
    let plan = FaultPlan::none().with(Point::Prepare, 2, Action::Incompatible);
    let bench = Bench::new(vec![simulated(Config::new(HBG).with_faults(plan))], HBG);
    let a_while = 200_000_000;
    let first = bench.worker.submit(|orch| {
        let args = TaskArgs::new().scalar(a_while).clone();
        Ok(orch.submit_next_level(bench.kernel(Kernel::Wait), bench.chips[0], args).map(drop)?)
    });
    let first = first.unwrap();
    first.wait_accepted().unwrap();
    let out = bench.vector(0.0);
    let second = submit_add(&bench, &out);
    second.wait().unwrap();
    first.wait().unwrap();
    assert_eq!(out.to_vec().unwrap(), [3.0; 16]);
    bench.worker.close().unwrap();
}

/// L-12: TMR validates the successor and prepares it when its time has come.
fn overlapping_runs_are_right_where_nothing_is_prepared_beside_another() {
    let tmr = Profile::A2a3TensormapAndRingbuffer;
    let bench = Bench::new(vec![simulated(Config::new(tmr))], tmr);
    overlap(&bench);
    bench.worker.close().unwrap();
}

/// A run of one task, which adds.
fn submit_add(bench: &Bench, out: &Tensor<f32>) -> RunHandle {
    let (a, b) = (bench.vector(1.0), bench.vector(2.0));
    let submitted = bench.worker.submit(|orch| {
        let mut args = TaskArgs::new();
        args.input(&a).input(&b).output(out);
        Ok(orch.submit_next_level(bench.kernel(Kernel::Add), bench.chips[0], args).map(drop)?)
    });
    submitted.unwrap()
}

/// Runs of one task each, up to two of them open at once.
fn overlap(bench: &Bench) {
    let outs: Vec<_> = (0..20).map(|_| bench.vector(0.0)).collect();
    let runs: Vec<_> = outs.iter().map(|out| submit_add(bench, out)).collect();
    for (run, out) in runs.iter().zip(&outs) {
        run.wait().unwrap();
        assert_eq!(out.to_vec().unwrap(), [3.0; 16]);
    }
}

/// An error before the launch fails the task, and the child goes on serving.
fn a_failed_prepare_is_the_failure_of_its_task_alone() {
    let plan = FaultPlan::none().with(Point::Prepare, 2, Action::Error(-5)).with(Point::Finalize, 2, Action::Error(-6));
    let bench = Bench::new(vec![simulated(Config::new(HBG).with_faults(plan))], HBG);
    bench.add(0).unwrap();
    for code in ["code -5", "code -6"] {
        let text = bench.add(0).unwrap_err().to_string();
        assert!(text.contains("worker 0: ") && text.contains(code), "{text}");
    }
    bench.add(0).unwrap();
    bench.worker.close().unwrap();
}

/// T-29: a child that waits for its device looks now and then, not millions of times a second. Each of its looks is
/// counted, and one too many fails the run.
fn a_child_does_not_poll_its_device_without_pause() {
    let (looks, half_a_second) = (50_000, 500_000_000);
    let plan = FaultPlan::none().with(Point::Poll, looks, Action::Error(-1));
    let bench = Bench::new(vec![simulated(Config::new(HBG).with_faults(plan))], HBG);
    let ended = bench.worker.run(|orch| {
        let mut args = TaskArgs::new();
        args.scalar(half_a_second);
        Ok(orch.submit_next_level(bench.kernel(Kernel::Wait), bench.chips[0], args).map(drop)?)
    });
    ended.expect("fewer than 100,000 looks a second");
    bench.worker.close().unwrap();
}

/// L-25: whatever the device is doing when it takes its process with it.
fn a_device_that_ends_its_process_is_reported_with_the_signal() {
    for (at, action, signal) in [
        (Point::Prepare, Action::Kill, "SIGKILL"),
        (Point::Launch, Action::Abort, "SIGABRT"),
        (Point::Poll, Action::Kill, "SIGKILL"),
        (Point::Finalize, Action::Abort, "SIGABRT"),
    ] {
        let plan = FaultPlan::none().with(at, 1, action);
        let bench = Bench::new(vec![simulated(Config::new(HBG).with_faults(plan)), simulated(Config::new(HBG))], HBG);
        let text = bench.add(0).unwrap_err().to_string();
        assert!(text.contains("worker 0") && text.contains(signal), "{at:?}: {text}");
        bench.add(1).unwrap();
        bench.worker.close().unwrap();
    }
}

/// C-15, T-36: the child is killed when its time is over, and the run says so; whether it polls a device that never
/// completes, or is stuck inside a call.
fn close_does_not_wait_for_a_device_that_hangs() {
    for at in [Point::Launch, Point::Finalize] {
        let plan = FaultPlan::none().with(at, 1, Action::Hang);
        let short = Duration::from_millis(200);
        let builder = harness::builder!().drain_budget(short).reap_budget(short);
        let bench = Bench::of(builder, vec![simulated(Config::new(HBG).with_faults(plan))], HBG);
        let out = bench.vector(0.0);
        let run = submit_add(&bench, &out);
        run.wait_accepted().unwrap();
        let start = Instant::now();
        let closed = bench.worker.close_now();
        assert!(matches!(closed, Err(Error::AbnormalExits { .. })), "it had to be killed: {closed:?}");
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert!(run.wait().is_err());
        assert!(harness::children_of(getpid()).is_empty());
    }
}

/// Four f32 in the memory of a chip.
fn on_device(base: DeviceAddress) -> ChipTensor {
    ChipTensor::contiguous(base.0, 64, Dtype::F32, &[16], AddressSpace::Device).unwrap()
}

/// C-16, T-46: every pointer is judged before anything is sent, and each worker's memory is its own.
fn device_memory_belongs_to_the_worker_it_came_from() {
    let bench = Bench::new(vec![simulated(Config::new(HBG)), simulated(Config::new(HBG))], HBG);
    let (worker, [one, two]) = (&bench.worker, [bench.chips[0], bench.chips[1]]);
    let before = worker.committed_device_memory(one).unwrap();
    let (mine, theirs) = (worker.malloc(one, 64).unwrap(), worker.malloc(two, 64).unwrap());
    assert_eq!(mine, theirs, "equal numbers on two workers are two allocations");
    let host = bench.vector(1.5);
    worker.copy_to(one, mine, &host).unwrap();
    host.fill_with(|_| 0.0).unwrap();
    worker.copy_from(one, &host, mine).unwrap();
    assert_eq!(host.to_vec().unwrap(), [1.5; 16]);
    let inside = DeviceAddress(mine.0 + 16);
    assert_eq!(worker.free(one, inside), Err(ChipError::NotABase { address: inside, base: mine }.into()));
    let past = worker.copy_from(one, &host, inside).unwrap_err();
    assert!(matches!(past, Error::Chip(ChipError::OutOfBounds { .. })), "{past}");
    worker.free(one, mine).unwrap();
    let dead = |call| Err(Error::Chip(ChipError::NotDeviceMemory { call, address: mine }));
    assert_eq!(worker.free(one, mine), dead(Call::Free));
    assert_eq!(worker.copy_to(one, mine, &host), dead(Call::CopyTo));
    assert_eq!(worker.committed_device_memory(one), Ok(before));
    // Live on two, dead on one.
    let submit = |chip| {
        let mut args = TaskArgs::new();
        args.input(on_device(theirs)).output(&host);
        worker.run(|orch| Ok(orch.submit_next_level(bench.kernel(Kernel::Copy), chip, args).map(drop)?))
    };
    assert!(submit(one).unwrap_err().to_string().contains("no live device memory"));
    submit(two).unwrap();
    let full = worker.malloc(one, 1 << 60).unwrap_err().to_string();
    assert!(full.contains("out of device memory"), "{full}");
    assert_eq!(worker.live_device_memory(two), Ok(vec![(theirs, 64)]));
    assert!(worker.malloc(WorkerId::new(9).unwrap(), 1).is_err());
    // The worker is closed, and says what nobody freed.
    let left = worker.close().unwrap_err();
    let expected = vec![(Label::Worker(two), Leftover { allocations: 1, bytes: 64 })];
    assert_eq!(left, Error::DeviceMemoryLeft { chips: expected });
    assert!(left.to_string().contains("worker 1: 1 allocation of 64 bytes"), "{left}");
    assert_eq!((worker.health().state, worker.close()), ("CLOSED", Ok(())));
}

/// C-16: a copy into what an unfinished task names is refused, a free of it waits for the task.
fn device_memory_that_a_task_names_is_in_use() {
    let plan = FaultPlan::none().with(Point::Launch, 1, Action::Delay(1_000_000_000));
    let bench = Bench::new(vec![simulated(Config::new(HBG).with_faults(plan))], HBG);
    let (worker, chip) = (&bench.worker, bench.chips[0]);
    let before = worker.committed_device_memory(chip).unwrap();
    let (base, host) = (worker.malloc(chip, 64).unwrap(), bench.vector(4.0));
    worker.copy_to(chip, base, &host).unwrap();
    let out = bench.vector(0.0);
    let run = worker.submit(|orch| {
        let mut args = TaskArgs::new();
        args.input(on_device(base)).output(&out);
        Ok(orch.submit_next_level(bench.kernel(Kernel::Copy), chip, args).map(drop)?)
    });
    let run = run.unwrap();
    run.wait_accepted().unwrap();
    assert_eq!(worker.copy_to(chip, base, &host), Err(Error::InUse { start: base.0, end: base.0 + 64 }));
    worker.free(chip, base).unwrap();
    assert!(worker.free(chip, base).is_err(), "once");
    assert!(worker.committed_device_memory(chip).unwrap() > before, "a control runs beside the task (L-21)");
    run.wait().unwrap();
    assert_eq!(out.to_vec().unwrap(), [4.0; 16]);
    // The free is sent when the task has ended, and answered when it has been: nothing else is waited for.
    while !worker.live_device_memory(chip).unwrap().is_empty() {
        worker.committed_device_memory(chip).unwrap();
    }
    worker.close().unwrap();
}

/// C-15: a device that never completes, or a call that never returns; the rest of the worker goes on.
fn a_run_past_its_deadline_ends_its_child_and_no_other() {
    for at in [Point::Launch, Point::Prepare, Point::Finalize] {
        let plan = FaultPlan::none().with(at, 1, Action::Hang);
        let bench = Bench::new(vec![simulated(Config::new(HBG).with_faults(plan)), simulated(Config::new(HBG))], HBG);
        let child = harness::children_of(getpid())[0];
        let start = Instant::now();
        let error = bench.worker.run(|orch| {
            orch.set_deadline(Some(Duration::from_millis(100)));
            let args = TaskArgs::new();
            Ok(orch.submit_next_level(bench.kernel(Kernel::Noop), bench.chips[0], args).map(drop)?)
        });
        let text = error.unwrap_err().to_string();
        assert!(text.contains("worker 0") && text.contains("deadline") && text.contains("run 1"), "{at:?}: {text}");
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        assert!(!harness::is_alive(child.as_raw_nonzero().get()), "{at:?}: killed and reaped");
        bench.add(1).unwrap();
        assert!(bench.add(0).is_err());
        let closed = bench.worker.close();
        assert!(matches!(closed, Ok(()) | Err(Error::AbnormalExits { .. })), "{closed:?}");
    }
}
