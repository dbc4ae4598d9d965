//! The cases for device runtimes, two ways: the simulator in this process, and the simulator as a shared library behind
//! the vendor's interface and its binding. And the interface from C.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;
mod library;

use std::process::{Command, ExitCode};

use laneway_ascend::{HostRuntime, LogThreshold};
use laneway_conformance::chip::{Script, Simulated, cases};
use laneway_core::chip::DeviceRuntime;
use laneway_sim::{Config, HostMemory, Profile, Simulator};

use library::Folder;

/// The environment variable in which the harness names a case.
const CASE: &str = "LANEWAY_TEST_CASE";

/// Names a vendor's library to test: `…_PLATFORM`, `…_RUNTIME`, `…_RUNTIME_DIR`, and `…_CALLABLES`, separated by colons.
const VENDOR: &str = "LANEWAY_CONFORMANCE";

fn main() -> ExitCode {
    library::build();
    let mut all = Vec::new();
    for case in cases() {
        for way in ["in_process", "library"] {
            let name: &'static str = format!("{way}_{}", case.full_name()).leak();
            all.push(harness::Case { name, run: conformance_case });
        }
    }
    for (file, _) in scripts() {
        for way in ["in_process", "library"] {
            let name: &'static str = format!("{way}_file_{file}").leak();
            all.push(harness::Case { name, run: scripted_case });
        }
    }
    all.extend_from_slice(harness::cases![
        a_c_program_adds_vectors,
        the_command_runs_what_applies_to_a_library,
        the_command_kills_a_case_that_hangs,
    ]);
    if std::env::var_os(format!("{VENDOR}_RUNTIME_DIR")).is_some() {
        all.extend_from_slice(harness::cases![a_vendors_library]);
    } else if std::env::var_os(CASE).is_none() {
        println!("note: {VENDOR}_RUNTIME_DIR is not set, so no vendor's library is tested (docs: Chips)");
    }
    harness::main(&all)
}

/// The case that the harness named.
fn conformance_case() {
    let name = std::env::var(CASE).expect("the harness names the case");
    let all = cases();
    let find = |way: &str| {
        let name = name.strip_prefix(way)?;
        all.iter().find(|case| case.full_name() == name)
    };
    match (find("in_process_"), find("library_")) {
        (Some(case), _) => in_process(&case.device, |device| case.check(device, &Simulated)),
        (None, Some(case)) => through_the_library(&case.device, |device| case.check(device, &Simulated)),
        (None, None) => panic!("no case {name}"),
    }
}

/// The cases that are files, by name.
fn scripts() -> Vec<(String, Script)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    let files = std::fs::read_dir(folder).expect("the folder of cases").map(|entry| entry.expect("a file").path());
    let mut scripts: Vec<_> = files
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a file of text");
            let name = path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned();
            (name, Script::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    scripts.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!scripts.is_empty());
    scripts
}

/// The file that the harness named.
fn scripted_case() {
    let name = std::env::var(CASE).expect("the harness names the case");
    let scripts = scripts();
    let find = |way: &str| {
        let name = name.strip_prefix(way)?;
        scripts.iter().find(|(file, _)| file == name).map(|(_, script)| script)
    };
    match (find("in_process_file_"), find("library_file_")) {
        (Some(script), _) => in_process(&script.device, |device| script.check(device, &Simulated)),
        (None, Some(script)) => through_the_library(&script.device, |device| script.check(device, &Simulated)),
        (None, None) => panic!("no case {name}"),
    }
}

fn in_process(config: &Config, check: impl FnOnce(&mut dyn DeviceRuntime)) {
    // SAFETY: the cases hand over tensors of live buffers of atomics, and addresses that are refused untouched.
    let host = unsafe { HostMemory::whole_process() };
    check(&mut Simulator::new(config.clone(), host).expect("the device comes up"));
}

fn through_the_library(config: &Config, check: impl FnOnce(&mut dyn DeviceRuntime)) {
    let folder = Folder::new();
    library::configure(config);
    let profile = config.profile;
    let installation = library::installation(&folder, profile.platform(), profile.runtime());
    // SAFETY: it is our own library; and as above.
    let runtime = unsafe { HostRuntime::bind(&installation, LogThreshold::Off) }.expect("the library is bound");
    let mut device = runtime.open(0, None).expect("the device comes up");
    assert_eq!(device.contract(), profile.contract());
    check(&mut device);
}

