//! What is tested: how to open it, and what it can do.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use laneway_core::chip::{DeviceRuntime, Platform, RuntimeKind};
use laneway_core::serve::ChildSpec;
use laneway_core::wire::{Digest, Dtype};
use laneway_linux::{ChildMode, Chip, Worker, WorkerBuilder};
use laneway_sim::{FaultPlan, Kernel, Program};

use crate::frame::{ChildHalf, CoreChild, Tape};

/// Why something could not be opened.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What a backend is, as far as it decides which cases apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The platform that it is or stands in for.
    pub platform: Platform,
    /// How it builds graphs.
    pub runtime: RuntimeKind,
    /// The element types that its kernels compute with.
    pub dtypes: &'static [Dtype],
    /// Whether it misbehaves on command: [`Setup::faults`] and [`Setup::memory_bytes`] are followed.
    pub obeys: bool,
    /// Whether a launch that fails leaves the completion unproven, whatever the reason: its interface cannot tell.
    pub launch_unproven: bool,
    /// Whether it can be a chip child of a worker: [`Backend::chip`] returns one.
    pub trees: bool,
    /// Whether the children of its workers are threads of the caller's process.
    pub threads: bool,
    /// Whether it has memory that users can ask for.
    pub memory: bool,
}

/// How a case wants its device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Setup {
    /// What goes wrong in it.
    pub faults: FaultPlan,
    /// Bytes of device memory, if that matters.
    pub memory_bytes: Option<u64>,
}

/// Which memory of the process a device is going to be handed.
#[derive(Clone, Copy, Debug)]
pub enum Memory<'a> {
    /// Buffers of the case, anywhere in this process. They stay where they are while a run or a copy names them, and no
    /// Rust reference to their bytes exists except to atomics.
    WholeProcess,
    /// The tensors of a tree of workers, which lie in these ranges of addresses.
    Ranges(&'a [Range<u64>]),
}

/// The callables that a backend can run, as blobs; the cases ask for them by the kernel that they compute.
pub trait Callables {
    /// The callable of one kernel over its operands, or `None` if the backend has none.
    fn kernel(&self, kernel: Kernel) -> Option<Vec<u8>>;

    /// The callable of a program of several kernels, or `None` if the backend has none.
    fn program(&self, program: &Program) -> Option<Vec<u8>>;
}

/// The callables of the simulator: all of them.
#[derive(Clone, Copy, Debug)]
pub struct SimulatorCallables;

impl Callables for SimulatorCallables {
    fn kernel(&self, kernel: Kernel) -> Option<Vec<u8>> {
        Some(laneway_sim::callable(kernel))
    }

    fn program(&self, program: &Program) -> Option<Vec<u8>> {
        Some(program.to_callable())
    }
}

/// Callables from elsewhere, a blob per kernel.
#[derive(Clone, Debug, Default)]
pub struct Blobs(Vec<(Kernel, Vec<u8>)>);

impl Blobs {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds the callable of a kernel, or replaces it.
    #[must_use]
    pub fn with(mut self, kernel: Kernel, blob: Vec<u8>) -> Self {
        self.0.retain(|(known, _)| *known != kernel);
        self.0.push((kernel, blob));
        self
    }
}

impl Callables for Blobs {
    fn kernel(&self, kernel: Kernel) -> Option<Vec<u8>> {
        self.0.iter().find(|(known, _)| *known == kernel).map(|(_, blob)| blob.clone())
    }

    fn program(&self, _: &Program) -> Option<Vec<u8>> {
        None
    }
}

/// Something that the cases can be run against.
pub trait Backend {
    /// What reports call it.
    fn name(&self) -> &str;

    /// What it is.
    fn facts(&self) -> Facts;

    /// What it can run.
    fn callables(&self) -> &dyn Callables;

    /// A fresh device in this process; it is used for one case and dropped.
    ///
    /// # Errors
    /// Why it does not come up.
    fn open(&mut self, setup: &Setup) -> Result<Box<dyn DeviceRuntime>, BoxError>;

    /// A chip child with such a device; `None` if it cannot be one.
    fn chip(&mut self, _: &Setup) -> Option<Chip> {
        None
    }

    /// The worker that chips of this backend are added to.
    fn worker(&self) -> WorkerBuilder {
        Worker::builder()
    }

