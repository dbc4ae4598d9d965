//! Level-2 workers: one simulated chip in this process, through the public interface (C-16, C-17, C-18).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use laneway_core::chip::{Call, ChipError};
use laneway_linux::{
    AddressSpace, CallConfig, ChipTensor, ChipWorker, DeviceAddress, Dtype, Error, TaskArgs, unallocated,
};
use laneway_sim::{
    Action, Config, FaultPlan, HangSwitch, HostMemory, Kernel, Point, Profile, Simulator, callable, scale_factor,
};

const HBG: Profile = Profile::A2a3HostBuildGraph;

fn device(config: Config) -> Simulator {
    // SAFETY: the tests hand over tensors of live buffers of atomics, and copies of live slices that nobody else uses.
    let host = unsafe { HostMemory::whole_process() };
    Simulator::new(config, host).unwrap()
}

fn worker_of(config: Config) -> ChipWorker {
    ChipWorker::new(device(config))
}

fn worker(profile: Profile) -> ChipWorker {
    worker_of(Config::new(profile))
}

/// A worker whose first run does not complete before the switch is thrown.
fn worker_with_a_slow_run() -> (ChipWorker, HangSwitch) {
    let plan = FaultPlan::none().with(Point::Launch, 1, Action::Hang);
    let device = device(Config::new(HBG).with_faults(plan));
    let switch = device.hang_switch();
    (ChipWorker::new(device), switch)
}

/// Four f32 that a device may touch.
struct Buffer([AtomicU32; 4]);

impl Buffer {
    fn of(value: f32) -> Self {
        Self(std::array::from_fn(|_| AtomicU32::new(value.to_bits())))
    }

    fn tensor(&self) -> ChipTensor {
        let address = self.0.as_ptr().expose_provenance() as u64;
        ChipTensor::contiguous(address, 16, Dtype::F32, &[4], AddressSpace::Host).unwrap()
    }

    fn is(&self, value: f32) -> bool {
        self.0.iter().all(|element| f32::from_bits(element.load(Ordering::Relaxed)) == value)
    }
}

fn on_device(address: DeviceAddress) -> ChipTensor {
    ChipTensor::contiguous(address.0, 16, Dtype::F32, &[4], AddressSpace::Device).unwrap()
}

/// C-17: register, blocking run, submit with a handle.
#[test]
fn every_profile_runs_in_this_process() {
    for profile in Profile::ALL {
        let worker = worker(profile);
        let add = worker.register(&callable(Kernel::Add)).unwrap();
        let scale = worker.register(&callable(Kernel::Scale)).unwrap();
        let (a, b, sum, out) = (Buffer::of(1.0), Buffer::of(2.0), Buffer::of(0.0), Buffer::of(0.0));
        let mut args = TaskArgs::new();
        worker.run(&add, args.input(a.tensor()).input(b.tensor()).output(sum.tensor())).unwrap();
        assert!(sum.is(3.0));
        let mut args = TaskArgs::new();
        args.input(sum.tensor()).output(out.tensor()).scalar(scale_factor(4.0));
        let run = worker.submit(&scale, &args).unwrap();
        assert_eq!((run.wait(), run.wait(), run.is_done()), (Ok(()), Ok(()), true));
        assert!(out.is(12.0));
        worker.unregister(&add).unwrap();
        assert!(worker.run(&add, &args).is_err(), "a dead handle");
        assert_eq!(worker.close(), Ok(Vec::new()));
        assert_eq!(worker.close(), Ok(Vec::new()));
    }
}

/// C-18
#[test]
fn waiting_for_the_second_run_drives_the_first() {
    let (worker, switch) = worker_with_a_slow_run();
    let noop = worker.register(&callable(Kernel::Noop)).unwrap();
    let add = worker.register(&callable(Kernel::Add)).unwrap();
    let first = worker.submit(&noop, TaskArgs::new()).unwrap();
    let (one, out) = (Buffer::of(1.0), Buffer::of(0.0));
    let mut sum = TaskArgs::new();
    sum.input(one.tensor()).input(one.tensor()).output(out.tensor());
    let second = worker.submit(&add, &sum).unwrap();
    assert!(!first.is_done() && !second.is_done());
    assert_eq!(second.wait_timeout(Duration::from_millis(1)), None);
    switch.release();
    second.wait().unwrap();
    assert!(first.is_done() && out.is(2.0));
}

