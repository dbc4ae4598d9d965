//! The one library of this process.
#![allow(unsafe_code)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use laneway_core::chip::{Contract, Platform, RuntimeKind};
use laneway_core::wire::{CallConfig, PipelineContract};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use crate::abi::{BindLogState, LogState, LogThreshold};
use crate::device::AscendDevice;
use crate::elf;
use crate::error::AscendError;
use crate::installation::Installation;
use crate::symbols::{OptionalSymbols, Symbols, log_binder};

/// A library that was loaded, checked and bound. It stays mapped until the process exits (C-12).
pub(crate) struct Bound {
    pub(crate) installation: Installation,
    pub(crate) symbols: Symbols,
    pub(crate) optional: OptionalSymbols,
    pub(crate) contract: Contract,
    pub(crate) aicpu_kernel: Vec<u8>,
    pub(crate) aicore_kernel: Vec<u8>,
    pub(crate) dispatcher: Option<Vec<u8>>,
    /// Devices that are open in this process.
    open: Mutex<HashSet<i32>>,
}

/// What this process is bound to.
enum Process {
    Free,
    /// A binding was begun and did not end well after a library was mapped: what it left behind is unknown.
    Half,
    Bound(&'static Bound),
}

static PROCESS: Mutex<Process> = Mutex::new(Process::Free);

/// A host runtime that this process is bound to for its life (C-11).
#[derive(Clone, Copy)]
pub struct HostRuntime {
    bound: &'static Bound,
}

impl std::fmt::Debug for HostRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostRuntime").field("installation", &self.bound.installation).finish_non_exhaustive()
    }
}

impl HostRuntime {
    /// Loads the libraries of an installation, in this order: the context library of a simulation platform, the host
    /// runtime; the log state is bound in each; the contract is checked (C-10, C-12). Binding the same installation
    /// again returns the same library.
    ///
    /// # Errors
    /// A file that is missing, empty or truncated, a library without a symbol, a contract out of range, each by name;
    /// another pair than the one that this process is bound to.
    ///
    /// # Safety
    /// - The libraries are what they are named: host runtimes with the vendor's interface. Loading runs their code.
    /// - Whenever a run or a copy of a device that is opened here names host memory, that memory is mapped readable and
    ///   writable, and no Rust reference to it exists except to atomics, unless it is a shared reference to memory that
    ///   the device only reads.
    pub unsafe fn bind(installation: &Installation, log: LogThreshold) -> Result<Self, AscendError> {
        let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        match &*process {
            Process::Free => {}
            Process::Half => return Err(AscendError::HalfBound),
            Process::Bound(bound) if bound.installation == *installation => return Ok(Self { bound }),
            Process::Bound(bound) => {
                return Err(AscendError::AlreadyBound {
                    bound_platform: bound.installation.platform,
                    bound_runtime: bound.installation.runtime,
                    bound_path: bound.installation.host_runtime.clone(),
                    platform: installation.platform,
                    runtime: installation.runtime,
                    path: installation.host_runtime.clone(),
                });
            }
        }
        let files = Files::read(installation)?;
        *process = Process::Half;
        // SAFETY: the libraries are what they are named, as the caller promises.
        let bound = unsafe { load(installation, files, log) }?;
        let bound: &'static Bound = Box::leak(Box::new(bound));
        *process = Process::Bound(bound);
        Ok(Self { bound })
    }

    /// The contract of the runtime, checked.
    #[must_use]
    pub fn contract(&self) -> Contract {
        self.bound.contract
    }

    /// The platform.
    #[must_use]
    pub fn platform(&self) -> Platform {
        self.bound.installation.platform
    }

    /// The runtime.
    #[must_use]
    pub fn runtime(&self) -> RuntimeKind {
        self.bound.installation.runtime
    }

    /// Which optional functions the library has.
    #[must_use]
    pub fn optional_symbols(&self) -> OptionalSymbols {
        self.bound.optional
    }

    /// Brings a device up. `prewarm` is a config that the runtime may prepare itself for.
    ///
    /// # Errors
    /// A device that is open already, or one that does not come up.
    pub fn open(&self, device: i32, prewarm: Option<&CallConfig>) -> Result<AscendDevice, AscendError> {
        if !self.bound.open_devices().insert(device) {
            return Err(AscendError::DeviceOpen { device });
        }
        AscendDevice::open(self.bound, device, prewarm).inspect_err(|_| self.bound.closed(device))
    }
}

