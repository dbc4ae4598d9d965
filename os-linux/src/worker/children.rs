//! The children that a worker is going to have, and what each does after the fork.

use std::fmt;
use std::ops::Range;
use std::os::fd::AsFd;

use laneway_core::chip::{Capabilities, DeviceRuntime, Platform, RuntimeKind};
use laneway_core::ids::{SubId, WorkerId};
use laneway_core::lane::{EXIT_UNCLEAN, Frames, Label};
use laneway_core::serve::{Blocking, Child, ChildSpec, ChipRunner, ParentBell, publish_failed, publish_ready};
use laneway_core::time::Instant;
use laneway_core::wire::Protocol;

use super::Worker;
use super::custom::{CustomChild, CustomStart};
use super::nested::{self, NestedLeaf};
use super::outer::{Above, Outer};
use super::staged::StagedRunner;
use crate::Error;
use crate::callable::{BoxError, Role};
use crate::child_entry::EXIT_PANIC;
use crate::install::Scope;
use crate::late::Images;
use crate::link::Link;
use crate::mortal::Mortal;
use crate::progress::ParentRing;
use crate::registry::Registry;
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
    Nested { id: WorkerId, worker: Worker },
    Custom { id: WorkerId, child: CustomChild },
    Sub { id: SubId },
}

/// A child that tasks are sent to by its worker id.
enum NextLevel {
    Chip(Chip),
    Nested(Worker),
    Custom(CustomChild),
}

/// Most chips and nested workers of one worker.
const MOST_NEXT_LEVEL: u64 = 4096;

/// All children to be, the NEXT_LEVEL ones first.
pub(super) struct Children {
    next_level: Vec<NextLevel>,
    subs: u32,
}

impl Children {
    pub(super) fn new(subs: u32) -> Self {
        Self { next_level: Vec::new(), subs }
    }

    pub(super) fn add_chip(&mut self, chip: Chip) -> Result<WorkerId, Error> {
        self.add(NextLevel::Chip(chip))
    }

    pub(super) fn add_worker(&mut self, worker: Worker) -> Result<WorkerId, Error> {
        self.add(NextLevel::Nested(worker))
    }

    pub(super) fn add_custom(&mut self, child: CustomChild) -> Result<WorkerId, Error> {
        self.add(NextLevel::Custom(child))
    }

    fn add(&mut self, child: NextLevel) -> Result<WorkerId, Error> {
        let (value, most) = (self.next_level.len() as u64, MOST_NEXT_LEVEL);
        let id = if value < most { WorkerId::new(value as i32) } else { None };
        let id = id.ok_or(Error::Setting { setting: "chips and nested workers", value: value + 1, least: 0, most })?;
        self.next_level.push(child);
        Ok(id)
    }

    /// Whether a chip is among them, or below one of them.
    pub(super) fn has_chips(&self) -> bool {
        self.next_level.iter().any(|child| match child {
            NextLevel::Chip(_) => true,
            NextLevel::Nested(worker) => worker.has_chips_below(),
            NextLevel::Custom(_) => false,
        })
    }

    /// Whether some child runs callables of this role.
    pub(super) fn serve(&self, role: Role) -> bool {
        match role {
            Role::Function => self.subs > 0,
            Role::Orchestration => self.next_level.iter().any(|child| matches!(child, NextLevel::Nested(_))),
            Role::Chip => self.has_chips(),
            Role::Custom => self.next_level.iter().any(|child| matches!(child, NextLevel::Custom(_))),
        }
    }

    /// The nested ones live in processes of their own now, or nowhere.
    pub(super) fn left_below(&self) {
        for child in &self.next_level {
            if let NextLevel::Nested(worker) = child {
                worker.left_below();
            }
        }
    }

    /// In the order of their endpoints.
    pub(super) fn plans(self) -> Vec<Plan> {
        let next_level = (0..).map(WorkerId::new).zip(self.next_level).filter_map(|(id, child)| {
            // `add` counted: every child has an id.
            let id = id?;
            Some(match child {
                NextLevel::Chip(chip) => Plan::Chip { id, chip },
                NextLevel::Nested(worker) => Plan::Nested { id, worker },
                NextLevel::Custom(child) => Plan::Custom { id, child },
            })
        });
        next_level.chain((0..self.subs).map(|i| Plan::Sub { id: SubId(i) })).collect()
    }
}

