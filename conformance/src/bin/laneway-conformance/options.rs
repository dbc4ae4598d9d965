//! The command line.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway_ascend::Installation;
use laneway_conformance::{Backend, Blobs, Case, Filter, SEED, Script, library, simulator, simulator_in_threads};
use laneway_core::chip::{Platform, RuntimeKind};
use laneway_core::wire::ChipCallable;
use laneway_sim::{Kernel, Profile};
use lexopt::ValueExt;

pub(crate) const USAGE: &str = "\
usage: laneway-conformance [options] [FILTER]
       laneway-conformance --platform P --runtime-dir DIR [options] [FILTER]

Runs the conformance cases, each in a process of its own; FILTER is a part of their names, or a rule. The first form runs
them on the simulator, with every profile. The second runs those that apply on a host runtime library.

  --filter FILTER           as FILTER; repeat it for more cases
  --list                    print the cases, their rules and what they say, and run none
  --seed N                  the seed of what is random (default 1)
  --timeout SECONDS         how long one case may take (default 60)
  --case-file FILE          also a case of your own: a fault plan and what must come of it, as JSON; repeat it
  --in-process              all cases in this process, for a debugger; one that hangs hangs all
  --json                    print the reports as JSON and nothing else
  --junit FILE              also write the reports as JUnit XML
  --profile P               only this profile of the simulator: a2a3_host_build_graph, a2a3_tensormap_and_ringbuffer,
                            a5_host_build_graph or a5_tensormap_and_ringbuffer

  --threads                 the children of the simulator's workers are threads

  --platform P              a2a3, a5, a2a3sim or a5sim
  --runtime-dir DIR         the folder with libhost_runtime.so, libaicpu_kernel.so and libaicore_kernel.so, or the root
                            of installations: <architecture>/<onboard|sim>/<runtime>
  --runtime R               host_build_graph (default) or tensormap_and_ringbuffer
  --callable [KERNEL=]FILE  a callable blob over the operands of KERNEL: add, mul, scale, matmul, reduce, copy, noop or
                            wait (default: the file's name up to its first dot); repeat it. Cases without their
                            callables are not applicable
  --context-library FILE    simulation platforms only (default: libcpu_sim_context.so in the folder)
  --dispatcher FILE         on board only
  --device N                the device (default 0)

The exit status is 0 if something passed and nothing failed, 1 if a case failed, and 2 if the command line is wrong, the
backend could not be opened, or no case applies to it.";

/// What is tested.
enum Tested {
    /// The simulator, in process, with these profiles.
    Simulator { profiles: Vec<Profile>, threads: bool },
    /// A host runtime library.
    Library { installation: Installation, device: i32, callables: Blobs },
}

/// What the command line asks for.
pub(crate) enum Asked {
    Help,
    Run(Box<Options>),
}

/// Which cases, against what, and what is written about them.
pub(crate) struct Options {
    tested: Tested,
    pub(crate) filter: Filter,
    pub(crate) files: Vec<Case>,
    pub(crate) seed: u64,
    pub(crate) timeout: Duration,
    pub(crate) list: bool,
    pub(crate) json: bool,
    pub(crate) junit: Option<PathBuf>,
    pub(crate) in_this_process: bool,
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
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Asked, Wrong> {
        use lexopt::Arg::{Long, Short, Value};
        let mut parser = lexopt::Parser::from_args(args);
        let mut options = Self {
            tested: Tested::Simulator { profiles: Profile::ALL.to_vec(), threads: false },
            filter: Filter::all(),
            files: Vec::new(),
            seed: SEED,
            timeout: laneway_conformance::TIMEOUT,
            list: false,
            json: false,
            junit: None,
            in_this_process: false,
        };
        let (mut platform, mut folder, mut profile) = (None, None, None);
        let mut runtime = RuntimeKind::HostBuildGraph;
        let (mut context, mut dispatcher): (Option<PathBuf>, Option<PathBuf>) = (None, None);
        let mut threads = false;
        let (mut device, mut callables, mut library_option) = (0, Blobs::new(), None);
        while let Some(arg) = parser.next()? {
            if let Long(name @ ("callable" | "context-library" | "dispatcher" | "device" | "runtime")) = &arg {
                library_option = Some(format!("--{name}"));
            }
            match arg {
                Long("filter") => options.filter = options.filter.or(parser.value()?.string()?),
                Value(value) => options.filter = options.filter.or(value.string()?),
                Long("list") => options.list = true,
                Long("seed") => options.seed = parser.value()?.parse()?,
                Long("timeout") => options.timeout = Duration::from_secs(parser.value()?.parse()?),
                Long("case-file") => options.files.push(case_file(Path::new(&parser.value()?))?),
                Long("in-process") => options.in_this_process = true,
                Long("threads") => threads = true,
                Long("json") => options.json = true,
                Long("junit") => options.junit = Some(parser.value()?.into()),
                Long("profile") => profile = Some(profile_named(&parser.value()?.string()?)?),
                Long("platform") => platform = Some(parser.value()?.string()?.parse::<Platform>()?),
                Long("runtime") => runtime = parser.value()?.string()?.parse()?,
                Long("runtime-dir") => folder = Some(PathBuf::from(parser.value()?)),
                Long("callable") => callables = with_file(callables, &parser.value()?.string()?)?,
                Long("context-library") => context = Some(parser.value()?.into()),
                Long("dispatcher") => dispatcher = Some(parser.value()?.into()),
                Long("device") => device = parser.value()?.parse()?,
                Long("help") | Short('h') => return Ok(Asked::Help),
                other => return Err(other.unexpected().into()),
            }
        }
        if options.timeout.is_zero() || device < 0 {
            return Err(Wrong("--timeout is at least 1 and --device at least 0".to_owned()));
        }
        match (platform, folder, profile, library_option) {
            (Some(platform), Some(folder), None, _) => {
                let mut installation = installation(&folder, platform, runtime);
                if let Some(path) = context {
                    installation = installation.with_context_library(path);
                }
                if let Some(path) = dispatcher {
                    installation = installation.with_dispatcher(path);
                }
                options.tested = Tested::Library { installation, device, callables };
            }
            (None, None, Some(profile), None) => {
                options.tested = Tested::Simulator { profiles: vec![profile], threads };
            }
            (None, None, None, None) => {
                options.tested = Tested::Simulator { profiles: Profile::ALL.to_vec(), threads };
            }
            (_, _, Some(_), _) => {
                return Err(Wrong("--profile is one of the simulator, which has no files".to_owned()));
            }
            (None, None, None, Some(option)) => {
                return Err(Wrong(format!("{option} needs --platform and --runtime-dir")));
            }
            _ => return Err(Wrong("--platform and --runtime-dir go together".to_owned())),
        }
        Ok(Asked::Run(Box::new(options)))
    }

    /// What is tested, each on its own.
    pub(crate) fn backends(&self) -> Vec<Box<dyn Backend>> {
        match &self.tested {
            Tested::Simulator { profiles, threads } => {
                let backend = |profile: &Profile| match threads {
                    true => Box::new(simulator_in_threads(*profile)) as Box<dyn Backend>,
                    false => Box::new(simulator(*profile)),
                };
                profiles.iter().map(backend).collect()
            }
            Tested::Library { installation, device, callables } => {
                #[expect(unsafe_code, reason = "the user says what the files are")]
                // SAFETY: the user says that these files are a host runtime.
                let backend = unsafe { library(installation.clone(), *device, callables.clone()) };
                vec![Box::new(backend)]
            }
        }
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

fn profile_named(name: &str) -> Result<Profile, Wrong> {
    let named = |profile: &Profile| format!("{}_{}", profile.platform(), profile.runtime()) == name;
    Profile::ALL.into_iter().find(named).ok_or_else(|| Wrong(format!("{name:?} in --profile is no profile")))
}

/// Reads a case of the user's own.
fn case_file(path: &Path) -> Result<Case, Wrong> {
    let wrong = |error: &dyn fmt::Display| Wrong(format!("{}: {error}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let script = Script::from_json(&text).map_err(|error| wrong(&error))?;
    Ok(script.into_case(&path.display().to_string()))
}

/// Reads `KERNEL=FILE`, or a file that is named after its kernel.
fn with_file(callables: Blobs, value: &str) -> Result<Blobs, Wrong> {
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
    Ok(callables.with(kernel, blob))
}
