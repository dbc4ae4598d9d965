//! How a worker ends.

use laneway_linux::{Error, RunHandle, TaskArgs, Tensor, Worker};

use super::Grove;
use super::grove::{Subs, children};
use super::signal::until;
use crate::backend::Setup;
use crate::case::Case;
use crate::expect::{Must, Verdict, Violation, equal, holds, mentions, refused};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::tree(
            "closing/close_leaves_nothing_behind",
            &["P-14", "T-37"],
            "After close there is no child, zombie, descriptor, thread, mapping or name of it.",
            nothing_left,
        )
        .processes(),
        Case::tree(
            "closing/close_waits_for_accepted_runs",
            &["P-13"],
            "What was accepted before close ends with its result.",
            waits,
        ),
        Case::tree(
            "closing/close_that_times_out_changes_nothing",
            &["P-13"],
            "A close whose budget is over names what runs, tears nothing down, and can be called again.",
            times_out,
        )
        .processes(),
        Case::tree(
            "closing/close_now_fails_what_was_never_sent",
            &["E-36", "P-13"],
            "close_now lets the running task end and fails what was not dispatched with \"worker closed\".",
            close_now,
        ),
        Case::tree(
            "closing/what_runs_when_close_now_is_called_ends_and_nothing_starts",
            &["L-29", "L-33", "E-36"],
            "The task that runs when close_now begins ends normally, and the one that waits for it never starts.",
            drained,
        ),
        Case::tree(
            "closing/calls_in_the_wrong_state_name_the_state",
            &["P-7", "P-13"],
            "Calls before init and after close are errors that name the state; closing twice is fine.",
            states,
        ),
        Case::tree(
            "closing/dropping_an_open_worker_closes_it",
            &["P-13", "P-14"],
            "A worker that is dropped takes its tree with it.",
            dropped,
        ),
        Case::tree(
            "closing/a_failed_init_leaves_nothing_behind",
            &["P-5", "P-6", "P-14"],
            "When one child cannot start, init fails with its name and reason, and every other child is gone.",
            failed_init,
        ),
        Case::tree(
            "closing/a_tree_with_chips_leaves_nothing_behind",
            &["P-14", "C-12"],
            "Chip children finalise their devices and are gone after close.",
            chips_left,
        )
        .kernels(&[laneway_sim::Kernel::Add]),
    ]
}

/// What a worker could leave in this process: children, threads, descriptors, mappings, names.
#[derive(PartialEq, Eq, Debug)]
struct Traces {
    children: Vec<i32>,
    threads: usize,
    descriptors: usize,
    mappings: usize,
    names: usize,
}

impl Traces {
    fn now() -> Self {
        let count = |path: &str| std::fs::read_dir(path).map_or(0, Iterator::count);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self {
            children: children(),
            threads: count("/proc/self/task"),
            descriptors: count("/proc/self/fd"),
            mappings: maps.lines().filter(|line| line.contains("memfd:laneway")).count(),
            names: count("/dev/shm"),
        }
    }
}

fn nothing_left(grove: &mut Grove<'_>) -> Verdict {
    let before = Traces::now();
    let subs = grove.subs(3)?;
    subs.adds()?;
    let while_open = Traces::now();
    equal("children and names while it is open", (while_open.children.len(), while_open.names), (3, before.names))?;
    subs.worker.close().must("close")?;
    equal("children after close", children(), Vec::<i32>::new())?;
    drop(subs);
    equal("traces after close", Traces::now(), before)
}

fn chips_left(grove: &mut Grove<'_>) -> Verdict {
    let before = Traces::now();
    let chips = grove.chips(&[Setup::default(), Setup::default()])?;
    chips.adds(0)?;
    chips.adds(1)?;
    chips.close(false)?;
    equal("traces after close", Traces::now(), before)
}

fn waits(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(2)?;
    let x = subs.tensor(1)?;
    let run = subs.worker.submit(|orch| {
        for _ in 0..100 {
            orch.submit_sub(&subs.add, TaskArgs::new().inout(&x).scalar(1))?;
        }
        Ok(())
    });
    let run = run.must("submit")?;
    subs.worker.close().must("close")?;
    run.wait().must("the run")?;
    equal("its result", x.to_vec().must("the tensor")?, [100])
}