    /// The child half of a mailbox around a device, with these callables installed. The one of laneway-core, unless the
    /// backend brings its own.
    ///
    /// # Errors
    /// A callable that could not be installed.
    fn child<'a>(
        &self,
        words: &'a Tape,
        device: &'a mut dyn DeviceRuntime,
        callables: &[(Digest, Vec<u8>)],
        spec: ChildSpec,
    ) -> Result<Box<dyn ChildHalf + 'a>, BoxError> {
        Ok(Box::new(CoreChild::new(words, device, callables, spec)?))
    }
}

/// A backend made of one function that opens the device, here or in a chip child.
#[derive(Clone)]
pub struct Own<F> {
    name: String,
    facts: Facts,
    callables: Arc<dyn Callables>,
    open: F,
}

impl<F> fmt::Debug for Own<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("name", &self.name).field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl<F, D, E> Own<F>
where
    F: Fn(&Setup, Memory<'_>) -> Result<D, E> + Clone + Send + 'static,
    D: DeviceRuntime + 'static,
    E: Into<BoxError>,
{
    /// A device runtime of `platform` and `runtime`: those of the chip that it is most like, since they say how many task
    /// frames a child with it has and what may be prepared beside what. `open` is called for each case.
    pub fn new(name: impl Into<String>, platform: Platform, runtime: RuntimeKind, open: F) -> Self {
        let dtypes = &[Dtype::F32];
        let (obeys, launch_unproven, trees, threads, memory) = (false, false, true, false, true);
        let facts = Facts { platform, runtime, dtypes, obeys, launch_unproven, trees, threads, memory };
        Self { name: name.into(), facts, callables: Arc::new(Blobs::new()), open }
    }

    /// With these callables.
    #[must_use]
    pub fn with_callables(mut self, callables: impl Callables + 'static) -> Self {
        self.callables = Arc::new(callables);
        self
    }

    /// Its kernels compute with these element types; with f32 alone unless it is said.
    #[must_use]
    pub const fn with_element_types(mut self, dtypes: &'static [Dtype]) -> Self {
        self.facts.dtypes = dtypes;
        self
    }

    /// It follows [`Setup::faults`] and [`Setup::memory_bytes`].
    #[must_use]
    pub const fn that_obeys(mut self) -> Self {
        self.facts.obeys = true;
        self
    }

    /// Its interface cannot tell a launch that was refused from one that went half-way.
    #[must_use]
    pub const fn whose_failed_launch_is_unproven(mut self) -> Self {
        self.facts.launch_unproven = true;
        self
    }

    /// The children of its workers are threads; cases about processes are not applicable.
    #[must_use]
    pub const fn in_threads(mut self) -> Self {
        self.facts.threads = true;
        self
    }

    /// It has no memory that users can ask for: every call about it is refused as unsupported.
    #[must_use]
    pub const fn without_memory(mut self) -> Self {
        self.facts.memory = false;
        self
    }

    /// It cannot be a chip child of a worker.
    #[must_use]
    pub const fn without_trees(mut self) -> Self {
        self.facts.trees = false;
        self
    }
}

impl<F, D, E> Backend for Own<F>
where
    F: Fn(&Setup, Memory<'_>) -> Result<D, E> + Clone + Send + 'static,
    D: DeviceRuntime + 'static,
    E: Into<BoxError>,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn facts(&self) -> Facts {
        self.facts
    }

    fn callables(&self) -> &dyn Callables {
        self.callables.as_ref()
    }

    fn open(&mut self, setup: &Setup) -> Result<Box<dyn DeviceRuntime>, BoxError> {
        match (self.open)(setup, Memory::WholeProcess) {
            Ok(device) => Ok(Box::new(device)),
            Err(error) => Err(error.into()),
        }
    }

    fn worker(&self) -> WorkerBuilder {
        let mode = if self.facts.threads { ChildMode::Thread } else { ChildMode::Process };
        Worker::builder().child_mode(mode)
    }

    fn chip(&mut self, setup: &Setup) -> Option<Chip> {
        if !self.facts.trees {
            return None;
        }
        let (open, setup) = (self.open.clone(), setup.clone());
        Some(Chip::new(self.facts.platform, self.facts.runtime, move |shared| open(&setup, Memory::Ranges(shared))))
    }
}
