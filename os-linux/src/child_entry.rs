//! From the fork to the first line of a child's own code, and from its last line to its end.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::{env, fs};

use crate::Error;
use crate::sys::child::ChildProcess;
use crate::sys::farewell::Leaving;
use crate::sys::fork::{Fork, flush_streams, fork};
use crate::sys::group::Group;
use crate::sys::lifeline::{AtHangUp, Lifeline, LifelineHold, LifelinePipe};
use crate::sys::lineage::begin_generation;
use crate::sys::region::unmap_foreign;
use crate::sys::subtree::{SubtreePipe, SubtreeWatch};
use crate::sys::{inventory, panics, signals};

/// Exit code of a child whose own code panicked outside everything that catches panics; as the Rust runtime has it.
pub const EXIT_PANIC: i32 = 101;

/// Libraries that start a thread for every CPU unless they are told not to; a child is one of many on the machine (P-2).
const THREAD_COUNTS: [&str; 4] = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"];

/// What a child is given, and how it ends when its parent does.
#[derive(Clone, Copy, Debug)]
pub struct ChildSpec<'a> {
    /// Whether it heads a process group.
    pub group: Group,
    /// What the end of its parent does to it.
    pub at_hang_up: AtHangUp,
    /// Descriptors of this library that it keeps: its bells, the parent's pidfd.
    pub keep_descriptors: &'a [RawFd],
    /// Start addresses of the private regions and pages that it keeps: its own mailbox, the bell page.
    pub keep_mappings: &'a [usize],
    /// Whether it also closes descriptors that are not this library's, but for the standard streams (P-24).
    pub close_foreign_descriptors: bool,
}

/// A child that was just started, as its parent holds it.
#[derive(Debug)]
pub struct Started {
    /// The process.
    pub process: ChildProcess,
    /// Dropping it tells the child that its parent is gone.
    pub lifeline: LifelineHold,
    /// Tells when the child and all its descendants are gone.
    pub subtree: SubtreeWatch,
}

impl Leaving for Started {
    fn is_gone(&mut self) -> bool {
        self.process.poll().is_some() && self.subtree.is_gone() && !self.process.has_orphans()
    }

    fn kill(&mut self) {
        self.process.kill();
    }

    fn watch(&self) -> Option<BorrowedFd<'_>> {
        // Once it was reaped its subtree is what is waited for; before, that pipe may hang up a moment too early.
        if self.process.exit().is_some() { Some(self.subtree.as_fd()) } else { self.process.pidfd() }
    }
}

/// Starts a child: forks, and in the child runs `body` with its lifeline and leaves with the code that it returns.
///
/// In the child, before `body`: the process group (both sides set it), everything that was made for others closed and
/// unmapped (P-24, P-31), default signal dispositions and an empty mask (P-30), the lifeline armed (L-32), one thread for
/// numeric libraries (P-2), and a panic hook of its own. It never returns into the frames of the parent (P-3).
///
/// # Safety
/// As for [`fork`]: no foreign thread holds a lock that the child needs.
///
/// # Errors
/// [`Error::System`], in the parent alone; nothing is left then.
pub unsafe fn start(spec: &ChildSpec<'_>, body: impl FnOnce(Lifeline) -> i32) -> Result<Started, Error> {
    let (lifeline, subtree) = (LifelinePipe::new()?, SubtreePipe::new()?);
    // SAFETY: handed on to the caller; the child goes to `enter`, which does not return.
    match unsafe { fork() }? {
        // SAFETY: this is the child of the line above.
        Fork::Child => unsafe { enter(spec, lifeline, subtree, body) },
        Fork::Parent(pid) => Ok(Started {
            process: ChildProcess::adopt(pid, spec.group),
            lifeline: lifeline.into_parent(),
            subtree: subtree.into_parent(),
        }),
    }
}

