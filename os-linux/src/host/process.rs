//! Children that are processes: forked, watched by pidfd and pipes, killed by signal, reaped.

use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::Arc;

use laneway_core::lane::ExitCause;
use rustix::process::Signal;

use super::{Body, Host, Hosting, Kept, Seat};
use crate::Error;
use crate::child_entry::{self, ChildSpec};
use crate::config::Config;
use crate::error::Place;
use crate::sys::child::ChildProcess;
use crate::sys::exit::Exit;
use crate::sys::group::Group;
use crate::sys::lifeline::LifelineHold;
use crate::sys::memory_limit::memory_limit;
use crate::sys::pidfd::Pidfd;
use crate::sys::subtree::SubtreeWatch;
use crate::sys::threads::{self, Forking};

/// Forks children. As long as it exists no thread child of this process begins.
pub(crate) struct Processes {
    group: Group,
    close_foreign_descriptors: bool,
    parent: Option<Arc<Pidfd>>,
    memory_limit: Option<u64>,
    _forking: Forking,
}

impl Processes {
    /// Refuses to fork in a process where that is not safe (P-2).
    pub(crate) fn new(config: &Config, group: Group) -> Result<Self, Error> {
        let forking = Forking::begin()?;
        let foreign = threads::foreign_threads()?;
        if foreign > 0 && !config.allow_foreign_threads {
            return Err(Error::ForeignThreads { count: foreign });
        }
        Ok(Self {
            group,
            close_foreign_descriptors: config.close_foreign_descriptors,
            parent: Pidfd::of_this_process().ok().map(Arc::new),
            memory_limit: memory_limit(),
            _forking: forking,
        })
    }
}

impl Hosting for Processes {
    #[expect(unsafe_code, reason = "foreign threads were counted by `new`")]
    fn start(&self, seat: &Seat, mut body: Body) -> Result<Box<dyn Host>, Error> {
        let descriptors: Vec<RawFd> = seat.link.child_descriptors(self.parent.as_deref());
        let spec = ChildSpec {
            group: self.group,
            at_hang_up: seat.at_hang_up,
            keep_descriptors: &descriptors,
            keep_mappings: &seat.link.child_mappings(&seat.bell),
            close_foreign_descriptors: self.close_foreign_descriptors,
        };
        // Borrowed: the child never drops it, so destructors of what its user's closures own run in the parent alone.
        let live = |lifeline| body(&lifeline);
        // SAFETY: `new` has counted foreign threads, or the user vouched for them; this library's are parked by the fork, and
        // `self` keeps thread children from beginning.
        let started = unsafe { child_entry::start(&spec, live) }?;
        let child_entry::Started { process, lifeline, subtree } = started;
        Ok(Box::new(Process {
            process,
            lifeline,
            subtree,
            killed: false,
            let_go: false,
            memory_limit: self.memory_limit,
        }))
    }

    fn parent(&self) -> Option<Arc<Pidfd>> {
        self.parent.clone()
    }
}

/// A child in a process of its own.
struct Process {
    process: ChildProcess,
    lifeline: LifelineHold,
    subtree: SubtreeWatch,
    /// Whether this worker sent it a SIGKILL.
    killed: bool,
    /// Whether that was because it had let go of its pipes.
    let_go: bool,
    /// Known beforehand: the time between a death and its report is short.
    memory_limit: Option<u64>,
}

impl Process {
    fn cause(&self, exit: Exit) -> ExitCause {
        let pid = self.process.pid();
        match exit {
            Exit::Code(status) => ExitCause::Exited { pid, status },
            Exit::Signal { .. } if self.let_go && exit.is_killed() => ExitCause::LetGo { pid },
            Exit::Signal { number: signal, .. } => {
                let unexpected = !self.killed;
                let memory_limit = self.memory_limit.filter(|_| unexpected && exit.is_killed());
                ExitCause::Signalled { pid, signal, unexpected, memory_limit }
            }
            Exit::Unknown => match self.subtree.last_word() {
                Some(status) => ExitCause::Exited { pid, status: status.into() },
                None => ExitCause::Vanished { pid },
            },
        }
    }
}

impl Host for Process {
    fn place(&self) -> Place {
        Place::Process(self.process.pid())
    }

    fn poll(&mut self) -> Option<ExitCause> {
        // Asked again also after its end: as PID 1 or subreaper this process reaps what it left behind (P-34).
        self.process.poll().map(|exit| self.cause(exit))
    }

    fn exit(&self) -> Option<ExitCause> {
        self.process.exit().map(|exit| self.cause(exit))
    }

    fn is_alone(&self) -> bool {
        self.subtree.is_gone()
    }

    fn has_orphans(&self) -> bool {
        self.process.has_orphans()
    }

    fn terminate(&mut self) {
        self.process.signal(Signal::TERM);
    }

    fn kill(&mut self) {
        self.killed |= self.process.kill();
    }

    fn end_for_letting_go(&mut self) {
        // One that is ending may take long over the last of its descriptors, a device's for one.
        if !self.let_go && !self.process.is_ending() {
            self.let_go = self.process.kill();
        }
    }

    fn is_mortal(&self) -> bool {
        true
    }

    fn end(&self) -> Option<BorrowedFd<'_>> {
        self.process.pidfd()
    }

    fn hint(&self) -> BorrowedFd<'_> {
        // It loses its reader with the child, a moment before that can be reaped.
        self.lifeline.as_fd()
    }

    fn rest(&self) -> Option<BorrowedFd<'_>> {
        Some(self.subtree.as_fd())
    }

    fn outlive(&self, kept: Kept) {
        // When it ends nobody is left who would see that.
        std::mem::forget(kept);
    }
}
