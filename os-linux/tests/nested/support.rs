//! What the cases share.

use std::time::{Duration, Instant};

use laneway_linux::{
    BoxError, CallConfig, CallableHandle, Orchestrator, SubArgs, TaskArgs, TaskArgsView, Worker, WorkerId,
};

/// A worker of `level` with SUB children that only exist to be used.
pub(crate) fn worker(level: u32, subs: u32) -> Worker {
    small(level, subs, Duration::from_secs(5))
}

/// As [`worker`], with a budget for children to leave.
pub(crate) fn small(level: u32, subs: u32, reap: Duration) -> Worker {
    let builder = crate::harness::builder!().level(level).subs(subs).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20);
    builder.reap_budget(reap).build().unwrap()
}

/// Adds the scalar to every element: (inout).
pub(crate) fn add(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let (x, by) = (args.tensor::<i32>(0)?, args.scalar(0)? as i32);
    x.fill_with(|i| x.get(i).unwrap() + by);
    Ok(())
}

/// A tree `level`, `level - 1`, … 3 with one nested worker at each level and SUB children at the bottom.
pub(crate) struct Tower {
    pub(crate) top: Worker,
    /// The callable of the top that reaches the bottom.
    pub(crate) call: CallableHandle,
    pub(crate) below: WorkerId,
}

impl Tower {
    /// `bottom` runs in a SUB child of the lowest level; every level passes its arguments on.
    pub(crate) fn new<F>(levels: std::ops::RangeInclusive<u32>, bottom: F) -> Self
    where
        F: Fn(&SubArgs<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    {
        let mut current = worker(*levels.start(), 1);
        let function = current.register("bottom", bottom).unwrap();
        let mut pass = Pass::Sub(function);
        let mut below = WorkerId::new(0).unwrap();
        let mut call = None;
        for level in levels.start() + 1..=*levels.end() {
            let upper = worker(level, 0);
            let orchestration = upper.register_orchestration("pass on", pass.clone().orchestration()).unwrap();
            below = upper.add_worker(&current).unwrap();
            pass = Pass::Nested(orchestration.clone(), below);
            call = Some(orchestration);
            current = upper;
        }
        current.init().unwrap();
        Self { top: current, call: call.expect("two levels at least"), below }
    }

    pub(crate) fn run(&self, args: &TaskArgs) -> Result<(), laneway_linux::Error> {
        self.top.run(|orch| Ok(orch.submit_next_level(&self.call, self.below, args).map(drop)?))
    }
}

/// What a level does with a task: it sends it on.
#[derive(Clone)]
pub(crate) enum Pass {
    Sub(CallableHandle),
    Nested(CallableHandle, WorkerId),
}

impl Pass {
    pub(crate) fn orchestration(
        self,
    ) -> impl Fn(&mut Orchestrator<'_>, TaskArgsView<'_>, &CallConfig) -> Result<(), BoxError> + Send + Sync + 'static
    {
        move |orch, args, config| {
            let mut same = TaskArgs::new();
            for tensor in args.tensors() {
                same.inout(*tensor);
            }
            for scalar in args.scalars() {
                same.scalar(*scalar);
            }
            match &self {
                Self::Sub(function) => orch.submit_sub(function, &same)?,
                Self::Nested(function, worker) => orch.submit_next_level_with(function, *worker, &same, config)?,
            };
            Ok(())
        }
    }
}

/// Spins until `true`, for at most ten seconds; how long that took.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "never happened: {what}");
        std::thread::yield_now();
    }
    start.elapsed()
}

/// A cell in shared memory that a test opens while a task that names it runs.
pub(crate) struct Gate(laneway_linux::Tensor<i32>);

impl Gate {
    pub(crate) fn new(worker: &Worker) -> Self {
        Self(worker.tensor(&[4]).unwrap())
    }

    pub(crate) fn args(&self) -> TaskArgs {
        let mut args = TaskArgs::new();
        args.no_dep(self.0.as_arg());
        args
    }

    pub(crate) fn cell(&self, index: usize) -> &std::sync::atomic::AtomicI32 {
        let at = self.0.as_arg().addr() as usize + 4 * index;
        // SAFETY: the tensor keeps its memory mapped, and everybody accesses it by atomics.
        unsafe { std::sync::atomic::AtomicI32::from_ptr(at as *mut i32) }
    }

    pub(crate) fn get(&self, index: usize) -> i32 {
        self.cell(index).load(std::sync::atomic::Ordering::Relaxed)
    }

    pub(crate) fn set(&self, index: usize, value: i32) {
        self.cell(index).store(value, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Runs in a SUB child: says its pid in element 1, then waits until element 0 is not 0.
pub(crate) fn hold(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let cells = args.tensor::<i32>(0)?;
    cells.set(1, std::process::id() as i32)?;
    while cells.get(0) == Some(0) {
        std::hint::spin_loop();
    }
    Ok(())
}
