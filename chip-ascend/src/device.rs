//! One device behind the library.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::{mem, ptr};

use laneway_core::chip::{
    Call, CallableSlot, ChipError, Completion, Contract, DeviceAddress, DeviceLedger, DeviceRuntime, Finalizing,
    HostAddress, Phase, Progress, Reason, RunDescriptor, RunTable, RunToken,
};
use laneway_core::ids::PipelineSlot;
use laneway_core::wire::{AddressSpace, CallConfig, ChipCallable, ChipStorageTaskArgs, NativeRunDescriptor};

use crate::abi::Context;
use crate::binding::Bound;
use crate::error::AscendError;
use crate::storage::{Blob, RunSlot};

/// −2 and −3 of the interface (C-9).
const UNSUPPORTED: i32 = -2;
const INCOMPATIBLE: i32 = -3;

/// Whether the device can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Open,
    /// A completion was unproven: what runs may be finalized, nothing new begins.
    Lost,
    Closed,
}

/// A device of a [`HostRuntime`](crate::HostRuntime).
pub struct AscendDevice {
    bound: &'static Bound,
    index: i32,
    context: Context,
    health: Health,
    concurrent_prepare: bool,
    /// As many as the contract is deep.
    slots: Vec<RunSlot>,
    runs: RunTable<()>,
    /// What is registered where; the library may keep pointers into it.
    callables: [Option<Blob>; CallableSlot::COUNT],
    ledger: DeviceLedger,
}

// SAFETY: the handles of the interface are tied to no thread; `&mut self` lets one thread at a time call with them.
unsafe impl Send for AscendDevice {}

/// What the library counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LibraryCounters {
    /// Orchestration binaries loaded on the device.
    pub aicpu_loads: usize,
    /// Orchestration binaries loaded on the host.
    pub host_loads: usize,
    /// Sets of run streams created.
    pub stream_sets_created: usize,
}

/// What a code of the interface means (C-9).
fn outcome(call: Call, code: i32) -> Result<(), ChipError> {
    match code {
        0 => Ok(()),
        UNSUPPORTED => Err(ChipError::Unsupported { call, reason: Reason::from("the runtime says so") }),
        INCOMPATIBLE if call == Call::Prepare => Err(ChipError::Incompatible { call }),
        code => Err(ChipError::Failed { call, code, reason: Reason::from("the library's log says why") }),
    }
}

fn file(bytes: Option<&[u8]>) -> (*const u8, usize) {
    bytes.map_or((ptr::null(), 0), |bytes| (bytes.as_ptr(), bytes.len()))
}

impl AscendDevice {
    /// Context, storage per slot, init (C-12).
    pub(crate) fn open(bound: &'static Bound, index: i32, prewarm: Option<&CallConfig>) -> Result<Self, AscendError> {
        let symbols = &bound.symbols;
        // SAFETY: takes nothing.
        let size = unsafe { (symbols.get_runtime_size)() };
        // SAFETY: takes nothing.
        let alignment = unsafe { (symbols.get_runtime_alignment)() };
        let storage = || AscendError::RunStorage { path: bound.path(), size, alignment };
        let slots = (0..bound.contract.depth())
            .map(|_| RunSlot::new(size, alignment).ok_or_else(storage))
            .collect::<Result<Vec<_>, _>>()?;
        // SAFETY: takes nothing.
        let context = unsafe { (symbols.create_device_context)() };
        if context.is_null() {
            return Err(AscendError::NoContext { path: bound.path() });
        }
        let (aicpu, aicpu_bytes) = file(Some(&bound.aicpu_kernel));
        let (aicore, aicore_bytes) = file(Some(&bound.aicore_kernel));
        let (dispatcher, dispatcher_bytes) = file(bound.dispatcher.as_deref());
        let prewarm = prewarm.map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the context was just created; each pointer is null with length 0 or points to that many bytes, which
        // live as long as the process; the config is null or lives for the call.
        let code = unsafe {
            (symbols.simpler_init)(
                context,
                index,
                aicpu,
                aicpu_bytes,
                aicore,
                aicore_bytes,
                dispatcher,
                dispatcher_bytes,
                prewarm,
            )
        };
        if let Err(error) = outcome(Call::Init, code) {
            // SAFETY: the context was created above, is not used again, and holds no device.
            unsafe { (symbols.destroy_device_context)(context) };
            return Err(AscendError::Init { device: index, error });
        }
        // SAFETY: the context is live.
        let concurrent = unsafe { (symbols.supports_concurrent_native_prepare_ctx)(context) };
        Ok(Self {
            bound,
            index,
            context,
            health: Health::Open,
            concurrent_prepare: concurrent > 0 && bound.contract.depth() > 1,
            slots,
            runs: RunTable::new(),
            callables: [const { None }; CallableSlot::COUNT],
            ledger: DeviceLedger::new(),
        })
    }