impl Bound {
    fn open_devices(&self) -> MutexGuard<'_, HashSet<i32>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device has been closed.
    pub(crate) fn closed(&self, device: i32) {
        self.open_devices().remove(&device);
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.installation.host_runtime.clone()
    }
}

/// What is read before anything is loaded.
struct Files {
    aicpu_kernel: Vec<u8>,
    aicore_kernel: Vec<u8>,
    dispatcher: Option<Vec<u8>>,
}

impl Files {
    fn read(installation: &Installation) -> Result<Self, AscendError> {
        let read = |path: &Path, must_be_elf| {
            let (platform, runtime) = (installation.platform, installation.runtime);
            let bytes = fs::read(path).map_err(|error| AscendError::Unreadable {
                path: path.to_owned(),
                platform,
                runtime,
                reason: error.to_string(),
            })?;
            match elf::fault(&bytes, must_be_elf) {
                Some(reason) => Err(AscendError::Damaged { path: path.to_owned(), reason }),
                None => Ok(bytes),
            }
        };
        if let Some(context) = &installation.context_library {
            read(context, true)?;
        }
        read(&installation.host_runtime, true)?;
        Ok(Self {
            aicpu_kernel: read(&installation.aicpu_kernel, false)?,
            aicore_kernel: read(&installation.aicore_kernel, false)?,
            dispatcher: installation.dispatcher.as_deref().map(|path| read(path, false)).transpose()?,
        })
    }
}

/// Maps a library for the life of the process.
///
/// # Safety
/// The library may be loaded: its initializers do what such a library does.
unsafe fn map(path: &Path, scope: i32) -> Result<&'static Library, AscendError> {
    // SAFETY: it may be loaded, as the caller promises.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | scope) }
        .map_err(|error| AscendError::Load { path: path.to_owned(), reason: error.to_string() })?;
    Ok(Box::leak(Box::new(library)))
}

/// Gives a library a log state of its own, which lives to the end of the process.
///
/// # Safety
/// `bind` came from the library at `path`.
unsafe fn bind_log(bind: BindLogState, threshold: LogThreshold, path: &Path) -> Result<(), AscendError> {
    let state = Box::into_raw(Box::new(LogState::new(threshold)));
    // SAFETY: the state is never freed.
    match unsafe { bind(state) } {
        0 => Ok(()),
        code => Err(AscendError::LogState { path: path.to_owned(), code }),
    }
}

/// Loads, binds the logs, checks the contract.
///
/// # Safety
/// As [`HostRuntime::bind`].
unsafe fn load(installation: &Installation, files: Files, log: LogThreshold) -> Result<Bound, AscendError> {
    if let Some(path) = &installation.context_library {
        // SAFETY: it is a context library, as the caller promises.
        let context = unsafe { map(path, RTLD_GLOBAL) }?;
        // SAFETY: the same.
        let bind = unsafe { log_binder(context, path) }?;
        // SAFETY: it came from this library.
        unsafe { bind_log(bind, log, path) }?;
    }
    let path = &installation.host_runtime;
    // SAFETY: it is a host runtime, as the caller promises.
    let library = unsafe { map(path, RTLD_LOCAL) }?;
    // SAFETY: the same.
    let symbols = unsafe { Symbols::resolve(library, path) }?;
    // SAFETY: it came from this library.
    unsafe { bind_log(symbols.simpler_host_log_bind_state, log, path) }?;
    // SAFETY: takes nothing and returns null or a contract of static life.
    let published: *const PipelineContract = unsafe { (symbols.get_pipeline_contract)() };
    // SAFETY: null, or a contract of static life; any bytes are a value of the type, and they are judged next.
    let contract = match unsafe { published.as_ref() } {
        Some(raw) => Contract::check(raw).map_err(|error| AscendError::Contract { path: path.clone(), error })?,
        None => Contract::absent(),
    };
    // SAFETY: it is a host runtime, as the caller promises.
    let optional = unsafe { OptionalSymbols::resolve(library) };
    Ok(Bound {
        installation: installation.clone(),
        symbols,
        optional,
        contract,
        aicpu_kernel: files.aicpu_kernel,
        aicore_kernel: files.aicore_kernel,
        dispatcher: files.dispatcher,
        open: Mutex::new(HashSet::new()),
    })
}
