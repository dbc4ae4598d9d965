//! One child to be: what its parent must know of it, and its life from its birth to its exit status.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use laneway_core::chip::{Capabilities, DeviceRuntime};
use laneway_core::ids::{SubId, WorkerId};
use laneway_core::lane::{EXIT_UNCLEAN, Frames, Label};
use laneway_core::serve::{Blocking, Child, ChildSpec, ChipRunner, Leaf, ParentBell, publish_failed, publish_ready};
use laneway_core::time::Instant;
use laneway_core::wire::Protocol;

use super::Worker;
use super::children::Chip;
use super::custom::{CustomChild, CustomStart};
use super::endpoint::{EndpointBell, EndpointRunner, EndpointStart, OwnEndpoint, serve_endpoint};
use super::nested::{self, NestedLeaf};
use super::outer::{Above, Outer};
use super::staged::StagedRunner;
use crate::Error;
use crate::callable::{CallableName, Role};
use crate::child_entry::{EXIT_PANIC, leave_copy};
use crate::host::{Body, Seat};
use crate::install::Scope;
use crate::late::Images;
use crate::link::Link;
use crate::memory::Space;
use crate::mortal::Mortal;
use crate::progress::ParentRing;
use crate::registry::chip_name;
use crate::serve_loop::serve;
use crate::snapshot::Snapshot;
use crate::sub::SubLeaf;
use crate::sys::lifeline::{AtHangUp, Lifeline};
use crate::sys::lineage::Lineage;
use crate::sys::park::Bed;
use crate::sys::pidfd::Pidfd;
use crate::sys::spin::SpinWindow;
use crate::sys::words::MailboxWords;
use crate::sys::{cpu, panics};
use crate::trace::{Phases, Traced, Tracing, Writer};
use crate::waiting::{ChildWait, Reporting, Slices, Status};

/// One child to be.
pub(super) enum Plan {
    Chip { id: WorkerId, chip: Chip },
    Nested { id: WorkerId, worker: Worker },
    Custom { id: WorkerId, child: CustomChild },
    Own { id: WorkerId, endpoint: OwnEndpoint },
    Sub { id: SubId },
}

/// What the parent must know of a child.
#[derive(Clone)]
pub(super) struct Outline {
    pub(super) label: Label,
    /// What kind of child it is, in messages.
    pub(super) kind: &'static str,
    /// What it runs.
    pub(super) role: Role,
    /// `chip 0`, `sub 3`: the kind and index that its own message about its start names (P-3).
    pub(super) name: String,
    /// How many task frames its endpoint uses (W-1).
    pub(super) frames: Frames,
    /// What is registered in it.
    pub(super) scope: Scope,
    pub(super) at_hang_up: AtHangUp,
    /// Whether it drives a device: it publishes a depth and marks acceptance.
    pub(super) drives_device: bool,
    /// Whether it stays in this process whatever the mode: an endpoint of a user's own.
    pub(super) stays_here: bool,
    /// The worker that a nested one is made of.
    pub(super) nested: Option<Worker>,
}

/// What every child of one worker gets from its parent besides its link.
pub(super) struct Given {
    pub(super) snapshot: Snapshot,
    pub(super) shared: Vec<Range<u64>>,
    pub(super) parent: Option<Arc<Pidfd>>,
    pub(super) window: SpinWindow,
    pub(super) long_slices: bool,
    /// When the start of the whole tree must be over.
    pub(super) deadline: Instant,
    /// The buffer region, where bytes of callables are staged.
    pub(super) staging: Range<u64>,
    /// Code that parent and children have at one place.
    pub(super) images: Images,
    /// What its record of events is written with.
    pub(super) tracing: Option<Tracing>,
    /// All tensor memory, mapped for as long as a child that is a thread runs.
    pub(super) space: Arc<Space>,
}

