//! The trees that the cases run on: all forked at the start, asleep but in their own slices.

use std::cell::Cell;
use std::time::Duration;

use laneway_core::mailbox::Words;
use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::sys::cpu;
use laneway_linux::sys::words::MappedWords;
use laneway_linux::{
    AddressSpace, BoxError, CallableHandle, Chip, ChipTensor, CustomChild, CustomStart, Dtype, Failure as LeafFailure,
    Leaf, Report, Task, TaskArgs, Tensor, Worker, WorkerId,
};
use laneway_sim::{Config, HostMemory, Kernel, Profile, Simulator, callable};
use rustix::time::{ClockId, clock_gettime};

use super::Failure;
use super::partner::shared_words;

/// Tensors of a tree: each task of a case gets others, until all were used.
pub(super) const TENSORS: usize = 4 * 2048;
/// Elements of each: one cache line.
const ELEMENTS: u32 = 16;
const TENSOR_BYTES: u64 = ELEMENTS as u64 * 4;

/// A worker whose children are SUB children.
pub(super) struct SubTree {
    pub(super) worker: Worker,
    /// Does nothing.
    pub(super) noop: CallableHandle,
    /// Computes for as many nanoseconds of CPU time as its scalar says.
    pub(super) compute: CallableHandle,
    /// Returns when the gate is open.
    pub(super) wait_at_gate: CallableHandle,
    gate: MappedWords,
    pub(super) tensors: Tensors,
}

impl SubTree {
    /// `cpu` is where the children are kept; anywhere without it.
    pub(super) fn start(subs: u32, cpu: Option<usize>) -> Result<Self, Failure> {
        let worker = Worker::builder().subs(subs).build()?;
        let gate = shared_words("bench-gate", 64)?;
        let noop = worker.register("noop", |_| Ok(()))?;
        let compute = worker.register("compute", |args| {
            compute(Duration::from_nanos(args.scalar(0)?));
            Ok(())
        })?;
        let wait_at_gate = worker.register("wait_at_gate", move |_| {
            while gate.load(0) == 0 {
                std::hint::spin_loop();
            }
            Ok(())
        })?;
        let pin = cpu.map(|cpu| worker.register("pin", move |_| Ok(cpu::pin(&[cpu])?))).transpose()?;
        worker.init()?;
        if let Some(pin) = pin {
            let none = TaskArgs::new();
            let members = vec![&none; subs as usize];
            worker.run(|orch| Ok(orch.submit_sub_group(&pin, &members).map(drop)?))?;
        }
        let tensors = Tensors::new(&worker)?;
        Ok(Self { worker, noop, compute, wait_at_gate, gate, tensors })
    }

    /// Opens or shuts the gate.
    pub(super) fn set_gate(&self, open: bool) {
        self.gate.store(0, open.into());
    }
}

/// Uses up this much CPU time; what other processes take meanwhile does not count.
pub(super) fn compute(time: Duration) {
    let used = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
    };
    let end = used() + time;
    while used() < end {
        std::hint::spin_loop();
    }
}

/// Many small tensors in one buffer.
pub(super) struct Tensors {
    args: Vec<ChipTensor>,
    next: Cell<usize>,
    /// Owns their memory.
    _buffer: Tensor<f32>,
}

impl Tensors {
    pub(super) fn new(worker: &Worker) -> Result<Self, Failure> {
        let buffer = worker.tensor::<f32>(&[TENSORS as u32 + 1, ELEMENTS])?;
        buffer.fill_with(|_| 0.0)?;
        let base = buffer.as_arg().addr();
        let tensor = |index: u64| {
            let address = base + index * TENSOR_BYTES;
            ChipTensor::contiguous(address, TENSOR_BYTES, Dtype::F32, &[ELEMENTS], AddressSpace::Host)
        };
        let args = (0..=TENSORS as u64).map(tensor).collect::<Result<_, _>>()?;
        Ok(Self { args, next: Cell::new(0), _buffer: buffer })
    }

    /// One that [`Tensors::take`] never gives.
    pub(super) fn apart(&self) -> ChipTensor {
        self.args[TENSORS]
    }

    /// The next `count` of them.
    pub(super) fn take(&self, count: usize) -> &[ChipTensor] {
        let start = if self.next.get() + count > TENSORS { 0 } else { self.next.get() };
        self.next.set(start + count);
        &self.args[start..start + count]
    }

    /// Appends four that no task had of late: two that are read, one that is updated, one that is overwritten.
    pub(super) fn add_four(&self, args: &mut TaskArgs) {
        if let [a, b, c, d] = self.take(4) {
            args.input(*a).input(*b).inout(*c).output_existing(*d);
        }
    }
}

/// A worker with one simulated chip.
pub(super) struct ChipTree {
    pub(super) worker: Worker,
    pub(super) chip: WorkerId,
    pub(super) noop: CallableHandle,
}

