//! Deaths of a chip in a task, and of its parent.

use std::path::Path;
use std::time::{Duration, Instant};

use laneway_linux::{BoxError, Chip, TaskArgs, WorkerId};
use laneway_sim::{Action, Config, FaultPlan, HostMemory, Point, Simulator};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{self, children, children_of, is_alive};
use crate::support::{Bench, HBG, chip};

/// L-25, E-41
pub(crate) fn a_chip_killed_in_a_task_is_reported_and_the_other_goes_on() {
    let bench = Bench::new(&[HBG, HBG], 1);
    let victim = children()[0];
    let run = bench
        .worker
        .submit(|orch| {
            let an_hour = 3_600_000_000_000;
            Ok(orch.submit_next_level(&bench.wait, bench.chips[0], TaskArgs::new().scalar(an_hour)).map(drop)?)
        })
        .unwrap();
    run.wait_accepted().unwrap();
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    let text = run.wait().unwrap_err().to_string();
    assert!(text.contains("worker 0") && text.contains(&victim.to_string()) && text.contains("SIGKILL"), "{text}");
    let (a, c) = (bench.vector(8, |_| 1.0), bench.vector(8, |_| 0.0));
    let on = |chip: WorkerId| {
        bench
            .worker
            .run(|orch| Ok(orch.submit_next_level(&bench.add, chip, TaskArgs::new().input(&a).input(&a).output(&c))?))
    };
    on(bench.chips[1]).unwrap();
    assert_eq!(c.to_vec().unwrap(), [2.0; 8]);
    assert!(on(bench.chips[0]).unwrap_err().to_string().contains("SIGKILL"));
    bench.worker.close().unwrap();
}

/// A process that has a chip child, made by `chip`, and gets it to do what `work` says; then it calls itself `launched`.
/// Killed then, its children must be gone within 100 ms.
fn kill_a_parent(chip: Chip, work: impl FnOnce(&Bench)) {
    // SAFETY: this case is a process with one thread; the child goes on as a parent of its own and never returns.
    let parent = unsafe { libc::fork() };
    if parent == 0 {
        let bench = Bench::of(vec![chip], 1);
        work(&bench);
        std::fs::write("/proc/self/comm", "launched").unwrap();
        loop {
            std::thread::park();
        }
    }
    let start = Instant::now();
    let name = format!("/proc/{parent}/comm");
    while std::fs::read_to_string(&name).unwrap() != "launched\n" {
        assert!(start.elapsed() < Duration::from_secs(10), "the tree never came up");
        std::thread::yield_now();
    }
    let parent_pid = Pid::from_raw(parent).unwrap();
    let tree = children_of(parent_pid);
    assert_eq!(tree.len(), 2, "a chip and a SUB child");
    kill_process(parent_pid, Signal::KILL).unwrap();
    let killed = Instant::now();
    while tree.iter().any(|pid| is_alive(pid.as_raw_nonzero().get())) {
        harness::in_time("the end of the children", killed.elapsed(), Duration::from_millis(100));
        std::thread::yield_now();
    }
    let mut status = 0;
    // SAFETY: reaps the child that was forked above.
    unsafe { libc::waitpid(parent, &mut status, 0) };
}

/// L-32, T-25: finalizing a run that executes may take for ever, so the child does not get to it.
pub(crate) fn a_killed_parent_takes_a_chip_in_the_middle_of_a_kernel() {
    kill_a_parent(chip(HBG), |bench| {
        let run = bench.worker.submit(|orch| {
            let an_hour = 3_600_000_000_000;
            Ok(orch.submit_next_level(&bench.wait, bench.chips[0], TaskArgs::new().scalar(an_hour)).map(drop)?)
        });
        run.unwrap().wait_accepted().unwrap();
    });
}

/// A chip whose device does `action` when it is closed; scribbling is writing a file.
fn chip_that_closes_with(action: Action, file: &Path) -> Chip {
    let file = file.to_owned();
    Chip::new(HBG.platform(), HBG.runtime(), move |_| {
        let plan = FaultPlan::none().with(Point::Shutdown, 1, action);
        let mut device = Simulator::new(Config::new(HBG).with_faults(plan), HostMemory::none())?;
        let file = file.clone();
        device.set_scribble(Box::new(move || std::fs::write(&file, "closed").unwrap()));
        Ok::<_, BoxError>(device)
    })
}

/// L-31, L-32: an orphan closes its device, but not for longer than it has.
pub(crate) fn an_orphaned_chip_closes_its_device_and_leaves_even_if_that_hangs() {
    let file = std::env::temp_dir().join(format!("laneway-closed-{}", std::process::id()));
    let _ = std::fs::remove_file(&file);
    kill_a_parent(chip_that_closes_with(Action::Scribble, &file), |_| {});
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "closed");
    std::fs::remove_file(&file).unwrap();
    kill_a_parent(chip_that_closes_with(Action::Hang, &file), |_| {});
}
