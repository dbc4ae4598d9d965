//! One case: its name, the rules that it shows, what it needs, and what it does.

use std::fmt;

use laneway_core::chip::{Capabilities, DeviceRuntime};
use laneway_core::lane::Frames;
use laneway_core::wire::Dtype;
use laneway_sim::{Action, Fault, FaultPlan, Kernel, Point, Program};

use crate::backend::{Backend, Setup};
use crate::device::{Bench, Script};
use crate::expect::Verdict;
use crate::frame::Desk;
use crate::tree::Grove;

/// What a backend must have for a case.
#[derive(Clone, Default)]
pub(crate) struct Needs {
    pub(crate) kernels: &'static [Kernel],
    program: bool,
    dtype: Option<Dtype>,
    depth: Option<usize>,
    concurrent: Option<bool>,
    /// The parent shows no extension block (W-6).
    pub(crate) stranger: bool,
    /// The children of workers are processes.
    processes: bool,
    /// Users can ask for memory of the device, or they cannot.
    memory: Option<bool>,
    pub(crate) setup: Setup,
}

/// What a case does.
#[derive(Clone)]
pub(crate) enum Body {
    /// It drives a device.
    Device(fn(&mut Bench<'_>) -> Verdict),
    /// It drives a device from a file.
    Script(Box<Script>),
    /// It is the parent of one child half around a device.
    Frames(Frames, fn(&mut Desk<'_>) -> Verdict),
    /// It builds trees of processes, with chips of the backend in them or without.
    Tree(fn(&mut Grove<'_>) -> Verdict),
}

/// One scenario.
#[derive(Clone)]
pub struct Case {
    name: String,
    rules: Vec<String>,
    says: String,
    pub(crate) needs: Needs,
    pub(crate) body: Body,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Case {
    pub(crate) fn new(name: &str, rules: &[&str], says: &str, body: Body) -> Self {
        let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        Self { name: name.to_owned(), rules, says: says.to_owned(), needs: Needs::default(), body }
    }

    pub(crate) fn device(name: &str, rules: &[&str], says: &str, run: fn(&mut Bench<'_>) -> Verdict) -> Self {
        Self::new(&format!("device/{name}"), rules, says, Body::Device(run))
    }

    /// In a mailbox of one task frame.
    pub(crate) fn one_frame(name: &str, rules: &[&str], says: &str, run: fn(&mut Desk<'_>) -> Verdict) -> Self {
        Self::new(&format!("frame/{name}"), rules, says, Body::Frames(Frames::One, run))
    }

    /// In a mailbox of two task frames, which takes a runtime of depth 2.
    pub(crate) fn two_frames(name: &str, rules: &[&str], says: &str, run: fn(&mut Desk<'_>) -> Verdict) -> Self {
        Self::new(&format!("frame/{name}"), rules, says, Body::Frames(Frames::Two, run)).depth(2)
    }

    pub(crate) fn tree(name: &str, rules: &[&str], says: &str, run: fn(&mut Grove<'_>) -> Verdict) -> Self {
        Self::new(&format!("tree/{name}"), rules, says, Body::Tree(run))
    }

    pub(crate) fn kernels(mut self, kernels: &'static [Kernel]) -> Self {
        self.needs.kernels = kernels;
        self
    }

    /// With an element type that not every backend knows.
    pub(crate) const fn of(mut self, dtype: Dtype) -> Self {
        self.needs.dtype = Some(dtype);
        self
    }

    pub(crate) const fn programs(mut self) -> Self {
        self.needs.program = true;
        self
    }

    pub(crate) const fn depth(mut self, depth: usize) -> Self {
        self.needs.depth = Some(depth);
        self
    }

    /// Only where a second run can be prepared natively beside a first, or only where it cannot.
    pub(crate) const fn concurrent(mut self, concurrent: bool) -> Self {
        self.needs.concurrent = Some(concurrent);
        self
    }

    /// Only where the children of workers are processes.
    pub(crate) const fn processes(mut self) -> Self {
        self.needs.processes = true;
        self
    }

    /// Only where users can ask for memory of the device.
    pub(crate) const fn with_memory(mut self) -> Self {
        self.needs.memory = Some(true);
        self
    }

    /// Only where they cannot.
    pub(crate) const fn without_memory(mut self) -> Self {
        self.needs.memory = Some(false);
        self
    }

    /// The parent of the child half knows nothing of the extension block.
    pub(crate) const fn stranger(mut self) -> Self {
        self.needs.stranger = true;
        self
    }

    pub(crate) fn faults(mut self, faults: FaultPlan) -> Self {
        self.needs.setup.faults = faults;
        self
    }

    pub(crate) const fn memory(mut self, bytes: u64) -> Self {
        self.needs.setup.memory_bytes = Some(bytes);
        self
    }

    /// `level/area/sentence_in_snake_case`, where the level is `device`, `frame`, `tree` or `file`; no other case has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rules that it shows, and the traps that it keeps away from.
    #[must_use]
    pub fn rules(&self) -> &[String] {
        &self.rules
    }

    /// What must be true, as a sentence.
    #[must_use]
    pub fn says(&self) -> &str {
        &self.says
    }

    /// Why it does not apply to a backend, as far as that can be told without opening it.
    pub(crate) fn does_not_apply(&self, backend: &dyn Backend) -> Option<String> {
        let (facts, callables) = (backend.facts(), backend.callables());
        let row = Capabilities::of(facts.platform, facts.runtime);
        let missing: Vec<_> = self.needs.kernels.iter().filter(|kernel| callables.kernel(**kernel).is_none()).collect();
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|kernel| kernel.name()).collect();
            return Some(format!("it has no callable for {}", names.join(", ")));
        }
        if self.needs.program && callables.program(&Program::of(Kernel::Noop)).is_none() {
            return Some("it has no callables of several kernels".to_owned());
        }
        if let Some(dtype) = self.needs.dtype.filter(|dtype| !facts.dtypes.contains(dtype)) {
            return Some(format!("its kernels do not compute with {dtype}"));
        }
        if self.needs.memory.is_some_and(|wanted| wanted != facts.memory) {
            return Some(
                if facts.memory { "it has memory of its own" } else { "it has no memory of its own" }.to_owned(),
            );
        }
        if self.needs.setup != Setup::default() && !facts.obeys {
            return Some("it does not misbehave on command".to_owned());
        }
        let refused_launch = |fault: &Fault| fault.at == Point::Launch && matches!(fault.action, Action::Error(_));
        if facts.launch_unproven && self.needs.setup.faults.faults.iter().any(refused_launch) {
            return Some("a launch that fails is always unproven".to_owned());
        }
        if let Body::Tree(_) = self.body {
            if self.needs.processes && facts.threads {
                return Some("the children of its workers are threads".to_owned());
            }
            if !self.needs.kernels.is_empty() && !facts.trees {
                return Some("it is no chip child".to_owned());
            }
            if self.needs.concurrent.is_some_and(|wanted| wanted != row.concurrent_prepare) {
                return Some(beside(row.concurrent_prepare).to_owned());
            }
            if self.needs.depth.is_some_and(|wanted| row.depth.is_some_and(|depth| depth != wanted)) {
                return Some(format!("its depth is {}", row.depth.unwrap_or(1)));
            }
        }
        None
    }

    /// Why it does not apply to an open device.
    pub(crate) fn does_not_fit(&self, device: &dyn DeviceRuntime) -> Option<String> {
        let (depth, concurrent) = (device.contract().depth(), device.supports_concurrent_prepare());
        if self.needs.depth.is_some_and(|wanted| wanted != depth) {
            return Some(format!("its depth is {depth}"));
        }
        self.needs.concurrent.filter(|wanted| *wanted != concurrent).map(|_| beside(concurrent).to_owned())
    }
}

const fn beside(concurrent: bool) -> &'static str {
    if concurrent { "it prepares one run beside another" } else { "it prepares no run beside another" }
}

/// Every case, in the order in which they are run.
#[must_use]
pub fn cases() -> Vec<Case> {
    [crate::device::cases(), crate::frame::cases(), crate::tree::cases()].concat()
}
