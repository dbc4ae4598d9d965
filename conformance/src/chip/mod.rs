//! Cases for device runtimes.

mod buffer;
mod launch;
mod lost;
mod memory;
mod prepare;
mod results;

use std::fmt;

use laneway_core::chip::{CallableSlot, DeviceRuntime, RunDescriptor};
use laneway_core::ids::PipelineSlot;
use laneway_core::model::TaskArgs;
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs, ChipTensor};
use laneway_sim::{Config, Kernel, Profile, callable};

pub use buffer::HostBuffer;

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
    run: fn(&mut dyn DeviceRuntime),
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

    /// Runs the case on a fresh device.
    ///
    /// # Panics
    /// When the device violates a rule.
    pub fn check(&self, device: &mut dyn DeviceRuntime) {
        (self.run)(device);
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
    run: fn(&mut dyn DeviceRuntime),
) -> impl Iterator<Item = Case> {
    Profile::ALL.into_iter().map(move |profile| Case { name, rules, device: Config::new(profile), run })
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
fn register(device: &mut dyn DeviceRuntime, index: usize, kernel: Kernel) -> CallableSlot {
    device.register(slot(index), &callable(kernel)).expect("register");
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
