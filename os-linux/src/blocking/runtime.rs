//! A device runtime around a blocking device.

use std::fmt;
use std::iter;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use laneway_core::chip::{
    Arity, Call, CallableSlot, CallableSlots, ChipError, Completion, DeviceAddress, DeviceLedger, DeviceRuntime,
    Finalizing, HostAddress, Phase, Platform, Progress, Reason, RunDescriptor, RunTable, RunToken, RuntimeKind,
};
use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, CallConfig, ChipCallable, ChipStorageTaskArgs};

use super::device::{panicked, reason};
use super::thread::{DeviceThread, Ended, gone};
use super::{Block, BlockingDevice, Bytes, DeviceMemory, RunArgs};
use crate::callable::BoxError;
use crate::sys::panics;
use crate::worker::Chip;

/// A registered callable.
struct Loaded<C> {
    /// For errors.
    name: Box<str>,
    arity: Arity,
    callable: C,
}

/// What the device is called with.
struct Job<C> {
    loaded: Arc<Loaded<C>>,
    args: TaskArgs,
    config: CallConfig,
    shared: Arc<[Range<u64>]>,
    /// The memory of the device that the arguments name.
    blocks: Vec<Block>,
}

impl<C> Job<C> {
    fn args(&self) -> RunArgs<'_> {
        RunArgs::new(&self.args, &self.shared, &self.config, &self.blocks)
    }
}

/// What a run owns from prepare to finalize.
struct Run<C> {
    job: Arc<Job<C>>,
    /// Why it did not do what it should, although it is over.
    failure: Option<Reason>,
}

/// Whether the device can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Open,
    /// A completion was unproven: what runs may be finalized, nothing new begins.
    Lost,
    Closed,
}

// ANCHOR: state
/// A [`DeviceRuntime`] that drives a [`BlockingDevice`]: one run at a time, on a thread that starts with the first launch.
///
/// Dropping it is a shutdown: it waits for the call that is being made.
pub struct Blocking<D: BlockingDevice> {
    device: Arc<D>,
    /// Host memory that runs and copies may name.
    shared: Arc<[Range<u64>]>,
    callables: CallableSlots<Arc<Loaded<D::Callable>>>,
    runs: RunTable<Run<D::Callable>>,
    ledger: DeviceLedger,
    thread: Option<DeviceThread<Job<D::Callable>>>,
    health: Health,
}
// ANCHOR_END: state

impl<D: BlockingDevice> fmt::Debug for Blocking<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking").field("health", &self.health).finish_non_exhaustive()
    }
}

impl<D: BlockingDevice> Blocking<D> {
    /// A runtime that touches host memory in these ranges of addresses, and nowhere else. In a chip child
    /// [`Chip::blocking`] does it.
    ///
    /// # Safety
    /// As long as the runtime lives, and whenever the bytes of a HOST tensor or of a copy lie in one of these ranges, they are
    /// mapped for reading, and for writing if the run or the copy writes them. No Rust reference to them exists but to atomics,
    /// unless it is a shared one to bytes that are only read, or one that whoever asked for a copy holds and does not use meanwhile.
    #[expect(unsafe_code, reason = "where the caller promises that host memory is there")]
    pub unsafe fn ranges(device: D, shared: impl IntoIterator<Item = Range<u64>>) -> Self {
        Self {
            device: Arc::new(device),
            shared: shared.into_iter().collect(),
            callables: CallableSlots::new(),
            runs: RunTable::new(),
            ledger: DeviceLedger::new(),
            thread: None,
            health: Health::Open,
        }
    }

    /// A runtime that touches all memory of this process that runs and copies name: for a
    /// [`ChipWorker`](crate::ChipWorker).
    ///
    /// # Safety
    /// As [`ranges`](Self::ranges), for every HOST tensor and every copy.
    #[expect(unsafe_code, reason = "where the caller promises that host memory is there")]
    pub unsafe fn whole_process(device: D) -> Self {
        // The first page is never mapped, and user space ends at 2^56 on the widest machine.
        // SAFETY: promised by the caller.
        unsafe { Self::ranges(device, iter::once(4096..1 << 56)) }
    }

