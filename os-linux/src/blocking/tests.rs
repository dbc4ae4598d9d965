use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use laneway_core::chip::{
    Call, CallableSlot, ChipError, DeviceAddress, DeviceRuntime, HostAddress, Progress, RunDescriptor, RunToken,
};
use laneway_core::ids::PipelineSlot;
use laneway_core::model::TaskArgs;
use laneway_core::wire::{
    AddressSpace, ArgDirection, CallConfig, ChipCallable, ChipCallableSource, ChipStorageTaskArgs, ChipTensor, Dtype,
};

use super::*;
use crate::callable::BoxError;

mod rude;

/// What the one function does to its tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Deed {
    Increment,
    /// Tells that it runs, and waits until it is told to go on.
    Pause,
    Fail,
    GiveUp,
    Panic,
}

/// A device whose callables are deeds.
struct Deeds {
    memory: Option<ProcessMemory>,
    paused: Mutex<(Sender<()>, Receiver<()>)>,
}

impl BlockingDevice for Deeds {
    type Callable = Deed;

    fn load(&self, callable: &ChipCallable<'_>) -> Result<Deed, BoxError> {
        let deeds = [Deed::Increment, Deed::Pause, Deed::Fail, Deed::GiveUp, Deed::Panic];
        let known = deeds.into_iter().find(|deed| format!("{deed:?}") == callable.func_name());
        known.ok_or_else(|| format!("no deed is called {}", callable.func_name()).into())
    }

    fn check(&self, _: &Deed, args: &RunArgs<'_>) -> Result<(), BoxError> {
        args.tensor::<i32>(0)?;
        Ok(())
    }

    fn run(&self, deed: &Deed, args: &RunArgs<'_>) -> Result<(), RunError> {
        match deed {
            Deed::Increment => {}
            Deed::Pause => {
                let paused = self.paused.lock().unwrap();
                paused.0.send(())?;
                paused.1.recv()?;
            }
            Deed::Fail => return Err("the fan is loud".into()),
            Deed::GiveUp => return Err(RunError::unproven("no answer in 5 s")),
            Deed::Panic => panic!("no such unit"),
        }
        let tensor = args.tensor::<i32>(0)?;
        for (i, value) in tensor.iter().enumerate() {
            tensor.set(i, value + 1)?;
        }
        Ok(())
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        self.memory.as_ref().map(|memory| memory as &dyn DeviceMemory)
    }
}

/// A device, the two ends of its pause, and memory of the host that it may touch. The ends go first: a run that waits then
/// fails, so that a test that panics ends.
struct Rig {
    runs: Receiver<()>,
    go_on: Sender<()>,
    device: Blocking<Deeds>,
    host: ProcessMemory,
}

const SLOT: RunDescriptor = RunDescriptor::Direct(PipelineSlot::Zero);

fn slot(index: usize) -> CallableSlot {
    CallableSlot::new(index).unwrap()
}

fn blob(name: &str) -> Vec<u8> {
    let source = ChipCallableSource { func_name: name, signature: &[ArgDirection::InOut], ..Default::default() };
    let mut blob = vec![0; source.encoded_len().unwrap()];
    source.encode(&mut blob).unwrap();
    blob
}

fn tensor(address: u64, space: AddressSpace) -> ChipTensor {
    ChipTensor::contiguous(address, 16, Dtype::I32, &[4], space).unwrap()
}

fn args(tensors: &[ChipTensor]) -> Box<ChipStorageTaskArgs> {
    let (mut list, mut storage) = (TaskArgs::new(), Box::new(ChipStorageTaskArgs::new()));
    for tensor in tensors {
        list.no_dep(*tensor);
    }
    storage.load(list.view());
    storage
}

impl Rig {
    fn new(memory: Option<ProcessMemory>) -> Self {
        let ((tell, runs), (go_on, wait)) = (channel(), channel());
        // SAFETY: the tests name blocks of `host`, which outlives the device and is reached by atomics alone.
        #[expect(unsafe_code, reason = "the promise of whoever makes a runtime")]
        let mut device = unsafe { Blocking::whole_process(Deeds { memory, paused: Mutex::new((tell, wait)) }) };
        for (index, name) in ["Increment", "Pause", "Fail", "GiveUp", "Panic"].into_iter().enumerate() {
            device.register(slot(index), &blob(name)).unwrap();
        }
        Self { runs, go_on, device, host: ProcessMemory::new(1 << 20) }
    }

    /// Four whole numbers of the host.
    fn numbers(&self) -> u64 {
        self.host.allocate(16).unwrap().0
    }