/// The interface from C: a program with a header of its own loads the library and adds two vectors, with each profile.
fn a_c_program_adds_vectors() {
    let folder = Folder::new();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/vector_add.c");
    let program = folder.path().join("vector_add");
    library::compile_c(&[sources.as_ref(), "-o".as_ref(), program.as_os_str(), "-ldl".as_ref()]);
    let blob = folder.file("add.callable", &laneway_sim::callable(laneway_sim::Kernel::Add));
    for profile in Profile::ALL {
        let config = serde_json::to_string(&Config::new(profile)).expect("a config is plain data");
        let output = Command::new(&program)
            .args([library::path().as_os_str(), blob.as_os_str()])
            .env("LANEWAY_SIM_CONFIG", config)
            .output()
            .expect("the program runs");
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}{errors}");
        assert_eq!(text.trim(), "1000 elements are right", "{errors}");
    }
}

fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_laneway-conformance"))
}

/// Everything that a run of the command printed, and whether it ended well.
fn outcome(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("the command runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The command against a folder with a library; the library is the simulated chip.
fn the_command_runs_what_applies_to_a_library() {
    let folder = Folder::new();
    std::fs::copy(library::path(), folder.path().join("libhost_runtime.so")).expect("a copy");
    for kernel in ["libaicpu_kernel.so", "libaicore_kernel.so"] {
        folder.file(kernel, b"kernel");
    }
    let add = folder.file("add.callable", &laneway_sim::callable(laneway_sim::Kernel::Add));
    let noop = folder.file("anything", &laneway_sim::callable(laneway_sim::Kernel::Noop));
    let mut command = command();
    command.args(["--platform", "a2a3", "--runtime-dir"]).arg(folder.path()).arg("--callable").arg(add);
    command.arg("--callable").arg(format!("noop={}", noop.display()));
    let (success, text) = outcome(&mut command);
    assert!(success, "{text}");
    assert!(text.contains("case no_call_is_taken_in_the_wrong_phase_a2a3_host_build_graph ... ok [C-6"), "{text}");
    assert!(text.contains("skipped: needs a callable for matmul"), "{text}");
    assert!(!text.contains("a5_") && !text.contains("tensormap"), "{text}");
    let (success, text) = outcome(command.arg("--timeout").arg("0"));
    assert!(!success && text.contains("usage:"), "{text}");
}

/// A device that never completes is killed and reported, and the rest goes on.
fn the_command_kills_a_case_that_hangs() {
    let (success, text) = outcome(command().args(["--timeout", "1", "a_run_that_hangs"]));
    assert!(success, "the simulator passes it: {text}");
    let folder = Folder::new();
    std::fs::copy(library::path(), folder.path().join("libhost_runtime.so")).expect("a copy");
    for kernel in ["libaicpu_kernel.so", "libaicore_kernel.so"] {
        folder.file(kernel, b"kernel");
    }
    let add = folder.file("add", &laneway_sim::callable(laneway_sim::Kernel::Add));
    let plan = laneway_sim::FaultPlan::none().with(laneway_sim::Point::Wait, 1, laneway_sim::Action::Hang);
    let config = Config::new(Profile::A2a3HostBuildGraph).with_faults(plan);
    let mut command = command();
    command.env("LANEWAY_SIM_CONFIG", serde_json::to_string(&config).expect("plain data"));
    command.args(["--platform", "a2a3", "--timeout", "1", "gaps_between"]).arg("--callable").arg(add);
    let (success, text) = outcome(command.arg("--runtime-dir").arg(folder.path()));
    assert!(!success && text.contains("killed after 1 s"), "{text}");
}

/// A vendor's library, if the environment names one.
fn a_vendors_library() {
    let value = |name: &str| std::env::var_os(format!("{VENDOR}_{name}"));
    let mut command = command();
    for (option, name) in [("--platform", "PLATFORM"), ("--runtime", "RUNTIME"), ("--runtime-dir", "RUNTIME_DIR")] {
        if let Some(value) = value(name) {
            command.arg(option).arg(value);
        }
    }
    for file in std::env::split_paths(&value("CALLABLES").unwrap_or_default()) {
        command.arg("--callable").arg(file);
    }
    let (success, text) = outcome(&mut command);
    println!("{text}");
    assert!(success);
}
