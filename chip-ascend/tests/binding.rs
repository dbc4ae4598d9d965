//! Loading a host runtime: what is refused, by name, and what a second binding gets. The library is the simulated chip.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;
#[path = "../../conformance/tests/library/mod.rs"]
mod library;

use std::ffi::OsStr;
use std::process::ExitCode;

use laneway_ascend::{AscendError, HostRuntime, Installation, LibraryCounters, LogThreshold};
use laneway_core::chip::{CallableSlot, ChipError, DeviceRuntime, Platform, RunDescriptor, RuntimeKind};
use laneway_core::ids::PipelineSlot;
use laneway_core::wire::CallConfig;
use laneway_sim::{Action, Config, FaultPlan, Kernel, Point, Profile, callable};

use library::Folder;

const HBG: RuntimeKind = RuntimeKind::HostBuildGraph;

fn main() -> ExitCode {
    library::build();
    harness::main(harness::cases![
        one_process_binds_one_pair_for_its_life,
        a_missing_file_is_named,
        an_empty_or_truncated_file_is_named,
        a_library_without_a_symbol_is_refused_by_its_name,
        a_contract_out_of_range_is_refused,
        a_runtime_without_a_contract_has_depth_one,
        a_device_is_opened_once,
        a_device_that_does_not_come_up_leaves_its_number_free,
        the_optional_functions_are_looked_up,
        the_context_library_comes_first_and_stays_global,
        counters_show_what_the_library_does,
        a_device_that_is_dropped_with_a_hung_run_does_not_wait,
    ])
}

fn bind(installation: &Installation) -> Result<HostRuntime, AscendError> {
    // SAFETY: libraries of our own; no run here names host memory.
    unsafe { HostRuntime::bind(installation, LogThreshold::Off) }
}

fn a2a3(folder: &Folder) -> Installation {
    library::installation(folder, Platform::A2A3, HBG)
}

/// A shared library from C, as a stand-in for a host runtime with some flaw.
fn library_from_c(folder: &Folder, source: &str, more: &[&OsStr]) -> std::path::PathBuf {
    let source = folder.file("library.c", source.as_bytes());
    let path = folder.path().join("libmade.so");
    let fixed = ["-shared".as_ref(), "-fPIC".as_ref(), source.as_os_str(), "-o".as_ref(), path.as_os_str()];
    library::compile_c(&[&fixed[..], more].concat());
    path
}

/// A library that has all functions of the simulated one but those that `source` defines itself.
fn library_over_the_simulated_one(folder: &Folder, source: &str) -> std::path::PathBuf {
    library_from_c(folder, source, &["-Wl,--no-as-needed".as_ref(), library::path().as_os_str()])
}

/// C-11
fn one_process_binds_one_pair_for_its_life() {
    let folder = Folder::new();
    let first = bind(&a2a3(&folder)).unwrap();
    assert_eq!((first.platform(), first.runtime()), (Platform::A2A3, HBG));
    bind(&a2a3(&folder)).expect("the same again is the same");
    let other = a2a3(&folder).with_host_runtime("/elsewhere/libhost_runtime.so");
    let error = bind(&other).unwrap_err();
    assert!(matches!(error, AscendError::AlreadyBound { .. }));
    let text = error.to_string();
    assert!(text.contains("bound to a2a3 host_build_graph") && text.contains("a process of its own"), "{text}");
    let tmr = library::installation(&Folder::new_named("other"), Platform::A5, RuntimeKind::TensormapAndRingbuffer);
    assert!(matches!(bind(&tmr), Err(AscendError::AlreadyBound { platform: Platform::A5, .. })));
}

fn a_missing_file_is_named() {
    let folder = Folder::new();
    let files = ["libhost_runtime.so", "libaicpu_kernel.so", "libaicore_kernel.so", "libcpu_sim_context.so"];
    for missing in files {
        for name in files {
            std::fs::copy(library::path(), folder.path().join(name)).unwrap();
        }
        std::fs::remove_file(folder.path().join(missing)).unwrap();
        let installation = Installation::in_folder(folder.path(), Platform::A5Sim, HBG);
        let error = bind(&installation).unwrap_err();
        assert!(matches!(&error, AscendError::Unreadable { path, .. } if path.ends_with(missing)), "{error}");
        assert!(error.to_string().contains(missing));
    }
    let nothing = Installation::under(folder.path(), Platform::A2A3, HBG);
    assert!(bind(&nothing).unwrap_err().to_string().contains("a2a3/onboard/host_build_graph"));
}

