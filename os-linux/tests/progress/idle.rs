//! What it costs to wait.

use std::fs;
use std::time::{Duration, Instant};

use laneway_linux::{ChildHealth, Doing, TaskArgs, Worker};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use crate::harness::{self, switches};
use crate::support::{Bench, Gate, until};
use crate::tower::{Tower, add};

/// Every process below this one, and this one.
fn tree() -> Vec<i32> {
    let mut pids = vec![std::process::id() as i32];
    let mut at = 0;
    while at < pids.len() {
        let pid = pids[at];
        at += 1;
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            pids.extend(children.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()));
        }
    }
    pids
}

/// Nanoseconds that all threads of a process have run.
fn run_time(pid: i32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let time = |stat: String| stat.split(' ').next().unwrap().parse::<u64>().unwrap();
    Duration::from_nanos(
        tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok()).map(time).sum(),
    )
}

/// L-33: no thread of a tree of three levels is scheduled at all while there is nothing to do.
pub(crate) fn an_idle_tree_of_three_levels_never_wakes() {
    const WINDOW: Duration = Duration::from_secs(2);
    let tower = Tower::new(3..=5, add);
    let x = tower.top.tensor::<i32>(&[1]).unwrap();
    tower.run(TaskArgs::new().inout(&x).scalar(1)).unwrap();
    let tree = tree();
    assert_eq!(tree.len(), 4, "three workers below each other, and a SUB child");
    // What the run left to be done is done when nothing has moved for a while.
    let mut before = switches(&tree);
    until("the tree is at rest", || {
        std::thread::sleep(Duration::from_millis(50));
        let now = switches(&tree);
        std::mem::replace(&mut before, now.clone()) == now
    });
    std::thread::sleep(WINDOW);
    assert_eq!(switches(&tree), before, "context switches by process and thread, {WINDOW:?} apart");
    tower.top.close().unwrap();
}

/// T-50: what a thread allocates as it starts is no part of a task, so the one in the background has started when init returns.
pub(crate) fn the_background_thread_runs_when_init_returns() {
    let names = || {
        let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
        tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).collect::<Vec<_>>()
    };
    // On one CPU, where a new thread waits until the one that made it does.
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one).unwrap();
    for _ in 0..20 {
        let worker = Worker::builder().subs(1).build().unwrap();
        worker.init().unwrap();
        // A thread takes its name as its first step.
        assert!(names().contains(&"laneway\n".to_owned()), "{:?}", names());
        worker.close().unwrap();
    }
}

fn is_busy(child: &ChildHealth) -> bool {
    matches!(child.doing, Doing::Busy { .. })
}

/// T-51: one long task outstanding. The parent sleeps, and so does the child that has nothing to do.
pub(crate) fn waiting_for_one_long_task_uses_no_cpu() {
    const WINDOW: Duration = Duration::from_secs(1);
    let bench = Bench::new(2);
    let gate = Gate::new(&bench);
    let run = bench.worker.submit(|orch| {
        orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
        Ok(())
    });
    let run = run.unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| run.wait().unwrap());
        until("the task runs", || bench.worker.health().children.iter().any(is_busy));
        let health = bench.worker.health();
        let idle = health.children.iter().find(|child| !is_busy(child)).unwrap().pid;
        std::thread::sleep(Duration::from_millis(20));
        let own = std::process::id() as i32;
        let before = (run_time(own), run_time(idle));
        std::thread::sleep(WINDOW);
        let (parent, child) = (run_time(own) - before.0, run_time(idle) - before.1);
        println!("in {WINDOW:?} the parent ran {parent:?}, the idle child {child:?}");
        gate.open();
        harness::in_time("waiting for a second", parent, WINDOW / 500);
        assert_eq!(child, Duration::ZERO);
    });
    bench.worker.close().unwrap();
}

/// T-48: a chain of small tasks takes less a task than one sleep of that length would, even where each is answered through the
/// kernel because both sides share a CPU.
pub(crate) fn a_steady_run_sleeps_in_no_poll() {
    const TASKS: u32 = 500;
    let bench = Bench::new(1);
    let x = bench.tensor(1);
    let pids = [bench.child()];
    let mut best = (Duration::MAX, u64::MAX);
    for _ in 0..40 {
        let (before, start) = (switches(&pids), Instant::now());
        bench
            .worker
            .run(|orch| {
                (0..TASKS).try_for_each(|_| {
                    orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1)).map(drop).map_err(Into::into)
                })
            })
            .unwrap();
        let time = start.elapsed() / TASKS;
        let after: u64 = switches(&pids).values().sum();
        best = (best.0.min(time), best.1.min(after - before.values().sum::<u64>()));
    }
    println!("a task of a chain takes {:?}; the child is switched {} times in {TASKS} tasks", best.0, best.1);
    harness::in_time("a task of a chain", best.0, Duration::from_micros(40));
    bench.worker.close().unwrap();
}

/// T-52: what is resident makes a fork dear, and there is one fork a child.
pub(crate) fn starting_with_much_memory_resident_costs_little_more_than_the_forks() {
    const CHILDREN: u32 = 3;
    // Written page by page, so that the pages are there.
    let mut resident = vec![0_u8; 512 << 20];
    resident.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let forks = (0..3).map(|_| bare_forks(CHILDREN)).min().unwrap();
    let start = Instant::now();
    let worker = Worker::builder().subs(CHILDREN).build().unwrap();
    worker.init().unwrap();
    let init = start.elapsed();
    worker.close().unwrap();
    println!("{CHILDREN} bare forks take {forks:?}, init {init:?}");
    std::hint::black_box(&resident);
    harness::in_time("init with 512 MiB resident", init, forks * 3 + Duration::from_millis(60));
}

fn bare_forks(count: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..count {
        // SAFETY: the case is a process of one thread, and the child does nothing but leave.
        match unsafe { libc::fork() } {
            // SAFETY: leaves at once.
            0 => unsafe { libc::_exit(0) },
            pid => {
                assert!(pid > 0);
                rustix::process::waitpid(rustix::process::Pid::from_raw(pid), rustix::process::WaitOptions::empty())
                    .unwrap();
            }
        }
    }
    start.elapsed()
}