    /// What the library counts; zeros once the device is closed.
    #[must_use]
    pub fn counters(&self) -> LibraryCounters {
        if self.health == Health::Closed {
            return LibraryCounters::default();
        }
        let symbols = &self.bound.symbols;
        // SAFETY: the context is live.
        let aicpu_loads = unsafe { (symbols.get_aicpu_dlopen_count)(self.context) };
        // SAFETY: the context is live.
        let host_loads = unsafe { (symbols.get_host_dlopen_count)(self.context) };
        // SAFETY: the context is live.
        let stream_sets_created = unsafe { (symbols.get_run_stream_set_create_count)(self.context) };
        LibraryCounters { aicpu_loads, host_loads, stream_sets_created }
    }

    /// The base of an arena bank's heap, `None` before a run has committed it.
    #[must_use]
    pub fn arena_bank(&self, bank: u32) -> Option<DeviceAddress> {
        if self.health == Health::Closed {
            return None;
        }
        // SAFETY: the context is live.
        let base = unsafe { (self.bound.symbols.get_arena_bank_gm_heap_base_ctx)(self.context, bank) };
        (base != 0).then_some(DeviceAddress(base))
    }

    /// The retained temporary buffer of a run slot, `None` before a run has needed one.
    #[must_use]
    pub fn retained_temp(&self, slot: PipelineSlot) -> Option<DeviceAddress> {
        if self.health == Health::Closed {
            return None;
        }
        let index = slot.index() as u32;
        // SAFETY: the context is live.
        let base = unsafe { (self.bound.symbols.get_retained_temp_addr_ctx)(self.context, index) };
        (base != 0).then_some(DeviceAddress(base))
    }

    fn check_open(&self, call: Call) -> Result<(), ChipError> {
        if self.health == Health::Open { Ok(()) } else { Err(ChipError::DeviceGone { call }) }
    }

    /// Every DEVICE tensor lies in memory that this device handed out (C-13).
    fn check_tensors(&self, args: &ChipStorageTaskArgs) -> Result<(), ChipError> {
        args.scalars().map_err(ChipError::arguments)?;
        for tensor in args.tensors().map_err(ChipError::arguments)? {
            let range = tensor.byte_range();
            if tensor.address_space() == AddressSpace::Device && !range.is_empty() {
                self.ledger.check(Call::Prepare, DeviceAddress(range.start), range.len())?;
            }
        }
        Ok(())
    }

    /// A call that a runtime failed after the launch: the completion is unproven and the device takes nothing new.
    fn lose(&mut self, call: Call, run: RunToken, code: i32) -> ChipError {
        // The caller has just found the run in a phase in which this call is legal.
        let _ = self.runs.reaped(call, run, Completion::Unproven);
        self.health = Health::Lost;
        let reason = Reason::from("the library's log says why");
        ChipError::Unproven { call, epoch: run.epoch(), code, reason }
    }

    fn storage(&self, slot: PipelineSlot) -> *mut c_void {
        self.slots[slot.index()].storage()
    }
}

fn device_pointer(address: DeviceAddress) -> *mut c_void {
    ptr::without_provenance_mut(address.0 as usize)
}

fn host_pointer(address: HostAddress) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address.0 as usize)
}

/// Refuses a host range that no process can have.
fn check_host(call: Call, address: HostAddress, bytes: u64) -> Result<(), ChipError> {
    match address.checked_add(bytes) {
        Some(_) if address.0 != 0 || bytes == 0 => Ok(()),
        _ => Err(ChipError::NotHostMemory { call, address, bytes }),
    }
}

impl DeviceRuntime for AscendDevice {
    fn contract(&self) -> Contract {
        self.bound.contract
    }

