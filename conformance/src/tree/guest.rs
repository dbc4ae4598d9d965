//! What a worker asks of the program around it, and what it leaves alone.

use std::collections::BTreeSet;
use std::fs;

use laneway_linux::{Error, TaskArgs};
use laneway_sim::Kernel;
use rustix::pipe::pipe;
use rustix::process::{
    Pid, Resource, Signal, getpgid, getpid, getrlimit, kill_process, set_child_subreaper, setrlimit,
};

use super::Grove;
use super::grove::children;
use super::signal::{Signal as Flag, until};
use crate::backend::Setup;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};

pub(super) fn cases() -> Vec<Case> {
    let all = vec![
        Case::tree(
            "guest/init_refuses_a_process_with_threads",
            &["P-2"],
            "Init in a process with a thread of its own is refused with their number and what to do; when it is gone, init works.",
            threads,
        ),
        Case::tree(
            "guest/init_refuses_too_few_descriptors_with_both_numbers",
            &["P-32"],
            "Where the limit leaves too few descriptors init says how many it needs and the limit, and leaves nothing.",
            descriptors,
        ),
        Case::tree(
            "guest/dispositions_and_masks_of_the_host_stay_as_they_were",
            &["P-18"],
            "Neither init nor a run nor close changes a signal of the host, makes it a subreaper or leaves a name in /dev/shm.",
            untouched,
        ),
        Case::tree(
            "guest/an_interrupt_from_the_terminal_does_not_reach_the_children",
            &["P-17", "P-30"],
            "A child is in a process group of its own and does not die of SIGINT.",
            interrupted,
        ),
        Case::tree(
            "guest/a_child_begins_with_plain_signals",
            &["P-30"],
            "User code in a child finds no handler, an empty mask, and SIGINT ignored.",
            plain,
        ),
        Case::tree(
            "guest/a_child_keeps_the_descriptors_of_the_user_unless_told_otherwise",
            &["P-24"],
            "A descriptor of the host is open in its children, and closed where the worker was told to close foreign ones.",
            foreign,
        ),
        Case::tree(
            "guest/a_child_sees_no_mailbox_but_its_own",
            &["P-31"],
            "When user code runs the child has mapped one mailbox, however many children there are.",
            mailboxes,
        ),
        Case::tree(
            "guest/a_host_that_reaps_whatever_ends_loses_no_child",
            &["P-23", "P-22"],
            "Where the host takes the exit status of a child its run still fails, the others serve on, and close ends.",
            reaped,
        ),
        Case::tree(
            "guest/a_subreaper_keeps_no_zombie_of_what_a_dead_child_started",
            &["P-34", "P-16"],
            "What a dead child left behind is killed and reaped, and a process of the host's own is left alone.",
            orphans,
        ),
        Case::tree(
            "guest/a_chip_maps_no_library_into_its_parent",
            &["P-26"],
            "What a chip child loads to drive its device is mapped there and not in its parent.",
            libraries,
        )
        .kernels(&[Kernel::Add]),
    ];
    all.into_iter().map(Case::processes).collect()
}

fn threads(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(1).build().must("a worker")?;
    let gate = Flag::new()?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| gate.wait());
        let error = refused("init beside a thread", worker.init(), "ForeignThreads of 1", |error| {
            *error == Error::ForeignThreads { count: 1 }
        })?;
        mentions("the refusal", &error.to_string(), &["1 other thread", "before starting", "allow_foreign_threads"])?;
        gate.send().must("the gate")?;
        thread.join().ok().must("the thread")?.must("its wait")
    })?;
    equal("children after the refusal", children(), Vec::<i32>::new())?;
    // A thread that was joined may be seen for a moment longer.
    until("the thread is gone", || fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1))?;
    let worker = grove.builder().subs(1).build().must("a worker")?;
    worker.init().must("init without the thread")?;
    worker.close().must("close")
}

