//! The workers of a process and below it. These are the facts that `Worker::health` gives, with what the kernel says about the
//! processes; the fields are those of `--json`, and are described in the book.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use laneway_linux::{ChildActivity, ChildHealth, Doing, Error, Health, Phase, observe};
use serde::Serialize;

use crate::nanos;
use crate::process::{Process, Target};
use crate::trouble::Trouble;

/// Raised whenever a field goes or changes its meaning.
const FORMAT: u32 = 1;

/// How long one look may go on to further processes.
const BUDGET: Duration = Duration::from_secs(5);

/// From when a process that ends has no files any more to its end, at most.
const ENDING: Duration = Duration::from_millis(100);

/// Workers below each other that are shown.
const MOST_LEVELS: usize = 32;

/// What is seen in one look.
#[derive(Serialize)]
pub(crate) struct Tree {
    pub(crate) format: u32,
    pub(crate) pid: i32,
    pub(crate) program: String,
    pub(crate) process: &'static str,
    pub(crate) workers: Vec<Worker>,
}

#[derive(Serialize)]
pub(crate) struct Worker {
    pub(crate) level: u32,
    pub(crate) pid: i32,
    pub(crate) state: &'static str,
    pub(crate) ready: bool,
    pub(crate) age_ns: u64,
    pub(crate) committed_bytes: u64,
    pub(crate) window_ns: u64,
    pub(crate) wake_ns: u64,
    pub(crate) spin_ns: u64,
    pub(crate) children: Vec<Child>,
}

#[derive(Serialize)]
pub(crate) struct Child {
    pub(crate) label: String,
    pub(crate) kind: String,
    pub(crate) pid: i32,
    /// What the kernel says of it; none if it is gone.
    pub(crate) process: Option<&'static str>,
    pub(crate) status: &'static str,
    pub(crate) task: Option<Task>,
    pub(crate) reason: Option<String>,
    pub(crate) activity: &'static str,
    pub(crate) activity_age_ns: u64,
    pub(crate) tasks: u64,
    pub(crate) busy_ns: u64,
    pub(crate) spin_ns: u64,
    pub(crate) age_ns: u64,
    pub(crate) utilisation: f64,
    pub(crate) spin_share: f64,
    pub(crate) workers: Vec<Worker>,
    /// Why nothing is shown below a nested worker.
    pub(crate) unseen: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Task {
    pub(crate) run: u64,
    pub(crate) dispatch: u64,
    pub(crate) phase: &'static str,
    pub(crate) running: bool,
    pub(crate) callable: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) age_ns: u64,
}

/// Looks at a process and everything below it.
pub(crate) fn look(target: &Target) -> Result<Tree, Trouble> {
    let process = target.process()?;
    let (pid, program) = (process.pid, process.program.clone());
    let found = workers(&process, &Walk { end: Instant::now() + BUDGET, depth: 0 });
    // Whatever was found, it counts only if the process is the one still.
    target.wait(Duration::ZERO)?;
    let found = found.map_err(|error| match error {
        Error::Observe { why, .. } => Trouble::Forbidden { pid, uid: process.uid, why },
        other => Trouble::Other(other.to_string()),
    })?;
    if found.is_empty() {
        // One that is ending closes its files a moment before it has ended.
        target.wait(ENDING)?;
        return Err(Trouble::NoWorker { pid, program });
    }
    Ok(Tree { format: FORMAT, pid, program, process: process.state, workers: found })
}

/// How far a look may still go.
#[derive(Clone, Copy)]
struct Walk {
    end: Instant,
    depth: usize,
}

fn workers(process: &Process, walk: &Walk) -> Result<Vec<Worker>, Error> {
    let mut found = observe(process.pid)?;
    // A process inherits the descriptors of one that forked it; those boards are not about it.
    found.retain(|health| health.pid == process.own_id());
    found.sort_by_key(|health| Reverse(health.level));
    Ok(found.into_iter().map(|health| worker(process, health, walk)).collect())
}

