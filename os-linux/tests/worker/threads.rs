//! What is particular about children that are threads (P-27).

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use laneway_linux::{ChildMode, Doing, Error, ExitCause, FailureKind, Label, Place, SubId, TaskArgs, Worker};

use crate::harness::children;
use crate::support::{Bench, Gate, descriptors, mappings, nothing, until, wait_for};

fn threads(subs: u32) -> laneway_linux::WorkerBuilder {
    Worker::builder().subs(subs).child_mode(ChildMode::Thread).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20)
}

/// P-27, P-2: nothing forks, so nothing is refused; what a closure captured is the host's own.
pub(crate) fn thread_children_start_in_a_process_with_threads_and_share_what_they_captured() {
    static SUM: AtomicI32 = AtomicI32::new(0);
    let (send, receive) = mpsc::channel::<()>();
    let foreign = std::thread::spawn(move || receive.recv());
    let worker = threads(2).build().unwrap();
    let count = worker.register("count", |args| {
        SUM.fetch_add(args.scalar(0)? as i32, Ordering::Relaxed);
        Ok(())
    });
    let count = count.unwrap();
    worker.init().unwrap();
    assert_eq!(children(), []);
    for i in 1..=10 {
        worker.run(|orch| Ok(orch.submit_sub(&count, TaskArgs::new().scalar(i)).map(drop)?)).unwrap();
    }
    assert_eq!(SUM.load(Ordering::Relaxed), 55);
    worker.close().unwrap();
    send.send(()).unwrap();
    foreign.join().unwrap().unwrap();
}

/// P-2, P-27: the other order works, and so does the first one again once the threads are gone.
pub(crate) fn a_worker_that_forks_is_refused_beside_thread_children() {
    let bench = Bench::of(threads(3).build().unwrap());
    let forks = Worker::builder().subs(1).allow_foreign_threads(true).build().unwrap();
    let error = forks.init().unwrap_err();
    assert_eq!(error, Error::ThreadChildren { count: 3 });
    assert!(error.to_string().contains("runs 3 children of workers as threads"), "{error}");
    bench.worker.close().unwrap();
    let forks = Bench::new(1);
    let beside = Bench::of(threads(1).build().unwrap());
    for bench in [&forks, &beside] {
        let x = bench.tensor(1);
        bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    }
    beside.worker.close().unwrap();
    forks.worker.close().unwrap();
}

/// P-27, P-12, P-25, L-35: it is reported, its memory stays, and nothing waits for it.
pub(crate) fn close_reports_a_thread_that_never_returns_and_keeps_its_memory() {
    let budget = Duration::from_millis(100);
    let worker = threads(2).reap_budget(budget).build().unwrap();
    static BEGUN: AtomicI32 = AtomicI32::new(0);
    let hold = worker.register("hold", |args| {
        BEGUN.store(1, Ordering::Relaxed);
        wait_for(&args.tensor::<i32>(0)?);
        Ok(())
    });
    let hold = hold.unwrap();
    worker.init().unwrap();
    let gate = worker.tensor::<i32>(&[1]).unwrap();
    let arg = gate.as_arg();
    let run = worker.submit(|orch| Ok(orch.submit_sub(&hold, TaskArgs::new().no_dep(arg)).map(drop)?)).unwrap();
    until("it is at work", || BEGUN.load(Ordering::Relaxed) == 1);
    let start = Instant::now();
    let error = worker.close_now().unwrap_err();
    let Error::Survivors { children } = &error else { panic!("{error:?}") };
    assert!(matches!(children[..], [(Label::Sub(_), Place::Thread)]), "{error}");
    assert!(error.to_string().contains("a thread of this process"), "{error}");
    crate::harness::in_time("the close", start.elapsed(), budget + Duration::from_secs(4));
    let failed = run.wait().unwrap_err();
    assert!(matches!(failed, Error::RunFailed { kind: FailureKind::Closed, .. }), "{failed:?}");
    // It still spins on memory of the closed worker; once it may return, it goes and takes the last of it along.
    drop((run, worker));
    assert!(mappings() > 1, "more than the region of the tensor");
    gate.fill_with(|_| 1).unwrap();
    drop(gate);
    until("its memory is gone", || mappings() == 0 && std::fs::read_dir("/proc/self/task").unwrap().count() == 1);
}

