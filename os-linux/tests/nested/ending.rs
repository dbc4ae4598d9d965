//! How deep trees end.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use laneway_linux::{Error, TaskArgs};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness;
use crate::harness::{descendants, descriptors};
use crate::support::{Gate, Tower, add, hold, small, until, worker};

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// P-14, T-37
pub(crate) fn close_of_a_deep_tree_leaves_nothing_behind() {
    let before = descriptors();
    for _ in 0..3 {
        let tower = Tower::new(3..=5, add);
        let x = tower.top.tensor::<i32>(&[4]).unwrap();
        tower.run(TaskArgs::new().inout(&x).scalar(1)).unwrap();
        assert_eq!(descendants().len(), 3);
        tower.top.close().unwrap();
        assert_eq!(descendants(), []);
    }
    assert_eq!(descriptors(), before);
}

/// The cell of a gate that says that the lowest orchestration knows of the stop.
const HEARD: usize = 2;

/// P-29, E-9: at every level nothing new starts, what runs finishes, and the task ends as "worker closed".
pub(crate) fn a_stop_reaches_a_running_orchestration() {
    let l3 = worker(3, 1);
    let hold = l3.register("hold", hold).unwrap();
    let (l4, l5) = (worker(4, 0), worker(5, 0));
    let low = l4
        .register_orchestration("low", move |orch, args, _| {
            orch.submit_sub(&hold, TaskArgs::new().no_dep(args.tensors()[0]))?;
            // Never begins: the run is cancelled before its turn comes.
            orch.submit_sub(&hold, TaskArgs::new().no_dep(args.tensors()[0]))?;
            while orch.alloc::<i32>(&[1]).is_ok() {
                std::thread::sleep(Duration::from_micros(200));
            }
            let heard = (args.tensors()[0].addr() as usize + 4 * HEARD) as *mut i32;
            // SAFETY: the tensor is mapped in the whole tree, and everybody accesses it by atomics.
            unsafe { AtomicI32::from_ptr(heard) }.store(1, Ordering::Release);
            Ok(())
        })
        .unwrap();
    let id3 = l4.add_worker(&l3).unwrap();
    let high = l5
        .register_orchestration("high", move |orch, args, _| {
            Ok(orch.submit_next_level(&low, id3, TaskArgs::new().no_dep(args.tensors()[0])).map(drop)?)
        })
        .unwrap();
    let id4 = l5.add_worker(&l4).unwrap();
    l5.init().unwrap();
    let gate = Gate::new(&l5);
    let run = l5.submit(|orch| Ok(orch.submit_next_level(&high, id4, gate.args()).map(drop)?)).unwrap();
    until("the task runs at the bottom", || gate.get(1) != 0);
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| l5.close_now());
        // What runs finishes: it is let go only when the stop has come to the bottom, and no later task begins.
        until("the stop has come to the lowest orchestration", || gate.cell(HEARD).load(Ordering::Acquire) == 1);
        gate.set(1, 0);
        gate.set(0, 1);
        closing.join().unwrap().unwrap();
    });
    assert_eq!(gate.get(1), 0, "the second task never began");
    let text = run.wait().unwrap_err().to_string();
    assert!(text.contains("worker closed"), "{text}");
    assert_eq!(descendants(), []);
}

/// L-27, E-41: the frames come back when the whole subtree is gone.
pub(crate) fn a_nested_worker_killed_in_a_task_takes_what_is_below_it() {
    let tower = Tower::new(3..=5, hold);
    let gate = Gate::new(&tower.top);
    let middle = crate::harness::children_of(rustix::process::getpid())[0];
    let run = tower.top.submit(|orch| Ok(orch.submit_next_level(&tower.call, tower.below, gate.args()).map(drop)?));
    until("the task runs at the bottom", || gate.get(1) != 0);
    kill_process(middle, Signal::KILL).unwrap();
    let text = run.unwrap().wait().unwrap_err().to_string();
    assert!(text.contains("SIGKILL") && text.contains(&middle.to_string()), "{text}");
    assert_eq!(descendants(), [], "reported only when nothing writes any more");
    tower.top.close().unwrap();
}

