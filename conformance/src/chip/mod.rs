//! Cases for device runtimes.

mod buffer;
mod launch;
mod lost;
mod memory;
mod prepare;
mod results;
mod script;

use std::fmt;
use std::ops::{Deref, DerefMut};

use laneway_core::chip::{CallableSlot, DeviceRuntime, Platform, RunDescriptor, RuntimeKind};
use laneway_core::ids::PipelineSlot;
use laneway_core::model::TaskArgs;
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs, ChipTensor};
use laneway_sim::{Config, FaultPlan, Kernel, Profile, Program, callable};

pub use buffer::HostBuffer;
pub use script::{Ending, Script};

/// The callables that a backend can run, as blobs; the cases ask for them by the kernel that they compute.
pub trait Callables {
    /// The callable of one kernel over its operands, or `None` if the backend has none.
    fn kernel(&self, kernel: Kernel) -> Option<Vec<u8>>;

    /// The callable of a program of several kernels, or `None` if the backend has none.
    fn program(&self, program: &Program) -> Option<Vec<u8>>;
}

/// The callables of the simulator: all of them.
#[derive(Clone, Copy, Debug)]
pub struct Simulated;

impl Callables for Simulated {
    fn kernel(&self, kernel: Kernel) -> Option<Vec<u8>> {
        Some(callable(kernel))
    }

    fn program(&self, program: &Program) -> Option<Vec<u8>> {
        Some(program.to_callable())
    }
}

/// A fresh device with the callables that it can run.
pub struct Bench<'a> {
    device: &'a mut dyn DeviceRuntime,
    callables: &'a dyn Callables,
}

impl<'a> Deref for Bench<'a> {
    type Target = dyn DeviceRuntime + 'a;

    fn deref(&self) -> &Self::Target {
        self.device
    }
}

impl DerefMut for Bench<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.device
    }
}

impl Bench<'_> {
    /// The callable of a kernel that the case said it needs.
    fn callable(&self, kernel: Kernel) -> Vec<u8> {
        self.callables.kernel(kernel).expect("a case runs only where its kernels are")
    }
}

/// One scenario: the device it wants, and what it does with it. A violated rule panics with the reason.
#[derive(Clone)]
pub struct Case {
    /// A sentence in snake case.
    pub name: &'static str,
    /// The rules that it shows.
    pub rules: &'static [&'static str],
    /// The device that a simulator must be for it: profile and fault plan. A vendor's library is what it is, and runs
    /// the cases of its profile that need no fault.
    pub device: Config,
    /// The kernels that it runs.
    kernels: &'static [Kernel],
    /// Whether it runs a program of several kernels.
    programs: bool,
    /// Whether it is about what only this profile can do.
    specific: bool,
    run: fn(&mut Bench<'_>),
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("profile", &self.device.profile).finish_non_exhaustive()
    }
}

impl Case {
    /// A name that no other case has.
    #[must_use]
    pub fn full_name(&self) -> String {
        let profile = self.device.profile;
        format!("{}_{}_{}", self.name, profile.platform(), profile.runtime())
    }

    fn new(name: &'static str, rules: &'static [&'static str], profile: Profile, run: fn(&mut Bench<'_>)) -> Self {
        Self { name, rules, device: Config::new(profile), kernels: &[], programs: false, specific: true, run }
    }

    /// Whether a library of this platform and runtime, which has no fault plan, must pass it. What the vendor's own
    /// simulation can do beyond a plain run is its affair.
    #[must_use]
    pub fn applies_to(&self, platform: Platform, runtime: RuntimeKind) -> bool {
        let profile = self.device.profile;
        self.device.faults == FaultPlan::none()
            && profile.platform().architecture() == platform.architecture()
            && profile.runtime() == runtime
            && !(self.specific && platform.is_simulation())
    }

    /// What the backend lacks for it; empty if it can run.
    #[must_use]
    pub fn missing(&self, callables: &dyn Callables) -> Vec<String> {
        let kernels = self.kernels.iter().filter(|kernel| callables.kernel(**kernel).is_none());
        let mut missing: Vec<String> = kernels.map(|kernel| format!("a callable for {kernel}")).collect();
        if self.programs && callables.program(&Program::of(Kernel::Noop)).is_none() {
            missing.push("callables of several kernels".to_owned());
        }
        missing
    }

    /// Runs the case on a fresh device.
    ///
    /// # Panics
    /// When the device violates a rule.
    pub fn check(&self, device: &mut dyn DeviceRuntime, callables: &dyn Callables) {
        (self.run)(&mut Bench { device, callables });
    }
}

/// Every case, those for every profile once per profile.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    all.extend(prepare::cases());
    all.extend(launch::cases());
    all.extend(lost::cases());
    all.extend(memory::cases());
    all.extend(results::cases());
    all
}

/// A case for every profile.
fn on_every_profile(
    name: &'static str,
    rules: &'static [&'static str],
    kernels: &'static [Kernel],
    run: fn(&mut Bench<'_>),
) -> impl Iterator<Item = Case> {
    Profile::ALL.into_iter().map(move |profile| Case {
        kernels,
        specific: false,
        ..Case::new(name, rules, profile, run)
    })
}

const ZERO: RunDescriptor = RunDescriptor::Direct(PipelineSlot::Zero);
const ONE: RunDescriptor = RunDescriptor::Direct(PipelineSlot::One);
const PLAIN: CallConfig = CallConfig::ZERO;

/// A config that makes a run diagnostic.
fn diagnostic() -> CallConfig {
    let mut config = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
    config.set_output_prefix(b"/tmp/laneway").expect("a short path fits");
    config
}

fn slot(index: usize) -> CallableSlot {
    CallableSlot::new(index).expect("below 64")
}

/// Registers a kernel in a slot.
fn register(device: &mut Bench<'_>, index: usize, kernel: Kernel) -> CallableSlot {
    let blob = device.callable(kernel);
    device.register(slot(index), &blob).expect("register");
    slot(index)
}

fn storage(tensors: &[ChipTensor], scalars: &[u64]) -> Box<ChipStorageTaskArgs> {
    let mut args = TaskArgs::new();
    for tensor in tensors {
        args.no_dep(*tensor);
    }
    for scalar in scalars {
        args.scalar(*scalar);
    }
    let mut storage = Box::new(ChipStorageTaskArgs::new());
    storage.load(args.view());
    storage
}

/// A vector add of four elements in buffers of this process.
struct VectorAdd {
    out: HostBuffer,
    _inputs: [HostBuffer; 2],
    args: Box<ChipStorageTaskArgs>,
}

impl VectorAdd {
    fn new() -> Self {
        let inputs = [[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]].map(|values| HostBuffer::of_f32(&values));
        let out = HostBuffer::of_f32(&[0.0; 4]);
        let tensors = [&inputs[0], &inputs[1], &out].map(|buffer| buffer.dense_f32(&[4]));
        Self { args: storage(&tensors, &[]), out, _inputs: inputs }
    }

    fn is_done(&self) -> bool {
        self.out.f32s() == [11.0, 22.0, 33.0, 44.0]
    }

    fn is_untouched(&self) -> bool {
        self.out.f32s() == [0.0; 4]
    }
}