fn descriptors(grove: &mut Grove<'_>) -> Verdict {
    let before = getrlimit(Resource::Nofile);
    let open = fs::read_dir("/proc/self/fd").must("the descriptors")?.count() as u64;
    let mut few = before;
    few.current = Some(open + 8);
    setrlimit(Resource::Nofile, few).must("setrlimit")?;
    let worker = grove.builder().subs(3).build();
    let refusal = worker.and_then(|worker| worker.init());
    setrlimit(Resource::Nofile, before).must("setrlimit")?;
    let error = refused(
        "init with few descriptors",
        refusal,
        "Descriptors",
        |error| matches!(error, Error::Descriptors { needed, limit, .. } if *limit == open + 8 && *needed > 8),
    )?;
    mentions("the refusal", &error.to_string(), &["RLIMIT_NOFILE", &(open + 8).to_string()])?;
    equal("children after the refusal", children(), Vec::<i32>::new())?;
    let now = fs::read_dir("/proc/self/fd").must("the descriptors")?.count() as u64;
    equal("descriptors after the refusal", now, open)
}

/// Signals that a process blocks, ignores and catches, without those above 31: libc installs handlers of its own there when a
/// thread is started.
fn signals() -> Result<[u64; 3], Violation> {
    let status = fs::read_to_string("/proc/self/status").must("the status of this process")?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        u64::from_str_radix(line.trim(), 16).unwrap_or_default() & 0x7fff_ffff
    };
    Ok(["SigBlk:", "SigIgn:", "SigCgt:"].map(of))
}

fn names() -> BTreeSet<std::ffi::OsString> {
    fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

fn untouched(grove: &mut Grove<'_>) -> Verdict {
    let reaper = || rustix::process::child_subreaper().must("whether this is a subreaper");
    let before = (signals()?, reaper()?, names());
    let subs = grove.subs(2)?;
    subs.adds()?;
    equal("signals, subreaper and names while it is open", (signals()?, reaper()?, names()), before.clone())?;
    subs.close()?;
    equal("signals, subreaper and names after close", (signals()?, reaper()?, names()), before)
}

fn interrupted(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let child = Pid::from_raw(subs.child()?).must("a process id")?;
    let (its, ours) = (getpgid(Some(child)).must("getpgid")?, getpgid(None).must("getpgid")?);
    holds("a process group of its own", its != ours, || format!("{its:?} is the host's"))?;
    kill_process(child, Signal::INT).must("kill")?;
    subs.adds()?;
    equal("the child after SIGINT", subs.child()?, child.as_raw_nonzero().get())?;
    subs.close()
}

fn plain(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(1).build().must("a worker")?;
    let look = worker.register("look", |args| {
        let out = args.tensor::<u64>(0)?;
        for (i, mask) in signals()?.into_iter().enumerate() {
            out.set(i, mask)?;
        }
        Ok(())
    });
    let (look, masks) = (look.must("register")?, worker.tensor::<u64>(&[3]).must("a tensor")?);
    worker.init().must("init")?;
    worker.run(|orch| Ok(orch.submit_sub(&look, TaskArgs::new().output(&masks)).map(drop)?)).must("a run")?;
    let [blocked, ignored, caught] = masks.to_vec().must("the masks")?[..] else { return None.must("three masks") };
    equal("signals that are blocked, and caught", (blocked, caught), (0_u64, 0_u64))?;
    let interrupt = 1_u64 << (Signal::INT.as_raw() - 1);
    holds("SIGINT is ignored", ignored & interrupt != 0, || format!("{ignored:#x}"))?;
    worker.close().must("close")
}

fn foreign(grove: &mut Grove<'_>) -> Verdict {
    let (read, _write) = pipe().must("a pipe")?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&read);
    let own = fs::read_link(format!("/proc/self/fd/{number}")).must("what the pipe is called")?;
    for close in [false, true] {
        let worker = grove.builder().subs(1).close_foreign_descriptors(close).build().must("a worker")?;
        let own = own.clone();
        let look = worker.register("look", move |args| {
            let here = fs::read_link(format!("/proc/self/fd/{number}")).is_ok_and(|name| name == own);
            Ok(args.tensor::<i32>(0)?.set(0, i32::from(here))?)
        });
        let (look, is_open) = (look.must("register")?, worker.tensor::<i32>(&[1]).must("a tensor")?);
        worker.init().must("init")?;
        worker.run(|orch| Ok(orch.submit_sub(&look, TaskArgs::new().output(&is_open)).map(drop)?)).must("a run")?;
        let what = format!("whether it is open with close_foreign_descriptors({close})");
        equal(what, is_open.to_vec().must("the answer")?, [i32::from(!close)])?;
        worker.close().must("close")?;
    }
    Ok(())
}