impl Plan {
    /// Asked before the worker that a nested one is made of has left.
    pub(super) fn outline(&self) -> Outline {
        let (kind, role, name) = match self {
            Self::Chip { id, .. } => ("chip", Role::Chip, format!("chip {id}")),
            Self::Nested { id, .. } => ("nested worker", Role::Orchestration, format!("nested {id}")),
            Self::Custom { id, child } => (child.kind, Role::Custom, format!("{} {id}", child.kind)),
            Self::Own { id, endpoint } => (endpoint.kind, Role::Custom, format!("{} {id}", endpoint.kind)),
            Self::Sub { id } => ("SUB child", Role::Function, format!("sub {id}")),
        };
        let chips_below = matches!(self, Self::Nested { worker, .. } if worker.has_chips_below());
        Outline {
            label: self.label(),
            kind,
            role,
            name,
            frames: self.frames(),
            scope: Scope { role, chips_below },
            at_hang_up: match self {
                Self::Chip { .. } => AtHangUp::Look,
                // The processes below a nested one follow by their own lifelines (L-32).
                _ => AtHangUp::Die,
            },
            drives_device: matches!(self, Self::Chip { .. }),
            stays_here: matches!(self, Self::Own { .. }),
            nested: match self {
                Self::Nested { worker, .. } => Some(worker.clone()),
                _ => None,
            },
        }
    }

    fn label(&self) -> Label {
        match self {
            Self::Chip { id, .. } | Self::Nested { id, .. } | Self::Custom { id, .. } | Self::Own { id, .. } => {
                Label::Worker(*id)
            }
            Self::Sub { id } => Label::Sub(*id),
        }
    }

    fn frames(&self) -> Frames {
        match self {
            Self::Chip { chip, .. } if Capabilities::of(chip.platform, chip.runtime).task_frames == 2 => Frames::Two,
            _ => Frames::One,
        }
    }

    /// The life of the child on `seat`, which may use `cpus` alone if some are given.
    pub(super) fn body(self, seat: &Seat, cpus: Option<Vec<usize>>, given: &Arc<Given>) -> Body {
        let (link, bell, name) = (seat.link.clone(), seat.bell.clone(), seat.name.clone());
        let given = given.clone();
        Box::new(move |lifeline| {
            let mut ring = ParentRing { word: bell.reader(), waiter: &link.waiter, owner: &link.owner };
            let (mut ready, lineage) = (false, Lineage::here());
            let served = panics::catch(|| {
                cpus.as_deref().map_or(Ok(()), cpu::pin).map_err(|error| error.to_string())?;
                Birth { link: &link, ring: &mut ring, lifeline, given: &given, lineage, ready: &mut ready }
                    .serve(&self, &name)
            });
            if lineage.is_inherited() {
                leave_copy();
            }
            match served {
                Ok(Ok(status)) => status,
                Ok(Err(text)) | Err(text) if ready => {
                    panics::complain(&format!("{name}: {text}"));
                    EXIT_PANIC
                }
                Ok(Err(text)) | Err(text) => {
                    publish_failed(&link.words(), &format!("{name} init: {text}"));
                    ring.published();
                    1
                }
            }
        })
    }
}

/// A child on its way to being ready.
struct Birth<'a, 'r> {
    link: &'a Link,
    ring: &'a mut ParentRing<'r>,
    lifeline: &'a Lifeline,
    given: &'a Given,
    /// Of the child as it began: code of the user's that sets up may fork, and return on both sides.
    lineage: Lineage,
    ready: &'a mut bool,
}

