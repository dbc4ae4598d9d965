//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway_ascend::Installation;
use laneway_conformance::chip::Callables;
use laneway_core::chip::{Platform, RuntimeKind};
use laneway_core::wire::ChipCallable;
use laneway_sim::{Kernel, Program};
use lexopt::ValueExt;

pub(crate) const USAGE: &str = "\
usage: laneway-conformance [FILTER]
       laneway-conformance --platform P --runtime-dir DIR [options] [FILTER]

Runs the conformance cases for device runtimes, each in a process of its own; FILTER is a part of their names.
The first form runs them on the simulator, with every profile. The second runs those that apply on a host runtime library.

  --platform P              a2a3, a5, a2a3sim or a5sim
  --runtime-dir DIR         the folder with libhost_runtime.so, libaicpu_kernel.so and libaicore_kernel.so, or the root
                            of installations: <architecture>/<onboard|sim>/<runtime>
  --runtime R               host_build_graph (default) or tensormap_and_ringbuffer
  --callable [KERNEL=]FILE  a callable blob over the operands of KERNEL: add, mul, scale, matmul, reduce, copy, noop or
                            wait (default: the file's name up to its first dot); repeat it. Cases without their
                            callables are skipped
  --context-library FILE    simulation platforms only (default: libcpu_sim_context.so in the folder)
  --dispatcher FILE         on board only
  --device N                the device (default 0)
  --timeout SECONDS         how long one case may take (default 60)";

/// What is tested.
pub(crate) enum Backend {
    /// The simulator, in process.
    Simulator,
    /// A host runtime library.
    Library { installation: Installation, device: i32, files: Files },
}

/// What the command line asks for.
pub(crate) struct Options {
    pub(crate) backend: Backend,
    pub(crate) timeout: Duration,
    pub(crate) filter: Option<String>,
    /// Run this case in this process; used by the program itself.
    pub(crate) case: Option<String>,
}

/// Callables of a vendor, from files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    kernels: Vec<(Kernel, Vec<u8>)>,
}

impl Callables for Files {
    fn kernel(&self, kernel: Kernel) -> Option<Vec<u8>> {
        self.kernels.iter().find(|(known, _)| *known == kernel).map(|(_, blob)| blob.clone())
    }

    fn program(&self, _: &Program) -> Option<Vec<u8>> {
        None
    }
}

/// Something about the command line, as a sentence.
#[derive(Debug)]
pub(crate) struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl Options {
    /// `None` if help was asked for.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, Wrong> {
        use lexopt::Arg::{Long, Short, Value};
        let mut parser = lexopt::Parser::from_args(args);
        let (mut platform, mut folder): (Option<Platform>, Option<PathBuf>) = (None, None);
        let mut runtime = RuntimeKind::HostBuildGraph;
        let (mut context, mut dispatcher): (Option<PathBuf>, Option<PathBuf>) = (None, None);
        let (mut device, mut timeout, mut files) = (0, 60, Files::default());
        let (mut filter, mut case, mut library_option) = (None, None, None);
        while let Some(arg) = parser.next()? {
            if let Long(name @ ("callable" | "context-library" | "dispatcher" | "device" | "runtime")) = &arg {
                library_option = Some(format!("--{name}"));
            }
            match arg {
                Long("platform") => platform = Some(parser.value()?.string()?.parse()?),
                Long("runtime") => runtime = parser.value()?.string()?.parse()?,
                Long("runtime-dir") => folder = Some(parser.value()?.into()),
                Long("callable") => files.add(&parser.value()?.string()?)?,
                Long("context-library") => context = Some(parser.value()?.into()),
                Long("dispatcher") => dispatcher = Some(parser.value()?.into()),
                Long("device") => device = parser.value()?.parse()?,
                Long("timeout") => timeout = parser.value()?.parse()?,
                Long("case") => case = Some(parser.value()?.string()?),
                Long("help") | Short('h') => return Ok(None),
                Value(value) if filter.is_none() => filter = Some(value.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        if timeout == 0 || device < 0 {
            return Err(Wrong("--timeout is at least 1 and --device at least 0".to_owned()));
        }
        let backend = match (platform, folder, library_option) {
            (Some(platform), Some(folder), _) => {
                let mut installation = installation(&folder, platform, runtime);
                if let Some(path) = context {
                    installation = installation.with_context_library(path);
                }
                if let Some(path) = dispatcher {
                    installation = installation.with_dispatcher(path);
                }
                Backend::Library { installation, device, files }
            }
            (None, None, None) => Backend::Simulator,
            (None, None, Some(option)) => {
                return Err(Wrong(format!("{option} needs --platform and --runtime-dir")));
            }
            _ => return Err(Wrong("--platform and --runtime-dir go together".to_owned())),
        };
        Ok(Some(Self { backend, timeout: Duration::from_secs(timeout), filter, case }))
    }
}

/// The folder itself if the library is in it, else the one under it.
fn installation(folder: &Path, platform: Platform, runtime: RuntimeKind) -> Installation {
    if folder.join("libhost_runtime.so").exists() {
        Installation::in_folder(folder, platform, runtime)
    } else {
        Installation::under(folder, platform, runtime)
    }
}

impl Files {
    /// Reads `KERNEL=FILE`, or a file that is named after its kernel.
    fn add(&mut self, value: &str) -> Result<(), Wrong> {
        let (name, path) = match value.split_once('=') {
            Some((name, path)) => (name, Path::new(path)),
            None => {
                let path = Path::new(value);
                let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                (file.split('.').next().unwrap_or_default(), path)
            }
        };
        let kernel = Kernel::ALL.into_iter().find(|kernel| kernel.name() == name);
        let kernel = kernel.ok_or_else(|| Wrong(format!("{name:?} in --callable {value} is no kernel")))?;
        let blob = fs::read(path).map_err(|error| Wrong(format!("{}: {error}", path.display())))?;
        ChipCallable::parse(&blob).map_err(|error| Wrong(format!("{}: {error}", path.display())))?;
        self.kernels.retain(|(known, _)| *known != kernel);
        self.kernels.push((kernel, blob));
        Ok(())
    }
}
