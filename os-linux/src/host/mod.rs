//! Where a child lives: in a process of its own or in a thread of this one (P-27). Chosen once, when its worker is built;
//! everything else holds a [`Host`] and does not know which.

mod process;
mod thread;

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use laneway_core::lane::ExitCause;

use crate::Error;
use crate::error::Place;
use crate::link::Link;
use crate::memory::Space;
use crate::progress::BellWord;
use crate::sys::lifeline::{AtHangUp, Lifeline};
use crate::sys::pidfd::Pidfd;

pub(crate) use process::Processes;
pub(crate) use thread::Threads;

/// Where the children of a worker live.
///
/// The results are the same. A thread shares everything with its host: what isolation gives is not there.
///
/// | | process | thread |
/// | --- | --- | --- |
/// | a crash, `exit`, a memory error of user code | ends the child | ends the program |
/// | a callable that never returns | is killed | cannot be ended; `close` reports it, its memory is kept |
/// | what a callable changes of what it captured | stays its own | is seen by all |
/// | vendor and user libraries | are loaded in the child | are loaded here, and bind this whole process (C-11, P-26) |
/// | foreign mailboxes, bells, descriptors | closed and unmapped in the child | reachable |
/// | `init` in a process with threads | refused (P-2) | allowed |
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum ChildMode {
    /// Each child is forked into a process of its own.
    #[default]
    Process,
    /// Each child is a thread of the process that calls [`Worker::init`](crate::Worker::init): for debuggers and race detectors,
    /// and for hosts that may not fork. While it exists no worker of this process can fork. A nested worker has a mode of its
    /// own; below a thread child it must be this one too.
    Thread,
}

/// A child to be, as whatever starts it needs to know it.
pub(crate) struct Seat {
    /// `chip 0`, `sub 3`.
    pub(crate) name: String,
    pub(crate) link: Arc<Link>,
    pub(crate) bell: Arc<BellWord>,
    pub(crate) at_hang_up: AtHangUp,
}

/// The life of a child, from its birth to its exit status; called once. What it owns is its user's too.
pub(crate) type Body = Box<dyn FnMut(&Lifeline) -> i32 + Send>;

/// What starts children of one mode.
pub(crate) trait Hosting {
    /// Starts a child.
    fn start(&self, seat: &Seat, body: Body) -> Result<Box<dyn Host>, Error>;

    /// The pidfd that children watch beside their lifeline, if they do.
    fn parent(&self) -> Option<Arc<Pidfd>>;
}

/// A child that was started, as its worker holds it. Dropping it tells the child that its parent is gone.
pub(crate) trait Host: Send {
    fn place(&self) -> Place;

    /// Looks whether it has ended, and takes its end in. Never blocks.
    fn poll(&mut self) -> Option<ExitCause>;

    /// How it ended, once [`Host::poll`] has seen it.
    fn exit(&self) -> Option<ExitCause>;

    /// Whether everything that it started is gone too; asked after its end.
    fn is_alone(&self) -> bool;

    /// Whether processes that it left behind have fallen to this one and still end (P-34): [`Host::poll`] reaps them.
    fn has_orphans(&self) -> bool;

    /// Makes one that is still starting give up.
    fn terminate(&mut self);

    /// Ends it by force, with all that it started, as far as that is possible.
    fn kill(&mut self);

    /// Ends one that lives on although it has let go of what tells of its end.
    fn end_for_letting_go(&mut self);

    /// Whether [`Host::kill`] can end it; what cannot be ended is stuck as soon as it has to be (L-35).
    fn is_mortal(&self) -> bool;

    /// What becomes readable when it ends; `None` where nothing is sure to.
    fn end(&self) -> Option<BorrowedFd<'_>>;

    /// What may become readable when it ends.
    fn hint(&self) -> BorrowedFd<'_>;

    /// What becomes readable when all that it started is gone; `None` where nothing else counts.
    fn rest(&self) -> Option<BorrowedFd<'_>>;

    /// It is given up on: what it uses of its worker's memory outlives the worker (P-12).
    fn outlive(&self, kept: Kept);
}

/// What a child may go on using.
pub(crate) type Kept = (Arc<Link>, Arc<BellWord>, Arc<Space>);
