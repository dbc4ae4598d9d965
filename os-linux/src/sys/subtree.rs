//! The subtree pipe: it hangs up when a child and everything that it ever forked are gone (L-27). A child that leaves by itself
//! says its exit status in it, for a host in which somebody else takes that (P-23).

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::time::Timespec;

use super::inventory::Descriptor;
use crate::Error;

/// Both ends, before the fork.
#[derive(Debug)]
pub struct SubtreePipe {
    read: Descriptor,
    write: Descriptor,
}

impl SubtreePipe {
    /// A pipe for one child.
    ///
    /// # Errors
    /// [`Error::System`] where no descriptor is free.
    pub fn new() -> Result<Self, Error> {
        Descriptor::open_pair(|| rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK))
            .map(|(read, write)| Self { read, write })
            .map_err(|errno| Error::system("pipe2", "making a subtree pipe", errno))
    }

    /// What the parent keeps. Closes its copy of the other end.
    #[must_use]
    pub fn into_parent(self) -> SubtreeWatch {
        SubtreeWatch { read: self.read, said: Cell::new(None) }
    }

    /// In the child: holds the other end for the rest of its life and of all its descendants' lives, whoever forks them.
    /// A program that one of them executes does not count: it has none of the shared memory any more.
    #[must_use]
    pub fn join(self) -> LastWord {
        let file = which(&self.write);
        LastWord { fd: self.write.keep_for_life(), file }
    }

    /// The descriptor that the child is given.
    #[must_use]
    pub fn child_fd(&self) -> RawFd {
        self.write.as_raw_fd()
    }
}

/// What a child may say through its end when it leaves.
#[derive(Debug)]
pub struct LastWord {
    fd: RawFd,
    /// Tells the pipe from what code of the user's may have opened under its number.
    file: Option<(u64, u64)>,
}

/// The file behind a descriptor: its device and its number there.
fn which(fd: impl AsFd) -> Option<(u64, u64)> {
    rustix::fs::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

impl LastWord {
    /// Says with which status this process exits now.
    #[expect(unsafe_code, reason = "the descriptor is nobody's: it stays open for what this process forks")]
    pub fn say(self, status: u8) {
        // SAFETY: the number is only used for what is asked of it here, whatever it stands for by now.
        let pipe = unsafe { BorrowedFd::borrow_raw(self.fd) };
        if self.file.is_some() && which(pipe) == self.file {
            // A parent that is gone needs no word.
            let _ = rustix::io::write(pipe, &[status]);
        }
    }
}

/// The parent's end. Ready, with a hang-up, once the subtree is gone; and until somebody looks when the child says its last word.
#[derive(Debug)]
pub struct SubtreeWatch {
    read: Descriptor,
    said: Cell<Option<u8>>,
}

impl SubtreeWatch {
    /// With which status the child said that it leaves, if it has.
    #[must_use]
    pub fn last_word(&self) -> Option<u8> {
        self.listen();
        self.said.get()
    }

    /// Takes a word out, so that the descriptor is ready only for the end from then on.
    fn listen(&self) {
        // Whoever writes more than its status is not believed for ever either.
        let mut words = [0; 16];
        if let Ok(count @ 1..) = rustix::io::read(&self.read, &mut words) {
            self.said.set(words[..count].last().copied());
        }
    }

    /// Whether nobody of the subtree is left. Never blocks.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let mut look = [PollFd::new(&self.read, PollFlags::IN)];
        loop {
            match rustix::event::poll(&mut look, Some(&Timespec::default())) {
                Err(Errno::INTR) => {}
                Err(_) => return false,
                Ok(_) => break,
            }
        }
        if look[0].revents().contains(PollFlags::IN) {
            self.listen();
        }
        look[0].revents().contains(PollFlags::HUP)
    }
}

impl AsFd for SubtreeWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }
}
