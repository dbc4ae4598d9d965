//! How a worker ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use laneway_linux::{Error, FailureKind, TaskArgs, Worker};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{children, cpu_time};
use crate::support::{Bench, Gate, descriptors, mappings, shm, until};

/// Threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// P-14, T-37
pub(crate) fn close_leaves_nothing_behind() {
    let before = (descriptors(), shm());
    let bench = Bench::new(3);
    let x = bench.tensor(1024);
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    let expected = if crate::harness::in_threads() { (0, 5) } else { (3, 2) };
    assert!(mappings() > 0 && (children().len(), threads()) == expected);
    assert_eq!(shm(), before.1, "regions have no name");
    drop(x);
    bench.worker.close().unwrap();
    assert_eq!(children(), []);
    drop(bench);
    assert_eq!((descriptors(), shm()), before);
    assert_eq!((mappings(), threads()), (0, 1));
}

/// How often the worker is opened and closed; `LANEWAY_CYCLES` in the environment changes it. With processes a cycle costs 30 ms
/// of CPU: every fork copies the page tables, and then the parent its pages as it writes them.
const CYCLES: u32 = 200;

/// The same with threads, which cost 4 ms.
const CYCLES_OF_THREADS: u32 = 1000;

/// T-37
pub(crate) fn cycles_of_open_and_close_leave_nothing_behind() {
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    // Bytes that the program holds; what the allocator keeps for later jumps by megabytes where huge pages are in use.
    // SAFETY: only reads the allocator's books.
    let held = || unsafe { libc::mallinfo2() }.uordblks as u64;
    let cycle = || {
        let bench = Bench::new(2);
        let x = bench.tensor(4096);
        bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
        bench.worker.close().unwrap();
    };
    // What the process allocates once, and where the allocator settles, is found out by the first ones.
    (0..100).for_each(|_| cycle());
    let (before, resident_before, held_before) = (descriptors(), resident(), held());
    let usual = if crate::harness::in_threads() { CYCLES_OF_THREADS } else { CYCLES };
    let cycles = std::env::var("LANEWAY_CYCLES").map_or(usual, |text| text.parse().unwrap());
    (0..cycles).for_each(|_| cycle());
    assert_eq!(descriptors(), before);
    assert_eq!((children(), mappings(), threads()), (vec![], 0, 1));
    let grown = held().saturating_sub(held_before);
    assert!(grown < 256 * u64::from(cycles).max(256), "{grown} bytes more are held after {cycles} cycles");
    let grown = resident().saturating_sub(resident_before);
    assert!(grown < 32 << 20, "resident memory grew by {grown} bytes in {cycles} cycles");
}

/// P-13
pub(crate) fn close_waits_for_accepted_runs() {
    let bench = Bench::new(2);
    let x = bench.tensor(1);
    let run = bench
        .worker
        .submit(|orch| {
            for _ in 0..500 {
                orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            }
            Ok(())
        })
        .unwrap();
    bench.worker.close().unwrap();
    assert_eq!(run.wait(), Ok(()));
    assert_eq!(x.to_vec().unwrap(), [500]);
}

/// P-13
pub(crate) fn close_that_times_out_changes_nothing() {
    let bench = Bench::of(crate::harness::builder!().subs(2).drain_budget(Duration::from_millis(50)).build().unwrap());
    let (gate, x) = (Gate::new(&bench), bench.tensor(1));
    let run = bench
        .worker
        .submit(|orch| Ok(orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg())).map(drop)?))
        .unwrap();
    assert!(matches!(bench.worker.close(), Err(Error::CloseTimedOut { .. })));
    assert!(bench.worker.health().ready);
    gate.open();
    run.wait().unwrap();
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    bench.worker.close().unwrap();
    assert_eq!(children(), []);
}

/// E-36, P-13: what runs ends, what was never sent fails.
pub(crate) fn close_now_ends_what_was_never_sent() {
    let bench = Bench::new(1);
    let (gate, x) = (Gate::new(&bench), bench.tensor(1));
    let run = bench
        .worker
        .submit(|orch| {
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
            orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?;
            Ok(())
        })
        .unwrap();
    let worker = bench.worker.clone();
    std::thread::scope(|scope| {
        let closing = scope.spawn(move || worker.close_now());
        until("close has begun", || matches!(bench.worker.run(|_| Ok(())), Err(Error::WrongState { .. })));
        // Its next step is to stop the engine, which nothing here can see; it needs no more than the lock.
        std::thread::sleep(Duration::from_millis(50));
        gate.open();
        closing.join().unwrap().unwrap();
    });
    let error = run.wait().unwrap_err();
    assert!(matches!(error, Error::RunFailed { kind: FailureKind::Closed, .. }), "{error:?}");
    assert_eq!(children(), []);
}