/// C-18
#[test]
fn a_third_run_waits_until_the_first_has_ended() {
    let (worker, switch) = worker_with_a_slow_run();
    let noop = worker.register(&callable(Kernel::Noop)).unwrap();
    let runs = [(); 2].map(|()| worker.submit(&noop, TaskArgs::new()).unwrap());
    std::thread::scope(|scope| {
        let third = scope.spawn(|| {
            let third = worker.submit(&noop, TaskArgs::new()).unwrap();
            (runs[0].is_done(), third.wait())
        });
        assert!(!runs[0].is_done());
        switch.release();
        assert_eq!(third.join().unwrap(), (true, Ok(())));
    });
    assert!(runs[1].is_done());
}

/// C-8, and the handle of another worker.
#[test]
fn callables_belong_to_their_worker_and_stay_while_a_run_needs_them() {
    let ((one, switch), two) = (worker_with_a_slow_run(), worker(HBG));
    let noop = one.register(&callable(Kernel::Noop)).unwrap();
    two.register(&callable(Kernel::Noop)).unwrap();
    let foreign = two.run(&noop, TaskArgs::new());
    assert!(matches!(foreign, Err(Error::Chip(ChipError::CallableUnknown { .. }))));
    let run = one.submit(&noop, TaskArgs::new()).unwrap();
    let busy = one.unregister(&noop).unwrap_err();
    assert!(matches!(busy, Error::Chip(ChipError::RunInFlight { call: Call::Unregister, .. })), "{busy}");
    switch.release();
    run.wait().unwrap();
    one.unregister(&noop).unwrap();
    for _ in 0..64 {
        one.register(&callable(Kernel::Noop)).unwrap();
    }
    assert!(one.register(&callable(Kernel::Noop)).unwrap_err().to_string().contains("64"));
}

/// C-16, T-46: pointers are judged here, before the device sees them.
#[test]
fn device_memory_belongs_to_its_worker() {
    let (one, two) = (worker(HBG), worker(HBG));
    let (mine, theirs) = (one.malloc(16).unwrap(), two.malloc(16).unwrap());
    assert_eq!(mine, theirs, "equal numbers on two workers are two allocations");
    one.copy_to(mine, &[1.5f32; 4]).unwrap();
    two.copy_to(theirs, &[2.5f32; 4]).unwrap();
    let mut back = [0.0f32; 4];
    one.copy_from(&mut back, mine).unwrap();
    assert_eq!(back, [1.5; 4]);
    let inside = DeviceAddress(mine.0 + 4);
    one.copy_from(&mut back[..3], inside).unwrap();
    assert!(matches!(one.copy_from(&mut back, inside), Err(Error::Chip(ChipError::OutOfBounds { .. }))));
    assert_eq!(one.free(inside), Err(ChipError::NotABase { address: inside, base: mine }.into()));
    one.free(mine).unwrap();
    let dead = |call| Err(Error::Chip(ChipError::NotDeviceMemory { call, address: mine }));
    assert_eq!(one.free(mine), dead(Call::Free));
    assert_eq!(one.copy_to(mine, &[0.0f32; 4]), dead(Call::CopyTo));
    let copy = one.register(&callable(Kernel::Copy)).unwrap();
    let out = Buffer::of(0.0);
    let mut args = TaskArgs::new();
    args.input(on_device(mine)).output(out.tensor());
    assert_eq!(one.run(&copy, &args), dead(Call::Prepare));
    two.copy_from(&mut back, theirs).unwrap();
    assert_eq!(back, [2.5; 4]);
}

/// C-16: a copy that touches what a run names is refused, and a free of it waits for the run.
#[test]
fn memory_that_a_run_names_is_neither_copied_nor_freed() {
    let (worker, switch) = worker_with_a_slow_run();
    let copy = worker.register(&callable(Kernel::Copy)).unwrap();
    let (from, to) = (worker.malloc(16).unwrap(), worker.malloc(16).unwrap());
    worker.copy_to(from, &[7.0f32; 4]).unwrap();
    let mut args = TaskArgs::new();
    let run = worker.submit(&copy, args.input(on_device(from)).output(on_device(to))).unwrap();
    let mut back = [0.0f32; 4];
    assert_eq!(worker.copy_from(&mut back, to), Err(Error::InUse { start: to.0, end: to.0 + 16 }));
    assert!(matches!(worker.copy_to(from, &[0.0f32; 1]), Err(Error::InUse { .. })));
    worker.free(from).unwrap();
    assert!(matches!(worker.free(from), Err(Error::Chip(ChipError::NotDeviceMemory { .. }))), "once");
    let with_both = worker.committed_memory().unwrap();
    switch.release();
    run.wait().unwrap();
    worker.copy_from(&mut back, to).unwrap();
    assert_eq!(back, [7.0; 4]);
    assert!(worker.committed_memory().unwrap() < with_both, "freed when the run had ended");
    assert_eq!(worker.close(), Ok(vec![(to, 16)]), "what was live at close is reported");
}

