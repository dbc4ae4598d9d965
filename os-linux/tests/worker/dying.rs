//! Children that die.

use std::time::{Duration, Instant};

use laneway_linux::{Error, Place, TaskArgs};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{self, children};
use crate::support::{Bench, Gate, until};

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// L-25, L-27, T-19
pub(crate) fn a_child_killed_in_the_middle_of_a_task_is_reported_at_once() {
    let bench = Bench::new(1);
    let pid = bench.child();
    let (gate, started) = (Gate::new(&bench), Gate::new(&bench));
    let run = bench
        .worker
        .submit(|orch| {
            // The child opens `started`, then waits for a gate that nobody opens.
            orch.submit_sub(&bench.add, TaskArgs::new().no_dep(started.arg()).scalar(1))?;
            orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg()))?;
            Ok(())
        })
        .unwrap();
    until("the child is at work", || started.cell().load(std::sync::atomic::Ordering::Relaxed) == 1);
    let killed = Instant::now();
    kill(pid);
    let text = run.wait().unwrap_err().to_string();
    let took = killed.elapsed();
    assert!(text.contains(&pid.to_string()) && text.contains("SIGKILL"), "names pid and signal: {text}");
    crate::harness::in_time("the report", took, Duration::from_millis(100));
    assert_eq!(children(), [], "no zombie");
    bench.worker.close().unwrap();
}

/// N-5 in its local form, T-26
pub(crate) fn the_other_children_go_on_after_a_death() {
    let bench = Bench::new(3);
    let victim = bench.child();
    let gate = Gate::new(&bench);
    let x = bench.tensor(1);
    kill(victim);
    until("the death is noticed", || !children().contains(&victim));
    for _ in 0..50 {
        bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    }
    assert_eq!(x.to_vec().unwrap(), [50]);
    // Two are left, so a group of two still runs and one of three is refused.
    let list = TaskArgs::new();
    let three = bench.worker.run(|orch| Ok(orch.submit_sub_group(&bench.fail, &[&list, &list, &list])?));
    assert!(three.is_err());
    drop(gate);
    bench.worker.close().unwrap();
}

/// E-41
pub(crate) fn work_for_the_dead_is_refused_not_queued() {
    let bench = Bench::new(1);
    kill(bench.child());
    until("the death is noticed", || children().is_empty());
    for _ in 0..3 {
        let start = Instant::now();
        let x = bench.tensor(1);
        let error = bench
            .worker
            .run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?))
            .expect_err("nobody is left to run it");
        assert!(error.to_string().contains("SIGKILL"), "says why: {error}");
        crate::harness::in_time("the failure of the run", start.elapsed(), Duration::from_secs(1));
    }
    bench.worker.close().unwrap();
}

/// P-22
pub(crate) fn an_idle_child_that_dies_is_noticed() {
    let bench = Bench::new(2);
    let victim = bench.child();
    let start = Instant::now();
    kill(victim);
    // Reaped by the background thread although nobody waits for anything.
    until("the child is reaped", || !children().contains(&victim));
    crate::harness::in_time("the reaping", start.elapsed(), Duration::from_millis(500));
    bench.worker.close().unwrap();
}

/// L-25: the exit status instead of a signal.
pub(crate) fn a_child_that_exits_in_a_task_is_reported_with_its_status() {
    let worker = crate::harness::builder!().subs(1).build().unwrap();
    let exit = worker.register("exit", |_| std::process::exit(23)).unwrap();
    worker.init().unwrap();
    let error = worker.run(|orch| Ok(orch.submit_sub(&exit, TaskArgs::new())?)).unwrap_err();
    let Error::RunFailed { message, .. } = &error else { panic!("{error:?}") };
    assert!(message.contains("exited with status 23"), "{message}");
    worker.close().unwrap();
}

/// L-32, P-14: two levels of processes, the upper one killed.
pub(crate) fn a_killed_parent_takes_its_tree() {
    // SAFETY: this case is a process with one thread; the child goes on as a parent of its own and never returns.
    match unsafe { libc::fork() } {
        0 => {
            let bench = Bench::new(3);
            let gate = Gate::new(&bench);
            let lists: Vec<_> = (0..2).map(|_| TaskArgs::new().no_dep(gate.arg()).clone()).collect();
            let run = bench.worker.submit(|orch| {
                for list in &lists {
                    orch.submit_sub(&bench.hold, list)?;
                }
                Ok(())
            });
            drop(run);
            loop {
                std::thread::park();
            }
        }
        parent => {
            let below = |of: i32| -> Vec<i32> {
                let text = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
                text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
            };
            until("the tree is up", || below(parent).len() == 3);
            let tree = below(parent);
            kill(parent);
            let killed = Instant::now();
            let is_gone = |pid: &i32| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                stat.is_empty() || stat.contains(") Z ")
            };
            until("the tree is gone", || tree.iter().all(is_gone));
            crate::harness::in_time("the end of the tree", killed.elapsed(), Duration::from_millis(100));
            let mut status = 0;
            // SAFETY: reaps the child that was forked above.
            unsafe { libc::waitpid(parent, &mut status, 0) };
        }
    }
}

/// P-25, P-12: a tracer stands between a child that has ended and its parent, which cannot reap it then.
pub(crate) fn close_reports_a_child_that_cannot_be_reaped_within_its_budget() {
    let budget = Duration::from_millis(200);
    let bench = Bench::of(crate::harness::builder!().subs(2).reap_budget(budget).build().unwrap());
    let pid = bench.child();
    let channel = harness::Channel::new();
    // SAFETY: the new process makes system calls alone and never returns.
    let tracer = match unsafe { libc::fork() } {
        0 => {
            // SAFETY: takes numbers and touches no memory of this process.
            let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, 0_usize) } == 0;
            channel.send(&[u8::from(seized)]);
            loop {
                std::thread::park();
            }
        }
        tracer => tracer,
    };
    let seized = channel.receive() == [1];
    if seized {
        let start = Instant::now();
        let error = bench.worker.close().unwrap_err();
        let Error::Survivors { children } = &error else { panic!("{error:?}") };
        assert!(matches!(children[..], [(_, Place::Process(left))] if left == pid), "{error}");
        assert!(error.to_string().contains(&format!("pid {pid}")), "{error}");
        // The budget to leave, the one to die, and the one for descendants; nothing is waited for without one.
        let (least, most) = (budget + Duration::from_secs(2), budget + Duration::from_secs(4));
        let took = start.elapsed();
        assert!(took >= least, "{took:?}");
        crate::harness::in_time("the close", took, most);
        assert_eq!(bench.worker.close(), Ok(()), "it is closed");
    } else {
        println!("SKIPPED: no child can be traced here");
    }
    kill(tracer);
    // SAFETY: reaps the tracer, and what it held.
    unsafe { libc::waitpid(tracer, std::ptr::null_mut(), 0) };
    drop(bench);
    // SAFETY: as above; the child is nobody else's any more.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0 {}
}
