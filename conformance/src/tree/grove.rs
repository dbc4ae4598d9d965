//! What the tree cases work with.

use std::sync::Arc;

use laneway_core::chip::{DeviceRuntime, Platform, RuntimeKind};
use laneway_core::wire::Dtype;
use laneway_linux::{CallableHandle, Chip, Error, SubArgs, TaskArgs, Tensor, Worker, WorkerBuilder, WorkerId};
use laneway_sim::{Kernel, Program};

use super::signal::Signal;
use crate::backend::{Backend, BoxError, Setup};
use crate::case::Needs;
use crate::expect::{Must, Verdict, Violation, equal};

/// Where trees grow: the backend that supplies the chips.
pub(crate) struct Grove<'a> {
    backend: &'a mut dyn Backend,
    needs: &'a Needs,
    pub(crate) seed: u64,
}

impl<'a> Grove<'a> {
    pub(crate) fn new(backend: &'a mut dyn Backend, needs: &'a Needs, seed: u64) -> Self {
        Self { backend, needs, seed }
    }

    /// A worker to be, with small regions.
    pub(crate) fn builder(&self) -> WorkerBuilder {
        self.backend.worker().heap_ring_bytes(1 << 20).buffer_bytes(4 << 20)
    }

    /// A worker with SUB children and functions for them, ready.
    pub(crate) fn subs(&self, count: u32) -> Result<Subs, Violation> {
        Subs::start(self.builder().subs(count).build().must("a worker")?)
    }

    /// A worker with one chip for each setup, and a callable for each kernel of the case; ready.
    pub(crate) fn chips(&mut self, setups: &[Setup]) -> Result<Chips, Violation> {
        self.chips_of(self.builder(), setups)
    }

    /// As [`chips`](Self::chips): the first chip misbehaves as the case wants it, and `others` more do not.
    pub(crate) fn one_faulty(&mut self, others: usize) -> Result<Chips, Violation> {
        let mut setups = vec![Setup::default(); 1 + others];
        setups[0] = self.needs.setup.clone();
        self.chips(&setups)
    }

    /// As [`one_faulty`](Self::one_faulty), without others, below a worker of the case's own.
    pub(crate) fn one_faulty_of(&mut self, builder: WorkerBuilder) -> Result<Chips, Violation> {
        self.chips_of(builder, std::slice::from_ref(&self.needs.setup))
    }

    /// As [`one_faulty`](Self::one_faulty) with one other, below a worker of the case's own.
    pub(crate) fn faulty_and_another(&mut self, builder: WorkerBuilder) -> Result<Chips, Violation> {
        self.chips_of(builder, &[self.needs.setup.clone(), Setup::default()])
    }

    pub(crate) fn chips_of(&mut self, builder: WorkerBuilder, setups: &[Setup]) -> Result<Chips, Violation> {
        let worker = builder.build().must("a worker")?;
        let mut ids = Vec::new();
        for setup in setups {
            ids.push(worker.add_chip(self.chip(setup)?).must("add_chip")?);
        }
        let mut kernels = Vec::new();
        for kernel in self.needs.kernels {
            let blob = self.blob(*kernel)?;
            let (platform, runtime) = self.platform();
            kernels.push((*kernel, worker.register_chip(platform, runtime, &blob).must("register_chip")?));
        }
        worker.init().must("init")?;
        Ok(Chips { worker, ids, kernels })
    }

    /// A chip child to be.
    pub(crate) fn chip(&mut self, setup: &Setup) -> Result<Chip, Violation> {
        self.backend.chip(setup).must("a chip child of the backend")
    }

    /// A device in this process.
    pub(crate) fn device(&mut self, setup: &Setup) -> Result<Box<dyn DeviceRuntime>, Violation> {
        self.backend.open(setup).must("a device of the backend")
    }

    /// The callable of a kernel.
    pub(crate) fn blob(&self, kernel: Kernel) -> Result<Vec<u8>, Violation> {
        self.backend.callables().kernel(kernel).must("a callable")
    }

    /// The callable of a program.
    pub(crate) fn program(&self, program: &Program) -> Result<Vec<u8>, Violation> {
        self.backend.callables().program(program).must("a callable of several kernels")
    }

    /// The element types that its kernels know.
    pub(crate) fn dtypes(&self) -> &'static [Dtype] {
        self.backend.facts().dtypes
    }

    pub(crate) fn platform(&self) -> (Platform, RuntimeKind) {
        let facts = self.backend.facts();
        (facts.platform, facts.runtime)
    }
}

/// A worker with chips.
pub(crate) struct Chips {
    pub(crate) worker: Worker,
    pub(crate) ids: Vec<WorkerId>,
    kernels: Vec<(Kernel, CallableHandle)>,
}

impl Chips {
    pub(crate) fn kernel(&self, kernel: Kernel) -> Result<&CallableHandle, Violation> {
        self.kernels.iter().find(|(known, _)| *known == kernel).map(|(_, handle)| handle).must("a handle")
    }

    /// A vector that all of the tree sees.
    pub(crate) fn vector(&self, value: f32) -> Result<Tensor<f32>, Violation> {
        let tensor = self.worker.tensor(&[16]).must("a tensor")?;
        tensor.fill_with(|_| value).must("fill")?;
        Ok(tensor)
    }

