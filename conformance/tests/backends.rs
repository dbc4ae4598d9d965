//! The cases against everything that comes with the project: the simulator in process, the simulator as a shared library behind
//! the vendor's interface and its binding, each as a chip child as well; the interface from C; and the command.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;
mod library;
#[path = "../../os-linux/examples/own_runtime.rs"]
#[expect(dead_code, reason = "its main is that of the example")]
mod own_runtime;

use std::path::Path;
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use laneway_ascend::{HostRuntime, LogThreshold};
use laneway_conformance::{
    Backend, Blobs, Filter, Memory, Own, Report, Runner, Setup, SimulatorCallables, blocking, simulator,
    simulator_config, simulator_in_threads,
};
use laneway_core::chip::{Platform, RuntimeKind};
use laneway_core::wire::{ArgDirection, ChipCallableSource, Dtype};
use laneway_linux::{BlockingDevice, Chip, ChipCallable, RunArgs, RunError, TaskArgs, Worker};
use laneway_sim::{Config, Kernel, Profile, callable};
use rustix::process::getpid;

use library::Folder;
use own_runtime::Adder;

/// Names a vendor's library to test: `…_PLATFORM`, `…_RUNTIME`, `…_RUNTIME_DIR`, and `…_CALLABLES`, separated by colons.
const VENDOR: &str = "LANEWAY_CONFORMANCE";

const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::I32];
const HBG: Profile = Profile::A2a3HostBuildGraph;
const TMR: Profile = Profile::A2a3TensormapAndRingbuffer;

fn main() -> ExitCode {
    library::build();
    let mut all = harness::cases![
        the_simulator_passes_every_case,
        the_simulator_passes_with_the_other_profiles,
        the_simulator_passes_below_workers_with_threads,
        the_simulator_passes_in_one_process,
        the_library_passes_every_case_about_a_device,
        the_library_passes_with_the_other_profiles,
        the_library_passes_as_a_chip_child,
        a_third_partys_device_passes,
        a_blocking_device_fails_its_task_or_is_lost,
        a_library_computes_in_the_chip_child_and_is_mapped_nowhere_else,
        every_case_has_a_name_rules_and_a_sentence,
        a_c_program_adds_vectors,
        the_command_runs_what_applies_to_a_library,
        the_command_kills_a_case_that_hangs,
        the_command_writes_reports,
        the_command_runs_a_case_from_a_file,
        the_command_says_what_is_wrong_with_its_line,
    ]
    .to_vec();
    if std::env::var_os(format!("{VENDOR}_RUNTIME_DIR")).is_some() {
        all.extend_from_slice(harness::cases![a_vendors_library]);
    } else if std::env::var_os("LANEWAY_TEST_CASE").is_none() {
        println!("note: {VENDOR}_RUNTIME_DIR is not set, so no vendor's library is tested (docs: Conformance)");
    }
    harness::main(&all)
}

/// What needs no tree.
fn alone() -> Filter {
    Filter::all().or("device/").or("frame/").or("file/")
}

/// Every case that applies passes, and at least so many do.
fn passes(backend: &mut dyn Backend, filter: Filter, least: usize) -> Report {
    let report = Runner::new(filter).run(backend, |_| {});
    let failed: Vec<String> = report.failures().map(ToString::to_string).collect();
    let counts = report.counts();
    println!("{}: {counts}", report.backend);
    assert!(failed.is_empty() && counts.not_opened == 0, "{counts}\n{}", failed.join("\n"));
    assert!(counts.passed >= least, "{counts}");
    report
}

fn the_simulator_passes_every_case() {
    passes(&mut simulator(HBG), Filter::all(), 190);
}

fn the_simulator_passes_with_the_other_profiles() {
    passes(&mut simulator(TMR), alone().or("tree/chips").or("tree/memory"), 110);
    for profile in [Profile::A5HostBuildGraph, Profile::A5TensormapAndRingbuffer] {
        passes(&mut simulator(profile), alone().or("tree/chips/every_kernel").or("tree/chips/runs_overlap"), 90);
    }
}

/// P-27: the same results where children are threads.
fn the_simulator_passes_below_workers_with_threads() {
    passes(&mut simulator_in_threads(HBG), Filter::all().or("tree/"), 55);
}

/// Where nothing may fork: one process, and no case that forks.
fn the_simulator_passes_in_one_process() {
    let waiting = std::thread::spawn(std::thread::park);
    let report = passes(&mut simulator(HBG), alone().or("tree/graph"), 110);
    assert!(report.counts().not_applicable >= 9, "trees are not applicable: {report}");
    waiting.thread().unpark();
    waiting.join().expect("the other thread");
}