/// T-36, P-12
pub(crate) fn a_stopped_child_does_not_hold_up_close_for_ever() {
    let bench = Bench::of(crate::harness::builder!().subs(2).reap_budget(Duration::from_millis(200)).build().unwrap());
    let stopped = bench.child();
    kill_process(Pid::from_raw(stopped).unwrap(), Signal::STOP).unwrap();
    let start = Instant::now();
    let error = bench.worker.close().unwrap_err();
    assert!(matches!(error, Error::AbnormalExits { .. }), "{error:?}");
    assert!(error.to_string().contains(&stopped.to_string()), "{error}");
    crate::harness::in_time("the close", start.elapsed(), Duration::from_secs(2));
    assert_eq!(children(), []);
}

/// P-13
pub(crate) fn dropping_an_open_worker_closes_it() {
    let bench = Bench::new(2);
    assert_eq!(bench.worker.health().children.len(), 2);
    drop(bench);
    assert_eq!((children(), threads()), (vec![], 1));
}

/// Waiting: no process of a tree without an open run uses the CPU.
pub(crate) fn an_idle_tree_uses_no_cpu() {
    const WINDOW: Duration = Duration::from_secs(2);
    let bench = Bench::new(3);
    let x = bench.tensor(1);
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    let tree: Vec<i32> = children().into_iter().chain([std::process::id() as i32]).collect();
    let used = || tree.iter().map(|&pid| cpu_time(pid)).sum::<Duration>();
    let before = used();
    // Measured over a while: there is no event to wait for, that is the point.
    std::thread::sleep(WINDOW);
    let used = used() - before;
    assert!(used <= WINDOW / 100, "{used:?} of CPU in {WINDOW:?} of idleness");
}

/// T-47
pub(crate) fn a_buffer_dropped_while_a_task_names_it_is_freed_later() {
    let bench = Bench::of(crate::harness::builder!().subs(1).buffer_bytes(64 << 10).build().unwrap());
    let gate = Gate::new(&bench);
    let big = bench.tensor(8 << 10);
    let run = bench
        .worker
        .submit(|orch| {
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
            orch.submit_sub(&bench.add, TaskArgs::new().inout(&big).scalar(1))?;
            drop(big);
            Ok(())
        })
        .unwrap();
    assert!(matches!(bench.worker.tensor::<i32>(&[8 << 10]), Err(Error::BuffersFull { .. })), "still named");
    gate.open();
    run.wait().unwrap();
    until("it is given back", || bench.worker.tensor::<i32>(&[8 << 10]).is_ok());
    let again = bench.tensor(8 << 10);
    assert!(again.to_vec().unwrap().iter().all(|&x| x == 0), "freed memory comes back zeroed");
    bench.worker.close().unwrap();
}

/// P-7, P-13: what a callable captured may panic when it is dropped, inside `init` or `close`; nobody waits for ever for that call.
pub(crate) fn a_panic_of_what_a_callable_captured_ends_init_and_close() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let armed = |worker: &Worker| {
        let bomb = Bomb;
        worker.register("armed", move |_| {
            let _ = &bomb;
            Ok(())
        })
    };
    // No child could run it, so init fails and lets go of it.
    let worker = crate::harness::builder!().build().unwrap();
    armed(&worker).unwrap();
    let other = worker.clone();
    assert!(catch_unwind(AssertUnwindSafe(|| other.init())).is_err());
    assert!(matches!(worker.init(), Err(Error::WrongState { state: "FAILED", .. })));
    worker.close().unwrap();
    // Closed by two threads: one of them meets the panic.
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    armed(&worker).unwrap();
    worker.init().unwrap();
    std::thread::scope(|scope| {
        let closes = [(); 2].map(|()| scope.spawn(|| worker.close()));
        let panicked = closes.into_iter().filter_map(|close| close.join().err()).count();
        assert!(panicked <= 1, "one of them took the tree down");
    });
    worker.close().unwrap();
    assert_eq!(children(), []);
}
