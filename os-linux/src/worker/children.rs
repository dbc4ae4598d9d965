//! The children that a worker is going to have, and what each does after the fork.

use std::fmt;
use std::ops::Range;
use std::os::fd::AsFd;

use laneway_core::chip::{Capabilities, DeviceRuntime, Platform, RuntimeKind};
use laneway_core::ids::{SubId, WorkerId};
use laneway_core::lane::{Frames, Label};
use laneway_core::serve::{Blocking, Child, ChildSpec, ChipRunner, ParentBell, publish_failed, publish_ready};
use laneway_core::wire::Protocol;

use crate::Error;
use crate::callable::{BoxError, Registry};
use crate::child_entry::EXIT_PANIC;
use crate::link::Link;
use crate::mortal::Mortal;
use crate::progress::ParentRing;
use crate::serve_loop::serve;
use crate::sub::SubLeaf;
use crate::sys::lifeline::{AtHangUp, Lifeline};
use crate::sys::panics;
use crate::sys::park::Bed;
use crate::sys::pidfd::Pidfd;
use crate::sys::spin::SpinWindow;

/// How a chip child opens its device.
type Open = Box<dyn Fn(&[Range<u64>]) -> Result<Box<dyn DeviceRuntime>, BoxError> + Send>;

/// A chip child: what it is, and how it opens its device in its own process (P-26).
pub struct Chip {
    platform: Platform,
    runtime: RuntimeKind,
    open: Open,
}

impl Chip {
    /// A chip of `platform` with `runtime`. `open` is called once, in the child, with the address ranges that hold the
    /// tensors of the tree; they stay mapped for the child's life.
    pub fn new<D, E>(
        platform: Platform,
        runtime: RuntimeKind,
        open: impl Fn(&[Range<u64>]) -> Result<D, E> + Send + 'static,
    ) -> Self
    where
        D: DeviceRuntime + 'static,
        E: Into<BoxError>,
    {
        let open = move |shared: &[Range<u64>]| {
            open(shared).map(|device| Box::new(device) as Box<dyn DeviceRuntime>).map_err(Into::into)
        };
        Self { platform, runtime, open: Box::new(open) }
    }
}

impl fmt::Debug for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chip({}, {})", self.platform, self.runtime)
    }
}

/// One child to be.
pub(super) enum Plan {
    Chip { id: WorkerId, chip: Chip },
    Sub { id: SubId },
}

/// Most chips of one worker.
const MOST_CHIPS: u64 = 4096;

/// All children to be, chips first.
pub(super) struct Children {
    chips: Vec<(WorkerId, Chip)>,
    subs: u32,
}

impl Children {
    pub(super) fn new(subs: u32) -> Self {
        Self { chips: Vec::new(), subs }
    }

    pub(super) fn add_chip(&mut self, chip: Chip) -> Result<WorkerId, Error> {
        let value = self.chips.len() as u64;
        let id = if value < MOST_CHIPS { WorkerId::new(value as i32) } else { None };
        let id = id.ok_or(Error::Setting { setting: "chips", value: value + 1, least: 0, most: MOST_CHIPS })?;
        self.chips.push((id, chip));
        Ok(id)
    }

    /// In the order of their endpoints.
    pub(super) fn plans(self) -> Vec<Plan> {
        let chips = self.chips.into_iter().map(|(id, chip)| Plan::Chip { id, chip });
        chips.chain((0..self.subs).map(|i| Plan::Sub { id: SubId(i) })).collect()
    }
}

/// What a child gets from its parent besides its link.
pub(super) struct Given<'a> {
    pub(super) registry: &'a Registry,
    pub(super) shared: Vec<Range<u64>>,
    pub(super) parent: Option<&'a Pidfd>,
    pub(super) window: SpinWindow,
}

impl Plan {
    pub(super) fn label(&self) -> Label {
        match self {
            Self::Chip { id, .. } => Label::Worker(*id),
            Self::Sub { id } => Label::Sub(*id),
        }
    }

    /// `chip 0`, `sub 3`: the kind and index that messages about the start name.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Chip { id, .. } => format!("chip {id}"),
            Self::Sub { id } => format!("sub {id}"),
        }
    }

    /// How many task frames its endpoint uses (W-1).
    pub(super) fn frames(&self) -> Frames {
        match self {
            Self::Chip { chip, .. } if Capabilities::of(chip.platform, chip.runtime).task_frames == 2 => Frames::Two,
            _ => Frames::One,
        }
    }

    pub(super) fn at_hang_up(&self) -> AtHangUp {
        match self {
            Self::Chip { .. } => AtHangUp::Look,
            Self::Sub { .. } => AtHangUp::Die,
        }
    }

    /// The life of the child, from the fork to its exit status.
    pub(super) fn live(&self, link: &Link, ring: &mut ParentRing<'_>, lifeline: &Lifeline, given: &Given<'_>) -> i32 {
        let words = link.words();
        let mut ready = false;
        match panics::catch(|| self.serve(link, ring, lifeline, given, &mut ready)) {
            Ok(Ok(status)) => status,
            Ok(Err(text)) | Err(text) if ready => {
                eprintln!("laneway {}: {text}", self.name());
                EXIT_PANIC
            }
            Ok(Err(text)) | Err(text) => {
                publish_failed(&words, &format!("{} init: {text}", self.name()));
                ring.published();
                1
            }
        }
    }

    /// Sets up, publishes INIT_READY and serves; an error is one of the set-up.
    fn serve(
        &self,
        link: &Link,
        ring: &mut ParentRing<'_>,
        lifeline: &Lifeline,
        given: &Given<'_>,
        ready: &mut bool,
    ) -> Result<i32, String> {
        let words = link.words();
        let spec = |depth| ChildSpec { frames: self.frames(), protocol: Protocol::ChipTensors, depth };
        let bed = Bed::new(&link.wake, lifeline, given.parent.map(AsFd::as_fd)).map_err(|error| error.to_string())?;
        match self {
            Self::Sub { .. } => {
                let leaf = SubLeaf::new(given.registry.host_functions(), given.shared.clone());
                let mut child = Child::new(words, Blocking::new(leaf), spec(0));
                publish_ready(&words, 0);
                *ready = true;
                ring.published();
                Ok(serve(&mut child, ring, bed, given.window))
            }
            Self::Chip { chip, .. } => {
                let device = lifeline.mortal(|| (chip.open)(&given.shared)).map_err(|error| error.to_string())?;
                let mut device = Mortal::new(device, lifeline);
                let depth = device.contract().depth() as u32;
                let mut runner = ChipRunner::new(&mut device);
                for (digest, blob) in given.registry.chip_blobs() {
                    runner.register(digest, &blob).map_err(|error| format!("{digest}: {error}"))?;
                }
                let mut child = Child::new(words, runner, spec(depth));
                publish_ready(&words, depth);
                *ready = true;
                ring.published();
                Ok(serve(&mut child, ring, bed, given.window))
            }
        }
    }
}