    fn check_open(&self, call: Call) -> Result<(), ChipError> {
        if self.health == Health::Open { Ok(()) } else { Err(ChipError::DeviceGone { call }) }
    }

    /// The host memory of a copy.
    #[expect(unsafe_code, reason = "the address range is checked here")]
    fn host(&self, call: Call, address: HostAddress, bytes: u64) -> Result<Bytes<'_>, ChipError> {
        self.check_host(call, address, bytes)?;
        // SAFETY: inside what the maker of `self` promised, for as long as it lives.
        Ok(unsafe { Bytes::at(address.0, bytes as usize) })
    }

    fn check_host(&self, call: Call, address: HostAddress, bytes: u64) -> Result<(), ChipError> {
        let end = address.0.checked_add(bytes);
        let inside = |range: &Range<u64>| range.start <= address.0 && end.is_some_and(|end| end <= range.end);
        if bytes == 0 || self.shared.iter().any(inside) {
            Ok(())
        } else {
            Err(ChipError::NotHostMemory { call, address, bytes })
        }
    }

    /// Everything of a prepare that can fail.
    fn build(
        &self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
    ) -> Result<Run<D::Callable>, ChipError> {
        config.validate().map_err(ChipError::ConfigRefused)?;
        let loaded = Arc::clone(self.callables.get(callable)?);
        let (tensors, scalars) = loaded.arity.judge(&loaded.name, args)?;
        let mut copied = TaskArgs::with_capacity(tensors.len(), scalars.len());
        let mut blocks = Vec::new();
        for tensor in tensors {
            let range = tensor.byte_range();
            match tensor.address_space() {
                AddressSpace::Host => self.check_host(Call::Prepare, HostAddress(range.start), range.len())?,
                AddressSpace::Device if range.is_empty() => {}
                AddressSpace::Device => {
                    let address = DeviceAddress(range.start);
                    self.ledger.check(Call::Prepare, address, range.len())?;
                    let block = || Ok(self.device.memory().and_then(|memory| memory.block(address)));
                    blocks.extend(guarded(Call::Prepare, block)?);
                }
            }
            copied.no_dep(*tensor);
        }
        for scalar in scalars {
            copied.scalar(*scalar);
        }
        let job = Job { loaded, args: copied, config: *config, shared: Arc::clone(&self.shared), blocks };
        let failed = |reason| ChipError::Failed { call: Call::Prepare, code: -1, reason };
        asked(|| self.device.check(&job.loaded.callable, &job.args()), failed)?;
        Ok(Run { job: Arc::new(job), failure: None })
    }

    /// Takes the end of a launched run.
    fn reap(&mut self, call: Call, run: RunToken, ended: Ended) -> Result<(), ChipError> {
        match ended {
            Ended::Done => self.runs.reaped(call, run, Completion::Proven),
            // It has returned, so its completion is proven; what it says is told when it is finalized.
            Ended::Failed(reason) => {
                self.runs.get_mut(call, run)?.failure = Some(reason);
                self.runs.reaped(call, run, Completion::Proven)
            }
            Ended::Unproven(reason) => {
                self.runs.reaped(call, run, Completion::Unproven)?;
                self.health = Health::Lost;
                Err(ChipError::Unproven { call, epoch: run.epoch(), code: -1, reason })
            }
        }
    }

    /// Asks the memory of the device.
    fn with_memory<T>(
        &self,
        call: Call,
        ask: impl FnOnce(&dyn DeviceMemory) -> Result<T, ChipError>,
    ) -> Result<T, ChipError> {
        self.check_open(call)?;
        guarded(call, || {
            let reason = || Reason::from("the device has no memory of its own");
            ask(self.device.memory().ok_or_else(|| ChipError::Unsupported { call, reason: reason() })?)
        })
    }

    /// Has the device free an allocation of its memory. Who panics half-way may have done it or not.
    fn free_now(&self, base: DeviceAddress) -> Result<(), ChipError> {
        let freed = panics::catch(|| self.device.memory().map_or(Ok(()), |memory| memory.free(base)));
        freed.unwrap_or_else(|text| Err(ChipError::FreeUnproven { address: base, reason: panicked(&text) }))
    }
}