fn worker(process: &Process, health: Health, walk: &Walk) -> Worker {
    Worker {
        level: health.level,
        pid: process.pid,
        state: health.state,
        ready: health.ready,
        age_ns: nanos(health.age),
        committed_bytes: health.committed_bytes,
        window_ns: nanos(health.window),
        wake_ns: nanos(health.wake),
        spin_ns: nanos(health.spinning),
        children: health.children.into_iter().map(|health| child(process, health, walk)).collect(),
    }
}

fn child(parent: &Process, health: ChildHealth, walk: &Walk) -> Child {
    // A child that is a thread has the id of its parent, whose workers are shown already.
    let is_thread = health.pid == parent.own_id();
    let process = if is_thread { Some(parent.clone()) } else { parent.child(health.pid) };
    let (mut below, mut unseen) = (Vec::new(), None);
    if health.kind == "nested worker" && !is_thread {
        match nested(process.as_ref(), walk) {
            Ok(found) => below = found,
            Err(why) => unseen = Some(why),
        }
    }
    let (utilisation, spin_share) = (health.utilisation(), health.spin_share());
    let (status, task, reason) = status(health.doing);
    Child {
        label: health.label.to_string(),
        kind: health.kind,
        pid: process.as_ref().map_or(health.pid, |process| process.pid),
        process: process.map(|process| process.state),
        status,
        task,
        reason,
        activity: activity(health.activity),
        activity_age_ns: nanos(health.last_progress),
        tasks: health.tasks,
        busy_ns: nanos(health.busy),
        spin_ns: nanos(health.spinning),
        age_ns: nanos(health.age),
        utilisation,
        spin_share,
        workers: below,
        unseen,
    }
}

/// What is below a nested worker; the error says why that is not known.
fn nested(process: Option<&Process>, walk: &Walk) -> Result<Vec<Worker>, String> {
    let process = process.ok_or("its process is gone, or no child of the one above")?;
    if walk.depth + 1 >= MOST_LEVELS {
        return Err(format!("more than {MOST_LEVELS} levels"));
    }
    if Instant::now() >= walk.end {
        return Err(format!("the look took longer than {BUDGET:?}; pass {} to look at it alone", process.pid));
    }
    let found = workers(process, &Walk { depth: walk.depth + 1, ..*walk }).map_err(|error| error.to_string())?;
    if found.is_empty() { Err("it has no worker that is ready".to_owned()) } else { Ok(found) }
}

fn status(doing: Doing) -> (&'static str, Option<Task>, Option<String>) {
    match doing {
        Doing::Idle => ("idle", None, None),
        Doing::Busy { run, dispatch, callable, name, phase, running, age } => {
            let task = Task {
                run: run.get(),
                dispatch: dispatch.get(),
                phase: self::phase(phase),
                running,
                callable: callable.map(|digest| digest.to_string()),
                name,
                age_ns: nanos(age),
            };
            ("busy", Some(task), None)
        }
        Doing::Poisoned { reason } => ("unusable", None, Some(reason)),
        Doing::Dead { cause } => ("dead", None, Some(cause.to_string())),
        _ => ("unknown", None, None),
    }
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Published => "published",
        Phase::Staged => "staged",
        Phase::Preparing => "preparing",
        Phase::Waiting => "waiting",
        Phase::Activated => "activated",
        Phase::Withdrawn => "withdrawn",
        Phase::Launched => "launched",
    }
}

const fn activity(activity: ChildActivity) -> &'static str {
    match activity {
        ChildActivity::Unknown => "unknown",
        ChildActivity::Starting => "starting",
        ChildActivity::Waiting => "waiting",
        ChildActivity::Parked => "parked",
        ChildActivity::Staging => "staging",
        ChildActivity::Task => "task",
        ChildActivity::Control => "control",
        ChildActivity::Stopping => "stopping",
    }
}
