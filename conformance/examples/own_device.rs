//! A device runtime of a third party against the conformance cases. The device is that of the how-to page: it adds vectors.

use std::process::ExitCode;

use laneway_conformance::{Blobs, BoxError, Filter, Own, run};
use laneway_core::chip::{Platform, RuntimeKind};
use laneway_core::wire::{ArgDirection, ChipCallableSource, WireError};
use laneway_sim::Kernel;

#[path = "../../os-linux/examples/own_runtime/runtime.rs"]
mod runtime;

fn main() -> Result<ExitCode, WireError> {
    // ANCHOR: run
    let callables = Blobs::new().with(Kernel::Add, add()?);
    let mut mine = Own::new("adder", Platform::A5Sim, RuntimeKind::HostBuildGraph, |_, _| {
        // SAFETY: the cases keep mapped what they name, and reach it by atomics alone.
        Ok::<_, BoxError>(unsafe { runtime::Adder::new() })
    })
    .with_callables(callables);
    let report = run(&mut mine, &Filter::all());
    print!("{report}");
    Ok(report.exit_code())
    // ANCHOR_END: run
}

/// Its one callable.
fn add() -> Result<Vec<u8>, WireError> {
    let signature = &[ArgDirection::In, ArgDirection::In, ArgDirection::Out];
    let source = ChipCallableSource { func_name: "add", signature, ..Default::default() };
    let mut blob = vec![0; source.encoded_len()?];
    source.encode(&mut blob)?;
    Ok(blob)
}
