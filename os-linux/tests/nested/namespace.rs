//! Trees inside a PID namespace, where their parent is PID 1 or below one that reaps nothing (P-14, P-34).

use std::time::Duration;

use laneway_linux::TaskArgs;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::harness;
use crate::harness::descendants;
use crate::support::{Gate, Tower, hold, until, worker};

/// Runs `init` as PID 1 of a new PID namespace and returns its number out here; `None`, and a line that says so, where this
/// process may not make one.
fn in_a_namespace(init: impl FnOnce()) -> Option<Pid> {
    // SAFETY: changes what later children of this process are born into.
    if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
        println!("SKIPPED: no PID namespace can be made here: {}", std::io::Error::last_os_error());
        return None;
    }
    // SAFETY: this case is a process with one thread; the child never returns.
    match unsafe { libc::fork() } {
        0 => {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(init));
            // SAFETY: ends the process, and with it the namespace.
            unsafe { libc::_exit(i32::from(result.is_err())) }
        }
        pid => Pid::from_raw(pid),
    }
}

/// A tree of four levels, busy at the bottom; never returns.
fn busy_tower() -> ! {
    let tower = Tower::new(3..=6, hold);
    let gate = Gate::new(&tower.top);
    drop(tower.run(&gate.args()));
    unreachable!("nobody opens the gate");
}

/// What is alive of the tree: all that has the tag of this case, but those in `without`.
fn alive(without: &[Pid]) -> Vec<i32> {
    let without: Vec<_> = without.iter().map(|pid| pid.as_raw_nonzero().get()).collect();
    descendants().into_iter().filter(|pid| !without.contains(pid)).collect()
}

fn is_busy(pid: &i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") R "))
}

fn reap(pid: Pid) -> Option<i32> {
    let status = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).unwrap().unwrap();
    status.exit_status()
}

/// P-14, P-18: the parent is PID 1 and is killed from outside.
pub(crate) fn a_killed_parent_that_is_pid_1_takes_three_levels_with_it() {
    let Some(root) = in_a_namespace(|| busy_tower()) else { return };
    until("the tree is up", || alive(&[root]).len() == 4);
    until("the bottom is busy", || alive(&[root]).iter().any(is_busy));
    kill_process(root, Signal::KILL).unwrap();
    let took = until("the tree is gone", || descendants().is_empty());
    assert_eq!(reap(root), None);
    harness::in_time("the end of the tree", took, Duration::from_millis(100));
}

/// P-14, L-32: the parent runs below a PID 1 that reaps nothing, and is killed from inside.
pub(crate) fn a_killed_parent_below_a_pid_1_takes_three_levels_with_it() {
    let channel = harness::Channel::new();
    let init = || {
        // SAFETY: one thread, and the child never returns.
        let parent = match unsafe { libc::fork() } {
            0 => busy_tower(),
            pid => Pid::from_raw(pid).unwrap(),
        };
        assert_eq!(channel.receive(), b"kill");
        kill_process(parent, Signal::KILL).unwrap();
        channel.send(b"done");
        loop {
            std::thread::park();
        }
    };
    let Some(first) = in_a_namespace(init) else { return };
    until("the tree is up", || alive(&[first]).len() == 5);
    until("the bottom is busy", || alive(&[first]).iter().any(is_busy));
    channel.send(b"kill");
    // What ended is a zombie of a PID 1 that reaps nothing, which is not alive.
    let took = until("the tree is gone", || alive(&[first]).is_empty());
    kill_process(first, Signal::KILL).unwrap();
    assert_eq!(reap(first), None);
    harness::in_time("the end of the tree", took, Duration::from_millis(100));
}

/// P-34, P-18: as PID 1 the parent reaps what its dead children left to it, and a clean close leaves not even a zombie.
pub(crate) fn a_parent_that_is_pid_1_reaps_the_orphans_of_its_children() {
    let init = || {
        let worker = worker(3, 2);
        let helpers = worker.register("helpers", |_| {
            for _ in 0..3 {
                // SAFETY: the new process only sleeps.
                if unsafe { libc::fork() } == 0 {
                    loop {
                        std::thread::park();
                    }
                }
            }
            kill_process(rustix::process::getpid(), Signal::KILL)?;
            Ok(())
        });
        let helpers = helpers.unwrap();
        worker.init().unwrap();
        assert_eq!(rustix::process::getpid(), Pid::INIT);
        let error = worker.run(|orch| Ok(orch.submit_sub(&helpers, TaskArgs::new()).map(drop)?)).unwrap_err();
        assert!(error.to_string().contains("SIGKILL"), "{error}");
        // The other child lives: nothing else is left, alive or dead, once the three helpers were reaped.
        let left = || waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
        until("the orphans are reaped", || matches!(left(), Ok(None)));
        worker.close().unwrap();
        assert_eq!(left().map(drop), Err(rustix::io::Errno::CHILD), "no child is left, and no zombie");
    };
    let Some(init) = in_a_namespace(init) else { return };
    assert_eq!(reap(init), Some(0));
    assert_eq!(descendants(), []);
}

/// P-18: nested levels start, work and close where their root is PID 1.
pub(crate) fn a_tree_below_pid_1_works_and_closes() {
    let init = || {
        let tower = Tower::new(3..=5, crate::support::add);
        let x = tower.top.tensor::<i32>(&[4]).unwrap();
        tower.run(TaskArgs::new().inout(&x).scalar(2)).unwrap();
        assert_eq!(x.to_vec().unwrap(), [2; 4]);
        tower.top.close().unwrap();
    };
    let Some(init) = in_a_namespace(init) else { return };
    assert_eq!(reap(init), Some(0));
    assert_eq!(descendants(), []);
}