/// The simulator behind the vendor's interface; it reads from the environment what it simulates.
fn through_the_library(folder: &Folder, profile: Profile) -> impl Backend + use<> {
    let (platform, runtime) = (profile.platform(), profile.runtime());
    let installation = library::installation(folder, platform, runtime);
    let open = move |setup: &Setup, _: Memory<'_>| {
        library::configure(&simulator_config(profile, setup));
        // SAFETY: it is our own library; the cases hand over live buffers of atomics, and a worker keeps its tensors mapped.
        let runtime = unsafe { HostRuntime::bind(&installation, LogThreshold::Off) }?;
        assert_eq!(runtime.contract(), profile.contract());
        runtime.open(0, None)
    };
    let name = format!("library {platform} {runtime}");
    Own::new(name, platform, runtime, open)
        .with_callables(SimulatorCallables)
        .with_element_types(&DTYPES)
        .that_obeys()
        .whose_failed_launch_is_unproven()
}

fn the_library_passes_every_case_about_a_device() {
    let folder = Folder::new();
    passes(&mut through_the_library(&folder, HBG), alone(), 110);
}

fn the_library_passes_with_the_other_profiles() {
    for profile in [TMR, Profile::A5HostBuildGraph, Profile::A5TensormapAndRingbuffer] {
        let folder = Folder::new_named(&format!("{profile:?}"));
        passes(&mut through_the_library(&folder, profile), Filter::all().or("device/").or("file/"), 55);
    }
}

fn the_library_passes_as_a_chip_child() {
    let folder = Folder::new();
    let filter = Filter::all().or("tree/chips").or("tree/memory").or("tree/callables/a_chip").or("in_poll");
    passes(&mut through_the_library(&folder, HBG), filter, 15);
}

/// The device of the how-to page, which nobody wrote for these cases; and one that keeps nothing on the device.
fn a_third_partys_device_passes() {
    let callables = Blobs::new().with(Kernel::Add, own_runtime::add().expect("a legal callable"));
    let kind = RuntimeKind::HostBuildGraph;
    let mut adder = blocking("adder", Platform::A5Sim, kind, Adder::open).with_callables(callables.clone());
    let filter = || alone().or("tree/chips").or("tree/memory").or("tree/closing");
    passes(&mut adder, filter(), 60);
    let mut without = blocking("adder without memory", Platform::A5Sim, kind, || Adder::open().map(Forgetful))
        .with_callables(callables)
        .without_memory();
    passes(&mut without, filter(), 45);
}

/// The same device without memory of its own.
struct Forgetful(Adder);

impl BlockingDevice for Forgetful {
    type Callable = ();

    fn load(&self, callable: &ChipCallable<'_>) -> Result<(), laneway_linux::BoxError> {
        self.0.load(callable)
    }

    fn check(&self, callable: &(), args: &RunArgs<'_>) -> Result<(), laneway_linux::BoxError> {
        self.0.check(callable, args)
    }

    fn run(&self, callable: &(), args: &RunArgs<'_>) -> Result<(), RunError> {
        self.0.run(callable, args)
    }
}

/// What its scalar says: 0 does nothing, 1 fails, 2 gives up, 3 panics, 4 never returns.
struct Moody;

impl BlockingDevice for Moody {
    type Callable = ();

    fn load(&self, _: &ChipCallable<'_>) -> Result<(), laneway_linux::BoxError> {
        Ok(())
    }

    fn run(&self, _: &(), args: &RunArgs<'_>) -> Result<(), RunError> {
        match args.scalar(0)? {
            0 => Ok(()),
            1 => Err("the fan is loud".into()),
            2 => Err(RunError::unproven("no answer in 5 s")),
            3 => panic!("no such unit"),
            _ => loop {
                std::thread::park();
            },
        }
    }
}

