//! A device that panics wherever it is asked.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use laneway_core::chip::RunTable;

use super::*;

/// An error that cannot be printed.
#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl StdError for Unspeakable {}

/// What the device is told to do, by the name of a function; panics when it is dropped.
struct Order(String, Arc<AtomicUsize>);

impl Drop for Order {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
        panic!("dropped");
    }
}

#[derive(Default)]
struct Rude {
    dropped: Arc<AtomicUsize>,
    freed: Arc<AtomicUsize>,
}

impl BlockingDevice for Rude {
    type Callable = Order;

    fn load(&self, callable: &ChipCallable<'_>) -> Result<Order, BoxError> {
        match callable.func_name() {
            "load" => Err(Unspeakable.into()),
            name => Ok(Order(name.to_owned(), Arc::clone(&self.dropped))),
        }
    }

    fn check(&self, order: &Order, _: &RunArgs<'_>) -> Result<(), BoxError> {
        if order.0 == "check" { Err(Unspeakable.into()) } else { Ok(()) }
    }

    fn run(&self, order: &Order, _: &RunArgs<'_>) -> Result<(), RunError> {
        match order.0.as_str() {
            "run" => Err(Unspeakable.into()),
            "late" => {
                // As a device says it that drives another runtime.
                let run = RunTable::<()>::new().begin_prepare(PipelineSlot::Zero)?;
                Err(ChipError::Unproven { call: Call::Wait, epoch: run.epoch(), code: -1, reason: "too late".into() })?
            }
            _ => Ok(()),
        }
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(self)
    }
}

impl DeviceMemory for Rude {
    fn allocate(&self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        if bytes == 16 { Ok(DeviceAddress(0x1000)) } else { panic!("allocate") }
    }

    fn free(&self, _: DeviceAddress) -> Result<(), ChipError> {
        self.freed.fetch_add(1, Ordering::Relaxed);
        panic!("free")
    }

    fn copy_to(&self, _: DeviceAddress, _: Bytes<'_>) -> Result<(), ChipError> {
        panic!("copy to")
    }

    fn copy_from(&self, _: Bytes<'_>, _: DeviceAddress) -> Result<(), ChipError> {
        panic!("copy from")
    }

    fn block(&self, _: DeviceAddress) -> Option<Block> {
        panic!("block")
    }
}

/// A device, how many callables it dropped, and how many frees it was asked for.
fn rude(functions: &[&str]) -> (Blocking<Rude>, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let rude = Rude::default();
    let (dropped, freed) = (Arc::clone(&rude.dropped), Arc::clone(&rude.freed));
    // SAFETY: no host memory is named that is reached.
    #[expect(unsafe_code, reason = "the promise of whoever makes a runtime")]
    let mut device = unsafe { Blocking::whole_process(rude) };
    for (index, name) in functions.iter().enumerate() {
        device.register(slot(index), &blob(name)).unwrap();
    }
    (device, dropped, freed)
}

fn nothing() -> Box<ChipStorageTaskArgs> {
    args(&[ChipTensor::contiguous(0, 0, Dtype::I32, &[0], AddressSpace::Host).unwrap()])
}

/// C-6, C-14, C-16: a panic of the device is a failure of the one call, and what was there before is there after it.
#[test]
fn a_panic_of_the_device_fails_the_call() {
    let (mut device, dropped, freed) = rude(&["check", "pass"]);
    let failed = |call, says: &str| ChipError::Failed { call, code: -1, reason: says.into() };
    assert_eq!(
        device.register(slot(9), &blob("load")),
        Err(ChipError::CallableRefused { reason: "panic: no words".into() })
    );
    let prepared = device.prepare(slot(0), &nothing(), &CallConfig::ZERO, SLOT);
    assert_eq!(prepared, Err(failed(Call::Prepare, "panic: no words")));
    assert_eq!(device.malloc(17), Err(failed(Call::Malloc, "panic: allocate")));
    let base = device.malloc(16).unwrap();
    let there = args(&[tensor(base.0, AddressSpace::Device)]);
    let prepared = device.prepare(slot(1), &there, &CallConfig::ZERO, SLOT);
    assert_eq!(prepared, Err(failed(Call::Prepare, "panic: block")));
    assert_eq!(device.copy_to(base, HostAddress(0), 0), Err(failed(Call::CopyTo, "panic: copy to")));
    assert_eq!(device.copy_from(HostAddress(0), base, 0), Err(failed(Call::CopyFrom, "panic: copy from")));
    assert_eq!(device.unregister(slot(0)), Err(failed(Call::Unregister, "panic: dropped")));
    let run = device.prepare(slot(1), &nothing(), &CallConfig::ZERO, SLOT).unwrap();
    device.launch(run).unwrap();
    device.finalize(run).unwrap();
    assert_eq!(device.shutdown(), Err(failed(Call::Shutdown, "panic: dropped")));
    assert_eq!(device.shutdown(), Ok(()));
    drop(device);
    let counts = [dropped, freed].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [2, 1], "what was unregistered and what was not; the memory at the end");
}

/// C-16: nobody knows what came of a free that panicked, so it is counted, named by nothing, and never asked for again.
#[test]
fn a_free_that_panics_is_counted_and_not_repeated() {
    let (mut device, _, freed) = rude(&["pass"]);
    let base = device.malloc(16).unwrap();
    let lost = ChipError::FreeUnproven { address: base, reason: "panic: free".into() };
    assert_eq!(device.free(base), Err(lost.clone()));
    assert!(lost.to_string().starts_with("free of 0x1000: panic: free; "), "{lost}");
    assert_eq!(device.committed_memory(), 16);
    let unknown = |call| ChipError::NotDeviceMemory { call, address: base };
    assert_eq!(device.free(base), Err(unknown(Call::Free)));
    assert_eq!(device.copy_to(base, HostAddress(0), 0), Err(unknown(Call::CopyTo)));
    let there = args(&[tensor(base.0, AddressSpace::Device)]);
    assert_eq!(device.prepare(slot(0), &there, &CallConfig::ZERO, SLOT), Err(unknown(Call::Prepare)));
    assert_eq!(device.malloc(16), Ok(base), "it was freed, since the device hands it out again");
    assert_eq!(device.committed_memory(), 16);
    assert_eq!(device.free(base), Err(lost));
    assert_eq!(freed.load(Ordering::Relaxed), 2, "one for each time that it was handed out");
    // Dropping `pass` panics too.
    assert!(device.shutdown().is_err());
    assert_eq!(freed.load(Ordering::Relaxed), 2, "nothing is freed twice");
}

/// C-9, T-30: whatever says that a run may still be on its way, nothing that the device can reach is dropped or freed.
#[test]
fn what_a_lost_device_can_reach_stays_as_it_is() {
    for (function, says) in [("run", "panic: no words"), ("late", "too late")] {
        let (mut device, dropped, freed) = rude(&[function]);
        device.malloc(16).unwrap();
        let run = device.prepare(slot(0), &nothing(), &CallConfig::ZERO, SLOT).unwrap();
        device.launch(run).unwrap();
        let unproven = ChipError::Unproven { call: Call::Wait, epoch: run.epoch(), code: -1, reason: says.into() };
        assert_eq!(device.finalize(run), Err(unproven));
        assert_eq!(device.shutdown(), Ok(()));
        drop(device);
        assert_eq!([dropped, freed].map(|count| count.load(Ordering::Relaxed)), [0, 0]);
    }
}