/// # Safety
/// The process is a child that was forked a moment ago: it is a single thread, and nothing that its parent's frames own is
/// going to be used in it.
unsafe fn enter(
    spec: &ChildSpec<'_>,
    lifeline: LifelinePipe,
    subtree: SubtreePipe,
    body: impl FnOnce(Lifeline) -> i32,
) -> ! {
    let given = subtree.child_fd();
    let last_word = subtree.join();
    let code = panics::catch(|| {
        begin_generation();
        spec.group.settle(None);
        signals::reset_dispositions();
        panics::install_quiet_hook();
        let kept = [lifeline.child_fd(), given];
        let mut lifeline = lifeline.into_child();
        // SAFETY: promised by the caller.
        unsafe { disown(spec, &kept) };
        // Armed only now: while this process held a write end, its own pipe could not hang up. It blocks what it sends
        // where the child looks for itself, and everything is blocked still.
        let orphan = lifeline.arm(spec.at_hang_up);
        signals::block_only(spec.at_hang_up.blocked());
        match orphan {
            Ok(false) => {}
            Ok(true) => return 0,
            Err(error) => {
                panics::complain(&error.to_string());
                return EXIT_PANIC;
            }
        }
        for name in THREAD_COUNTS.into_iter().filter(|name| env::var_os(name).is_none()) {
            // SAFETY: nothing else runs in this process that could read the environment meanwhile.
            unsafe { env::set_var(name, "1") };
        }
        body(lifeline)
    });
    let code = code.unwrap_or_else(|text| {
        panics::complain(&format!("panic: {text}"));
        EXIT_PANIC
    });
    flush_streams();
    // As the kernel keeps it.
    last_word.say(code as u8);
    // SAFETY: ends the process without running what the parent registered for its own end.
    unsafe { libc::_exit(code) }
}

/// Ends a child that can serve no more, and says why. Destructors do not run: what they would give back is
/// somebody else's, or gone.
#[cold]
pub(crate) fn leave(why: &str, code: i32) -> ! {
    panics::complain(why);
    flush_streams();
    // SAFETY: ends the process without running what the parent registered for its own end.
    unsafe { libc::_exit(code) }
}

/// Ends what a fork in code of the user's made of this process, where both sides come back. It holds a copy of what was buffered and
/// of every lock, so nothing is flushed, and the line is written as it is.
#[cold]
pub(crate) fn leave_copy() -> ! {
    let text = format!(
        "laneway child {}: code that ran in a child forked, and both sides returned: only the child may, a copy of it calls _exit or exec\n",
        std::process::id()
    );
    // SAFETY: only written to, if it is open at all.
    let _ = rustix::io::write(unsafe { BorrowedFd::borrow_raw(2) }, text.as_bytes());
    // SAFETY: ends the process without running what the parent registered for its own end.
    unsafe { libc::_exit(EXIT_PANIC) }
}

/// Closes and unmaps what this child was not given. `kept` are the descriptors of its own pipes.
///
/// # Safety
/// As for [`enter`].
unsafe fn disown(spec: &ChildSpec<'_>, kept: &[RawFd]) {
    let keep = [spec.keep_descriptors, kept].concat();
    let (mut close, unmap) = inventory::disown(&keep, spec.keep_mappings);
    if spec.close_foreign_descriptors {
        let streams = 0..=2;
        close = open_descriptors().filter(|fd| !streams.contains(fd) && !keep.contains(fd)).collect();
    }
    for fd in close {
        // SAFETY: owned by a value in a frame of the parent, which this process never returns to.
        unsafe { libc::close(fd) };
    }
    for (start, len) in unmap {
        // SAFETY: as above, and it was listed.
        unsafe { unmap_foreign(start, len) };
    }
}

/// All descriptors that are open, and the one of the listing, which no longer is.
fn open_descriptors() -> impl Iterator<Item = RawFd> {
    let names: Vec<_> =
        fs::read_dir("/proc/self/fd").into_iter().flatten().flatten().map(|entry| entry.file_name()).collect();
    names.into_iter().filter_map(|name| name.to_str()?.parse().ok())
}
