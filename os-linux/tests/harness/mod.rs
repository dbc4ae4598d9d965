//! Runs cases that fork. Each gets a fresh, single-threaded process of its own: forking a threaded test runner is unsound.
//!
//! A test binary with `harness = false` lists its cases and hands them over:
//!
//! ```ignore
//! mod harness;
//! fn main() -> std::process::ExitCode {
//!     harness::main(harness::cases![a_killed_child_is_reported, nothing_is_left_after_close])
//! }
//! ```
//!
//! [`main_in_both_modes`] runs cases twice: with children that are processes, and as `<name> [threads]` with children that are
//! threads (P-27). Such cases build their workers with [`builder!`].
//!
//! A case passes if its function returns. It fails if it panics or dies, takes longer than [`LIMIT`], or leaves a process
//! behind: the runner is a subreaper, so whatever a case orphans lands here and is found.
// Every test binary compiles this module anew and uses a part of it.
#![allow(dead_code)]

mod channel;
mod processes;

use std::env;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process_group, pidfd_open, set_child_subreaper,
};

#[allow(unused_imports, reason = "not every test binary has something to send")]
pub(crate) use channel::Channel;
pub(crate) use processes::*;

/// One case: its name is that of its function.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    /// What is printed and filtered by.
    pub(crate) name: &'static str,
    /// Runs in a process of its own.
    pub(crate) run: fn(),
}

/// The cases of a binary, from the names of their functions.
#[allow(unused_macros)]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        &[$(harness::Case { name: stringify!($name), run: $name }),*]
    };
}
#[allow(unused_imports)]
pub(crate) use cases;

/// How long one case may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// How long what a case left behind may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// How often a case is tried that says it was too late: on a busy machine one measurement of a time proves little.
const TRIES: u32 = 3;

/// Exit status of a case that measured a time over its limit.
const LATE: i32 = 75;

/// Names the case to the process that runs it.
const CASE: &str = "LANEWAY_TEST_CASE";

/// Tells one run of a case from others, which may be at work at the same time.
pub(crate) const RUN: &str = "LANEWAY_TEST_RUN";

/// What follows the name of a case whose children are threads.
const THREADS: &str = " [threads]";

/// Whether the children of this case are threads.
pub(crate) fn in_threads() -> bool {
    env::var(CASE).is_ok_and(|name| name.ends_with(THREADS))
}

/// Describes a worker whose children live where this case wants them.
// A macro, since not every crate that has cases has workers.
#[allow(unused_macros)]
macro_rules! builder {
    () => {
        laneway_linux::Worker::builder().child_mode(match $crate::harness::in_threads() {
            true => laneway_linux::ChildMode::Thread,
            false => laneway_linux::ChildMode::Process,
        })
    };
}
#[allow(unused_imports)]
pub(crate) use builder;

/// Runs what the command line asks for, as `cargo test` words it: filters, `--exact`, `--skip`, `--list`, `--nocapture`.
pub(crate) fn main(cases: &[Case]) -> ExitCode {
    choose(cases.iter().map(|case| (case.name.to_owned(), *case)).collect())
}

/// As [`main`]; all but the last cases also with children that are threads.
pub(crate) fn main_in_both_modes(both: &[Case], processes_alone: &[Case]) -> ExitCode {
    let forked = both.iter().chain(processes_alone).map(|case| (case.name.to_owned(), *case));
    let threads = both.iter().map(|case| (format!("{}{THREADS}", case.name), *case));
    choose(forked.chain(threads).collect())
}