    /// 1 + 2 on a chip, as a run of its own; the outer error is a wrong sum.
    pub(crate) fn add(&self, chip: usize) -> Result<Result<(), Error>, Violation> {
        let (a, b, out) = (self.vector(1.0)?, self.vector(2.0)?, self.vector(0.0)?);
        let add = self.kernel(Kernel::Add)?;
        let mut args = TaskArgs::new();
        args.input(&a).input(&b).output(&out);
        let ended = self.worker.run(|orch| Ok(orch.submit_next_level(add, self.ids[chip], args).map(drop)?));
        if ended.is_ok() {
            equal(format_args!("the sum of chip {chip}"), out.to_vec().must("the sum")?, [3.0; 16])?;
        }
        Ok(ended)
    }

    /// As [`add`](Self::add), and it must succeed.
    pub(crate) fn adds(&self, chip: usize) -> Verdict {
        self.add(chip)?.must(format_args!("an add on chip {chip}"))
    }

    /// As [`add`](Self::add), and it must fail; the text of the error.
    pub(crate) fn add_fails(&self, chip: usize) -> Result<String, Violation> {
        match self.add(chip)? {
            Ok(()) => Err(Violation {
                what: format!("an add on chip {chip}"),
                expected: "an error".into(),
                seen: "success".into(),
            }),
            Err(error) => Ok(error.to_string()),
        }
    }

    /// Takes the worker down; children that did not leave in order are no violation where one was lost.
    pub(crate) fn close(self, lost: bool) -> Verdict {
        match self.worker.close() {
            Err(Error::AbnormalExits { .. }) if lost => Ok(()),
            closed => closed.must("close"),
        }
    }
}

/// A worker with SUB children.
pub(crate) struct Subs {
    pub(crate) worker: Worker,
    /// Adds the scalar to every element: (inout).
    pub(crate) add: CallableHandle,
    /// Copies: (input, output).
    pub(crate) copy: CallableHandle,
    /// Fails with the text `element <first scalar> is wrong`.
    pub(crate) fail: CallableHandle,
    /// Writes its own process id into its only tensor.
    pub(crate) pid: CallableHandle,
    /// Tells that it runs, then waits for the gate.
    pub(crate) hold: CallableHandle,
    pub(crate) running: Arc<Signal>,
    pub(crate) gate: Arc<Signal>,
}

impl Subs {
    /// Registers everything, then initialises.
    pub(crate) fn start(worker: Worker) -> Result<Self, Violation> {
        let (running, gate) = (Arc::new(Signal::new()?), Arc::new(Signal::new()?));
        let (started, opened) = (running.clone(), gate.clone());
        let hold = worker.register("hold", move |_| {
            started.send()?;
            Ok(opened.wait()?)
        });
        let subs = Self {
            add: worker.register("add", add).must("register")?,
            copy: worker.register("copy", copy).must("register")?,
            fail: worker
                .register("fail", |args| Err(format!("element {} is wrong", args.scalar(0)?).into()))
                .must("register")?,
            pid: worker
                .register("pid", |args| Ok(args.tensor::<i32>(0)?.set(0, std::process::id() as i32)?))
                .must("register")?,
            hold: hold.must("register")?,
            running,
            gate,
            worker,
        };
        subs.worker.init().must("init")?;
        Ok(subs)
    }

    pub(crate) fn tensor(&self, elements: u32) -> Result<Tensor<i32>, Violation> {
        self.worker.tensor(&[elements]).must("a tensor")
    }

    /// A run of one task.
    pub(crate) fn one(&self, callable: &CallableHandle, args: &TaskArgs) -> Result<(), Error> {
        self.worker.run(|orch| Ok(orch.submit_sub(callable, args).map(drop)?))
    }

    /// A run of one add, which must be right.
    pub(crate) fn adds(&self) -> Verdict {
        let x = self.tensor(4)?;
        self.one(&self.add, TaskArgs::new().inout(&x).scalar(3)).must("a run of one add")?;
        equal("its result", x.to_vec().must("the tensor")?, [3; 4])
    }

    /// The process id of the only SUB child.
    pub(crate) fn child(&self) -> Result<i32, Violation> {
        let at = self.tensor(1)?;
        self.one(&self.pid, TaskArgs::new().output(&at)).must("asking for the process id")?;
        Ok(at.to_vec().must("the process id")?[0])
    }

    pub(crate) fn close(self) -> Verdict {
        self.worker.close().must("close")
    }
}

/// Runs in a SUB child.
pub(crate) fn add(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let (x, by) = (args.tensor::<i32>(0)?, args.scalar(0)? as i32);
    x.fill_with(|i| x.get(i).unwrap_or_default().wrapping_add(by));
    Ok(())
}

fn copy(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let (from, to) = (args.tensor::<i32>(0)?, args.tensor::<i32>(1)?);
    Ok(to.copy_from(&from.iter().collect::<Vec<_>>())?)
}

/// Direct children of this process.
pub(crate) fn children() -> Vec<i32> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
