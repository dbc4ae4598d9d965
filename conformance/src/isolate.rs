//! One case in a process of its own: a library is bound for the life of one, and a run may hang for ever (C-15).
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process_group, pidfd_open, setpgid, waitpid,
};
use rustix::stdio::{dup2_stderr, dup2_stdout};

use crate::expect::Violation;
use crate::report::Outcome;

/// Whether this process may fork: it has one thread, so no lock can be held by another.
pub(crate) fn is_possible() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Runs `judge` in a child of this process, which is killed with everything below it once the time is over.
pub(crate) fn run(limit: Duration, judge: impl FnOnce() -> Outcome) -> Outcome {
    match apart(limit, judge) {
        Ok(outcome) => outcome,
        Err(errno) => {
            let (what, expected) = ("a process for the case".to_owned(), "one".to_owned());
            Outcome::Failed(Violation { what, expected, seen: errno.to_string() })
        }
    }
}

fn apart(limit: Duration, judge: impl FnOnce() -> Outcome) -> std::io::Result<Outcome> {
    // Files rather than pipes: nobody has to read while the case writes, and what it leaves behind keeps no one waiting.
    let mut answer = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
    let mut output = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
    std::io::stdout().flush()?;
    std::io::stderr().flush()?;
    // SAFETY: this process has one thread (`is_possible`), so the child can do whatever this one can.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child(&answer, &output, judge);
    }
    let pid = Pid::from_raw(pid.max(0)).ok_or_else(std::io::Error::last_os_error)?;
    // Both sides do it, so that it is done before either goes on. It fails only if the child is through already.
    let _ = setpgid(Some(pid), Some(pid));
    let in_time = ends_within(pid, limit)?;
    // What a case forgets below it goes with it; the number is its own until it is reaped.
    let _ = kill_process_group(pid, Signal::KILL);
    let status = waitpid(Some(pid), WaitOptions::empty())?.map(|(_, status)| status);
    let mut text = String::new();
    answer.rewind()?;
    answer.read_to_string(&mut text)?;
    if in_time && let Ok(outcome) = serde_json::from_str(&text) {
        return Ok(outcome);
    }
    let mut printed = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut printed)?;
    Ok(lost(limit, in_time, status, &String::from_utf8_lossy(&printed)))
}

/// A case that gave no answer.
fn lost(limit: Duration, in_time: bool, status: Option<WaitStatus>, printed: &str) -> Outcome {
    let how = match status {
        _ if !in_time => format!("killed after {} s: something never completed (C-15)", limit.as_secs_f64()),
        Some(status) if status.signaled() => format!("signal {}", status.terminating_signal().unwrap_or_default()),
        Some(status) => format!("exit status {}", status.exit_status().unwrap_or_default()),
        None => "no status".to_owned(),
    };
    let seen = if printed.is_empty() { how } else { format!("{how}; it printed: {}", printed.trim_end()) };
    let (what, expected) = ("the process of the case".to_owned(), "that it ends by itself, with an answer".to_owned());
    Outcome::Failed(Violation { what, expected, seen })
}

/// The life of the child.
fn child(mut answer: &File, output: &File, judge: impl FnOnce() -> Outcome) -> ! {
    // Where one of these fails the case still counts, it is only less tidy.
    let _ = setpgid(None, None);
    let _ = dup2_stdout(output);
    let _ = dup2_stderr(output);
    let outcome = judge();
    let written = serde_json::to_vec(&outcome).map_err(std::io::Error::from).and_then(|text| answer.write_all(&text));
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // Not `exit`: what a library registered to run there is no part of the case, and may hang.
    // SAFETY: ends this process and touches no memory of it.
    unsafe { libc::_exit(i32::from(written.is_err())) }
}

fn ends_within(pid: Pid, limit: Duration) -> std::io::Result<bool> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let end = Instant::now() + limit;
    loop {
        let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).unwrap_or_default();
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            answer => return Ok(answer? > 0),
        }
    }
}