/// Mappings of this process whose name has `part` in it.
fn mapped(part: &str) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter(|line| line.contains(part)).count()
}

fn mailboxes(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(3).build().must("a worker")?;
    let look =
        worker.register("look", |args| Ok(args.tensor::<i32>(0)?.set(0, mapped("memfd:laneway sub ") as i32)?));
    let (look, count) = (look.must("register")?, worker.tensor::<i32>(&[1]).must("a tensor")?);
    worker.init().must("init")?;
    equal("mailboxes in the parent", mapped("memfd:laneway sub "), 3)?;
    worker.run(|orch| Ok(orch.submit_sub(&look, TaskArgs::new().output(&count)).map(drop)?)).must("a run")?;
    equal("mailboxes in a child", count.to_vec().must("the answer")?, [1])?;
    worker.close().must("close")
}

fn reaped(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let run = subs.worker.submit(|orch| Ok(orch.submit_sub(&subs.hold, TaskArgs::new()).map(drop)?)).must("submit")?;
    subs.running.wait().must("the task runs")?;
    let busy = |child: &laneway_linux::ChildHealth| matches!(child.doing, laneway_linux::Doing::Busy { .. });
    let health = subs.worker.health();
    let victim = health.children.iter().find(|child| busy(child)).must("the child that holds")?.pid;
    kill_process(Pid::from_raw(victim).must("a process id")?, Signal::KILL).must("kill")?;
    // As a host does that cleans up whatever ends; the library may have been faster.
    until("the child is gone", || {
        let _ = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
        !children().contains(&victim)
    })?;
    let error = refused("the run of the child that is gone", run.wait(), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &[&victim.to_string()])?;
    subs.adds()?;
    match subs.worker.close() {
        Err(Error::AbnormalExits { .. }) => Ok(()),
        closed => closed.must("close"),
    }
}

fn orphans(grove: &mut Grove<'_>) -> Verdict {
    set_child_subreaper(Some(getpid())).must("to become a subreaper")?;
    let mut own = std::process::Command::new("sleep").arg("60").spawn().must("a process of the host's own")?;
    let worker = grove.builder().subs(2).build().must("a worker")?;
    let leaves = worker.register("leaves something behind", |_| {
        drop(std::process::Command::new("sleep").arg("60").spawn()?);
        Ok(kill_process(getpid(), Signal::KILL)?)
    });
    let leaves = leaves.must("register")?;
    worker.init().must("init")?;
    let run = worker.run(|orch| Ok(orch.submit_sub(&leaves, TaskArgs::new()).map(drop)?));
    refused("the run of a child that kills itself", run, "an error", |_| true)?;
    until("the other child and the host's own are left, and nothing else", || children().len() == 2)?;
    worker.close().must("close")?;
    equal("children after close", children(), [own.id() as i32])?;
    own.kill().must("kill")?;
    own.wait().must("wait").map(drop)
}

/// The files that are mapped to be run.
fn code() -> BTreeSet<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let runs = |line: &&str| line.split_whitespace().nth(1).is_some_and(|rights| rights.contains('x'));
    maps.lines().filter(runs).filter_map(|line| Some(line.split_whitespace().nth(5)?.to_owned())).collect()
}

fn libraries(grove: &mut Grove<'_>) -> Verdict {
    let before = code();
    let chips = grove.chips(&[Setup::default()])?;
    chips.adds(0)?;
    let new: Vec<_> = code().difference(&before).cloned().collect();
    equal("files that are run here since the chip came", new, Vec::<String>::new())?;
    chips.close(false)
}
