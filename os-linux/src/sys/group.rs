//! Process groups: each child of the root heads one for its subtree, so that wedged grandchildren die with it (P-6).

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// Where a child stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// It heads a group of its own: children of the root.
    Head,
    /// It stays in its parent's group: children below the root, since a kill of that group would hit the parent itself.
    Parents,
}

impl Group {
    /// Puts the calling process, or a child that has not run yet, where it belongs. Done on both sides of the fork, so that
    /// it is true for both from then on.
    pub(crate) fn settle(self, child: Option<Pid>) {
        match self {
            // Fails only for a child that is gone already.
            Self::Head => drop(rustix::process::setpgid(child, child)),
            Self::Parents => {}
        }
    }
}

/// Kills the group that `head` heads. `head` is a child that is not yet reaped, so the number still is its own (P-16).
pub(super) fn kill(head: Pid) {
    // ESRCH: nobody is left in it but the zombie.
    let _ = rustix::process::kill_process_group(head, Signal::KILL);
}

/// Reaps what was left to this process by a child that is dead, where this process is PID 1 or a subreaper (P-34). `true`
/// once nobody of that group is a child of this process; the number is not to be used again then.
pub(super) fn reap_orphans(head: Pid) -> bool {
    loop {
        match rustix::process::waitid(WaitId::Pgid(Some(head)), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}
