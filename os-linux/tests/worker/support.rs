//! What the cases share.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use laneway_linux::{CallableHandle, ChipTensor, SubArgs, TaskArgs, Tensor, View, Worker};

/// A worker with `subs` children that add, fail, panic and so on; ready.
pub(crate) struct Bench {
    pub(crate) worker: Worker,
    /// Adds the scalar to every element: (inout).
    pub(crate) add: CallableHandle,
    /// Copies: (input, output).
    pub(crate) copy: CallableHandle,
    /// Fails with the text `element <first scalar> is wrong`.
    pub(crate) fail: CallableHandle,
    /// Waits until the first element of its only tensor is not 0.
    pub(crate) hold: CallableHandle,
    /// Writes the number of its thread, which is also that of a process of one thread, into its only tensor of i32.
    pub(crate) pid: CallableHandle,
}

impl Bench {
    pub(crate) fn new(subs: u32) -> Self {
        Self::of(crate::harness::builder!().subs(subs).build().unwrap())
    }

    /// Registers everything, then initialises.
    pub(crate) fn of(worker: Worker) -> Self {
        let add = worker.register("add", |args| {
            let (x, by) = (args.tensor::<i32>(0)?, args.scalar(0)? as i32);
            x.fill_with(|i| x.get(i).unwrap() + by);
            Ok(())
        });
        let copy = worker.register("copy", |args| {
            let (from, to) = (args.tensor::<i32>(0)?, args.tensor::<i32>(1)?);
            Ok(to.copy_from(&from.iter().collect::<Vec<_>>())?)
        });
        let fail = worker.register("fail", |args| Err(format!("element {} is wrong", args.scalar(0)?).into()));
        let hold = worker.register("hold", |args| {
            wait_for(&args.tensor::<i32>(0)?);
            Ok(())
        });
        let pid = worker.register("pid", |args| Ok(args.tensor::<i32>(0)?.set(0, own_number())?));
        let [add, copy, fail, hold, pid] = [add, copy, fail, hold, pid].map(Result::unwrap);
        worker.init().unwrap();
        Self { worker, add, copy, fail, hold, pid }
    }

    pub(crate) fn tensor(&self, elements: u32) -> Tensor<i32> {
        self.worker.tensor(&[elements]).unwrap()
    }

    /// The process id of the only SUB child.
    pub(crate) fn child(&self) -> i32 {
        let at = self.tensor(1);
        self.worker.run(|orch| Ok(orch.submit_sub(&self.pid, TaskArgs::new().output(&at))?)).unwrap();
        at.to_vec().unwrap()[0]
    }
}

/// The number of the calling thread; of a child that is a process, its process id.
fn own_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Spins, in a child, until somebody writes the element.
pub(crate) fn wait_for(cell: &View<'_, i32>) {
    while cell.get(0) == Some(0) {
        std::hint::spin_loop();
    }
}

/// A cell that a test opens while a task that names it runs. The tensor itself may not be touched then, so this writes to its
/// address as another process would.
pub(crate) struct Gate(Tensor<i32>);

impl Gate {
    pub(crate) fn new(bench: &Bench) -> Self {
        Self(bench.tensor(1))
    }

    pub(crate) fn arg(&self) -> ChipTensor {
        self.0.as_arg()
    }

    pub(crate) fn cell(&self) -> &std::sync::atomic::AtomicI32 {
        // SAFETY: the tensor keeps its memory mapped, and everybody accesses it by atomics.
        unsafe { std::sync::atomic::AtomicI32::from_ptr(self.0.as_arg().addr() as *mut i32) }
    }

    pub(crate) fn open(&self) {
        self.cell().store(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Spins until `true`, for at most ten seconds.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "never happened: {what}");
        std::thread::yield_now();
    }
}

/// Open descriptors of this process, as (number, what it is).
pub(crate) fn descriptors() -> BTreeSet<(i32, String)> {
    let list = fs::read_dir("/proc/self/fd").unwrap();
    let numbers: Vec<i32> = list.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    let name = |fd: i32| fs::read_link(format!("/proc/self/fd/{fd}")).ok().map(|to| (fd, to.display().to_string()));
    numbers.into_iter().filter_map(name).collect()
}

/// Mappings of this library in this process.
pub(crate) fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").unwrap().lines().filter(|line| line.contains("laneway")).count()
}

/// Names under /dev/shm.
pub(crate) fn shm() -> BTreeSet<String> {
    fs::read_dir("/dev/shm").unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// A function that a callable can be registered with.
pub(crate) fn nothing(_: &SubArgs<'_>) -> Result<(), laneway_linux::BoxError> {
    Ok(())
}
