//! The simulated chip as a shared library, built once per test run, and things made of it.
// Every test binary compiles this module anew and uses a part of it.
#![allow(dead_code)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use laneway_ascend::Installation;
use laneway_core::chip::{Platform, RuntimeKind};
use laneway_sim::Config;

/// Tells the processes of the cases where the library is.
const LIBRARY: &str = "LANEWAY_TEST_LIBRARY";

/// Builds the library unless this is the process of a case, which inherits its path.
///
/// Call it first thing in `main`: it changes the environment.
pub(crate) fn build() {
    if env::var_os(LIBRARY).is_none() {
        let path = build_with_cargo();
        // SAFETY: the only thread of this process so far.
        unsafe { env::set_var(LIBRARY, path) };
    }
}

/// Where the library is, from cargo's messages: it alone knows the target directory and the profile.
fn build_with_cargo() -> PathBuf {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--package", "laneway-sim-abi", "--message-format", "json"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
    let files = messages
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("cargo writes JSON"))
        .filter(|message| message["target"]["name"] == "host_runtime")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default());
    let library = files
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| file.extension().is_some_and(|end| end == "so"));
    library.expect("cargo names the library")
}

/// The library.
pub(crate) fn path() -> PathBuf {
    env::var_os(LIBRARY).expect("main builds the library").into()
}

/// Makes the library of this process simulate this device.
///
/// Call it before the library is loaded, with one thread.
pub(crate) fn configure(config: &Config) {
    let text = serde_json::to_string(config).expect("a config is plain data");
    // SAFETY: the process of a case has one thread.
    unsafe { env::set_var("LANEWAY_SIM_CONFIG", text) };
}

/// An empty directory of this process, removed when the value is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        Self::new_named("files")
    }

    pub(crate) fn new_named(name: &str) -> Self {
        let path = env::temp_dir().join(format!("laneway-test-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory of our own");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("a file of our own");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An installation around the library, with kernel files that the simulator does not look into.
pub(crate) fn installation(folder: &Folder, platform: Platform, runtime: RuntimeKind) -> Installation {
    let kernels = ["libaicpu_kernel.so", "libaicore_kernel.so"].map(|name| folder.file(name, b"kernel"));
    let [aicpu, aicore] = kernels;
    Installation::in_folder(folder.path(), platform, runtime).with_host_runtime(path()).with_kernels(aicpu, aicore)
}

/// Compiles C sources with the compiler that Rust links with.
pub(crate) fn compile_c(arguments: &[&std::ffi::OsStr]) {
    let output =
        Command::new("cc").args(["-Wall", "-Wextra", "-Werror", "-O1"]).args(arguments).output().expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