fn choose(cases: Vec<(String, Case)>) -> ExitCode {
    if let Ok(name) = env::var(CASE) {
        let (_, case) = cases.iter().find(|(known, _)| *known == name).expect("the runner names a case of this binary");
        (case.run)();
        return ExitCode::SUCCESS;
    }
    let wanted = Wanted::parse(env::args().skip(1));
    let chosen: Vec<_> = cases.iter().filter(|(name, _)| wanted.holds(name)).map(|(name, _)| name).collect();
    if wanted.list {
        chosen.iter().for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    set_child_subreaper(Some(getpid())).expect("the runner adopts what cases leave behind");
    let mut failed = 0;
    for name in &chosen {
        let start = Instant::now();
        match tried(name, wanted.nocapture) {
            Ok(()) => println!("case {name} ... ok ({:.2} s)", start.elapsed().as_secs_f64()),
            Err(text) => {
                failed += 1;
                println!("case {name} ... FAILED: {text}");
            }
        }
    }
    println!("{} passed, {failed} failed", chosen.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The command line.
#[derive(Default)]
struct Wanted {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
    nocapture: bool,
    /// `--ignored`: only cases that are not run by default, of which there are none.
    none: bool,
}

impl Wanted {
    fn parse(mut args: impl Iterator<Item = String>) -> Self {
        let mut wanted = Self::default();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--list" => wanted.list = true,
                "--exact" => wanted.exact = true,
                "--nocapture" | "--no-capture" => wanted.nocapture = true,
                "--ignored" => wanted.none = true,
                "--skip" => wanted.skip.extend(args.next()),
                // Options of the usual runner that take a value.
                "--test-threads" | "--format" | "--color" | "--logfile" | "--shuffle-seed" | "-Z" => drop(args.next()),
                option if option.starts_with('-') => {}
                _ => wanted.filters.push(arg),
            }
        }
        wanted
    }

    fn holds(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        !self.none && (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skip.iter().any(fits)
    }
}

/// Ends this case if something took too long; the runner then measures again in a fresh process, and fails the case if it is
/// never in time.
pub(crate) fn in_time(what: &str, took: Duration, limit: Duration) {
    if took >= limit {
        eprintln!("{what} took {took:?}, the limit is {limit:?}");
        std::process::exit(LATE);
    }
}

/// Runs one case, again while it is late.
fn tried(case: &str, nocapture: bool) -> Result<(), String> {
    let mut tries = 1;
    loop {
        match run(case, nocapture) {
            Err((Some(LATE), _)) if tries < TRIES => tries += 1,
            result => return result.map_err(|(_, text)| text),
        }
    }
}

/// Runs one case; the error is its exit status, what went wrong and what it printed.
fn run(case: &str, nocapture: bool) -> Result<(), (Option<i32>, String)> {
    // A file rather than a pipe: a process that is left behind cannot keep the reader waiting.
    let mut output = File::from(memfd_create("output", MemfdFlags::CLOEXEC).expect("a file for the output"));
    let mut command = Command::new(env::current_exe().expect("the path of this binary"));
    let began = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_nanos();
    command.env(CASE, case).env(RUN, format!("{}.{began}", getpid())).stdin(Stdio::null()).process_group(0);
    if !nocapture {
        let copy = || Stdio::from(output.try_clone().expect("a copy of the descriptor"));
        command.stdout(copy()).stderr(copy());
    }
    let mut child = command.spawn().expect("the binary runs itself");
    let pid = Pid::from_child(&child);
    let ended = wait_for_exit(pid, LIMIT);
    if !ended {
        // It leads its group and is not reaped, so the number is its own.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait().expect("the case is our child");
    let left = reap_orphans();
    let problem = match (ended, status.code(), status.signal()) {
        (false, ..) => format!("it took longer than {} s", LIMIT.as_secs()),
        (true, Some(0), _) if left.is_empty() => return Ok(()),
        (true, Some(0), _) => format!("it left processes behind: {}", left.join(", ")),
        (true, Some(code), _) => format!("exit status {code}"),
        (true, None, signal) => format!("signal {}", signal.unwrap_or_default()),
    };
    let mut text = Vec::new();
    let _ = output.rewind().and_then(|()| output.read_to_end(&mut text));
    Err((status.code(), format!("{problem}\n{}", String::from_utf8_lossy(&text))))
}

/// Waits for the end of a child without reaping it; `false` if the time was over.
pub(crate) fn wait_for_exit(pid: Pid, limit: Duration) -> bool {
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).expect("a pidfd of an unreaped child");
    is_ready_within(pidfd.as_fd(), limit)
}

/// Waits until a descriptor is readable or hung up; `false` if the time was over.
pub(crate) fn is_ready_within(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        match poll(&mut fds, Some(&left.try_into().expect("a time that the kernel can wait"))) {
            Err(rustix::io::Errno::INTR) => {}
            answer => return answer.expect("poll") > 0,
        }
    }
}

/// Reaps what a case left behind; names what had to be killed.
fn reap_orphans() -> Vec<String> {
    let end = Instant::now() + GRACE;
    let mut killed = Vec::new();
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => {
                for pid in children_of(getpid()) {
                    killed.push(format!("{pid} ({})", command_of(pid)));
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                    let _ = wait_for_exit(pid, GRACE);
                }
            }
            Err(_) => return killed,
        }
    }
}

/// Living processes of this case, without this one, whoever their parents are: they carry the names of the case and of its run in
/// their environment.
pub(crate) fn descendants() -> Vec<i32> {
    let tag = |name| env::var(name).ok().map(|value| format!("{name}={value}"));
    let tags: Vec<_> = [CASE, RUN].into_iter().filter_map(tag).collect();
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let tagged = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let entries: Vec<_> = environment.split(|byte| *byte == 0).collect();
        tags.iter().all(|tag| entries.contains(&tag.as_bytes()))
    };
    pids.filter(|pid| *pid != std::process::id() as i32 && is_alive(*pid)).filter(tagged).collect()
}