    fn prepare(&mut self, deed: Deed, address: u64) -> Result<RunToken, ChipError> {
        let tensors = [tensor(address, AddressSpace::Host)];
        self.device.prepare(slot(deed as usize), &args(&tensors), &CallConfig::ZERO, SLOT)
    }

    fn launch(&mut self, deed: Deed, address: u64) -> RunToken {
        let run = self.prepare(deed, address).unwrap();
        self.device.launch(run).unwrap();
        run
    }

    fn read(&self, address: u64) -> [i32; 4] {
        let mut bytes = [0; 16];
        let block = self.host.block(DeviceAddress(address)).unwrap();
        block.bytes(DeviceAddress(address)).read(&mut bytes);
        std::array::from_fn(|i| i32::from_ne_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()))
    }
}

/// L-17, C-6, L-21: the launch has returned while the device is at work, a poll looks, and memory can be asked for meanwhile.
#[test]
fn nothing_waits_for_the_device_while_it_is_at_work() {
    let mut rig = Rig::new(Some(ProcessMemory::new(1 << 20)));
    let numbers = rig.numbers();
    let run = rig.launch(Deed::Pause, numbers);
    rig.runs.recv().unwrap();
    assert_eq!(rig.device.poll(run), Ok(Progress::NotReady));
    assert!(rig.device.accepted(run));
    let base = rig.device.malloc(16).unwrap();
    rig.device.copy_from(HostAddress(rig.numbers()), base, 16).unwrap();
    rig.device.free(base).unwrap();
    assert!(matches!(rig.device.register(slot(9), &blob("Fail")), Err(ChipError::RunInFlight { .. })), "C-8");
    assert_eq!(rig.read(numbers), [0; 4]);
    rig.go_on.send(()).unwrap();
    rig.device.wait(run).unwrap();
    assert_eq!(rig.read(numbers), [1; 4]);
    assert!(rig.device.accepted(run), "until it is finalized");
    rig.device.finalize(run).unwrap();
    assert!(!rig.device.accepted(run));
}

/// C-9: what returned is over, so the task fails and the device goes on.
#[test]
fn a_run_that_says_it_failed_fails_alone() {
    let mut rig = Rig::new(None);
    let numbers = rig.numbers();
    let run = rig.launch(Deed::Fail, numbers);
    assert_eq!(rig.device.wait(run), Ok(()), "its completion is proven");
    let failed = ChipError::RunFailed { reason: "the fan is loud".into() };
    assert_eq!((failed.is_unproven(), failed.code()), (false, -1));
    assert_eq!(rig.device.finalize(run), Err(failed));
    let run = rig.launch(Deed::Increment, numbers);
    rig.device.finalize(run).unwrap();
    assert_eq!(rig.read(numbers), [1; 4]);
}

/// C-9, T-30: what may still be at work, or panicked half-way, takes no new work.
#[test]
fn a_run_that_gives_up_or_panics_loses_the_device() {
    for (deed, says) in [(Deed::GiveUp, "no answer in 5 s"), (Deed::Panic, "panic: no such unit")] {
        let mut rig = Rig::new(Some(ProcessMemory::new(1 << 20)));
        let (numbers, base) = (rig.numbers(), rig.device.malloc(16).unwrap());
        let run = rig.launch(deed, numbers);
        let unproven = ChipError::Unproven { call: Call::Wait, epoch: run.epoch(), code: -1, reason: says.into() };
        assert_eq!(rig.device.wait(run), Err(unproven));
        rig.device.finalize(run).unwrap();
        assert_eq!(rig.prepare(deed, numbers), Err(ChipError::DeviceGone { call: Call::Prepare }));
        assert_eq!(rig.device.free(base), Err(ChipError::DeviceGone { call: Call::Free }));
        assert_eq!(rig.device.committed_memory(), 16, "what the device can reach is not given back");
        rig.device.shutdown().unwrap();
        assert_eq!(rig.device.committed_memory(), 0);
    }
}

/// L-15, C-12: a shutdown ends what is launched, and drops what the device was made of.
#[test]
fn a_shutdown_waits_for_the_run_that_is_on_its_way() {
    let mut rig = Rig::new(None);
    let numbers = rig.numbers();
    rig.launch(Deed::Pause, numbers);
    rig.runs.recv().unwrap();
    rig.go_on.send(()).unwrap();
    rig.device.shutdown().unwrap();
    assert_eq!(rig.read(numbers), [1; 4]);
    rig.device.shutdown().unwrap();
    assert_eq!(rig.prepare(Deed::Fail, numbers), Err(ChipError::DeviceGone { call: Call::Prepare }));
    assert_eq!(rig.device.malloc(1), Err(ChipError::DeviceGone { call: Call::Malloc }));
}

