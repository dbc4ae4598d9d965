//! A child half in a process of its own, over a device that follows its behaviours.

use std::fmt::Write as _;
use std::mem::offset_of;
use std::rc::Rc;
use std::time::Duration;

use laneway_core::mailbox::Words;
use laneway_core::serve::{
    Child, ChildSpec, Failure, Launch, ParentBell, Poll, PrepareError, Report, Runner, Served, Task, publish_ready,
};
use laneway_core::wire::control::ControlRequest;
use laneway_core::wire::frame::{FRAME_BYTES, TRAILER};
use laneway_core::wire::{Digest, FrameState, Protocol, Trailer, extension};
use laneway_linux::sys::eventfd::Bell;
use laneway_linux::sys::lifeline::Lifeline;
use laneway_linux::sys::park::{Backoff, Bed, Woke};
use laneway_linux::sys::words::MappedWords;

use crate::kind::{FAILS, Kind, UNKNOWN};
use crate::runs::Runs;
use crate::wire::{Phase, Wire, scratch};

/// A task that runs until the gate opens.
pub(crate) const HOLDS: u8 = 202;
/// A task that ends the process with status 23.
pub(crate) const EXITS: u8 = 203;

/// `Malloc` of so many bytes is served only once the gate for controls opens.
pub(crate) const SLOW_CONTROL: u64 = 4_711;

/// The device of a child. Each call of it begins and ends with a place to die, and panics where the child half breaks a rule
/// of the run lane.
pub(crate) struct Device {
    pub(crate) kind: Kind,
    pub(crate) wire: Rc<Wire>,
    runs: Runs,
    /// Polls that the launched run still takes, or [`HOLDS`].
    left: u8,
}

impl Device {
    pub(crate) fn new(kind: Kind, wire: Rc<Wire>) -> Self {
        Self { kind, wire, runs: Runs::default(), left: 0 }
    }

    fn wait_for(&self, gate: usize) {
        // A word is all that a process that may be killed anywhere shares with the test: nothing rings for it.
        while self.wire.scratch.read(gate) == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

impl Runner for Device {
    type Token = u32;

    fn knows(&mut self, digest: &Digest) -> bool {
        digest.0[0] != UNKNOWN
    }

    fn prepares_concurrently(&self) -> bool {
        self.kind == Kind::Concurrent
    }

    fn prepare(&mut self, _: &Task<'_>, _: &mut Report) -> Result<u32, PrepareError> {
        self.wire.clone().during(Phase::Prepare, || Ok(self.runs.prepare(self.kind == Kind::Concurrent)))
    }

    fn launch(&mut self, token: u32, task: &Task<'_>, report: &mut Report) -> Result<Launch, Failure> {
        self.wire.clone().during(Phase::Launch, || {
            self.runs.check_launch(token);
            let behaviour = task.digest.0[0];
            if behaviour == FAILS {
                let _ = write!(report, "{} said no", task.identity);
                return Err(Failure::MESSAGE);
            }
            if behaviour == EXITS {
                std::process::exit(23);
            }
            self.runs.launch(token);
            self.left = if behaviour == HOLDS { HOLDS } else { behaviour % 8 };
            let launches = self.wire.scratch.read(scratch::LAUNCHES);
            self.wire.scratch.write(scratch::LAUNCHES, launches + 1);
            if self.kind != Kind::Sub {
                return Ok(Launch::Running);
            }
            if behaviour == HOLDS {
                self.wait_for(scratch::GATE);
            }
            Ok(Launch::Complete)
        })
    }

    fn accepted(&mut self, _: u32) -> bool {
        self.kind != Kind::Sub && self.runs.is_launched()
    }

    fn poll(&mut self, token: u32, _: &mut Report) -> Result<Poll, Failure> {
        self.wire.clone().during(Phase::Run, || {
            self.runs.check_poll(token);
            let done = if self.left == HOLDS { self.wire.scratch.read(scratch::GATE) != 0 } else { self.left == 0 };
            if done {
                return Ok(Poll::Complete);
            }
            self.left -= u8::from(self.left != HOLDS);
            Ok(Poll::NotReady)
        })
    }

    fn finalize(&mut self, token: u32, _: &mut Report) -> Result<(), Failure> {
        self.wire.clone().during(Phase::Finalise, || {
            self.runs.finalize(token);
            Ok(())
        })
    }

    fn control(&mut self, request: &ControlRequest, report: &mut Report) -> Result<u64, Failure> {
        self.wire.clone().during(Phase::Control, || match request {
            ControlRequest::Malloc { bytes: 0 } => {
                report.push_str("zero bytes");
                Err(Failure::MESSAGE)
            }
            ControlRequest::Malloc { bytes } => {
                if *bytes == SLOW_CONTROL {
                    self.wait_for(scratch::CONTROL_GATE);
                }
                Ok(bytes.wrapping_mul(2))
            }
            ControlRequest::Unregister { .. } => {
                assert!(self.runs.is_empty(), "L-21");
                Ok(0)
            }
            ControlRequest::CommittedDeviceMemory => Ok(77),
            _ => Ok(0),
        })
    }

    fn shutdown(&mut self) {
        self.wire.clone().during(Phase::Shutdown, || {
            assert!(self.runs.is_empty(), "L-15: a run leaks at shutdown");
        });
    }
}

/// Rings the parent after each publication, whether it sleeps or not.
pub(crate) struct RingParent<'a>(pub(crate) &'a Bell);

impl ParentBell for RingParent<'_> {
    fn published(&mut self) {
        self.0.ring();
    }
}

/// From the first publication of a child to its exit status.
pub(crate) fn serve<W: Words>(words: W, device: Device, bell: &Bell, parent: &Bell, lifeline: &Lifeline) -> i32 {
    let (frames, depth) = (device.kind.frames(), device.kind.depth());
    let spec = ChildSpec { frames, protocol: Protocol::ChipTensors, depth };
    let mut ring = RingParent(parent);
    publish_ready(&words, depth);
    ring.published();
    let mut bed = Bed::new(bell, lifeline, None).expect("a bed");
    let mut child = Child::new(words, device, spec);
    let mut backoff = Backoff::new();
    loop {
        let nap = match child.step(&mut ring) {
            Served::Exit(status) => return status.into(),
            Served::Worked => {
                backoff = Backoff::new();
                continue;
            }
            Served::Running => Some(backoff.next_nap()),
            Served::Idle => None,
        };
        if bed.park(child.words(), extension::PARKED, nap, || child.has_work()) == Woke::ParentGone {
            child.orphaned();
        }
    }
}

/// Whether a task frame is occupied.
pub(crate) fn is_busy(words: &MappedWords, frame: usize) -> bool {
    let idle = [FrameState::Idle, FrameState::TaskDone, FrameState::TaskFailed].map(FrameState::raw);
    !idle.contains(&words.load_relaxed(frame * FRAME_BYTES))
}

/// Whether the dispatch of a task frame is being taken back: its id is gone from the trailer, the answer is not there (L-38).
pub(crate) fn is_taken_back(words: &MappedWords, frame: usize) -> bool {
    let at = frame * FRAME_BYTES;
    words.load_relaxed(at) == FrameState::Activate.raw()
        && words.read(at + TRAILER + offset_of!(Trailer, dispatch)) == 0
}