// ANCHOR: trait
impl<D: BlockingDevice> DeviceRuntime for Blocking<D> {
    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError> {
        self.check_open(Call::Register)?;
        self.runs.check_idle(Call::Register)?;
        self.callables.check_free(slot)?;
        let refused = |reason| ChipError::CallableRefused { reason };
        let parsed = ChipCallable::parse(callable).map_err(|error| refused(Reason::new(format_args!("{error}"))))?;
        let loaded = asked(|| self.device.load(&parsed), refused)?;
        let loaded = Loaded { name: parsed.func_name().into(), arity: Arity::of(&parsed), callable: loaded };
        self.callables.insert(slot, Arc::new(loaded))
    }

    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError> {
        self.check_open(Call::Unregister)?;
        self.runs.check_idle(Call::Unregister)?;
        let callable = self.callables.remove(slot)?;
        guarded(Call::Unregister, || {
            drop(callable);
            Ok(())
        })
    }

    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        self.check_open(Call::Prepare)?;
        self.contract().check_slot(run.slot())?;
        let token = self.runs.begin_prepare(run.slot())?;
        match self.build(callable, args, config) {
            Ok(run) => self.runs.prepared(token, run).map(|()| token),
            Err(error) => self.runs.prepare_failed(token).and(Err(error)),
        }
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.runs.check_launch(run)?;
        self.check_open(Call::Launch)?;
        let failed = |reason| ChipError::Failed { call: Call::Launch, code: -1, reason };
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => {
                let device = Arc::clone(&self.device);
                DeviceThread::start(move |job: &Job<D::Callable>| device.run(&job.loaded.callable, &job.args()))
                    .map_err(|error| failed(Reason::new(format_args!("{error}"))))?
            }
        };
        let handed_over = thread.hand_over(Arc::clone(&self.runs.get(Call::Launch, run)?.job));
        self.thread = Some(thread);
        handed_over.map_err(failed)?;
        self.runs.launched(run)
    }

    fn accepted(&self, run: RunToken) -> bool {
        self.runs.find(run).is_some() && matches!(self.runs.phase(run.slot()), Phase::Launched | Phase::Reaped)
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        self.runs.get(Call::Poll, run)?;
        match self.thread.as_ref().map_or_else(|| Some(gone()), DeviceThread::look) {
            None => Ok(Progress::NotReady),
            Some(ended) => self.reap(Call::Poll, run, ended).map(|()| Progress::Complete),
        }
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.runs.get(Call::Wait, run)?;
        // A launched run has a thread that it was handed to.
        let ended = self.thread.as_ref().map_or_else(gone, DeviceThread::wait);
        self.reap(Call::Wait, run, ended)
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        let launched = self.runs.find(run).is_some() && self.runs.phase(run.slot()) == Phase::Launched;
        let waited = if launched { self.wait(run) } else { Ok(()) };
        let failure = match self.runs.begin_finalize(run)? {
            Finalizing::Completed(run) => run.failure,
            Finalizing::Abandoned(_) => None,
            Finalizing::Unproven(run) => {
                // What the device can reach stays as it is (T-30).
                mem::forget(run);
                None
            }
        };
        self.runs.finalized(run)?;
        waited.and(failure.map_or(Ok(()), |reason| Err(ChipError::RunFailed { reason })))
    }

    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        let base = self.with_memory(Call::Malloc, |memory| {
            if bytes == 0 {
                let reason = Reason::from("0 bytes have no address");
                return Err(ChipError::Failed { call: Call::Malloc, code: -1, reason });
            }
            memory.allocate(bytes)
        })?;
        self.ledger.enter(base, bytes).map(|()| base)
    }

    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError> {
        self.with_memory(Call::Free, |_| Ok(()))?;
        self.ledger.begin_free(base)?;
        let request = self.ledger.request_free(base);
        let freed = self.free_now(base);
        match freed {
            Ok(()) => self.ledger.freed(request),
            Err(ChipError::FreeUnproven { .. }) => {}
            Err(_) => self.ledger.free_failed(request),
        }
        freed
    }

    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError> {
        self.with_memory(Call::CopyTo, |memory| {
            self.ledger.check(Call::CopyTo, to, bytes)?;
            memory.copy_to(to, self.host(Call::CopyTo, from, bytes)?)
        })
    }

    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        self.with_memory(Call::CopyFrom, |memory| {
            self.ledger.check(Call::CopyFrom, from, bytes)?;
            memory.copy_from(self.host(Call::CopyFrom, to, bytes)?, from)
        })
    }

    fn committed_memory(&self) -> u64 {
        self.ledger.live().map(|(_, bytes)| bytes).sum()
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        if self.health == Health::Closed {
            return Ok(());
        }
        let runs: Vec<_> = self.runs.runs().map(|(run, _)| run).collect();
        let mut answer = Ok(());
        for run in runs {
            answer = answer.and(self.finalize(run));
        }
        self.thread = None;
        let health = mem::replace(&mut self.health, Health::Closed);
        let (mut callables, ledger) = (mem::take(&mut self.callables), mem::take(&mut self.ledger));
        if health == Health::Lost {
            // What the device can reach stays as it is (T-30); when it is dropped itself it knows what it may let go of.
            mem::forget(callables);
            return answer;
        }
        let loaded: Vec<_> = callables.taken().collect();
        for slot in loaded {
            answer = answer.and(guarded(Call::Shutdown, || callables.remove(slot).map(drop)));
        }
        for (base, _) in ledger.held() {
            answer = answer.and(self.free_now(base));
        }
        answer
    }
}
// ANCHOR_END: trait

