//! Processes as the kernel shows them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::trouble::Trouble;

/// Threads of one process whose children are looked through, at most.
const MOST_THREADS: usize = 1 << 10;

/// Children of one process that are looked through, at most.
const MOST_CHILDREN: usize = 1 << 14;

/// A process, as it was a moment ago.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// What it runs.
    pub(crate) program: String,
    pub(crate) state: &'static str,
    pub(crate) uid: u32,
    /// The process of this thread; of a process, its own id.
    group: i32,
    parent: i32,
    /// Its ids, from this process's namespace down to its own.
    ids: Vec<i32>,
}

impl Process {
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        let mut text = String::new();
        File::open(format!("/proc/{pid}/status"))?.take(1 << 16).read_to_string(&mut text)?;
        let field = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(":\t"));
            lines.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
        };
        let number = |name: &str| field(name).split_whitespace().next().and_then(|word| word.parse().ok());
        Ok(Self {
            pid,
            program: field("Name").to_owned(),
            state: state(field("State")),
            uid: field("Uid").split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or_default(),
            group: number("Tgid").unwrap_or(pid),
            parent: number("PPid").unwrap_or_default(),
            ids: field("NSpid").split_whitespace().filter_map(|word| word.parse().ok()).collect(),
        })
    }

    /// What it calls itself, in its own namespace.
    pub(crate) fn own_id(&self) -> i32 {
        self.ids.last().copied().unwrap_or(self.pid)
    }

    /// Its child that it calls `id`, if that is one still. A board may say anything; the kernel knows.
    pub(crate) fn child(&self, id: i32) -> Option<Self> {
        let depth = self.ids.len().saturating_sub(1);
        let fits = |found: &Self| found.parent == self.pid && found.ids.get(depth).is_none_or(|own| *own == id);
        if depth == 0 {
            return Self::of(id).ok().filter(fits);
        }
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid)).ok()?.take(MOST_THREADS).flatten();
        let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let pids = lists.flat_map(|list| list.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>());
        pids.take(MOST_CHILDREN).filter_map(|pid| Self::of(pid).ok()).find(fits)
    }
}

/// A word for a line such as `T (stopped)`.
fn state(line: &str) -> &'static str {
    match line.chars().next() {
        Some('R') => "running",
        Some('S' | 'I') => "sleeping",
        Some('D') => "uninterruptible",
        Some('T') => "stopped",
        Some('t') => "traced",
        Some('Z' | 'X') => "ended",
        _ => "unknown",
    }
}

/// The process that is looked at; if it ends, nothing else gets looked at in its place.
pub(crate) struct Target {
    pid: i32,
    pidfd: OwnedFd,
}

impl Target {
    pub(crate) fn open(pid: i32) -> Result<Self, Trouble> {
        let process = Process::of(pid).map_err(|error| unseen(pid, &error))?;
        if process.group != pid {
            return Err(Trouble::Thread { thread: pid, process: process.group });
        }
        let number = Pid::from_raw(pid).ok_or(Trouble::Missing(pid))?;
        let pidfd = pidfd_open(number, PidfdFlags::empty()).map_err(|error| unseen(pid, &error.into()))?;
        Ok(Self { pid, pidfd })
    }

    /// As it is now.
    pub(crate) fn process(&self) -> Result<Process, Trouble> {
        let process = Process::of(self.pid).map_err(|error| unseen(self.pid, &error))?;
        self.wait(Duration::ZERO)?;
        Ok(process)
    }

    /// Waits for so long, or until it ends, which is an error.
    pub(crate) fn wait(&self, period: Duration) -> Result<(), Trouble> {
        let end = Instant::now() + period;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut fds, left.try_into().ok().as_ref()) {
                Err(Errno::INTR) => {}
                Ok(0) => return Ok(()),
                Ok(_) => return Err(Trouble::Ended(self.pid)),
                Err(error) => {
                    return Err(Trouble::Other(format!("process {} cannot be waited for: {error}", self.pid)));
                }
            }
        }
    }
}

fn unseen(pid: i32, error: &io::Error) -> Trouble {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::SRCH) => Trouble::Missing(pid),
        _ => Trouble::Other(format!("process {pid} cannot be found: {error}")),
    }
}