    fn supports_concurrent_prepare(&self) -> bool {
        self.concurrent_prepare
    }

    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError> {
        self.check_open(Call::Register)?;
        self.runs.check_idle(Call::Register)?;
        if self.callables[slot.index()].is_some() {
            return Err(ChipError::CallableTaken { slot });
        }
        ChipCallable::parse(callable)
            .map_err(|error| ChipError::CallableRefused { reason: Reason::new(format_args!("{error}")) })?;
        let blob = Blob::new(callable);
        // SAFETY: the context is live; the blob was judged, so everything that its header names lies inside of it; it
        // stays where it is until it is unregistered.
        let code =
            unsafe { (self.bound.symbols.simpler_register_callable)(self.context, slot.index() as i32, blob.as_ptr()) };
        outcome(Call::Register, code)?;
        self.callables[slot.index()] = Some(blob);
        Ok(())
    }

    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError> {
        self.check_open(Call::Unregister)?;
        self.runs.check_idle(Call::Unregister)?;
        if self.callables[slot.index()].is_none() {
            return Err(ChipError::CallableUnknown { slot });
        }
        // SAFETY: the context is live.
        let code = unsafe { (self.bound.symbols.simpler_unregister_callable)(self.context, slot.index() as i32) };
        outcome(Call::Unregister, code)?;
        self.callables[slot.index()] = None;
        Ok(())
    }

    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        self.check_open(Call::Prepare)?;
        let slot = run.slot();
        self.contract().check_slot(slot)?;
        if self.callables[callable.index()].is_none() {
            return Err(ChipError::CallableUnknown { slot: callable });
        }
        config.validate().map_err(ChipError::ConfigRefused)?;
        self.check_tensors(args)?;
        let token = self.runs.begin_prepare(slot)?;
        let mut descriptor = NativeRunDescriptor {
            pipeline_slot: slot.index() as u32,
            arena_bank: self.contract().arena_bank(slot),
            run_epoch: token.epoch().get(),
            ..NativeRunDescriptor::default()
        };
        if let RunDescriptor::Leased(identity) = run {
            descriptor.run_id = identity.run.get();
            descriptor.generation = identity.generation.get();
            descriptor.dispatch_id = identity.dispatch.get();
        }
        let given = self.slots[slot.index()].fill(args, config, descriptor);
        // SAFETY: the context is live; storage, arguments, config, descriptor and the acceptance word in it stay where
        // they are and unchanged until the run is finalized; what the arguments name was judged, and that their host
        // memory is there was promised when the library was bound.
        let code = unsafe {
            (self.bound.symbols.simpler_prepare_run)(
                self.context,
                given.storage,
                callable.index() as i32,
                given.args,
                given.config,
                given.descriptor,
            )
        };
        match outcome(Call::Prepare, code) {
            Ok(()) => {
                self.runs.prepared(token, ())?;
                Ok(token)
            }
            Err(error) => {
                self.runs.prepare_failed(token)?;
                Err(error)
            }
        }
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.runs.check_launch(run)?;
        self.check_open(Call::Launch)?;
        // SAFETY: the context is live and the storage holds a prepared run.
        let code = unsafe { (self.bound.symbols.simpler_launch_run)(self.context, self.storage(run.slot())) };
        if code != 0 {
            // The interface does not say whether a part of it reached the device, so it has to be taken for granted.
            return Err(self.lose(Call::Launch, run, code));
        }
        self.runs.launched(run)
    }

    fn accepted(&self, run: RunToken) -> bool {
        self.runs.find(run).is_some() && self.slots[run.slot().index()].is_accepted()
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        self.runs.get(Call::Poll, run)?;
        // SAFETY: the context is live and the storage holds a launched run.
        match unsafe { (self.bound.symbols.simpler_poll_run)(self.context, self.storage(run.slot())) } {
            0 => Ok(Progress::NotReady),
            1 => {
                self.runs.reaped(Call::Poll, run, Completion::Proven)?;
                Ok(Progress::Complete)
            }
            code => Err(self.lose(Call::Poll, run, code)),
        }
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.runs.get(Call::Wait, run)?;
        // SAFETY: the context is live and the storage holds a launched run.
        match unsafe { (self.bound.symbols.simpler_wait_run)(self.context, self.storage(run.slot())) } {
            0 => self.runs.reaped(Call::Wait, run, Completion::Proven),
            code => Err(self.lose(Call::Wait, run, code)),
        }
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        let waited = match self.runs.find(run) {
            Some(()) if self.runs.phase(run.slot()) == Phase::Launched => self.wait(run),
            _ => Ok(()),
        };
        let finalizing = self.runs.begin_finalize(run)?;
        // SAFETY: the context is live and the storage holds a run that is not executing as far as can be known.
        let code = unsafe { (self.bound.symbols.simpler_finalize_run)(self.context, self.storage(run.slot())) };
        self.runs.finalized(run)?;
        let ended = match finalizing {
            // What the library could not do for a run whose completion is unproven has been reported by then.
            Finalizing::Unproven(()) => Ok(()),
            Finalizing::Abandoned(()) | Finalizing::Completed(()) => outcome(Call::Finalize, code),
        };
        waited.and(ended)
    }

    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        self.check_open(Call::Malloc)?;
        let fails = |reason| ChipError::Failed { call: Call::Malloc, code: -1, reason };
        let size = usize::try_from(bytes).unwrap_or(0);
        if size == 0 {
            return Err(fails(Reason::new(format_args!("an allocation of {bytes} bytes"))));
        }
        // SAFETY: the context is live.
        let base = unsafe { (self.bound.symbols.device_malloc_ctx)(self.context, size) };
        if base.is_null() {
            return Err(fails(Reason::new(format_args!("the device has no room for {bytes} bytes"))));
        }
        let base = DeviceAddress(base.addr() as u64);
        self.ledger.enter(base, bytes)?;
        Ok(base)
    }

    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError> {
        self.check_open(Call::Free)?;
        self.ledger.begin_free(base)?;
        let request = self.ledger.request_free(base);
        // SAFETY: the context is live and the ledger says that this is the base of a live allocation.
        unsafe { (self.bound.symbols.device_free_ctx)(self.context, device_pointer(base)) };
        self.ledger.freed(request);
        Ok(())
    }

    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError> {
        self.check_open(Call::CopyTo)?;
        check_host(Call::CopyTo, from, bytes)?;
        self.ledger.check(Call::CopyTo, to, bytes)?;
        // SAFETY: the context is live; the ledger says that the device range is live; that the host range is there was
        // promised when the library was bound.
        let code = unsafe {
            (self.bound.symbols.copy_to_device_ctx)(
                self.context,
                device_pointer(to),
                host_pointer(from),
                bytes as usize,
            )
        };
        outcome(Call::CopyTo, code)
    }

    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        self.check_open(Call::CopyFrom)?;
        check_host(Call::CopyFrom, to, bytes)?;
        self.ledger.check(Call::CopyFrom, from, bytes)?;
        // SAFETY: the context is live; the ledger says that the device range is live; that the host range is there was
        // promised when the library was bound.
        let code = unsafe {
            (self.bound.symbols.copy_from_device_ctx)(
                self.context,
                host_pointer(to),
                device_pointer(from),
                bytes as usize,
            )
        };
        outcome(Call::CopyFrom, code)
    }

    fn committed_memory(&self) -> u64 {
        if self.health == Health::Closed {
            return 0;
        }
        // SAFETY: the context is live.
        unsafe { (self.bound.symbols.committed_device_memory_ctx)(self.context) as u64 }
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        if self.health == Health::Closed {
            return Ok(());
        }
        let mut answer = Ok(());
        let runs: Vec<RunToken> = self.runs.runs().map(|(run, _)| run).collect();
        for run in runs {
            answer = answer.and(self.finalize(run));
        }
        for slot in (0..CallableSlot::COUNT).filter_map(CallableSlot::new) {
            if self.health == Health::Open && self.callables[slot.index()].is_some() {
                answer = answer.and(self.unregister(slot));
            }
        }
        self.health = Health::Closed;
        // SAFETY: the context is live and has no run.
        let code = unsafe { (self.bound.symbols.finalize_device)(self.context) };
        answer = answer.and(outcome(Call::Shutdown, code));
        // SAFETY: the context was created in `open`, and nothing uses it once the device is closed.
        unsafe { (self.bound.symbols.destroy_device_context)(self.context) };
        self.bound.closed(self.index);
        answer
    }
}

impl Drop for AscendDevice {
    /// Closes the device, but does not wait for a run that is not complete: it may never be (C-15). What the library can
    /// still reach then stays where it is for the life of the process.
    fn drop(&mut self) {
        if let Some((run, Phase::Launched)) = self.runs.executing()
            && self.poll(run) == Ok(Progress::NotReady)
        {
            mem::forget(mem::take(&mut self.slots));
            mem::forget(mem::replace(&mut self.callables, [const { None }; CallableSlot::COUNT]));
            return;
        }
        // Whoever wants to know how it went calls `shutdown`.
        let _ = self.shutdown();
    }
}