/// What a child gets from its parent besides its link.
pub(super) struct Given<'a> {
    pub(super) registry: &'a Registry,
    pub(super) shared: Vec<Range<u64>>,
    pub(super) parent: Option<&'a Pidfd>,
    pub(super) window: SpinWindow,
    /// When the start of the whole tree must be over.
    pub(super) deadline: Instant,
    /// The buffer region, where bytes of callables are staged.
    pub(super) staging: Range<u64>,
    /// Code that parent and children have at one place.
    pub(super) images: Images,
}

impl Plan {
    pub(super) fn label(&self) -> Label {
        match self {
            Self::Chip { id, .. } | Self::Nested { id, .. } | Self::Custom { id, .. } => Label::Worker(*id),
            Self::Sub { id } => Label::Sub(*id),
        }
    }

    /// What kind of child it is, in messages.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Chip { .. } => "chip",
            Self::Nested { .. } => "nested worker",
            Self::Custom { child, .. } => child.kind,
            Self::Sub { .. } => "SUB child",
        }
    }

    /// What it runs.
    pub(super) const fn role(&self) -> Role {
        match self {
            Self::Chip { .. } => Role::Chip,
            Self::Nested { .. } => Role::Orchestration,
            Self::Custom { .. } => Role::Custom,
            Self::Sub { .. } => Role::Function,
        }
    }

    /// What is registered in it. Asked before the worker that a nested one is made of has left.
    pub(super) fn scope(&self) -> Scope {
        let chips_below = matches!(self, Self::Nested { worker, .. } if worker.has_chips_below());
        Scope { role: self.role(), chips_below }
    }

    /// `chip 0`, `sub 3`: the kind and index that its own message about its start names (P-3).
    pub(super) fn name(&self) -> String {
        match self {
            Self::Chip { id, .. } => format!("chip {id}"),
            Self::Nested { id, .. } => format!("nested {id}"),
            Self::Custom { id, child } => format!("{} {id}", child.kind),
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
            // The processes below it follow by their own lifelines (L-32).
            Self::Nested { .. } | Self::Custom { .. } | Self::Sub { .. } => AtHangUp::Die,
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
                let leaf = SubLeaf::new(
                    given.registry.functions().map_err(|error| error.to_string())?,
                    given.shared.clone(),
                    given.staging.clone(),
                    given.images.clone(),
                );
                let mut child = Child::new(words, Blocking::new(leaf), spec(0));
                publish_ready(&words, 0);
                *ready = true;
                ring.published();
                Ok(serve(&mut child, ring, bed, given.window))
            }
            Self::Custom { child, .. } => {
                let callables = given.registry.custom_callables().map_err(|error| error.to_string())?;
                let start = CustomStart { shared: &given.shared, callables: &callables };
                let leaf = child.start(start).map_err(|error| error.to_string())?;
                let mut child = Child::new(words, Blocking::new(leaf), spec(0));
                publish_ready(&words, 0);
                *ready = true;
                ring.published();
                Ok(serve(&mut child, ring, bed, given.window))
            }
            Self::Nested { worker, .. } => {
                let above = Above {
                    shared: given.shared.clone(),
                    deadline: nested::earlier(given.deadline),
                    outer: Outer::new(words, link.wake.clone()),
                };
                let live = worker.start_below(above, given.registry.chip_blobs()).map_err(|error| error.to_string())?;
                let orchestrations = given.registry.orchestrations().map_err(|error| error.to_string())?;
                let (staging, images) = (given.staging.clone(), given.images.clone());
                let leaf = NestedLeaf::new(worker.clone(), live, orchestrations, staging, images);
                let mut child = Child::new(words, Blocking::new(leaf), spec(0));
                publish_ready(&words, 0);
                *ready = true;
                ring.published();
                let status = serve(&mut child, ring, bed, given.window);
                match child.runner().leaf().closed() {
                    Ok(()) => Ok(status),
                    Err(error) if status == 0 => {
                        panics::complain(&format!("{}: {error}", self.name()));
                        Ok(EXIT_UNCLEAN.into())
                    }
                    Err(_) => Ok(status),
                }
            }
            Self::Chip { chip, .. } => {
                let device = lifeline.mortal(|| (chip.open)(&given.shared)).map_err(|error| error.to_string())?;
                let mut device = Mortal::new(device, lifeline);
                let depth = device.contract().depth() as u32;
                let mut runner = ChipRunner::new(&mut device);
                for (digest, blob) in given.registry.chip_blobs() {
                    runner.register(digest, &blob).map_err(|error| format!("{digest}: {error}"))?;
                }
                let runner = StagedRunner::new(runner, given.staging.clone());
                let mut child = Child::new(words, runner, spec(depth));
                publish_ready(&words, depth);
                *ready = true;
                ring.published();
                Ok(serve(&mut child, ring, bed, given.window))
            }
        }
    }
}
