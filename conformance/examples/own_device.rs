//! A third party's test of its own device runtime, as the book shows it. A stand-in for the device is in this file.

use std::process::ExitCode;

use laneway_conformance::{Blobs, Filter, Own, run};
use laneway_core::chip::{Platform, RuntimeKind};
use laneway_sim::Kernel;

fn main() -> ExitCode {
    let callables = Blobs::new().with(Kernel::Add, my_device::add_callable());
    let mut mine =
        Own::new("my device", Platform::A2A3, RuntimeKind::HostBuildGraph, |_, memory| my_device::open(memory))
            .with_callables(callables);
    let report = run(&mut mine, &Filter::all());
    print!("{report}");
    report.exit_code()
}

/// What would be the third party's crate.
mod my_device {
    use laneway_conformance::{Memory, Setup, open_simulator};
    use laneway_core::chip::ChipError;
    use laneway_sim::{Kernel, Profile, Simulator, callable};

    pub(crate) fn open(memory: Memory<'_>) -> Result<Simulator, ChipError> {
        open_simulator(Profile::A2a3HostBuildGraph, &Setup::default(), memory)
    }

    pub(crate) fn add_callable() -> Vec<u8> {
        callable(Kernel::Add)
    }
}
