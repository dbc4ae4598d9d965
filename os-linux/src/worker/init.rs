//! `init`: regions, forks, the barrier, and only then the first thread (P-1).

use std::os::fd::RawFd;
use std::sync::{Arc, PoisonError};

use laneway_core::driver::Driver;
use laneway_core::engine::{Engine, Range as Backing, RangeKind, RingSpec, WorkerClass, WorkerSpec};
use laneway_core::ids::EndpointIndex;
use laneway_core::lane::{self, EndpointSpec, Frames, Label};
use laneway_core::wire::Protocol;

use super::await_ready::Nursery;
use super::cancel::Cancel;
use super::children::{Children, Given, Plan};
use super::outer::{Above, Outer};
use crate::child_entry::{self, ChildSpec};
use crate::config::Config;
use crate::error::{CallableError, Error, StartCause};
use crate::late::Images;
use crate::link::Link;
use crate::live::{Live, Parts, Wakes};
use crate::memory::Space;
use crate::progress::{Background, BellWord, ParentRing};
use crate::registry::Registry;
use crate::supervisor::{Child, Supervisor};
use crate::sys::epoll::{Poller, Token, Watch};
use crate::sys::eventfd::Bell;
use crate::sys::group::Group;
use crate::sys::pidfd::Pidfd;
use crate::sys::timer::Timer;
use crate::sys::{clock, limits, threads};

/// Descriptors of the worker itself: its own pidfd, two wait sets, two bells, a timer, the cancel bell, five regions, and
/// one more set while it starts.
const OWN_DESCRIPTORS: u64 = 13;

/// Starts the whole tree, or leaves nothing of it. `above` is there for a nested worker, in its own process.
pub(super) fn start(
    config: &Config,
    children: Children,
    registry: Registry,
    space: Option<Arc<Space>>,
    above: Option<Above>,
    cancel: &Cancel,
) -> Result<(Arc<Live>, Background), Error> {
    if let Some((digest, role)) = registry.unresolvable(|role| children.serve(role)) {
        children.left_below();
        return Err(CallableError::CallableKindUnsupported { digest, role }.into());
    }
    let plans = children.plans();
    let result = start_plans(config, &plans, registry, space, above, cancel);
    for plan in &plans {
        if let Plan::Nested { worker, .. } = plan {
            worker.left_below();
        }
    }
    result
}

fn start_plans(
    config: &Config,
    plans: &[Plan],
    registry: Registry,
    space: Option<Arc<Space>>,
    above: Option<Above>,
    cancel: &Cancel,
) -> Result<(Arc<Live>, Background), Error> {
    if plans.is_empty() {
        return Err(Error::NoChildren);
    }
    limits::check_kernel()?;
    limits::check_descriptors(OWN_DESCRIPTORS + Link::DESCRIPTORS * plans.len() as u64)?;
    let foreign = threads::foreign_threads()?;
    if foreign > 0 && !config.allow_foreign_threads {
        return Err(Error::ForeignThreads { count: foreign });
    }
    let mut deadline = clock::now().saturating_add(config.init_timeout);
    let (mut outer, mut inherited, mut group) = (None, Vec::new(), Group::Head);
    if let Some(above) = above {
        deadline = deadline.min(above.deadline);
        (outer, inherited, group) = (Some(above.outer), above.shared, Group::Parents);
    }
    // There already if a tensor was made before.
    let space = match space {
        Some(space) => space,
        None => Arc::new(Space::map(config.sizes)?),
    };
    space.inherit(inherited);
    let bell = BellWord::new()?;
    let parent = Pidfd::of_this_process().ok();
    let given = Given {
        registry: &registry,
        shared: space.shared().collect(),
        parent: parent.as_ref(),
        window: config.spin_window(),
        deadline,
        staging: space.buffer_range(),
        images: Images::mapped(),
    };
    let mut nursery = Nursery::new(config.level, plans.len());
    for plan in plans {
        if cancel.is_asked() {
            return Err(Error::InitCancelled);
        }
        nursery.add(fork(config, plan, group, &bell, &given)?);
    }
    let depths = nursery.await_all(&bell, deadline, config.init_timeout, cancel)?;
    let images = given.images;
    assemble(config, plans, nursery, &depths, registry, space, bell, outer, images)
}

/// Forks one child.
#[expect(unsafe_code, reason = "foreign threads were counted by the caller")]
fn fork(config: &Config, plan: &Plan, group: Group, bell: &BellWord, given: &Given<'_>) -> Result<Child, Error> {
    let link = Link::new(&plan.name())?;
    lane::prepare_region(&link.words());
    let descriptors: Vec<RawFd> = link.child_descriptors(given.parent);
    let spec = ChildSpec {
        group,
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
        kind: plan.kind(),
        process: started.process,
        lifeline: started.lifeline,
        subtree: started.subtree,
        link,
        killed: false,
        gone: false,
        suspect: false,
    })
}

/// Puts the parent's side together around children that are ready.
#[expect(clippy::too_many_arguments, reason = "everything that the start made, once")]
fn assemble(
    config: &Config,
    plans: &[Plan],
    nursery: Nursery,
    depths: &[u64],
    registry: Registry,
    space: Arc<Space>,
    bell: BellWord,
    outer: Option<Outer>,
    images: Images,
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
                return Err(child.start_error(config.level, StartCause::Depth { depth }));
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
    let mut engine = Engine::new(&engine_config, admission_depth, &workers)?;
    for outer in space.outer() {
        engine.add_range(Backing { base: outer.start, bytes: outer.end - outer.start, kind: RangeKind::Outer })?;
    }
    let words = endpoints.iter().map(|(_, words)| *words).collect();
    let driver = Driver::new(engine, endpoints);

    let (waiter_set, nudge) = (Poller::new()?, Bell::new()?);
    waiter_set.add(&nudge, Token(0), Watch::Edge)?;
    for (i, child) in (1..).zip(nursery.children()) {
        waiter_set.add(&child.link.waiter, Token(i), Watch::Edge)?;
    }
    if let Some(outer) = &outer {
        waiter_set.add(&*outer.wake, Token(u64::MAX), Watch::Edge)?;
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
        next_level: plans.iter().filter(|plan| matches!(plan.label(), Label::Worker(_))).map(Plan::role).collect(),
        scopes: plans.iter().map(Plan::scope).collect(),
        images,
        outer,
        config: config.clone(),
    };
    let live = Arc::new(Live::new(driver, registry, parts));
    match live.space.adopt(&live).and_then(|()| Background::start(&live)) {
        Ok(background) => Ok((live, background)),
        Err(error) => {
            // No thread, nobody who reaps: the children go the way of a start that failed.
            let mut supervisor = live.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
            drop(Nursery::of_ready(config.level, std::mem::take(&mut supervisor.children)));
            Err(error)
        }
    }
}