fn times_out(grove: &mut Grove<'_>) -> Verdict {
    let short = std::time::Duration::from_millis(30);
    let subs = Subs::start(grove.builder().subs(2).drain_budget(short).build().must("a worker")?)?;
    let run = subs.worker.submit(|orch| Ok(orch.submit_sub(&subs.hold, TaskArgs::new()).map(drop)?)).must("submit")?;
    refused("close", subs.worker.close(), "CloseTimedOut", |error| matches!(error, Error::CloseTimedOut { .. }))?;
    equal("children after it", children().len(), 2)?;
    subs.gate.send().must("the gate")?;
    run.wait().must("the run")?;
    subs.adds()?;
    subs.close()?;
    equal("children after the second close", children(), Vec::<i32>::new())
}

/// A run whose first task is held and runs, while its second waits for it.
fn one_runs_one_waits(subs: &Subs, x: &Tensor<i32>) -> Result<RunHandle, Violation> {
    let run = subs.worker.submit(|orch| {
        orch.submit_sub(&subs.hold, TaskArgs::new().inout(x))?;
        orch.submit_sub(&subs.add, TaskArgs::new().inout(x).scalar(1))?;
        Ok(())
    });
    let run = run.must("submit")?;
    subs.running.wait().must("the first task runs")?;
    Ok(run)
}

fn close_now(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let x = subs.tensor(1)?;
    let run = one_runs_one_waits(&subs, &x)?;
    subs.gate.send().must("the gate")?;
    // Whether the second task was sent before the close is open; that it ends is not.
    subs.worker.close_now().must("close_now")?;
    match run.wait() {
        Ok(()) => equal("the result of a run that was in time", x.to_vec().must("the tensor")?, [1])?,
        Err(error) => mentions("the error of a run that was not", &error.to_string(), &["worker closed"])?,
    }
    equal("children after close_now", children(), Vec::<i32>::new())
}

fn drained(grove: &mut Grove<'_>) -> Verdict {
    let subs = grove.subs(1)?;
    let x = subs.tensor(1)?;
    let run = one_runs_one_waits(&subs, &x)?;
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| subs.worker.close_now());
        let begun = || matches!(subs.worker.run(|_| Ok(())), Err(Error::WrongState { state: "CLOSING", .. }));
        until("close has begun", begun)?;
        subs.gate.send().must("the gate")?;
        closing.join().ok().must("the thread that closes")?.must("close_now, with a child that left in order")
    })?;
    let error = refused("the run", run.wait(), "an error", |_| true)?;
    mentions("the error", &error.to_string(), &["worker closed"])?;
    equal("what the second task would have changed", x.to_vec().must("the tensor")?, [0])
}

fn states(grove: &mut Grove<'_>) -> Verdict {
    let worker = grove.builder().subs(1).build().must("a worker")?;
    let says = |wanted: &'static str| move |error: &Error| matches!(error, Error::WrongState { state, .. } if *state == wanted);
    refused("a run before init", worker.run(|_| Ok(())), "NEW", says("NEW"))?;
    worker.init().must("init")?;
    refused("a second init", worker.init(), "READY", says("READY"))?;
    worker.close().must("close")?;
    worker.close().must("a second close")?;
    refused("a run after close", worker.run(|_| Ok(())), "CLOSED", says("CLOSED"))?;
    refused("init after close", worker.init(), "CLOSED", says("CLOSED")).map(drop)
}

fn dropped(grove: &mut Grove<'_>) -> Verdict {
    let before = Traces::now();
    let subs = grove.subs(2)?;
    subs.adds()?;
    drop(subs);
    until("the children are gone", || children().is_empty())?;
    equal("traces after the drop", Traces::now(), before)
}

fn failed_init(grove: &mut Grove<'_>) -> Verdict {
    let before = Traces::now();
    let (worker, platform) = (grove.builder().subs(2).build().must("a worker")?, grove.platform());
    add_broken(&worker, platform)?;
    let error =
        refused("init", worker.init(), "the child's failure", |error| matches!(error, Error::ChildStart { .. }))?;
    mentions("the error", &error.to_string(), &["worker 0", "no such device"])?;
    drop(worker);
    let after = Traces::now();
    holds("traces after the failed init", after == before, || format!("{after:?} against {before:?}"))
}

/// A chip whose device does not come up.
fn add_broken(
    worker: &Worker,
    (platform, runtime): (laneway_core::chip::Platform, laneway_core::chip::RuntimeKind),
) -> Verdict {
    let open = |_: &[std::ops::Range<u64>]| Err::<laneway_sim::Simulator, _>("no such device");
    worker.add_chip(laneway_linux::Chip::new(platform, runtime, open)).must("add_chip").map(drop)
}