/// Results outlive the worker's close; calls on a closed worker say so.
#[test]
fn close_waits_for_runs_and_keeps_their_results() {
    let worker = worker(HBG);
    let wait = worker.register(&callable(Kernel::Wait)).unwrap();
    let (mut pause, ten_milliseconds) = (TaskArgs::new(), 10_000_000);
    pause.scalar(ten_milliseconds);
    let runs = [worker.submit(&wait, &pause).unwrap(), worker.submit(&wait, &pause).unwrap()];
    worker.close().unwrap();
    assert!(runs.iter().all(|run| run.is_done() && run.wait() == Ok(())));
    let gone = |call| Error::Chip(ChipError::DeviceGone { call });
    assert_eq!(worker.submit(&wait, &pause).map(drop), Err(gone(Call::Prepare)));
    assert_eq!(worker.malloc(1), Err(gone(Call::Malloc)));
}

/// Arguments and configs are judged before the device is asked.
#[test]
fn arguments_that_are_not_legal_are_refused() {
    let worker = worker(HBG);
    let add = worker.register(&callable(Kernel::Add)).unwrap();
    let one = Buffer::of(1.0);
    let mut args = TaskArgs::new();
    args.scalar(1).input(one.tensor());
    assert!(matches!(worker.run(&add, &args), Err(Error::Model(_))), "a tensor after a scalar");
    let mut args = TaskArgs::new();
    args.input(one.tensor()).input(one.tensor()).output(unallocated::<f32>(&[4]).unwrap());
    let error = worker.run(&add, &args).unwrap_err().to_string();
    assert!(error.contains("allocates no outputs"), "{error}");
    let diagnostic = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
    assert!(matches!(worker.submit_with(&add, &args, &diagnostic), Err(Error::Wire(_))), "no output prefix");
}

/// Any thread may submit and wait, and no run is lost or run twice.
#[test]
fn threads_share_a_worker() {
    let worker = worker(HBG);
    let add = worker.register(&callable(Kernel::Add)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let (worker, add) = (worker.clone(), add.clone());
            scope.spawn(move || {
                for round in 0..50u8 {
                    let (a, b, out) = (Buffer::of(thread.into()), Buffer::of(round.into()), Buffer::of(-1.0));
                    let mut args = TaskArgs::new();
                    worker.run(&add, args.input(a.tensor()).input(b.tensor()).output(out.tensor())).unwrap();
                    assert!(out.is(f32::from(thread) + f32::from(round)));
                }
            });
        }
    });
}

/// C-9: both runs end, with the reason, and nothing new begins.
#[test]
fn a_lost_device_ends_the_runs_on_their_way() {
    let plan = FaultPlan::none().with(Point::Poll, 1, Action::Error(-9));
    let worker = worker_of(Config::new(HBG).with_faults(plan));
    let wait = worker.register(&callable(Kernel::Wait)).unwrap();
    let mut pause = TaskArgs::new();
    let run = worker.submit(&wait, pause.scalar(0)).unwrap();
    let error = run.wait().unwrap_err();
    assert!(matches!(&error, Error::Chip(error) if error.is_unproven()), "{error}");
    assert!(worker.run(&wait, &pause).is_err());
    assert_eq!(worker.close(), Ok(Vec::new()));
}

/// C-17, P-2: a fork would copy the connection to a device into children that cannot use it.
#[test]
fn a_worker_that_forks_is_refused_in_a_process_that_holds_a_device() {
    let chip = worker(Profile::A2a3HostBuildGraph);
    let forks = laneway_linux::Worker::builder().subs(1).allow_foreign_threads(true).build().unwrap();
    let error = forks.init().unwrap_err();
    // Other tests of this process hold some too.
    assert!(matches!(error, laneway_linux::Error::HoldsDevice { count: 1.. }), "{error:?}");
    assert!(error.to_string().contains("close it first"), "{error}");
    chip.close().unwrap();
}