/// C-16: memory that a run names stays until the run has ended, although it was freed meanwhile.
#[test]
fn a_block_that_is_freed_under_a_run_stays_as_long_as_the_run() {
    let mut rig = Rig::new(Some(ProcessMemory::new(64)));
    let base = rig.device.malloc(16).unwrap();
    let there = args(&[tensor(base.0, AddressSpace::Device)]);
    let run = rig.device.prepare(slot(Deed::Pause as usize), &there, &CallConfig::ZERO, SLOT).unwrap();
    rig.device.launch(run).unwrap();
    rig.runs.recv().unwrap();
    rig.device.free(base).unwrap();
    rig.go_on.send(()).unwrap();
    rig.device.finalize(run).unwrap();
    let none = ChipTensor::contiguous(base.0, 0, Dtype::I32, &[0], AddressSpace::Device).unwrap();
    rig.device.run(slot(0), &args(&[none]), &CallConfig::ZERO, SLOT).expect("no bytes lie anywhere");
    let dead = ChipError::NotDeviceMemory { call: Call::Prepare, address: base };
    assert_eq!(rig.device.prepare(slot(0), &there, &CallConfig::ZERO, SLOT), Err(dead));
}

/// C-13: in every place where host memory is named.
#[test]
fn host_memory_outside_the_ranges_is_refused() {
    let memory = ProcessMemory::new(1 << 20);
    let (tell, wait) = (channel().0, channel().1);
    let host = ProcessMemory::new(64);
    let inside = host.allocate(32).unwrap().0;
    let deeds = Deeds { memory: Some(memory), paused: Mutex::new((tell, wait)) };
    // SAFETY: a block that outlives the device and is reached by atomics alone.
    #[expect(unsafe_code, reason = "the promise of whoever makes a runtime")]
    let mut device = unsafe { Blocking::ranges(deeds, std::iter::once(inside..inside + 32)) };
    device.register(slot(0), &blob("Increment")).unwrap();
    let base = device.malloc(32).unwrap();
    for address in [inside - 1, inside + 17, 0, u64::MAX - 3] {
        let refused = |call| Err(ChipError::NotHostMemory { call, address: HostAddress(address), bytes: 16 });
        assert_eq!(device.copy_to(base, HostAddress(address), 16), refused(Call::CopyTo));
        assert_eq!(device.copy_from(HostAddress(address), base, 16), refused(Call::CopyFrom));
    }
    let outside = args(&[tensor(inside + 20, AddressSpace::Host)]);
    let refused = ChipError::NotHostMemory { call: Call::Prepare, address: HostAddress(inside + 20), bytes: 16 };
    assert_eq!(device.prepare(slot(0), &outside, &CallConfig::ZERO, SLOT), Err(refused));
    device.copy_to(base, HostAddress(inside), 32).unwrap();
}

/// C-14, C-9: what the device says about a callable or about arguments is what its user reads.
#[test]
fn a_refusal_says_what_the_device_says() {
    let mut rig = Rig::new(Some(ProcessMemory::new(100)));
    let refused = rig.device.register(slot(9), &blob("Sing")).unwrap_err();
    assert_eq!(refused.to_string(), "callable refused: no deed is called Sing");
    let floats = ChipTensor::contiguous(rig.numbers(), 16, Dtype::F32, &[4], AddressSpace::Host).unwrap();
    let refused = rig.device.prepare(slot(0), &args(&[floats]), &CallConfig::ZERO, SLOT).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "prepare failed with code -1: tensor argument 0: its elements are f32, and i32 was asked for"
    );
    let nowhere = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
    let refused = rig.device.prepare(slot(0), &args(&[]), &nowhere, SLOT).unwrap_err();
    assert!(refused.to_string().starts_with("config refused: enable_pmu is 1, "), "{refused}");
    let refused = rig.device.prepare(slot(0), &args(&[]), &CallConfig::ZERO, SLOT).unwrap_err();
    assert_eq!(refused.to_string(), "argument 0 refused: 0 tensors and 0 scalars given, 1 and 0 taken by Increment");
    let full = ChipError::OutOfMemory { asked: 101, free: 100, largest: 100, total: 100 };
    assert_eq!(rig.device.malloc(101), Err(full));
}
