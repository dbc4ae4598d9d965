//! The vendor's types (C-13: no other crate has them).

use std::ffi::{c_char, c_void};

use laneway_core::wire::{CallConfig, ChipStorageTaskArgs, NativeRunDescriptor, PipelineContract};

/// A device context of the library.
pub(crate) type Context = *mut c_void;
/// Storage of one run.
pub(crate) type Storage = *mut c_void;

/// From which level on the library logs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum LogThreshold {
    /// Everything.
    Debug,
    /// What happens.
    Info,
    /// How long it took.
    Timing,
    /// What is odd.
    #[default]
    Warn,
    /// What failed.
    Error,
    /// Nothing.
    Off,
}

impl LogThreshold {
    const fn code(self) -> i32 {
        match self {
            Self::Debug => 10,
            Self::Info => 20,
            Self::Timing => 25,
            Self::Warn => 30,
            Self::Error => 40,
            Self::Off => 60,
        }
    }
}

/// The log state that a library keeps a pointer to until the process exits: 16 bytes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LogState {
    abi: u32,
    size: u32,
    threshold: i32,
    clock_anchor_pid: i32,
}

const _: () = assert!(size_of::<LogState>() == 16);

impl LogState {
    pub(crate) const fn new(threshold: LogThreshold) -> Self {
        Self { abi: 1, size: size_of::<Self>() as u32, threshold: threshold.code(), clock_anchor_pid: 0 }
    }
}

pub(crate) type GetPipelineContract = unsafe extern "C" fn() -> *const PipelineContract;
pub(crate) type CreateContext = unsafe extern "C" fn() -> Context;
pub(crate) type DestroyContext = unsafe extern "C" fn(Context);
pub(crate) type GetSize = unsafe extern "C" fn() -> usize;
pub(crate) type Init =
    unsafe extern "C" fn(Context, i32, *const u8, usize, *const u8, usize, *const u8, usize, *const CallConfig) -> i32;
pub(crate) type OnContext = unsafe extern "C" fn(Context) -> i32;
pub(crate) type RegisterCallable = unsafe extern "C" fn(Context, i32, *const c_void) -> i32;
pub(crate) type UnregisterCallable = unsafe extern "C" fn(Context, i32) -> i32;
pub(crate) type PrepareRun = unsafe extern "C" fn(
    Context,
    Storage,
    i32,
    *const ChipStorageTaskArgs,
    *const CallConfig,
    *const NativeRunDescriptor,
) -> i32;
pub(crate) type OnRun = unsafe extern "C" fn(Context, Storage) -> i32;
pub(crate) type Malloc = unsafe extern "C" fn(Context, usize) -> *mut c_void;
pub(crate) type Free = unsafe extern "C" fn(Context, *mut c_void);
pub(crate) type Copy = unsafe extern "C" fn(Context, *mut c_void, *const c_void, usize) -> i32;
pub(crate) type Count = unsafe extern "C" fn(Context) -> usize;
pub(crate) type AddressOf = unsafe extern "C" fn(Context, u32) -> u64;
pub(crate) type BindLogState = unsafe extern "C" fn(*mut LogState) -> i32;
pub(crate) type ProvisionDma = unsafe extern "C" fn(Context, u32, *const c_void, u64) -> i32;
pub(crate) type EnsureAcl = unsafe extern "C" fn(Context, i32) -> i32;
pub(crate) type CreateStream = unsafe extern "C" fn(Context) -> *mut c_void;
pub(crate) type DestroyStream = unsafe extern "C" fn(Context, *mut c_void) -> i32;
pub(crate) type CommInit = unsafe extern "C" fn(i32, i32, *mut c_void, *const c_char) -> *mut c_void;
pub(crate) type CommAllocWindows = unsafe extern "C" fn(*mut c_void, usize, *mut u64) -> i32;
pub(crate) type CommWindowBase = unsafe extern "C" fn(*mut c_void, *mut u64) -> i32;
pub(crate) type CommWindowSize = unsafe extern "C" fn(*mut c_void, *mut usize) -> i32;
pub(crate) type CommCall = unsafe extern "C" fn(*mut c_void) -> i32;