/// C-9, C-15: what returned is over and the child goes on; what may still be at work takes its child along.
fn a_blocking_device_fails_its_task_or_is_lost() {
    let (platform, kind) = (Platform::A5Sim, RuntimeKind::HostBuildGraph);
    let worker = Worker::builder().build().expect("a worker");
    let chips = [(); 3].map(|()| {
        let open = || Ok::<_, laneway_linux::BoxError>(Moody);
        worker.add_chip(Chip::blocking(platform, kind, open)).expect("add_chip")
    });
    let source = ChipCallableSource { func_name: "mood", signature: &[ArgDirection::Scalar], ..Default::default() };
    let mut blob = vec![0; source.encoded_len().expect("a legal source")];
    source.encode(&mut blob).expect("room for it");
    let mood = worker.register_chip(platform, kind, &blob).expect("register_chip");
    worker.init().expect("init");
    let run = |chip: usize, mood_of_the_day: u64, deadline| {
        let ended = worker.run(|orch| {
            orch.set_deadline(deadline);
            Ok(orch.submit_next_level(&mood, chips[chip], TaskArgs::new().scalar(mood_of_the_day)).map(drop)?)
        });
        ended.map_err(|error| error.to_string())
    };
    let says = |result: Result<(), String>, text: &str| {
        let error = result.expect_err(text);
        assert!(error.contains(text), "{error}");
    };
    says(run(0, 1, None), "the run failed: the fan is loud");
    assert_eq!(run(0, 0, None), Ok(()), "the device goes on");
    says(run(0, 2, None), "its completion is unproven: no answer in 5 s");
    says(run(1, 3, None), "its completion is unproven: panic: no such unit");
    says(run(2, 4, Some(Duration::from_millis(200))), "did not end by its deadline");
    assert!(chips.iter().enumerate().all(|(chip, _)| run(chip, 0, None).is_err()), "all three are lost");
    worker.close().expect("close");
}

/// Whether a process has the library mapped.
fn maps_the_library(pid: &str) -> bool {
    let path = library::path();
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("the maps of a process").contains(name)
}

/// P-26: never in the parent, nor in a child beside it.
fn a_library_computes_in_the_chip_child_and_is_mapped_nowhere_else() {
    let folder = Folder::new();
    let worker = Worker::builder().build().expect("a worker");
    let chip = through_the_library(&folder, HBG).chip(&Setup::default()).expect("a chip");
    let beside: Chip = simulator(HBG).chip(&Setup::default()).expect("a chip");
    let ids = [chip, beside].map(|chip| worker.add_chip(chip).expect("add_chip"));
    let noop = worker.register_chip(HBG.platform(), HBG.runtime(), &callable(Kernel::Noop)).expect("register_chip");
    worker.init().expect("init");
    for id in ids {
        worker.run(|orch| Ok(orch.submit_next_level(&noop, id, TaskArgs::new()).map(drop)?)).expect("a run");
    }
    assert!(!maps_the_library("self"));
    let children = harness::children_of(getpid());
    let with_it = children.iter().filter(|pid| maps_the_library(&pid.to_string())).count();
    assert_eq!((children.len(), with_it), (2, 1));
    worker.close().expect("close");
}

fn every_case_has_a_name_rules_and_a_sentence() {
    let cases = laneway_conformance::cases();
    let mut names: Vec<_> = cases.iter().map(laneway_conformance::Case::name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "every name is another");
    for case in &cases {
        assert!(!case.rules().is_empty() && case.says().ends_with('.'), "{case:?}: {}", case.says());
        for rule in case.rules() {
            let (letter, number) = rule.split_once('-').expect("a letter and a number");
            assert!("WLECPRT".contains(letter) && number.parse::<u32>().is_ok(), "{case:?}: {rule}");
        }
    }
}

/// The interface from C: a program with a header of its own loads the library and adds two vectors, with each profile.
fn a_c_program_adds_vectors() {
    let folder = Folder::new();
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/vector_add.c");
    let program = folder.path().join("vector_add");
    library::compile_c(&[sources.as_ref(), "-o".as_ref(), program.as_os_str(), "-ldl".as_ref()]);
    let blob = folder.file("add.callable", &callable(Kernel::Add));
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

/// The exit status of the command, and everything that it printed.
fn outcome(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().expect("the command runs");
    let text = [stdout, stderr].concat();
    (status.code().expect("an exit status"), String::from_utf8_lossy(&text).into_owned())
}

/// A folder that is an installation; the library is the simulated chip.
fn installed(folder: &Folder) -> &Path {
    std::fs::copy(library::path(), folder.path().join("libhost_runtime.so")).expect("a copy");
    for kernel in ["libaicpu_kernel.so", "libaicore_kernel.so"] {
        folder.file(kernel, b"kernel");
    }
    folder.path()
}

fn the_command_runs_what_applies_to_a_library() {
    let folder = Folder::new();
    let add = folder.file("add.callable", &callable(Kernel::Add));
    let noop = folder.file("anything", &callable(Kernel::Noop));
    let mut command = command();
    command.args(["--platform", "a2a3", "--runtime-dir"]).arg(installed(&folder)).arg("--callable").arg(add);
    command
        .arg("--callable")
        .arg(format!("noop={}", noop.display()))
        .args(["--filter", "device/", "--filter", "file/"]);
    let (status, text) = outcome(&mut command);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("case device/launch/no_call_is_taken_in_the_wrong_phase ... ok [C-6 T-24]"), "{text}");
    assert!(text.contains("not applicable [L-15 T-31]: it has no callable for matmul"), "{text}");
    assert!(text.contains("it does not misbehave on command"), "{text}");
}

