//! What a worker tells about itself, and its memory.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use laneway_linux::{Doing, Error, TaskArgs};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness;
use crate::support::{Bench, Gate, until};

/// P-20, P-33
pub(crate) fn health_says_what_each_child_is_doing() {
    let bench = Bench::new(2);
    let health = bench.worker.health();
    assert!(health.ready && health.children.len() == 2, "{health}");
    assert!(health.children.iter().all(|child| child.doing == Doing::Idle && child.kind == "SUB child"), "{health}");
    let gate = Gate::new(&bench);
    let run =
        bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg())).map(drop)?));
    let run = run.unwrap();
    // Also from a thread that drives nothing, while another one waits for the run.
    std::thread::scope(|scope| {
        scope.spawn(|| run.wait());
        let busy = || bench.worker.health().stalled(Duration::from_millis(20)).next().cloned();
        until("the task is 20 ms old", || busy().is_some());
        let child = busy().unwrap();
        let Doing::Busy { run: found, callable, age, .. } = &child.doing else { panic!("{child}") };
        assert_eq!((*found, *callable), (run.id(), Some(*bench.hold.digest())));
        assert!(*age >= Duration::from_millis(20), "{child}");
        assert!(child.to_string().contains(&format!("pid {}", child.pid)), "{child}");
        assert!(bench.worker.health().stalled(Duration::from_secs(3600)).next().is_none());
        gate.open();
    });
    assert!(bench.worker.health().committed_bytes > 0, "the gate's page");
    bench.worker.close().unwrap();
    let health = bench.worker.health();
    assert!(!health.ready && health.state == "CLOSED" && health.children.is_empty());
}

/// P-20, P-22
pub(crate) fn health_is_not_ready_within_ten_milliseconds_of_a_death() {
    let bench = Bench::new(2);
    let victim = bench.worker.health().children[1].pid;
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    let start = Instant::now();
    while bench.worker.health().ready {
        harness::in_time("the death until it is noticed", start.elapsed(), Duration::from_secs(5));
    }
    harness::in_time("the change of health", start.elapsed(), Duration::from_millis(100));
    let health = bench.worker.health();
    let dead = &health.children[1];
    assert!(matches!(dead.doing, Doing::Dead { .. }) && dead.to_string().contains("SIGKILL"), "{health}");
    bench.worker.close().unwrap();
}

/// P-11, E-38
pub(crate) fn tensors_made_before_init_are_used_by_children() {
    let worker = crate::harness::builder!().subs(1).buffer_bytes(1 << 20).build().unwrap();
    let before = worker.tensor::<i32>(&[256]).unwrap();
    before.fill_with(|i| i as i32).unwrap();
    let captured = before.clone();
    let sum = worker.register("sum", move |args| {
        // By argument and by capture it is the same memory.
        let total: i32 = captured.to_vec()?.iter().sum();
        Ok(args.tensor::<i32>(1)?.set(0, total + args.tensor::<i32>(0)?.get(255).unwrap())?)
    });
    let sum = sum.unwrap();
    worker.tensor::<i32>(&[64 << 10]).expect("given back before init");
    worker.init().unwrap();
    let after = worker.tensor::<i32>(&[1]).unwrap();
    worker.run(|orch| Ok(orch.submit_sub(&sum, TaskArgs::new().input(&before).output(&after)).map(drop)?)).unwrap();
    assert_eq!(after.to_vec().unwrap(), [255 * 256 / 2 + 255]);
    // What was made before is given back after, once.
    drop(before);
    drop(after);
    worker.tensor::<u8>(&[(1 << 20) - 4096]).expect("all but the page that the callable captured is free");
    worker.close().unwrap();
}

/// T-45: the memory of what is released goes back to the system.
pub(crate) fn ten_thousand_buffers_leave_no_memory_behind() {
    let bench = Bench::of(crate::harness::builder!().subs(1).buffer_bytes(64 << 20).build().unwrap());
    let big = bench.worker.tensor::<u8>(&[32 << 20]).unwrap();
    big.fill_with(|_| 1).unwrap();
    let full = bench.worker.health().committed_bytes;
    assert!(full >= 32 << 20, "{full}");
    drop(big);
    let flat = bench.worker.health().committed_bytes;
    assert!(flat < 1 << 20, "{flat} of {full} bytes are committed still");
    for i in 0..10_000 {
        let x = bench.tensor(1024);
        if i % 100 == 0 {
            bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
        }
        let copy = x.clone();
        drop(x);
        assert_eq!(copy.view().unwrap().get(0), Some(i32::from(i % 100 == 0)), "zeroed when it is made");
        copy.view().unwrap().set(0, 7).unwrap();
    }
    let after = bench.worker.health().committed_bytes;
    assert!(after <= flat + (64 << 10), "{after} bytes after, {flat} before");
    bench.worker.close().unwrap();
}

/// T-47: dropped while a task names it, given back when that has ended, by nobody who waits.
pub(crate) fn memory_dropped_in_use_goes_back_when_its_task_has_ended() {
    let bench = Bench::of(crate::harness::builder!().subs(1).buffer_bytes(64 << 20).build().unwrap());
    let gate = Gate::new(&bench);
    let big = bench.worker.tensor::<u8>(&[32 << 20]).unwrap();
    big.fill_with(|_| 1).unwrap();
    let run = bench.worker.submit(|orch| {
        orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()).no_dep(big.as_arg()))?;
        Ok(())
    });
    let start = Instant::now();
    drop(big);
    harness::in_time("the drop, which never blocks,", start.elapsed(), Duration::from_secs(1));
    assert!(bench.worker.health().committed_bytes >= 32 << 20, "a task names it");
    gate.cell().store(1, Ordering::Relaxed);
    run.unwrap().wait().unwrap();
    until("it is given back", || bench.worker.health().committed_bytes < 1 << 20);
    bench.worker.close().unwrap();
}

/// P-7
pub(crate) fn a_closed_worker_makes_no_tensors() {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let before = worker.tensor::<i32>(&[4]).unwrap();
    worker.close().unwrap();
    assert!(matches!(worker.tensor::<i32>(&[4]), Err(Error::WrongState { state: "CLOSED", .. })));
    before.copy_from(&[1, 2, 3, 4]).unwrap();
    assert_eq!(before.to_vec().unwrap(), [1, 2, 3, 4], "what exists goes on");
}
