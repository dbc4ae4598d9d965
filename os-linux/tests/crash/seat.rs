//! A mailbox, a bell and the process that serves it.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use laneway_core::driver::{EndpointSpec, ExitCause, Label};
use laneway_core::ids::{SubId, WorkerId};
use laneway_core::lane::prepare_region;
use laneway_core::time::Instant;
use laneway_core::wire::Protocol;
use laneway_core::wire::frame::REGION_BYTES;
use laneway_linux::child_entry::{ChildSpec, Started, start};
use laneway_linux::sys::clock;
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::exit::Exit;
use laneway_linux::sys::group::Group;
use laneway_linux::sys::lifeline::{AtHangUp, Lifeline};
use laneway_linux::sys::region::{Region, Sharing};
use laneway_linux::sys::words::MappedWords;
use rustix::event::{PollFd, PollFlags, poll};

use crate::kind::Kind;
use crate::wire::scratch;

/// Whatever takes longer hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(10);

/// The page that all processes of a case share.
pub(crate) fn shared_page() -> (Region, MappedWords) {
    let region = Region::new("test page", scratch::BYTES, Sharing::Tree).expect("a page");
    // SAFETY: cases keep the region for as long as they use the words.
    let words = unsafe { MappedWords::new(&region) };
    (region, words)
}

/// A mailbox, a bell and the process that serves it.
pub(crate) struct Seat {
    pub(crate) kind: Kind,
    pub(crate) words: MappedWords,
    pub(crate) bell: Bell,
    pub(crate) started: Started,
    pub(crate) exit: Option<ExitCause>,
    pub(crate) gone: bool,
    killed: bool,
    /// Whether its end, and that of its subtree, were reported.
    told: (bool, bool),
    _region: Region,
}

impl Seat {
    /// Forks a child that serves a fresh mailbox by `body`.
    pub(crate) fn fork(kind: Kind, parent: &Bell, body: impl FnOnce(MappedWords, &Bell, &Lifeline) -> i32) -> Self {
        let region = Region::new("mailbox", REGION_BYTES, Sharing::Given).expect("a region");
        // SAFETY: the region lies in the seat with the words, and a child keeps it for life.
        let words = unsafe { MappedWords::new(&region) };
        prepare_region(&words);
        let bell = Bell::new().expect("a bell");
        let spec = ChildSpec {
            group: Group::Head,
            at_hang_up: if kind == Kind::Sub { AtHangUp::Die } else { AtHangUp::Look },
            keep_descriptors: &[bell.as_raw_fd(), parent.as_raw_fd()],
            keep_mappings: &[region.start()],
            close_foreign_descriptors: false,
        };
        // SAFETY: every case forks before it starts a thread.
        let started = unsafe { start(&spec, |lifeline| body(words, &bell, &lifeline)) }.expect("a child");
        Self {
            kind,
            words,
            bell,
            started,
            exit: None,
            gone: false,
            killed: false,
            told: (false, false),
            _region: region,
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.started.process.pid()
    }

    pub(crate) fn kill(&mut self) {
        self.killed |= self.started.process.kill();
    }

    /// Looks whether it has ended, and whether all of it has.
    pub(crate) fn look(&mut self) {
        if self.exit.is_none() {
            let pid = self.pid();
            self.exit = self.started.process.poll().map(|exit| match exit {
                Exit::Code(status) => ExitCause::Exited { pid, status },
                Exit::Signal { number, .. } => {
                    ExitCause::Signalled { pid, signal: number, unexpected: !self.killed, memory_limit: None }
                }
                Exit::Unknown => ExitCause::Vanished { pid },
            });
        }
        self.gone |= self.exit.is_some() && self.started.subtree.is_gone();
    }

    /// What [`look`](Self::look) found and was not told before: its end, that of its subtree.
    pub(crate) fn news(&mut self) -> (Option<ExitCause>, bool) {
        self.look();
        let told = std::mem::replace(&mut self.told, (self.exit.is_some(), self.gone));
        (self.exit.filter(|_| !told.0), self.gone && !told.1)
    }
}

/// Sleeps until a child publishes or ends, or until `until`.
pub(crate) fn sleep<'a>(bell: &Bell, seats: impl Iterator<Item = &'a Seat>, until: Instant) {
    let mut fds = vec![PollFd::new(bell, PollFlags::IN)];
    for seat in seats.filter(|seat| !seat.gone) {
        let fd = if seat.exit.is_some() { None } else { seat.started.process.pidfd() };
        fds.push(PollFd::from_borrowed_fd(fd.unwrap_or(seat.started.subtree.as_fd()), PollFlags::IN));
    }
    let time = until.since(clock::now());
    let _ = poll(&mut fds, Some(&time.try_into().expect("a short time")));
    bell.drain();
}

/// What the parent half is told of a child.
pub(crate) fn spec_of(index: usize, seat: &Seat, poison_grace: Duration) -> EndpointSpec {
    let label = match seat.kind {
        Kind::Sub => Label::Sub(SubId(index as u32)),
        _ => Label::Worker(WorkerId::new(index as i32).expect("a small number")),
    };
    EndpointSpec {
        label,
        pid: Some(seat.pid()),
        frames: seat.kind.frames(),
        protocol: Protocol::ChipTensors,
        marks_acceptance: seat.kind != Kind::Sub,
        waitable: true,
        poison_grace,
    }
}

/// What a process has that a level must give back.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Footprint {
    descriptors: usize,
    mappings: usize,
    children: String,
}

impl Footprint {
    pub(crate) fn now() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc is mounted");
        let children = format!("/proc/self/task/{}/children", std::process::id());
        Self {
            descriptors: std::fs::read_dir("/proc/self/fd").expect("/proc is mounted").count(),
            mappings: maps.lines().filter(|line| line.contains("memfd:")).count(),
            children: std::fs::read_to_string(children).expect("/proc is mounted"),
        }
    }
}