/// A device that never completes is killed and reported, and the rest goes on.
fn the_command_kills_a_case_that_hangs() {
    let folder = Folder::new();
    let add = folder.file("add", &callable(Kernel::Add));
    let plan = laneway_sim::FaultPlan::none().with(laneway_sim::Point::Wait, 1, laneway_sim::Action::Hang);
    let mut command = command();
    command.env("LANEWAY_SIM_CONFIG", serde_json::to_string(&Config::new(HBG).with_faults(plan)).expect("plain data"));
    command.args(["--platform", "a2a3", "--timeout", "1", "--filter", "gaps_between", "--filter", "phase"]);
    let (status, text) = outcome(command.arg("--callable").arg(add).arg("--runtime-dir").arg(installed(&folder)));
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("killed after 1 s") && text.contains("1 passed, 1 failed"), "{text}");
}

/// JSON and JUnit say what the lines say.
fn the_command_writes_reports() {
    let folder = Folder::new();
    let xml = folder.path().join("report.xml");
    let mut command = command();
    command.args(["--json", "--seed", "7", "device/order", "--profile", "a5_host_build_graph", "--junit"]).arg(&xml);
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let reports: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!((&reports[0]["seed"], &reports[0]["backend"]), (&7.into(), &"simulator a5 host_build_graph".into()));
    let entries = reports[0]["entries"].as_array().expect("entries");
    assert!(entries.iter().any(|entry| entry["outcome"] == "passed"), "{entries:?}");
    let not = entries.iter().filter(|entry| entry["outcome"]["not_applicable"].is_string()).count();
    let xml = std::fs::read_to_string(xml).expect("the XML");
    assert!(xml.contains("<testsuite name=\"simulator a5 host_build_graph\""), "{xml}");
    assert_eq!((xml.matches("<testcase").count(), xml.matches("<skipped").count()), (entries.len(), not), "{xml}");
    let (status, text) = outcome(self::command().args(["--list", "C-15"]));
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("device/launch/a_run_that_hangs_is_never_ready [C-15]: A device"), "{text}");
    assert!(text.lines().all(|line| line.contains("C-15")), "{text}");
}

/// A fault plan of the user's own, one that holds and one that does not.
fn the_command_runs_a_case_from_a_file() {
    let folder = Folder::new();
    let script = |name: &str, ending: &str| {
        let text = format!(
            r#"{{"about": "It fails.", "rules": ["C-9"], "faults": [{{"at": "prepare", "occurrence": 1, "action": {{"error": -5}}}}],
                "steps": [{{"run": {ending}}}]}}"#
        );
        folder.file(name, text.as_bytes())
    };
    let (good, bad) = (script("good.json", r#"{"failed": -5}"#), script("bad.json", r#""done""#));
    let run = |file: &Path| {
        outcome(command().arg("--case-file").arg(file).args(["--profile", "a5_host_build_graph", "no such"]))
    };
    let (status, text) = run(&good);
    assert!(status == 0 && text.contains("good.json ... ok [C-9]"), "{text}");
    let (status, text) = run(&bad);
    assert!(status == 1 && text.contains("expected: Done") && text.contains("seen:     Failed(-5)"), "{text}");
}

fn the_command_says_what_is_wrong_with_its_line() {
    for (line, words) in [
        (vec!["--timeout", "0"], "--timeout is at least 1"),
        (vec!["--platform", "a2a3"], "go together"),
        (vec!["--callable", "add"], "add"),
        (vec!["--profile", "a9"], "no profile"),
        (vec!["--platform", "a2a3", "--runtime-dir", "/no/such", "device/memory"], "NOT OPENED"),
        (vec!["no such case"], "0 passed"),
    ] {
        let (status, text) = outcome(command().args(&line));
        assert!(status == 2 && text.contains(words), "{line:?}: {status}, {text}");
    }
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
    let (status, text) = outcome(&mut command);
    println!("{text}");
    assert_eq!(status, 0);
}
