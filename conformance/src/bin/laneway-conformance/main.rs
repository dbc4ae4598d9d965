//! Runs the conformance cases for device runtimes against the simulator or a vendor's library. See `--help`.

mod isolate;
mod options;

use std::process::ExitCode;

use laneway_ascend::{HostRuntime, LogThreshold};
use laneway_conformance::chip::{Callables, Case, Simulated, cases};
use laneway_sim::{HostMemory, Simulator};

use options::{Backend, Options, USAGE};

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == "bench") {
        return laneway_conformance::bench::main(std::env::args_os().skip(2));
    }
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(sentence) => {
            eprintln!("laneway-conformance: {sentence}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match &options.case {
        Some(name) => one(&options, name),
        None => all(&options),
    }
}

/// The callables of the backend.
fn callables(options: &Options) -> &dyn Callables {
    match &options.backend {
        Backend::Simulator => &Simulated,
        Backend::Library { files, .. } => files,
    }
}

/// Runs every case that applies, each in a process of its own.
fn all(options: &Options) -> ExitCode {
    let applies = |case: &Case| match &options.backend {
        Backend::Simulator => true,
        Backend::Library { installation, .. } => case.applies_to(installation.platform(), installation.runtime()),
    };
    let wanted = |case: &Case| options.filter.as_deref().is_none_or(|filter| case.full_name().contains(filter));
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for case in cases().iter().filter(|case| applies(case) && wanted(case)) {
        let (name, rules) = (case.full_name(), case.rules.join(" "));
        let missing = case.missing(callables(options));
        if !missing.is_empty() {
            skipped += 1;
            println!("case {name} ... skipped: needs {} (see --callable)", missing.join(", "));
            continue;
        }
        match isolate::run(&name, options.timeout) {
            Ok(()) => {
                passed += 1;
                println!("case {name} ... ok [{rules}]");
            }
            Err(reason) => {
                failed += 1;
                println!("case {name} ... FAILED [{rules}]: {reason}");
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one case in this process.
fn one(options: &Options, name: &str) -> ExitCode {
    let Some(case) = cases().into_iter().find(|case| case.full_name() == name) else {
        eprintln!("laneway-conformance: no case {name}");
        return ExitCode::from(2);
    };
    match check(options, &case) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(unsafe_code)]
fn check(options: &Options, case: &Case) -> Result<(), Box<dyn std::error::Error>> {
    match &options.backend {
        Backend::Simulator => {
            // SAFETY: the cases hand over tensors of live buffers of atomics, and addresses that are refused untouched.
            let host = unsafe { HostMemory::whole_process() };
            case.check(&mut Simulator::new(case.device.clone(), host)?, callables(options));
        }
        Backend::Library { installation, device, .. } => {
            // SAFETY: the user says that these files are a host runtime; and as above.
            let runtime = unsafe { HostRuntime::bind(installation, LogThreshold::Warn) }?;
            case.check(&mut runtime.open(*device, None)?, callables(options));
        }
    }
    Ok(())
}
