//! What a worker tells of its children, and where it lets them run.

use std::fs;
use std::time::{Duration, Instant};

use laneway_linux::{Doing, Error, Label, SubId, TaskArgs};
use rustix::process::{Pid, Signal, kill_process};

use super::Grove;
use super::signal::until;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::tree(
            "looking/health_says_what_each_child_is_doing",
            &["P-20"],
            "Health names each child with kind and process, and of a busy one run, callable and that it runs.",
            health,
        ),
        Case::tree(
            "looking/health_is_not_ready_soon_after_a_death_and_says_why",
            &["P-20", "P-22"],
            "Within 10 ms of a death, give or take a busy machine, health is not ready and gives the cause.",
            death,
        )
        .processes(),
        Case::tree(
            "looking/a_sigkill_from_elsewhere_reads_as_out_of_memory",
            &["P-33"],
            "A SIGKILL that nobody of the tree sent is worded as likely out of memory.",
            out_of_memory,
        )
        .processes(),
        Case::tree(
            "looking/populated_regions_are_committed_when_init_returns",
            &["P-33"],
            "With populate, health counts the rings and the buffers as committed after init; without, next to nothing.",
            populated,
        ),
        Case::tree(
            "looking/a_child_runs_on_the_cpus_that_it_was_given",
            &["P-21"],
            "A child is kept to its CPUs; one that this process may not use fails init with both sets, and so do CPUs given twice \
             where each was to have its own.",
            cpus,
        )
        .processes(),
    ]
}

fn health(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let run = subs.worker.submit(|orch| Ok(orch.submit_sub(&subs.hold, TaskArgs::new()).map(drop)?)).must("submit")?;
    subs.running.wait().must("the task runs")?;
    let health = subs.worker.health();
    let labels: Vec<_> = health.children.iter().map(|child| (child.label, child.kind.clone())).collect();
    equal("the children", labels, [0, 1].map(|i| (Label::Sub(SubId(i)), "SUB child".to_owned())))?;
    holds("every child has a process", health.children.iter().all(|child| child.pid > 0), || format!("{health}"))?;
    let busy = health.children.iter().find(|child| child.doing != Doing::Idle).must("a child that is busy")?;
    let Doing::Busy { run: found, callable, name, running, .. } = &busy.doing else {
        return None.must("a child that is busy, not gone");
    };
    equal("the run, the callable and its name", (*found, *callable, name.as_deref()), {
        (run.id(), Some(*subs.hold.digest()), Some("hold"))
    })?;
    equal("whether it says that it runs", *running, true)?;
    equal("whether it is stalled for an hour", health.stalled(Duration::from_secs(3600)).count(), 0)?;
    subs.gate.send().must("the gate")?;
    run.wait().must("the run")?;
    until("all are idle", || subs.worker.health().children.iter().all(|child| child.doing == Doing::Idle))?;
    subs.close()
}

fn death(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let victim = subs.worker.health().children[1].pid;
    equal("whether it is ready before", subs.worker.health().ready, true)?;
    let mut best = Duration::MAX;
    let start = Instant::now();
    kill_process(Pid::from_raw(victim).must("a process id")?, Signal::KILL).must("kill")?;
    until("health is not ready", || !subs.worker.health().ready)?;
    best = best.min(start.elapsed());
    holds("it takes 10 ms, on a busy machine some more", best < Duration::from_millis(250), || format!("{best:?}"))?;
    let said = subs.worker.health().children[1].to_string();
    mentions("what health says of it", &said, &["sub 1", &victim.to_string(), "SIGKILL"])?;
    subs.close()
}

fn out_of_memory(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let run = subs.worker.submit(|orch| Ok(orch.submit_sub(&subs.hold, TaskArgs::new()).map(drop)?)).must("submit")?;
    subs.running.wait().must("the task runs")?;
    let victim = subs.worker.health().children[0].pid;
    kill_process(Pid::from_raw(victim).must("a process id")?, Signal::KILL).must("kill")?;
    let error = refused("the run of a child that is killed", run.wait(), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["SIGKILL", "nobody in this tree sent", "out of memory"])?;
    subs.close()
}

fn populated(grove: &mut Grove<'_>) -> Verdict {
    for populate in [false, true] {
        let worker = grove.builder().subs(1).populate(populate).build().must("a worker")?;
        worker.register("nothing", |_| Ok(())).must("register")?;
        worker.init().must("init")?;
        // Four rings of 1 MiB and buffers of 4 MiB.
        let (committed, all) = (worker.health().committed_bytes, 8 << 20);
        let right = if populate { committed >= all } else { committed < all / 2 };
        holds(format_args!("committed bytes with populate({populate})"), right, || format!("{committed} of {all}"))?;
        worker.close().must("close")?;
    }
    Ok(())
}

/// CPUs that this process may use.
fn allowed() -> Result<Vec<usize>, Violation> {
    let set = rustix::thread::sched_getaffinity(None).must("the affinity of this process")?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

fn cpus(grove: &mut Grove<'_>) -> Verdict {
    let (first, second) = (Label::Sub(SubId(0)), Label::Sub(SubId(1)));
    let own = allowed()?;
    let cpu = *own.last().must("a CPU")?;
    let worker = grove.builder().subs(1).child_cpus(first, vec![cpu]).build().must("a worker")?;
    worker.register("nothing", |_| Ok(())).must("register")?;
    worker.init().must("init")?;
    let pid = worker.health().children[0].pid;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).must("the status of the child")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).map(str::trim);
    equal("CPUs of the child", list, Some(cpu.to_string().as_str()))?;
    equal("CPUs of this process", allowed()?, own.clone())?;
    worker.close().must("close")?;

    let beyond = own.last().must("a CPU")? + 1;
    let worker = grove.builder().subs(1).child_cpus(first, vec![beyond]).build().must("a worker")?;
    refused(
        "init with a CPU that is not ours",
        worker.init(),
        "Cpus with both sets",
        |error| matches!(error, Error::Cpus { asked, allowed } if *asked == [beyond] && *allowed == own),
    )?;

    let shared = grove.builder().subs(2).child_cpus(first, vec![cpu]).child_cpus(second, vec![cpu]);
    let worker = shared.exclusive_cpus(true).build().must("a worker")?;
    refused("init with a CPU given twice", worker.init(), "CpusShared", |error| {
        matches!(error, Error::CpusShared { .. })
    })?;
    Ok(())
}