impl ChipTree {
    #[expect(unsafe_code, reason = "the simulator is told which memory it may touch")]
    pub(super) fn start(profile: Profile) -> Result<Self, Failure> {
        let worker = Worker::builder().build()?;
        let (platform, runtime) = (profile.platform(), profile.runtime());
        let chip = worker.add_chip(Chip::new(platform, runtime, move |shared| {
            // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and this child makes no
            // reference into them.
            let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
            Simulator::new(Config::new(profile), host)
        }))?;
        let noop = worker.register_chip(platform, runtime, &callable(Kernel::Noop))?;
        worker.init()?;
        Ok(Self { worker, chip, noop })
    }
}

/// Three levels: a task of the root is a run of one task on the worker below.
pub(super) struct NestedTree {
    pub(super) worker: Worker,
    pub(super) below: WorkerId,
    pub(super) pass_on: CallableHandle,
}

impl NestedTree {
    pub(super) fn start() -> Result<Self, Failure> {
        let inner = Worker::builder().level(3).subs(1).build()?;
        let noop = inner.register("noop", |_| Ok(()))?;
        let worker = Worker::builder().level(4).build()?;
        let pass_on = worker.register_orchestration("pass_on", move |orch, _, _| {
            Ok(orch.submit_sub(&noop, TaskArgs::new()).map(drop)?)
        })?;
        let below = worker.add_worker(&inner)?;
        worker.init()?;
        Ok(Self { worker, below, pass_on })
    }
}

/// A worker whose children can be named one by one.
pub(super) struct NamedTree {
    pub(super) worker: Worker,
    pub(super) children: Vec<WorkerId>,
    /// Computes for as many nanoseconds of CPU time as its scalar says; without one it does nothing.
    pub(super) compute: CallableHandle,
    pub(super) tensors: Tensors,
}

impl NamedTree {
    pub(super) fn start(children: usize) -> Result<Self, Failure> {
        let worker = Worker::builder().build()?;
        let start = |_: CustomStart<'_>| Ok::<_, BoxError>(Computes);
        let children = (0..children)
            .map(|_| worker.add_child(CustomChild::new("computing child", start)))
            .collect::<Result<_, _>>()?;
        let compute = worker.register_custom("compute", 1, &[])?;
        worker.init()?;
        let tensors = Tensors::new(&worker)?;
        Ok(Self { worker, children, compute, tensors })
    }
}

struct Computes;

impl Leaf for Computes {
    fn knows(&mut self, _: &Digest) -> bool {
        true
    }

    fn run(&mut self, task: &Task<'_>, _: &mut Report) -> Result<(), LeafFailure> {
        if let [nanos] = task.args.scalars() {
            compute(Duration::from_nanos(*nanos));
        }
        Ok(())
    }

    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, LeafFailure> {
        Err(LeafFailure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}

/// All of them.
pub(super) struct Trees {
    /// One SUB child, on a CPU of its own.
    pub(super) solo: SubTree,
    /// Nine SUB children, all on that CPU.
    pub(super) crowd: SubTree,
    /// 1, 2, 4 and 8 SUB children, wherever the kernel puts them.
    pub(super) pools: [(u32, SubTree); 4],
    /// Nine children with names, wherever the kernel puts them.
    pub(super) named: NamedTree,
    /// A chip whose mailbox uses one task frame, and one that uses two.
    pub(super) one_frame: ChipTree,
    pub(super) two_frames: ChipTree,
    pub(super) nested: NestedTree,
}

impl Trees {
    pub(super) fn start(child_cpu: usize) -> Result<Self, Failure> {
        let pool = |subs| Ok::<_, Failure>((subs, SubTree::start(subs, None)?));
        Ok(Self {
            solo: SubTree::start(1, Some(child_cpu))?,
            crowd: SubTree::start(9, Some(child_cpu))?,
            pools: [pool(1)?, pool(2)?, pool(4)?, pool(8)?],
            named: NamedTree::start(9)?,
            one_frame: ChipTree::start(Profile::A5HostBuildGraph)?,
            two_frames: ChipTree::start(Profile::A2a3HostBuildGraph)?,
            nested: NestedTree::start()?,
        })
    }

    /// Every worker, by a name.
    pub(super) fn workers(&self) -> Vec<(String, &Worker)> {
        let mut all = vec![
            ("1 SUB child".to_owned(), &self.solo.worker),
            ("9 SUB children".to_owned(), &self.crowd.worker),
            ("9 named children".to_owned(), &self.named.worker),
            ("chip, one frame".to_owned(), &self.one_frame.worker),
            ("chip, two frames".to_owned(), &self.two_frames.worker),
            ("L4, L3, SUB".to_owned(), &self.nested.worker),
        ];
        all.extend(self.pools.iter().map(|(subs, tree)| (format!("pool of {subs}"), &tree.worker)));
        all
    }
}
