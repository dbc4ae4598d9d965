//! The cases for device runtimes, two ways: the simulator in this process, and the simulator as a shared library behind
//! the vendor's interface and its binding. And the interface from C.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;
mod library;

use std::process::{Command, ExitCode};

use laneway_ascend::{HostRuntime, LogThreshold};
use laneway_conformance::chip::{Case, cases};
use laneway_core::chip::DeviceRuntime;
use laneway_sim::{Config, HostMemory, Profile, Simulator};

use library::Folder;

/// The environment variable in which the harness names a case.
const CASE: &str = "LANEWAY_TEST_CASE";

fn main() -> ExitCode {
    library::build();
    let mut all = Vec::new();
    for case in cases() {
        for way in ["in_process", "library"] {
            let name: &'static str = format!("{way}_{}", case.full_name()).leak();
            all.push(harness::Case { name, run: conformance_case });
        }
    }
    all.push(harness::Case { name: "a_c_program_adds_vectors", run: a_c_program_adds_vectors });
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
        (Some(case), _) => in_process(case),
        (None, Some(case)) => through_the_library(case),
        (None, None) => panic!("no case {name}"),
    }
}

fn in_process(case: &Case) {
    // SAFETY: the cases hand over tensors of live buffers of atomics, and addresses that are refused untouched.
    let host = unsafe { HostMemory::whole_process() };
    let mut device = Simulator::new(case.device.clone(), host).expect("the device comes up");
    case.check(&mut device);
}

fn through_the_library(case: &Case) {
    let folder = Folder::new();
    library::configure(&case.device);
    let profile = case.device.profile;
    let installation = library::installation(&folder, profile.platform(), profile.runtime());
    // SAFETY: it is our own library; and as above.
    let runtime = unsafe { HostRuntime::bind(&installation, LogThreshold::Off) }.expect("the library is bound");
    let mut device = runtime.open(0, None).expect("the device comes up");
    assert_eq!(device.contract(), profile.contract());
    case.check(&mut device);
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
