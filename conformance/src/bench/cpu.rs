//! What the processes of a tree take of the CPUs.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use laneway_linux::{TaskArgs, Worker};
use rustix::process::getpid;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::Failure;
use super::floors::IDLE;
use super::schedule::{Cpus, stay_on};
use super::trees::{SubTree, Trees};

/// What one process took while something was going on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Usage {
    /// What it is.
    pub process: String,
    /// CPU seconds per second.
    pub cpu: f64,
    /// Seconds per second that it spun, as the worker counts them; known of the parent and its own children.
    #[serde(default)]
    pub spinning: Option<f64>,
    /// Context switches because it had nothing to do.
    pub voluntary: u64,
    /// Context switches because something else had.
    pub involuntary: u64,
}

/// One situation, and what each process took in it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Load {
    /// What targets name it by.
    pub id: String,
    /// What is going on.
    pub title: String,
    /// For how many seconds.
    pub seconds: f64,
    /// The processes.
    pub processes: Vec<Usage>,
}

/// What the kernel has counted for some threads.
#[derive(Clone, Copy, Default)]
struct Counts {
    nanos: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Counts {
    /// Of all threads of a process but one.
    fn of(pid: i32, but: Option<i32>) -> Self {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse::<i32>().ok());
        let mut sum = Self::default();
        for thread in numbers.filter(|thread| Some(*thread) != but) {
            let read = |file| fs::read_to_string(format!("/proc/{pid}/task/{thread}/{file}")).unwrap_or_default();
            let status = read("status");
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim_start_matches(':').trim().parse::<u64>().ok()
            };
            sum.nanos += read("schedstat").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0);
            sum.voluntary += field("voluntary_ctxt_switches").unwrap_or(0);
            sum.involuntary += field("nonvoluntary_ctxt_switches").unwrap_or(0);
        }
        sum
    }
}

/// A process that is watched, or some threads of one.
struct Watched {
    name: String,
    pid: i32,
    but: Option<i32>,
    before: Counts,
}

impl Watched {
    fn new(name: String, pid: i32, but: Option<i32>) -> Self {
        Self { name, pid, but, before: Counts::of(pid, but) }
    }

    fn usage(self, seconds: f64) -> Usage {
        let after = Counts::of(self.pid, self.but);
        Usage {
            process: self.name,
            cpu: (after.nanos - self.before.nanos) as f64 / 1e9 / seconds,
            spinning: None,
            voluntary: after.voluntary - self.before.voluntary,
            involuntary: after.involuntary - self.before.involuntary,
        }
    }
}

/// The children of a worker and what is below them.
fn descendants(name: &str, worker: &Worker) -> Vec<Watched> {
    let mut found = Vec::new();
    for child in worker.health().children {
        let title = format!("{name}: {} ({})", child.label, child.kind);
        found.push(Watched::new(title.clone(), child.pid, None));
        let below = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.pid)).unwrap_or_default();
        let below = below.split_whitespace().filter_map(|pid| pid.parse().ok());
        found.extend(below.map(|pid| Watched::new(format!("{title}, below"), pid, None)));
    }
    found
}

/// CPU time of this process, up to this moment.
fn own_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// All situations, each for `time`.
pub(super) fn measure(trees: &Trees, cpus: &Cpus, time: Duration) -> Result<Vec<Load>, Failure> {
    stay_on(&cpus.all)?;
    let idle = idle(trees, time);
    stay_on(&[cpus.main])?;
    let tree = &trees.solo;
    let args = TaskArgs::new();
    let one =
        || -> Result<(), Failure> { Ok(tree.worker.run(|orch| Ok(orch.submit_sub(&tree.noop, &args).map(drop)?))?) };
    let loads = vec![
        idle,
        with_child("long_task", "one long task outstanding, its run waited for", tree, || {
            let mut args = TaskArgs::new();
            args.scalar(time.as_nanos() as u64);
            Ok(tree.worker.run(|orch| Ok(orch.submit_sub(&tree.compute, args).map(drop)?))?)
        })?,
        with_child("long_task_unwatched", "one long task outstanding, nobody waits", tree, || {
            let mut args = TaskArgs::new();
            args.scalar(time.as_nanos() as u64);
            let run = tree.worker.submit(|orch| Ok(orch.submit_sub(&tree.compute, args).map(drop)?))?;
            thread::sleep(time);
            Ok(run.wait()?)
        })?,
        with_child("steady", "one run of 1 task after the other", tree, || repeat(time, one))?,
        with_child("paced", "one run of 1 task after every millisecond of sleep", tree, || {
            repeat(time, || {
                thread::sleep(IDLE);
                one()
            })
        })?,
    ];
    stay_on(&cpus.all)?;
    Ok(loads)
}

fn repeat(time: Duration, mut operation: impl FnMut() -> Result<(), Failure>) -> Result<(), Failure> {
    let start = Instant::now();
    while start.elapsed() < time {
        operation()?;
    }
    Ok(())
}

/// Nothing happens anywhere; the thread of this process that sleeps is left out.
fn idle(trees: &Trees, time: Duration) -> Load {
    // What was woken by the last slice goes to sleep first.
    thread::sleep(Duration::from_millis(50));
    let own = gettid().as_raw_pid();
    let background = Watched::new("parent of all, background threads".to_owned(), getpid().as_raw_pid(), Some(own));
    let mut watched = vec![background];
    watched.extend(trees.workers().iter().flat_map(|(name, worker)| descendants(name, worker)));
    let start = Instant::now();
    thread::sleep(time);
    let seconds = start.elapsed().as_secs_f64();
    let processes = watched.into_iter().map(|watched| watched.usage(seconds)).collect();
    Load { id: "idle".to_owned(), title: "every tree of this run is idle".to_owned(), seconds, processes }
}

/// How long the parent and its child have spun so far.
fn spun(tree: &SubTree) -> Vec<Duration> {
    let health = tree.worker.health();
    [health.spinning].into_iter().chain(health.children.iter().map(|child| child.spinning)).collect()
}

/// The parent and the only child of a tree while `work` goes on.
fn with_child(
    id: &str,
    title: &str,
    tree: &SubTree,
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<Load, Failure> {
    let children = descendants("tree", &tree.worker);
    let parent = Watched::new("parent".to_owned(), getpid().as_raw_pid(), None);
    let before = spun(tree);
    let (start, used) = (Instant::now(), own_time());
    work()?;
    // What /proc says of a running thread may be some milliseconds old; its own clock is exact.
    let (used, seconds) = (own_time() - used, start.elapsed().as_secs_f64());
    // The child's last slice is accounted when it sleeps.
    thread::sleep(Duration::from_millis(5));
    let parent = Usage { cpu: used.as_secs_f64() / seconds, ..parent.usage(seconds) };
    let mut processes = vec![parent];
    processes.extend(children.into_iter().map(|child| child.usage(seconds)));
    for (usage, (before, after)) in processes.iter_mut().zip(before.iter().zip(spun(tree))) {
        usage.spinning = Some(after.saturating_sub(*before).as_secs_f64() / seconds);
    }
    Ok(Load { id: id.to_owned(), title: title.to_owned(), seconds, processes })
}