/// P-10, P-22
pub(crate) fn a_child_that_dies_below_fails_the_task_with_the_whole_path() {
    let tower = Tower::new(3..=5, hold);
    let gate = Gate::new(&tower.top);
    let run = tower.top.submit(|orch| Ok(orch.submit_next_level(&tower.call, tower.below, gate.args()).map(drop)?));
    until("the task runs at the bottom", || gate.get(1) != 0);
    let bottom = gate.get(1);
    kill(bottom, Signal::KILL);
    let text = run.unwrap().wait().unwrap_err().to_string();
    for part in ["level 5", "level 4", "level 3", "sub 0", "SIGKILL", &bottom.to_string()] {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
    // The level 3 has no SUB child any more and says so; everything above is as before.
    assert!(tower.run(&gate.args()).unwrap_err().to_string().contains("level 3"));
    tower.top.close().unwrap();
}

/// P-14, L-32: busy at the bottom, waiting in between.
pub(crate) fn a_killed_root_takes_three_levels_with_it() {
    // SAFETY: this case is a process with one thread; the child goes on as a parent of its own and never returns.
    match unsafe { libc::fork() } {
        0 => {
            let tower = Tower::new(3..=6, hold);
            let gate = Gate::new(&tower.top);
            drop(tower.run(&gate.args()));
            unreachable!("nobody opens the gate");
        }
        root => {
            until("the tree is up", || descendants().len() == 5);
            // Every process below the root is at work or waits for one that is.
            let busy =
                |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| s.contains(") R "));
            until("the bottom is busy", || descendants().iter().any(busy));
            kill(root, Signal::KILL);
            let took = until("the tree is gone", || descendants().is_empty());
            crate::harness::in_time("the end of the tree", took, Duration::from_millis(100));
            // SAFETY: reaps the child that was forked above.
            unsafe { libc::waitpid(root, std::ptr::null_mut(), 0) };
        }
    }
}

/// P-12, T-36
pub(crate) fn a_stopped_grandchild_does_not_hold_up_close_for_ever() {
    let l3 = small(3, 2, Duration::from_millis(200));
    let pid = l3.register("pid", |args| Ok(args.tensor::<i32>(0)?.set(0, std::process::id() as i32)?)).unwrap();
    let l4 = small(4, 0, Duration::from_secs(2));
    let orch = l4.register_orchestration("orch", move |orch, args, _| {
        Ok(orch.submit_sub(&pid, TaskArgs::new().output(args.tensors()[0])).map(drop)?)
    });
    let (orch, id) = (orch.unwrap(), l4.add_worker(&l3).unwrap());
    l4.init().unwrap();
    let x = l4.tensor::<i32>(&[1]).unwrap();
    l4.run(|o| Ok(o.submit_next_level(&orch, id, TaskArgs::new().output(&x)).map(drop)?)).unwrap();
    kill(x.to_vec().unwrap()[0], Signal::STOP);
    let start = Instant::now();
    let error = l4.close().unwrap_err();
    assert!(matches!(error, Error::AbnormalExits { .. }), "{error:?}");
    assert!(error.to_string().contains("children below it did not leave in order"), "P-15: {error}");
    crate::harness::in_time("the close", start.elapsed(), Duration::from_secs(4));
    assert_eq!(descendants(), []);
}

/// Two runners on one machine are at the same case: what is counted here is none of the other's.
pub(crate) fn a_process_of_another_run_of_this_case_is_none_of_its_own() {
    let waits = |run: Option<&str>| {
        let mut command = Command::new("cat");
        run.map(|run| command.env(harness::RUN, run));
        // It ends when the pipe does.
        command.stdin(Stdio::piped()).spawn().unwrap()
    };
    let (mut own, mut others) = (waits(None), waits(Some("another")));
    assert_eq!(descendants(), [own.id() as i32]);
    for child in [&mut own, &mut others] {
        assert!(child.wait().unwrap().success());
    }
}