fn an_empty_or_truncated_file_is_named() {
    let folder = Folder::new();
    let image = std::fs::read(library::path()).unwrap();
    for length in [0, 63, 1000, image.len() / 2, image.len() - 1] {
        let path = folder.file("cut.so", &image[..length]);
        for installation in [
            a2a3(&folder).with_host_runtime(&path),
            a2a3(&folder).with_kernels(&path, folder.path().join("libaicore_kernel.so")),
            a2a3(&folder).with_kernels(folder.path().join("libaicpu_kernel.so"), &path),
            a2a3(&folder).with_dispatcher(&path),
        ] {
            let error = bind(&installation).unwrap_err();
            assert!(matches!(&error, AscendError::Damaged { path: named, .. } if *named == path), "{length}: {error}");
        }
    }
    let path = folder.file("text.so", b"not a library");
    assert!(matches!(bind(&a2a3(&folder).with_host_runtime(path)), Err(AscendError::Damaged { .. })));
}

/// The name of the first function that is missing, and the path, are in the error.
fn a_library_without_a_symbol_is_refused_by_its_name() {
    let folder = Folder::new();
    let made = library_from_c(&folder, "const void *get_pipeline_contract(void) { return 0; }\n", &[]);
    let error = bind(&a2a3(&folder).with_host_runtime(&made)).unwrap_err();
    let AscendError::MissingSymbol { symbol, path } = &error else { panic!("{error}") };
    assert_eq!(*path, made);
    assert!(error.to_string().contains(symbol) && error.to_string().contains("libmade.so"));
    assert!(matches!(bind(&a2a3(&folder)), Err(AscendError::HalfBound)), "it is mapped all the same");
}

/// C-2
fn a_contract_out_of_range_is_refused() {
    let folder = Folder::new();
    let made = library_over_the_simulated_one(
        &folder,
        "static const unsigned contract[36] = {1, 0, 3};\n\
         const void *get_pipeline_contract(void) { return contract; }\n",
    );
    let error = bind(&a2a3(&folder).with_host_runtime(made)).unwrap_err();
    assert!(matches!(error, AscendError::Contract { .. }), "{error}");
    assert!(error.to_string().contains("pipeline_depth is 3"), "{error}");
}

/// C-3
fn a_runtime_without_a_contract_has_depth_one() {
    let folder = Folder::new();
    let made = library_over_the_simulated_one(&folder, "const void *get_pipeline_contract(void) { return 0; }\n");
    let runtime = bind(&a2a3(&folder).with_host_runtime(made)).unwrap();
    assert_eq!(runtime.contract().depth(), 1);
    let device = runtime.open(0, None).unwrap();
    assert!(!device.supports_concurrent_prepare());
}

/// Init twice: the number is taken until the device is closed.
fn a_device_is_opened_once() {
    let folder = Folder::new();
    let runtime = bind(&a2a3(&folder)).unwrap();
    let mut device = runtime.open(0, None).unwrap();
    let error = runtime.open(0, None).map(|_| ()).unwrap_err();
    assert_eq!(error, AscendError::DeviceOpen { device: 0 });
    runtime.open(1, None).expect("another device");
    device.shutdown().unwrap();
    runtime.open(0, None).expect("closed and opened again");
}

fn a_device_that_does_not_come_up_leaves_its_number_free() {
    let folder = Folder::new();
    let plan = FaultPlan::none().with(Point::Init, 1, Action::Error(-11));
    library::configure(&Config::new(Profile::A2a3HostBuildGraph).with_faults(plan));
    let runtime = bind(&a2a3(&folder)).unwrap();
    for _ in 0..2 {
        let error = runtime.open(3, None).map(|_| ()).unwrap_err();
        let AscendError::Init { device: 3, error: ChipError::Failed { code: -11, .. } } = error else {
            panic!("{error}")
        };
    }
}