impl Birth<'_, '_> {
    /// Sets up, publishes INIT_READY and serves; an error is one of the set-up.
    fn serve(mut self, plan: &Plan, name: &str) -> Result<i32, String> {
        let given = self.given;
        let parent = given.parent.as_deref().map(AsFd::as_fd);
        let bed = Bed::new(&self.link.wake, self.lifeline, parent).map_err(text)?;
        let spec = |depth| ChildSpec { frames: plan.frames(), protocol: Protocol::ChipTensors, depth };
        let words = self.link.words();
        let (status, wait) = (Status::new(words), ChildWait::new(words, given.window));
        // Not for the child of a chip, which waits for its device, nor for one that drives children itself.
        let slices = given.long_slices.then(Slices::default);
        let writer = given.tracing.as_ref().map(|tracing| tracing.child(plan.label(), name));
        match plan {
            Plan::Sub { .. } => {
                let functions = given.snapshot.functions().map_err(text)?;
                let leaf = SubLeaf::new(functions, given.shared.clone(), given.staging.clone(), given.images.clone());
                let mut child = self.child(leaf, spec(0), &status, writer);
                self.publish_ready(0);
                Ok(serve(&mut child, self.ring, bed, &wait, &status, slices))
            }
            Plan::Custom { child, .. } => {
                let callables = given.snapshot.custom_callables().map_err(text)?;
                let leaf = child.start(CustomStart { shared: &given.shared, callables: &callables }).map_err(text)?;
                let mut child = self.child(leaf, spec(0), &status, writer);
                self.publish_ready(0);
                Ok(serve(&mut child, self.ring, bed, &wait, &status, slices))
            }
            Plan::Own { endpoint, .. } => {
                let callables = given.snapshot.custom_callables().map_err(text)?;
                let bell = EndpointBell::new(self.link.wake.clone());
                let start = EndpointStart { shared: &given.shared, callables: &callables, bell };
                let runner = EndpointRunner::new(endpoint.start(start).map_err(text)?);
                let runner = Traced::new(runner, writer, Phases::Call, plan.frames());
                let mut child = Child::new(self.link.words(), runner, spec(0));
                self.publish_ready(0);
                Ok(serve_endpoint(&mut child, self.ring, bed, given.window))
            }
            Plan::Nested { worker, .. } => {
                let above = Above {
                    lent: given.space.below(),
                    deadline: nested::earlier(given.deadline),
                    outer: Outer::new(self.link.words(), self.link.wake.clone()),
                    log: given.tracing.as_ref().map(|tracing| tracing.log().clone()),
                };
                let live = worker.start_below(above, given.snapshot.chip_blobs()).map_err(text)?;
                let orchestrations = given.snapshot.orchestrations().map_err(text)?;
                let (staging, images) = (given.staging.clone(), given.images.clone());
                let leaf = NestedLeaf::new(worker.clone(), live, orchestrations, staging, images);
                let mut child = self.child(leaf, spec(0), &status, writer);
                self.publish_ready(0);
                let status = serve(&mut child, self.ring, bed, &wait, &status, None);
                match child.runner().inner().runner().leaf().closed() {
                    Ok(()) => Ok(status),
                    Err(error) => {
                        panics::complain(&format!("{name}: {error}"));
                        // Memory that was left on a chip has gone with it.
                        let unclean = status == 0 && !matches!(error, Error::DeviceMemoryLeft { .. });
                        Ok(if unclean { EXIT_UNCLEAN.into() } else { status })
                    }
                }
            }
            Plan::Chip { chip, .. } => {
                let device = self.lifeline.mortal(|| (chip.open)(&given.shared)).map_err(text)?;
                let mut device = Mortal::new(device, self.lifeline);
                let depth = device.contract().depth() as u32;
                let mut runner = ChipRunner::new(&mut device);
                for (digest, blob) in given.snapshot.chip_blobs() {
                    runner.register(digest, &blob).map_err(|error| {
                        format!("{}: {error}", CallableName { name: chip_name(&blob).into(), digest })
                    })?;
                }
                let runner = StagedRunner::new(runner, given.staging.clone());
                let runner = Traced::new(runner, writer, Phases::Device, plan.frames());
                let mut child = Child::new(words, Reporting::new(runner, &status, self.lineage), spec(depth));
                self.publish_ready(depth);
                Ok(serve(&mut child, self.ring, bed, &wait, &status, None))
            }
        }
    }

    fn child<'s, L: Leaf>(
        &self,
        leaf: L,
        spec: ChildSpec,
        status: &'s Status,
        writer: Option<Writer>,
    ) -> Child<MailboxWords, Reporting<'s, Traced<Blocking<L>>>> {
        let runner = Traced::new(Blocking::new(leaf), writer, Phases::Call, spec.frames);
        Child::new(self.link.words(), Reporting::new(runner, status, self.lineage), spec)
    }

    fn publish_ready(&mut self, depth: u32) {
        if self.lineage.is_inherited() {
            leave_copy();
        }
        publish_ready(&self.link.words(), depth);
        *self.ready = true;
        self.ring.published();
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
