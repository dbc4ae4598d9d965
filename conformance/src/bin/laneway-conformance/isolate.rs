//! One case in a process of its own: a library is bound for the life of one, and a run may hang for ever (C-15).

use std::env;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Runs this program again for one case. The error says what it printed, or that it had to be killed.
pub(crate) fn run(case: &str, timeout: Duration) -> Result<(), String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(env::args_os().skip(1))
        .args(["--case", case])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    // Read while it runs, or a talkative one would wait for us.
    let reader = child.stderr.take().map(|mut errors| {
        thread::spawn(move || {
            let mut text = Vec::new();
            // What could be read before an error is what there is to show.
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let ended = ends_within(&child, timeout);
    if !ended {
        // It is our child and not reaped, so the number is its own.
        child.kill().map_err(|error| error.to_string())?;
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let text = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
    match (ended, status.success()) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("{status}\n{text}")),
        (false, _) => Err(format!("killed after {} s: something never completed (C-15)\n{text}", timeout.as_secs())),
    }
}

fn ends_within(child: &Child, timeout: Duration) -> bool {
    let Ok(pidfd) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else { return true };
    let end = Instant::now() + timeout;
    loop {
        let left = Timespec::try_from(end.saturating_duration_since(Instant::now())).unwrap_or_default();
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&left)) {
            Err(rustix::io::Errno::INTR) => {}
            answer => return answer != Ok(0),
        }
    }
}
