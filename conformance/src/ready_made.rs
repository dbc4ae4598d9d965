//! Backends that come with this crate: the simulator in process, and a host runtime library.
#![allow(unsafe_code)]

use laneway_ascend::{AscendDevice, AscendError, HostRuntime, Installation, LogThreshold};
use laneway_core::chip::{ChipError, Platform, RuntimeKind};
use laneway_linux::{Blocking, BlockingDevice};
use laneway_sim::{Config, HostMemory, Profile, Simulator};

use crate::backend::{Backend, Blobs, BoxError, Memory, Own, Setup, SimulatorCallables};
use crate::numbers::{DTYPES, Dice};
use crate::scribble::scribble;

/// The simulator in process.
#[must_use]
pub fn simulator(profile: Profile) -> impl Backend + Clone {
    in_process("simulator", profile)
}

/// The simulator in process, below workers whose children are threads (P-27).
#[must_use]
pub fn simulator_in_threads(profile: Profile) -> impl Backend + Clone {
    in_process("simulator in threads", profile).in_threads()
}

fn in_process(
    name: &str,
    profile: Profile,
) -> Own<impl Fn(&Setup, Memory<'_>) -> Result<Simulator, ChipError> + Clone + Send + 'static> {
    let name = format!("{name} {} {}", profile.platform(), profile.runtime());
    let open = move |setup: &Setup, memory: Memory<'_>| open_simulator(profile, setup, memory);
    Own::new(name, profile.platform(), profile.runtime(), open)
        .with_callables(SimulatorCallables)
        .with_element_types(&DTYPES)
        .that_obeys()
}

/// The data of the device that a case wants.
#[must_use]
pub fn simulator_config(profile: Profile, setup: &Setup) -> Config {
    let config = Config::new(profile).with_faults(setup.faults.clone());
    match setup.memory_bytes {
        Some(bytes) => config.with_memory(bytes),
        None => config,
    }
}

/// A simulator as a case wants it. In a chip child its `scribble` fault writes garbage into the child's own mailbox.
///
/// # Errors
/// A configuration that it refuses.
pub fn open_simulator(profile: Profile, setup: &Setup, memory: Memory<'_>) -> Result<Simulator, ChipError> {
    let in_a_tree = matches!(memory, Memory::Ranges(_));
    let host = match memory {
        // SAFETY: `Memory` promises it: buffers of atomics that outlive the runs, and addresses that are refused untouched.
        Memory::WholeProcess => unsafe { HostMemory::whole_process() },
        // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and the child makes no
        // reference into them.
        Memory::Ranges(ranges) => unsafe { HostMemory::ranges(ranges.iter().cloned()) },
    };
    let mut device = Simulator::new(simulator_config(profile, setup), host)?;
    if in_a_tree {
        let mut dice = Dice::new(std::process::id().into());
        device.set_scribble(Box::new(move || scribble(&mut dice)));
    }
    Ok(device)
}

/// A blocking device of a third party, opened by `open` for each case.
pub fn blocking<D: BlockingDevice, E: Into<BoxError> + 'static>(
    name: impl Into<String>,
    platform: Platform,
    runtime: RuntimeKind,
    open: impl Fn() -> Result<D, E> + Clone + Send + 'static,
) -> Own<impl Fn(&Setup, Memory<'_>) -> Result<Blocking<D>, E> + Clone + Send + 'static> {
    Own::new(name, platform, runtime, move |_: &Setup, memory: Memory<'_>| {
        let device = open()?;
        Ok(match memory {
            // SAFETY: `Memory` promises it: buffers of atomics that outlive the runs.
            Memory::WholeProcess => unsafe { Blocking::whole_process(device) },
            // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and reaches them by atomics.
            Memory::Ranges(ranges) => unsafe { Blocking::ranges(device, ranges.iter().cloned()) },
        })
    })
}

/// A host runtime library, loaded in the process that uses it alone: run it isolated, a case per process.
///
/// # Safety
/// The files are what they are named: a host runtime with the vendor's interface. Loading runs their code.
#[must_use]
pub unsafe fn library(installation: Installation, device: i32, callables: Blobs) -> impl Backend + Clone {
    let (platform, runtime) = (installation.platform(), installation.runtime());
    let open = move |_: &Setup, _: Memory<'_>| open_library(&installation, device);
    Own::new(format!("library {platform} {runtime}"), platform, runtime, open)
        .with_callables(callables)
        .whose_failed_launch_is_unproven()
}

fn open_library(installation: &Installation, device: i32) -> Result<AscendDevice, AscendError> {
    // SAFETY: the files are a host runtime, as the caller of `library` promises, and `Memory` promises the rest.
    let runtime = unsafe { HostRuntime::bind(installation, LogThreshold::Warn) }?;
    runtime.open(device, None)
}
