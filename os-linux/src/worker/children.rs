//! The children that a worker is going to have.

use std::fmt;
use std::ops::Range;

use laneway_core::chip::{DeviceRuntime, Platform, RuntimeKind};
use laneway_core::ids::{SubId, WorkerId};

use super::Worker;
use super::custom::CustomChild;
use super::endpoint::OwnEndpoint;
use super::plan::Plan;
use crate::Error;
use crate::callable::{BoxError, Role};

/// How a chip child opens its device.
type Open = Box<dyn Fn(&[Range<u64>]) -> Result<Box<dyn DeviceRuntime>, BoxError> + Send>;

/// A chip child: what it is, and how it opens its device (P-26).
pub struct Chip {
    pub(super) platform: Platform,
    pub(super) runtime: RuntimeKind,
    pub(super) open: Open,
}

impl Chip {
    /// A chip of `platform` with `runtime`. `open` is called once, in the child, with the address ranges that hold the
    /// tensors of the tree; they stay mapped for the child's life.
    ///
    /// ```no_run
    /// # use laneway_linux::{Chip, DeviceRuntime, Error, Platform, RuntimeKind, Worker};
    /// # fn example<D: DeviceRuntime + 'static>(worker: &Worker, open: fn(&[std::ops::Range<u64>]) -> Result<D, Error>)
    /// # -> Result<(), Error> {
    /// let chip = Chip::new(Platform::A2A3, RuntimeKind::HostBuildGraph, move |shared| open(shared));
    /// let id = worker.add_chip(chip)?;
    /// # Ok(())
    /// # }
    /// ```
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

/// A child that tasks are sent to by its worker id.
enum NextLevel {
    Chip(Chip),
    Nested(Worker),
    Custom(CustomChild),
    Own(OwnEndpoint),
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

    pub(super) fn add_endpoint(&mut self, endpoint: OwnEndpoint) -> Result<WorkerId, Error> {
        self.add(NextLevel::Own(endpoint))
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
            NextLevel::Custom(_) | NextLevel::Own(_) => false,
        })
    }

    /// Whether some child runs callables of this role (R-4).
    pub(super) fn serve(&self, role: Role) -> bool {
        match role {
            Role::Function => self.subs > 0,
            Role::Orchestration => self.next_level.iter().any(|child| matches!(child, NextLevel::Nested(_))),
            Role::Chip => self.has_chips(),
            Role::Custom => {
                self.next_level.iter().any(|child| matches!(child, NextLevel::Custom(_) | NextLevel::Own(_)))
            }
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
                NextLevel::Own(endpoint) => Plan::Own { id, endpoint },
            })
        });
        next_level.chain((0..self.subs).map(|i| Plan::Sub { id: SubId(i) })).collect()
    }
}
