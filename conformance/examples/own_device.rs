//! A device runtime of a third party against the conformance cases. The device is that of the how-to page: it adds vectors.

use std::process::ExitCode;

use laneway_conformance::{Blobs, Filter, blocking, run};
use laneway_core::chip::{Platform, RuntimeKind};
use laneway_linux::Error;
use laneway_sim::Kernel;

#[path = "../../os-linux/examples/own_runtime.rs"]
#[expect(dead_code, reason = "its main is that of the example")]
mod own_runtime;

use own_runtime::{Adder, add};

fn main() -> Result<ExitCode, Error> {
    // ANCHOR: run
    let mut mine = blocking("adder", Platform::A5Sim, RuntimeKind::HostBuildGraph, Adder::open)
        .with_callables(Blobs::new().with(Kernel::Add, add()?));
    let report = run(&mut mine, &Filter::all());
    print!("{report}");
    Ok(report.exit_code())
    // ANCHOR_END: run
}
