//! The functions of the interface. Each judges its pointers and calls the context.
//!
//! # Safety of all of them
//! A context is null or came from `create_device_context` and was not destroyed; one thread at a time uses it. Other
//! pointers are null or point to what the interface says, for as long as it says: arguments, config and descriptor for
//! the call; run storage and acceptance word from prepare to finalize; host memory as long as a run or a copy names it.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use laneway_core::chip::{DeviceAddress, DeviceRuntime, HostAddress, RuntimeKind};
use laneway_core::ids::PipelineSlot;
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs, NativeRunDescriptor, PipelineContract};
use laneway_sim::HostMemory;

use crate::context::{self, AcceptanceWord, Context, FAILURE};
use crate::log::{self, LogState};
use crate::raw;

/// What the host program keeps per run slot: zero until its first run.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct RunStorage {
    mark: u64,
    reserved: [u64; 15],
}

/// In every storage that has been used.
const MARK: u64 = u64::from_le_bytes(*b"lanerun1");

/// The context behind a handle.
///
/// # Safety
/// As for the exported functions.
unsafe fn context<'a>(ctx: *mut Context) -> Option<&'a mut Context> {
    // SAFETY: null or valid, and used by one thread at a time, as the caller promises.
    unsafe { ctx.as_mut() }
}

/// The address of a run storage that was zeroed before its first use; `None` for one that was not.
///
/// # Safety
/// As for the exported functions.
unsafe fn storage_address(storage: *mut RunStorage) -> Option<usize> {
    if !storage.is_aligned() {
        return None;
    }
    // SAFETY: null or valid, as the caller promises, and aligned.
    let found = unsafe { storage.as_mut() }?;
    if found.mark != 0 && found.mark != MARK {
        log::error(format_args!("the run storage was not zeroed before its first use"));
        return None;
    }
    found.mark = MARK;
    Some(storage.expose_provenance())
}

/// Signals an acceptance.
///
/// # Safety
/// The address is that of the word that the descriptor of a run named, which is not finalized.
unsafe fn accept(word: AcceptanceWord) {
    let word_at = ptr::with_exposed_provenance_mut::<i32>(word.address as usize);
    // SAFETY: aligned and valid until finalize has returned, as the caller promises.
    let state = unsafe { AtomicI32::from_ptr(word_at) };
    state.store(word.value, Ordering::Release);
}

/// The contract, or null if the configuration cannot be read.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn get_pipeline_contract() -> *const PipelineContract {
    context::contract().map_or(ptr::null(), ptr::from_ref)
}

/// A context, or null if the configuration cannot be read.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn create_device_context() -> *mut Context {
    if context::config().is_some() { Box::into_raw(Box::default()) } else { ptr::null_mut() }
}

/// Ends a context. Its device is closed if it still is open.
///
/// # Safety
/// See the module; the handle is dead afterwards.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn destroy_device_context(ctx: *mut Context) {
    if !ctx.is_null() {
        // SAFETY: it came from `create_device_context`, which made it from a box, and dies here.
        drop(unsafe { Box::from_raw(ctx) });
    }
}

/// Bytes of run storage.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn get_runtime_size() -> usize {
    size_of::<RunStorage>()
}

/// Alignment of run storage in bytes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn get_runtime_alignment() -> usize {
    align_of::<RunStorage>()
}

/// Brings the device up. The simulator needs no kernel files, but refuses a length without bytes.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_init(
    ctx: *mut Context,
    device: i32,
    aicpu: *const u8,
    aicpu_bytes: usize,
    aicore: *const u8,
    aicore_bytes: usize,
    dispatcher: *const u8,
    dispatcher_bytes: usize,
    _prewarm: *const CallConfig,
) -> i32 {
    // SAFETY: see the module.
    let Some(context) = (unsafe { context(ctx) }) else { return FAILURE };
    let files = [(aicpu, aicpu_bytes), (aicore, aicore_bytes), (dispatcher, dispatcher_bytes)];
    if device < 0 || files.iter().any(|(file, bytes)| file.is_null() && *bytes != 0) {
        log::error(format_args!("device {device} with a kernel file of null bytes"));
        return FAILURE;
    }
    // SAFETY: the host program promises that the host memory which its runs and copies name is there.
    let host = unsafe { HostMemory::whole_process() };
    context.init(host)
}

