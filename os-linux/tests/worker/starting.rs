//! How `init` begins.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;

use laneway_core::wire::Digest;
use laneway_core::wire::control::ControlRequest;
use laneway_linux::{
    BoxError, CustomChild, CustomStart, Error, Failure, Leaf, Report, Task, TaskArgs, Worker, WorkerId,
};

use crate::harness::children;
use crate::support::{Bench, nothing, until};

/// P-2
pub(crate) fn init_in_a_process_with_threads_is_refused() {
    let (stop, stopped) = mpsc::channel::<()>();
    let stopped = std::sync::Arc::new(std::sync::Mutex::new(stopped));
    let parked = |stopped: std::sync::Arc<std::sync::Mutex<mpsc::Receiver<()>>>| {
        std::thread::spawn(move || stopped.lock().is_ok_and(|stopped| stopped.recv().is_ok()))
    };
    let threads = [parked(stopped.clone()), parked(stopped)];
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let error = worker.init().unwrap_err();
    assert_eq!(error, Error::ForeignThreads { count: 2 });
    assert!(error.to_string().contains("initialise before"), "says what to do: {error}");
    assert_eq!(children(), []);

    // Somebody who knows that these threads hold no lock may say so.
    let worker = crate::harness::builder!().subs(1).allow_foreign_threads(true).build().unwrap();
    let works = worker.register("works", nothing).unwrap();
    worker.init().unwrap();
    worker.run(|orch| Ok(orch.submit_sub(&works, TaskArgs::new())?)).unwrap();
    worker.close().unwrap();
    drop(stop);
    threads.into_iter().for_each(|thread| assert!(!thread.join().unwrap()));
}

/// P-2: threads of this library do not count.
pub(crate) fn a_second_worker_starts_beside_the_first() {
    let first = Bench::new(2);
    let second = Bench::new(1);
    let (x, y) = (first.tensor(1), second.tensor(1));
    for _ in 0..20 {
        first.worker.run(|orch| Ok(orch.submit_sub(&first.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
        second.worker.run(|orch| Ok(orch.submit_sub(&second.add, TaskArgs::new().inout(&y).scalar(2))?)).unwrap();
    }
    first.worker.close().unwrap();
    // E-38: memory of another worker is not shared with these children.
    let error = second.worker.run(|orch| Ok(orch.submit_sub(&second.add, TaskArgs::new().inout(&x).scalar(1))?));
    assert!(error.is_err());
    second.worker.run(|orch| Ok(orch.submit_sub(&second.add, TaskArgs::new().inout(&y).scalar(2))?)).unwrap();
    assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![20], vec![42]));
    second.worker.close().unwrap();
}

/// A leaf that writes, for each task, what its start had found.
struct Witness(i32);

impl Leaf for Witness {
    fn knows(&mut self, _: &Digest) -> bool {
        true
    }

    fn run(&mut self, task: &Task<'_>, _: &mut Report) -> Result<(), Failure> {
        let cell = task.args.tensors()[0].addr() as *mut i32;
        // SAFETY: the tensor is mapped in every child, and everybody reaches it by atomics.
        unsafe { AtomicI32::from_ptr(cell) }.store(self.0, Ordering::Relaxed);
        Ok(())
    }

    fn control(&mut self, _: &ControlRequest, _: &mut Report) -> Result<u64, Failure> {
        Err(Failure::MESSAGE)
    }

    fn shutdown(&mut self) {}
}

/// P-1: all regions are mapped before the first fork; no thread exists before the last child is ready, as each child sees at
/// its start; and they are awaited together: each start waits here for the other one.
pub(crate) fn regions_come_before_forks_and_forks_before_threads() {
    let worker = Worker::builder().heap_ring_bytes(1 << 20).buffer_bytes(1 << 20).build().unwrap();
    let marks = worker.tensor::<i32>(&[2]).unwrap();
    let at = marks.as_arg().addr() as usize;
    let parent = std::process::id();
    for i in 0..2 {
        let start = move |_: CustomStart<'_>| -> Result<Witness, BoxError> {
            // SAFETY: the tensor was made before the forks; everybody reaches it by atomics.
            let mark = |i: usize| unsafe { AtomicI32::from_ptr((at + 4 * i) as *mut i32) };
            mark(i).store(1, Ordering::Release);
            until("the other child starts too", || mark(1 - i).load(Ordering::Acquire) == 1);
            let maps = std::fs::read_to_string("/proc/self/maps")?;
            let missing = ["ring 0", "ring 1", "ring 2", "ring 3", "buffers", "bell"]
                .into_iter()
                .find(|name| !maps.contains(&format!("memfd:laneway {name}")));
            if let Some(region) = missing {
                return Err(format!("{region} was not mapped before the fork").into());
            }
            Ok(Witness(std::fs::read_dir(format!("/proc/{parent}/task"))?.count() as i32))
        };
        worker.add_child(CustomChild::new("witness", start)).unwrap();
    }
    let look = worker.register_custom("look", 1, &[]).unwrap();
    worker.init().unwrap();
    let seen = worker.tensor::<i32>(&[1]).unwrap();
    for id in [0, 1].map(|id| WorkerId::new(id).unwrap()) {
        worker.run(|orch| Ok(orch.submit_next_level(&look, id, TaskArgs::new().output(&seen)).map(drop)?)).unwrap();
        assert_eq!(seen.to_vec().unwrap(), [1], "threads of the parent while {id} started");
    }
    assert_eq!(std::fs::read_dir("/proc/self/task").unwrap().count(), 2, "the background thread, since then");
    worker.close().unwrap();
}

/// T-39, P-7: nothing is dispatched before every child is ready.
pub(crate) fn nothing_is_dispatched_before_every_child_is_ready() {
    let worker = crate::harness::builder!().subs(1).buffer_bytes(1 << 20).allow_foreign_threads(true).build().unwrap();
    let gate = worker.tensor::<i32>(&[2]).unwrap();
    let at = gate.as_arg().addr() as usize;
    // SAFETY: the tensor was made before the forks; everybody reaches it by atomics.
    let cell = move |i: usize| unsafe { AtomicI32::from_ptr((at + 4 * i) as *mut i32) };
    let slow = move |_: CustomStart<'_>| -> Result<Witness, BoxError> {
        cell(0).store(1, Ordering::Release);
        until("the gate opens", || cell(1).load(Ordering::Acquire) == 1);
        Ok(Witness(0))
    };
    worker.add_child(CustomChild::new("slow", slow)).unwrap();
    let nothing = worker.register("nothing", nothing).unwrap();
    let other = worker.clone();
    std::thread::scope(|scope| {
        let early = scope.spawn(|| {
            until("the slow one has begun", || cell(0).load(Ordering::Acquire) == 1);
            // The SUB child may be ready by now; the worker is not.
            let error = other.run(|orch| Ok(orch.submit_sub(&nothing, TaskArgs::new()).map(drop)?)).unwrap_err();
            assert!(!other.health().ready);
            cell(1).store(1, Ordering::Release);
            error
        });
        worker.init().unwrap();
        let error = early.join().unwrap();
        assert!(matches!(error, Error::WrongState { state: "INITIALIZING", .. }), "{error:?}");
    });
    worker.run(|orch| Ok(orch.submit_sub(&nothing, TaskArgs::new()).map(drop)?)).unwrap();
    worker.close().unwrap();
}