impl<D: BlockingDevice> Drop for Blocking<D> {
    fn drop(&mut self) {
        // Nobody is left to hear about it.
        let _ = self.shutdown();
    }
}

impl Chip {
    /// A chip child that drives a [`BlockingDevice`]. `open` is called once, in the child (P-26).
    ///
    /// ```no_run
    /// # use laneway_linux::{BlockingDevice, BoxError, Chip, Error, Platform, RuntimeKind, Worker};
    /// # fn example<D: BlockingDevice>(worker: &Worker, open: fn() -> Result<D, BoxError>) -> Result<(), Error> {
    /// let id = worker.add_chip(Chip::blocking(Platform::A5Sim, RuntimeKind::HostBuildGraph, open))?;
    /// # Ok(())
    /// # }
    /// ```
    #[expect(unsafe_code, reason = "the ranges are those of the worker")]
    pub fn blocking<D, E>(
        platform: Platform,
        runtime: RuntimeKind,
        open: impl Fn() -> Result<D, E> + Send + 'static,
    ) -> Self
    where
        D: BlockingDevice,
        E: Into<BoxError>,
    {
        Self::new(platform, runtime, move |shared| {
            // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and reaches them by atomics. That no
            // callable writes a snapshot was promised by whoever shared it.
            open().map(|device| unsafe { Blocking::ranges(device, shared.iter().cloned()) })
        })
    }
}

/// The answer of the device to a question; an error of this floor is passed on, of any other it is said what it says.
fn asked<T>(
    question: impl FnOnce() -> Result<T, BoxError>,
    otherwise: impl Fn(Reason) -> ChipError,
) -> Result<T, ChipError> {
    // The text is taken in there too: an error of the user's may panic when it is printed or dropped.
    let answer = panics::catch(|| {
        question().map_err(|error| match error.downcast::<ChipError>() {
            Ok(error) => *error,
            Err(error) => otherwise(reason(&error)),
        })
    });
    answer.unwrap_or_else(|text| Err(otherwise(panicked(&text))))
}

/// What the device does for a call; a panic of it is a failure.
fn guarded<T>(call: Call, deed: impl FnOnce() -> Result<T, ChipError>) -> Result<T, ChipError> {
    let failed = |text: String| Err(ChipError::Failed { call, code: -1, reason: panicked(&text) });
    panics::catch(deed).unwrap_or_else(failed)
}
