//! `init`: regions, forks, the barrier, and only then the first thread (P-1).

use std::os::fd::RawFd;
use std::sync::Arc;

use laneway_core::driver::Driver;
use laneway_core::engine::{Engine, RingSpec, WorkerClass, WorkerSpec};
use laneway_core::ids::EndpointIndex;
use laneway_core::lane::{self, EndpointSpec, Frames, Label};
use laneway_core::wire::Protocol;

use super::await_ready::Nursery;
use super::children::{Children, Given, Plan};
use crate::Error;
use crate::callable::Registry;
use crate::child_entry::{self, ChildSpec};
use crate::config::Config;
use crate::error::StartCause;
use crate::link::Link;
use crate::live::{Live, Parts, Wakes};
use crate::memory::Space;
use crate::progress::{Background, BellWord, ParentRing};
use crate::supervisor::{Child, Supervisor};
use crate::sys::epoll::{Poller, Token, Watch};
use crate::sys::eventfd::Bell;
use crate::sys::group::Group;
use crate::sys::pidfd::Pidfd;
use crate::sys::timer::Timer;
use crate::sys::{limits, threads};

/// Descriptors of the worker itself: its own pidfd, two wait sets, two bells, a timer, the cancel bell, and one more set
/// while it starts.
const OWN_DESCRIPTORS: u64 = 8;

/// Starts the whole tree, or leaves nothing of it.
pub(super) fn start(
    config: &Config,
    children: Children,
    registry: Registry,
    cancel: &Bell,
) -> Result<(Arc<Live>, Background), Error> {
    let plans = children.plans();
    if plans.is_empty() {
        return Err(Error::NoChildren);
    }
    limits::check_kernel()?;
    limits::check_descriptors(OWN_DESCRIPTORS + Link::DESCRIPTORS * plans.len() as u64)?;
    let foreign = threads::foreign_threads()?;
    if foreign > 0 && !config.allow_foreign_threads {
        return Err(Error::ForeignThreads { count: foreign });
    }
    let space = Arc::new(Space::map(config.sizes, Vec::new())?);
    let bell = BellWord::new()?;
    let parent = Pidfd::of_this_process().ok();
    let given = Given {
        registry: &registry,
        shared: space.shared().collect(),
        parent: parent.as_ref(),
        window: config.spin_window(),
    };
    let mut nursery = Nursery::new(plans.len());
    for plan in &plans {
        nursery.add(fork(config, plan, &bell, &given)?);
    }
    let depths = nursery.await_all(&bell, config.init_timeout, cancel)?;
    assemble(config, &plans, nursery, &depths, registry, space, bell)
}

/// Forks one child.
#[expect(unsafe_code, reason = "foreign threads were counted by the caller")]
fn fork(config: &Config, plan: &Plan, bell: &BellWord, given: &Given<'_>) -> Result<Child, Error> {
    let link = Link::new(&plan.name())?;
    lane::prepare_region(&link.words());
    let descriptors: Vec<RawFd> = link.child_descriptors(given.parent);
    let spec = ChildSpec {
        group: Group::Head,
        at_hang_up: plan.at_hang_up(),
        keep_descriptors: &descriptors,
        keep_mappings: &link.child_mappings(bell),
        close_foreign_descriptors: config.close_foreign_descriptors,
    };
    let body = |lifeline| {
        let mut ring = ParentRing { word: bell.reader(), waiter: &link.waiter, owner: &link.owner };
        plan.live(&link, &mut ring, &lifeline, given)
    };
    // SAFETY: `start` has counted foreign threads, or the user vouched for them; this library's are parked by the fork.
    let started = unsafe { child_entry::start(&spec, body) }?;
    Ok(Child {
        label: plan.label(),
        process: started.process,
        _lifeline: started.lifeline,
        subtree: started.subtree,
        link,
        killed: false,
        gone: false,
    })
}

/// Puts the parent's side together around children that are ready.
fn assemble(
    config: &Config,
    plans: &[Plan],
    nursery: Nursery,
    depths: &[u64],
    registry: Registry,
    space: Arc<Space>,
    bell: BellWord,
) -> Result<(Arc<Live>, Background), Error> {
    let mut admission_depth = 2;
    let (mut workers, mut endpoints) = (Vec::new(), Vec::new());
    for (((i, plan), child), &depth) in (0..).map(EndpointIndex).zip(plans).zip(nursery.children()).zip(depths) {
        let frames = plan.frames();
        let class = match plan.label() {
            Label::Worker(id) => WorkerClass::NextLevel(id),
            Label::Sub(id) => WorkerClass::Sub(id),
        };
        if matches!(plan, Plan::Chip { .. }) {
            if !(1..=2).contains(&depth) {
                let cause = StartCause::Depth { depth };
                return Err(Error::ChildStart { label: plan.label(), pid: child.process.pid(), cause });
            }
            admission_depth = admission_depth.min(depth as usize);
        }
        workers.push(WorkerSpec { class, endpoint: i, staging: frames == Frames::Two });
        let spec = EndpointSpec {
            label: plan.label(),
            pid: Some(child.process.pid()),
            frames,
            protocol: Protocol::ChipTensors,
            marks_acceptance: matches!(plan, Plan::Chip { .. }),
            waitable: true,
            poison_grace: EndpointSpec::POISON_GRACE,
        };
        endpoints.push((spec, child.link.words()));
    }
    let mut engine_config = config.engine.clone();
    for (ring, range) in engine_config.rings.iter_mut().zip(space.rings()) {
        *ring = RingSpec { base: range.start, bytes: range.end - range.start };
    }
    let engine = Engine::new(&engine_config, admission_depth, &workers)?;
    let words = endpoints.iter().map(|(_, words)| *words).collect();
    let driver = Driver::new(engine, endpoints);

    let (waiter_set, nudge) = (Poller::new()?, Bell::new()?);
    waiter_set.add(&nudge, Token(0), Watch::Edge)?;
    for (i, child) in (1..).zip(nursery.children()) {
        waiter_set.add(&child.link.waiter, Token(i), Watch::Edge)?;
    }
    let (control, takeover) = (Bell::new()?, Timer::new()?);
    let parts = Parts {
        bell,
        words,
        wakes: Wakes(nursery.children().iter().map(|child| child.link.wake.clone()).collect()),
        waiter_set,
        nudge,
        control,
        takeover,
        supervisor: Supervisor { children: nursery.graduate() },
        space,
        config: config.clone(),
    };
    let live = Arc::new(Live::new(driver, registry, parts));
    let background = Background::start(&live)?;
    Ok((live, background))
}
