//! What the kernel tells of processes.

use std::time::Duration;

use rustix::process::Pid;

/// Children of a process, zombies included.
pub(crate) fn children_of(parent: Pid) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").expect("/proc is mounted");
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|&pid| stat_field(pid, 1).is_some_and(|ppid| ppid == parent.to_string()))
        .filter_map(Pid::from_raw)
        .collect()
}

/// Direct children of this process.
pub(crate) fn children() -> Vec<i32> {
    let path = format!("/proc/self/task/{}/children", std::process::id());
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Whether a process exists and has not ended (a zombie has).
pub(crate) fn is_alive(pid: i32) -> bool {
    stat_field(pid, 0).is_some_and(|state| state != "Z" && state != "X")
}

/// A field of `/proc/<pid>/stat`, counted from the state (0) on.
fn stat_field(pid: i32, index: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(index).map(str::to_owned)
}

pub(super) fn command_of(pid: Pid) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// Descriptors that this process has open, with what each is, lowest first.
pub(crate) fn descriptors() -> Vec<(i32, String)> {
    let entries = std::fs::read_dir("/proc/self/fd").expect("/proc is mounted");
    let mut open: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned();
            Some((entry.file_name().to_str()?.parse().ok()?, target))
        })
        .filter(|(_, target)| !target.starts_with("/proc/"))
        .collect();
    open.sort_unstable();
    open
}

/// User and system time of a process so far, in ticks of 10 ms.
pub(crate) fn cpu_time(pid: i32) -> Duration {
    let ticks = |index| stat_field(pid, index).expect("it has not been reaped").parse::<u64>().expect("a number");
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// Context switches of every thread of these processes but the calling one, by (process, thread).
pub(crate) fn switches(pids: &[i32]) -> std::collections::BTreeMap<(i32, String), u64> {
    let own = rustix::thread::gettid().as_raw_nonzero().get().to_string();
    let mut found = std::collections::BTreeMap::new();
    for &pid in pids {
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
            let thread = task.file_name().into_string().unwrap();
            let status = std::fs::read_to_string(task.path().join("status")).unwrap();
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            let count = counts.map(|line| line.rsplit('\t').next().unwrap().parse::<u64>().unwrap()).sum();
            if thread != own {
                found.insert((pid, thread), count);
            }
        }
    }
    found
}