/// P-27, L-35: a task past its deadline cannot be killed; its run ends, its child is dead, the other one serves.
pub(crate) fn a_thread_past_the_deadline_of_its_task_is_stuck() {
    let bench = Bench::of(threads(2).build().unwrap());
    let gate = Gate::new(&bench);
    let start = Instant::now();
    let error = bench
        .worker
        .run(|orch| {
            orch.set_deadline(Some(Duration::from_millis(50)));
            Ok(orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg())).map(drop)?)
        })
        .unwrap_err();
    assert!(matches!(error, Error::RunFailed { kind: FailureKind::Stuck, .. }), "{error:?}");
    // The grace of a poisoned endpoint, and no second one after a kill that cannot be.
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(1900), "{took:?}");
    crate::harness::in_time("the failure", took, Duration::from_millis(3500));
    let x = bench.tensor(1);
    bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    gate.open();
    let dead = || bench.worker.health().children.iter().any(|child| matches!(child.doing, Doing::Dead { .. }));
    until("the thread has left", dead);
    bench.worker.close().unwrap();
}

/// L-26, P-27: a panic that no catch of a callable sees ends the thread, and the endpoint says how.
pub(crate) fn a_panic_outside_user_code_poisons_the_endpoint_of_a_thread() {
    struct Bomb;
    impl laneway_linux::Leaf for Bomb {
        fn knows(&mut self, _: &laneway_core::wire::Digest) -> bool {
            panic!("where nothing is expected to panic")
        }
        fn run(
            &mut self,
            _: &laneway_linux::Task<'_>,
            _: &mut laneway_linux::Report,
        ) -> Result<(), laneway_linux::Failure> {
            Ok(())
        }
        fn control(
            &mut self,
            _: &laneway_core::wire::control::ControlRequest,
            _: &mut laneway_linux::Report,
        ) -> Result<u64, laneway_linux::Failure> {
            Ok(0)
        }
        fn shutdown(&mut self) {}
    }
    let worker = threads(1).build().unwrap();
    let start = |_: laneway_linux::CustomStart<'_>| Ok::<_, laneway_linux::BoxError>(Bomb);
    let id = worker.add_child(laneway_linux::CustomChild::new("bomb", start)).unwrap();
    let (call, sub) = (worker.register_custom("x", 1, &[]).unwrap(), worker.register("nothing", nothing).unwrap());
    worker.init().unwrap();
    let run = || worker.run(|orch| Ok(orch.submit_next_level(&call, id, TaskArgs::new()).map(drop)?));
    for _ in 0..2 {
        let error = run().unwrap_err();
        assert!(error.to_string().contains("the thread that served this mailbox ended with status 101"), "{error}");
    }
    let dead = Doing::Dead { cause: ExitCause::ThreadEnded { status: 101 } };
    assert_eq!(worker.health().children[0].doing, dead);
    worker.run(|orch| Ok(orch.submit_sub(&sub, TaskArgs::new()).map(drop)?)).unwrap();
    worker.close().unwrap();
}

/// P-5, P-6, P-27: a thread that is late is named; it leaves as soon as it can, and nothing of it is left then.
pub(crate) fn a_thread_that_is_late_fails_init_and_leaves_when_it_can() {
    let before = descriptors();
    let (send, receive) = mpsc::channel::<()>();
    let receive = std::sync::Mutex::new(receive);
    let worker = threads(1).init_timeout(Duration::from_millis(100)).build().unwrap();
    let late = laneway_linux::CustomChild::new("late", move |_| {
        let _ = receive.lock().unwrap().recv();
        Err::<Box<dyn laneway_linux::Leaf>, _>("too late")
    });
    worker.add_child(late).unwrap();
    let starting = std::thread::spawn(move || worker.init().unwrap_err());
    // Longer than its deadline; init then waits for it a while.
    std::thread::sleep(Duration::from_millis(300));
    send.send(()).unwrap();
    let error = starting.join().unwrap();
    assert!(error.to_string().contains("worker 0 (late, a thread of this process) did not become ready"), "{error}");
    until("it is gone", || descriptors() == before && mappings() == 0);
}

/// P-21: also a thread is kept on its CPUs, and the host's are not.
pub(crate) fn a_thread_child_is_kept_on_its_cpus_and_its_host_is_not() {
    let cpus = |tid: &str| {
        let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap();
        status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap().to_owned()
    };
    let host = std::process::id().to_string();
    let before = cpus(&host);
    let one = rustix::thread::sched_getcpu();
    let bench = Bench::of(threads(1).child_cpus(Label::Sub(SubId(0)), [one]).build().unwrap());
    assert_eq!(cpus(&bench.child().to_string()), format!("Cpus_allowed_list:\t{one}"));
    assert_eq!(cpus(&host), before);
    bench.worker.close().unwrap();
}
