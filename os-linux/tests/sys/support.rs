//! What the cases share.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, RawFd};
use std::time::{Duration, Instant};

use laneway_linux::child_entry::{ChildSpec, Started, start};
use laneway_linux::sys::exit::Exit;
use laneway_linux::sys::group::Group;
use laneway_linux::sys::lifeline::{AtHangUp, Lifeline};

use crate::harness::{self, LIMIT, is_ready_within};

/// A child as the root of a tree starts it.
pub(crate) const HEAD: ChildSpec<'static> = ChildSpec {
    group: Group::Head,
    at_hang_up: AtHangUp::Die,
    keep_descriptors: &[],
    keep_mappings: &[],
    close_foreign_descriptors: false,
};

/// A child below the root.
pub(crate) const BELOW: ChildSpec<'static> = ChildSpec { group: Group::Parents, ..HEAD };

/// How soon a tree is gone after its parent was killed (L-32, P-14).
pub(crate) const GONE_WITHIN: Duration = Duration::from_millis(100);

pub(crate) fn child(spec: &ChildSpec<'_>, body: impl FnOnce(Lifeline) -> i32) -> Started {
    // SAFETY: every case runs in a process of its own that has no foreign thread, or is about one that holds no lock.
    unsafe { start(spec, body) }.expect("a child")
}

/// Waits for the end of a child and reaps it.
pub(crate) fn exit_of(started: &mut Started) -> Exit {
    loop {
        if let Some(exit) = started.process.poll() {
            return exit;
        }
        // Where nobody has to reap a child it may be gone before a pidfd can be opened.
        let end = started.process.pidfd().unwrap_or(started.subtree.as_fd());
        assert!(is_ready_within(end, LIMIT / 2), "the child lives on");
        // Takes the last word out, which is ready before the end.
        let _ = started.subtree.is_gone();
    }
}

/// Sleeps for ever in a system call.
pub(crate) fn sleep_for_ever() -> ! {
    loop {
        let (read, _write) = rustix::pipe::pipe().expect("a pipe");
        let _ = rustix::io::read(&read, &mut [0; 1]);
    }
}

/// Waits until the subtree of a child is gone.
pub(crate) fn assert_subtree_ends(started: &Started, within: Duration) {
    let start = Instant::now();
    // Ready also for the child's last word.
    while !started.subtree.is_gone() {
        let left = within.saturating_sub(start.elapsed());
        if !is_ready_within(started.subtree.as_fd(), left) {
            harness::in_time("the end of the subtree", within, within);
        }
    }
}

/// What `/proc/self/status` says under a name.
pub(crate) fn status(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a known name").trim().to_owned()
}

/// Whether a descriptor is open.
pub(crate) fn is_open(fd: RawFd) -> bool {
    std::fs::read_link(format!("/proc/self/fd/{fd}")).is_ok()
}

/// Whether an address is mapped.
pub(crate) fn is_mapped(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
    maps.lines().filter_map(|line| line.split(' ').next()?.split_once('-')).any(|(from, to)| {
        let number = |text| usize::from_str_radix(text, 16).expect("an address");
        (number(from)..number(to)).contains(&address)
    })
}