/// Closes the device.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn finalize_device(ctx: *mut Context) -> i32 {
    // SAFETY: see the module.
    unsafe { context(ctx) }.map_or(FAILURE, Context::finalize)
}

/// Uploads a callable.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_register_callable(ctx: *mut Context, id: i32, callable: *const c_void) -> i32 {
    // SAFETY: see the module.
    let Some(context) = (unsafe { context(ctx) }) else { return FAILURE };
    // SAFETY: it points to a callable or is null, see the module.
    let Some(bytes) = (unsafe { raw::callable_bytes(callable.cast()) }) else { return FAILURE };
    context.register(id, bytes)
}

/// Removes a callable.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_unregister_callable(ctx: *mut Context, id: i32) -> i32 {
    // SAFETY: see the module.
    unsafe { context(ctx) }.map_or(FAILURE, |context| context.unregister(id))
}

/// Makes a run ready.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_prepare_run(
    ctx: *mut Context,
    storage: *mut RunStorage,
    id: i32,
    args: *const ChipStorageTaskArgs,
    config: *const CallConfig,
    run: *const NativeRunDescriptor,
) -> i32 {
    // SAFETY: see the module.
    let Some(context) = (unsafe { context(ctx) }) else { return FAILURE };
    // SAFETY: see the module.
    let Some(storage) = (unsafe { storage_address(storage) }) else { return FAILURE };
    // SAFETY: null or valid for the call, see the module.
    let args = unsafe { args.as_ref() };
    // SAFETY: null or valid for the call, see the module.
    let config = unsafe { config.as_ref() };
    // SAFETY: null or valid for the call, see the module.
    let run = unsafe { run.as_ref() };
    match (args, config, run) {
        (Some(args), Some(config), Some(run)) => context.prepare(storage, id, args, config, run),
        _ => FAILURE,
    }
}

/// Hands a run to the device.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_launch_run(ctx: *mut Context, storage: *mut RunStorage) -> i32 {
    // SAFETY: see the module.
    let Some(context) = (unsafe { context(ctx) }) else { return FAILURE };
    let (code, word) = context.launch(storage.expose_provenance());
    if let Some(word) = word {
        // SAFETY: the word of a run that was just launched, so it is not finalized.
        unsafe { accept(word) };
    }
    code
}

/// 1 if a run is complete, 0 if it is not.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_poll_run(ctx: *mut Context, storage: *mut RunStorage) -> i32 {
    // SAFETY: see the module.
    unsafe { context(ctx) }.map_or(FAILURE, |context| context.poll(storage.expose_provenance()))
}

/// Waits for a run.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_wait_run(ctx: *mut Context, storage: *mut RunStorage) -> i32 {
    // SAFETY: see the module.
    unsafe { context(ctx) }.map_or(FAILURE, |context| context.wait(storage.expose_provenance()))
}

/// Ends a run.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_finalize_run(ctx: *mut Context, storage: *mut RunStorage) -> i32 {
    // SAFETY: see the module.
    unsafe { context(ctx) }.map_or(FAILURE, |context| context.finalize_run(storage.expose_provenance()))
}

/// A whole run: prepare, launch, wait, finalize.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_run(
    ctx: *mut Context,
    storage: *mut RunStorage,
    id: i32,
    args: *const ChipStorageTaskArgs,
    config: *const CallConfig,
    run: *const NativeRunDescriptor,
) -> i32 {
    // SAFETY: the same promises.
    let prepared = unsafe { simpler_prepare_run(ctx, storage, id, args, config, run) };
    if prepared != 0 {
        return prepared;
    }
    // SAFETY: the same promises.
    let mut code = unsafe { simpler_launch_run(ctx, storage) };
    if code == 0 {
        // SAFETY: the same promises.
        code = unsafe { simpler_wait_run(ctx, storage) };
    }
    // SAFETY: the same promises.
    let finalized = unsafe { simpler_finalize_run(ctx, storage) };
    if code == 0 { finalized } else { code }
}

/// 1 if a second run can be prepared beside a launched one.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn supports_concurrent_native_prepare_ctx(ctx: *mut Context) -> i32 {
    // SAFETY: see the module.
    let device = unsafe { context(ctx) }.and_then(Context::device);
    device.map_or(0, |device| i32::from(device.supports_concurrent_prepare()))
}