fn the_optional_functions_are_looked_up() {
    let folder = Folder::new();
    let made = library_over_the_simulated_one(
        &folder,
        "int comm_barrier(void *h) { return h != 0; }\nint comm_destroy(void *h) { return h != 0; }\n",
    );
    let optional = bind(&a2a3(&folder).with_host_runtime(made)).unwrap().optional_symbols();
    assert!(optional.comm_barrier && optional.comm_destroy);
    assert!(!optional.comm_init && !optional.simpler_provision_dma_workspace && !optional.ensure_acl_ready_ctx);
}

/// C-10: the host runtime leaves a function undefined that only the context library has, and each of the two has its own
/// copy of the log binding.
fn the_context_library_comes_first_and_stays_global() {
    let folder = Folder::new();
    let bound_once = "static int bound;\n\
        int simpler_host_log_bind_state(void *state) { return state == 0 || bound++ != 0; }\n";
    let context =
        library_from_c(&folder, &format!("{bound_once}int cpu_sim_context_ready(void) {{ return bound; }}\n"), &[]);
    let context_path = folder.path().join("libcpu_sim_context.so");
    std::fs::rename(context, &context_path).unwrap();
    let made = library_over_the_simulated_one(
        &folder,
        &format!(
            "{bound_once}extern int cpu_sim_context_ready(void);\n\
             int ready_when_loaded;\n\
             __attribute__((constructor)) static void look(void) {{ ready_when_loaded = cpu_sim_context_ready(); }}\n\
             const void *get_pipeline_contract(void) {{ return ready_when_loaded == 1 && bound == 1 ? 0 : (void *)1; }}\n"
        ),
    );
    let installation = library::installation(&folder, Platform::A2A3Sim, HBG).with_host_runtime(made);
    let runtime = bind(&installation).expect("both logs bound, the context library first");
    assert_eq!(runtime.platform(), Platform::A2A3Sim);
    let mut device = runtime.open(0, None).expect("the device comes up without a dispatcher");
    device.shutdown().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(maps.contains("libcpu_sim_context.so") && maps.contains("libmade.so"), "they stay mapped (C-12)");
}

fn counters_show_what_the_library_does() {
    let folder = Folder::new();
    let runtime = bind(&a2a3(&folder)).unwrap();
    let mut device = runtime.open(0, None).unwrap();
    assert_eq!(device.arena_bank(0), None);
    let slot = CallableSlot::new(0).unwrap();
    device.register(slot, &callable(Kernel::Noop)).unwrap();
    let zero = RunDescriptor::Direct(PipelineSlot::Zero);
    for _ in 0..3 {
        device.run(slot, &Default::default(), &CallConfig::ZERO, zero).unwrap();
    }
    let counters = device.counters();
    assert_eq!((counters.host_loads, counters.aicpu_loads, counters.stream_sets_created), (1, 0, 1));
    assert!(device.arena_bank(0).is_some());
    assert_eq!(device.retained_temp(PipelineSlot::Zero), None);
    device.shutdown().unwrap();
    assert_eq!(device.counters(), LibraryCounters::default());
}

/// C-15
fn a_device_that_is_dropped_with_a_hung_run_does_not_wait() {
    let folder = Folder::new();
    let plan = FaultPlan::none().with(Point::Launch, 1, Action::Hang);
    library::configure(&Config::new(Profile::A2a3HostBuildGraph).with_faults(plan));
    let runtime = bind(&a2a3(&folder)).unwrap();
    let mut device = runtime.open(0, None).unwrap();
    let slot = CallableSlot::new(0).unwrap();
    device.register(slot, &callable(Kernel::Noop)).unwrap();
    let zero = RunDescriptor::Direct(PipelineSlot::Zero);
    let run = device.prepare(slot, &Default::default(), &CallConfig::ZERO, zero).unwrap();
    device.launch(run).unwrap();
    drop(device);
    assert_eq!(runtime.open(0, None).map(|_| ()), Err(AscendError::DeviceOpen { device: 0 }), "it was never closed");
}
