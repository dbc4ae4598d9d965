//! Device memory whose free panics (C-16).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laneway_core::chip::ChipError;
use laneway_linux::{
    Blocking, BlockingDevice, BoxError, Bytes, ChipCallable, ChipWorker, DeviceAddress, DeviceMemory, Error, Label,
    Leftover, RunArgs, RunError,
};

use crate::harness::Channel;
use crate::support::worker;

/// Hands out one range after the other; the first free tells the test, does its work, and panics.
struct Heap {
    next: AtomicU64,
    panicked: AtomicBool,
    frees: &'static Channel,
}

/// What is freed is handed out to the next who asks for this many bytes.
const AGAIN: u64 = 48;

const FIRST: DeviceAddress = DeviceAddress(0x1000);

impl Heap {
    fn open(frees: &'static Channel) -> Result<Self, BoxError> {
        Ok(Self { next: AtomicU64::new(FIRST.0), panicked: AtomicBool::new(false), frees })
    }
}

impl BlockingDevice for Heap {
    type Callable = ();

    fn load(&self, _: &ChipCallable<'_>) -> Result<(), BoxError> {
        Ok(())
    }

    fn run(&self, _: &(), _: &RunArgs<'_>) -> Result<(), RunError> {
        Ok(())
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(self)
    }
}

impl DeviceMemory for Heap {
    fn allocate(&self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        let next = || self.next.fetch_add(0x1000, Ordering::Relaxed);
        Ok(if bytes == AGAIN { FIRST } else { DeviceAddress(next()) })
    }

    fn free(&self, base: DeviceAddress) -> Result<(), ChipError> {
        self.frees.send(format!("{base} ").as_bytes());
        assert!(self.panicked.swap(true, Ordering::Relaxed), "the heap is upset");
        Ok(())
    }

    fn copy_to(&self, _: DeviceAddress, _: Bytes<'_>) -> Result<(), ChipError> {
        Ok(())
    }

    fn copy_from(&self, _: Bytes<'_>, _: DeviceAddress) -> Result<(), ChipError> {
        Ok(())
    }
}

/// Lives as long as the case, as do children that are threads.
fn channel() -> &'static Channel {
    Box::leak(Box::new(Channel::new()))
}

/// C-16
pub(crate) fn a_free_that_panics_names_its_allocation_and_close_reports_it_once() {
    let frees = channel();
    let (worker, chip, _) = worker(move || Heap::open(frees));
    let (first, second) = (worker.malloc(chip, 64).unwrap(), worker.malloc(chip, 32).unwrap());
    let error = worker.free(chip, first).unwrap_err();
    assert!(matches!(error, Error::Control(_)), "{error:?}");
    assert!(error.to_string().contains("free of 0x1000: panic: the heap is upset"), "{error}");
    assert!(worker.free(chip, first).unwrap_err().to_string().contains("0x1000 is no live device memory"));
    assert_eq!(worker.live_device_memory(chip).unwrap(), [(first, 64), (second, 32)]);
    assert_eq!(worker.committed_device_memory(chip), Ok(96));
    worker.free(chip, second).unwrap();
    let chips = vec![(Label::Worker(chip), Leftover { allocations: 1, bytes: 64 })];
    assert_eq!(worker.close(), Err(Error::DeviceMemoryLeft { chips }));
    assert_eq!(frees.receive_text(), "0x1000 0x2000 ", "each once");
}

/// C-16: the device says by that that it was freed.
pub(crate) fn memory_whose_free_panicked_can_be_handed_out_again() {
    let frees = channel();
    let (worker, chip, _) = worker(move || Heap::open(frees));
    let first = worker.malloc(chip, 64).unwrap();
    worker.free(chip, first).unwrap_err();
    assert_eq!(worker.malloc(chip, AGAIN), Ok(first));
    assert_eq!(worker.live_device_memory(chip).unwrap(), [(first, AGAIN)]);
    worker.free(chip, first).unwrap();
    worker.close().unwrap();
    assert_eq!(frees.receive_text(), "0x1000 0x1000 ");
}

/// C-16, C-17
pub(crate) fn a_chip_worker_reports_an_allocation_whose_free_panicked_and_frees_it_once() {
    let frees = channel();
    // SAFETY: no run and no copy names host memory.
    #[expect(unsafe_code, reason = "the promise of whoever makes a runtime")]
    let worker = ChipWorker::new(unsafe { Blocking::whole_process(Heap::open(frees).unwrap()) });
    let (first, second) = (worker.malloc(64).unwrap(), worker.malloc(32).unwrap());
    let error = worker.free(first).unwrap_err();
    assert!(matches!(error, Error::Chip(ChipError::FreeUnproven { address, .. }) if address == first), "{error:?}");
    assert!(matches!(worker.free(first), Err(Error::Chip(ChipError::NotDeviceMemory { .. }))));
    assert_eq!(worker.close(), Ok(vec![(first, 64), (second, 32)]));
    assert_eq!(frees.receive_text(), "0x1000 0x2000 ");
}