/// Device memory, or null.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn device_malloc_ctx(ctx: *mut Context, bytes: usize) -> *mut c_void {
    // SAFETY: see the module.
    let Some(device) = (unsafe { context(ctx) }).and_then(Context::device) else { return ptr::null_mut() };
    match device.malloc(bytes as u64) {
        Ok(address) => ptr::without_provenance_mut(address.0 as usize),
        Err(error) => {
            context::code(&error);
            ptr::null_mut()
        }
    }
}

/// Gives device memory back.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn device_free_ctx(ctx: *mut Context, base: *mut c_void) {
    // SAFETY: see the module.
    if let Some(device) = (unsafe { context(ctx) }).and_then(Context::device)
        && let Err(error) = device.free(DeviceAddress(base.addr() as u64))
    {
        context::code(&error);
    }
}

/// Copies host memory to the device.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn copy_to_device_ctx(
    ctx: *mut Context,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> i32 {
    // SAFETY: see the module.
    let Some(device) = (unsafe { context(ctx) }).and_then(Context::device) else { return FAILURE };
    let (to, from) = (DeviceAddress(to.addr() as u64), HostAddress(from.expose_provenance() as u64));
    device.copy_to(to, from, bytes as u64).map_or_else(|error| context::code(&error), |()| 0)
}

/// Copies from the device to host memory.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn copy_from_device_ctx(
    ctx: *mut Context,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
) -> i32 {
    // SAFETY: see the module.
    let Some(device) = (unsafe { context(ctx) }).and_then(Context::device) else { return FAILURE };
    let (to, from) = (HostAddress(to.expose_provenance() as u64), DeviceAddress(from.addr() as u64));
    device.copy_from(to, from, bytes as u64).map_or_else(|error| context::code(&error), |()| 0)
}

/// Bytes of device memory in use.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn committed_device_memory_ctx(ctx: *mut Context) -> usize {
    // SAFETY: see the module.
    let device = unsafe { context(ctx) }.and_then(Context::device);
    device.map_or(0, |device| device.committed_memory() as usize)
}

/// How often an orchestration binary was loaded on the device.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn get_aicpu_dlopen_count(ctx: *mut Context) -> usize {
    // SAFETY: see the module.
    unsafe { context(ctx) }.map_or(0, |context| context.loads(RuntimeKind::TensormapAndRingbuffer))
}

/// How often an orchestration binary was loaded on the host.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn get_host_dlopen_count(ctx: *mut Context) -> usize {
    // SAFETY: see the module.
    unsafe { context(ctx) }.map_or(0, |context| context.loads(RuntimeKind::HostBuildGraph))
}

/// How often a pair of streams was created: the first one, and each AICore stream that replaced one.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn get_run_stream_set_create_count(ctx: *mut Context) -> usize {
    // SAFETY: see the module.
    let device = unsafe { context(ctx) }.and_then(Context::device);
    device.map_or(0, |device| device.counters().streams.aicore_created as usize)
}

/// The base of an arena bank, 0 before a run has committed it.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn get_arena_bank_gm_heap_base_ctx(ctx: *mut Context, bank: u32) -> u64 {
    // SAFETY: see the module.
    let device = unsafe { context(ctx) }.and_then(Context::device);
    device.and_then(|device| device.arena_bank(bank)).map_or(0, |base| base.0)
}

/// The retained temporary buffer of a run slot, 0 before a run has needed one.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn get_retained_temp_addr_ctx(ctx: *mut Context, slot: u32) -> u64 {
    // SAFETY: see the module.
    let device = unsafe { context(ctx) }.and_then(Context::device);
    let slot = PipelineSlot::new(slot.into());
    device.zip(slot).and_then(|(device, slot)| device.retained_temp(slot)).map_or(0, |base| base.0)
}

/// Takes the log state of the host program.
///
/// # Safety
/// `state` is null or lives to the end of the process.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn simpler_host_log_bind_state(state: *mut LogState) -> i32 {
    // SAFETY: the same promise.
    if unsafe { log::bind(state) } { 0 } else { FAILURE }
}
