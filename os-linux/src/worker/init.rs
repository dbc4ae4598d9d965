//! `init`: regions, forks, the barrier, and only then the first thread (P-1).

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use laneway_core::driver::Driver;
use laneway_core::engine::{Engine, Range as Backing, RingSpec, WorkerClass, WorkerSpec};
use laneway_core::ids::EndpointIndex;
use laneway_core::lane::{self, EndpointSpec, Frames, Label};
use laneway_core::wire::Protocol;

use super::Worker;
use super::await_ready::Nursery;
use super::cancel::Cancel;
use super::children::Children;
use super::outer::{Above, Outer};
use super::plan::{Given, Outline, Plan};
use super::traces::Traces;
use crate::board::Board;
use crate::config::Config;
use crate::error::{CallableError, Error, StartCause};
use crate::host::{ChildMode, Hosting, Processes, Seat, Threads};
use crate::late::Images;
use crate::link::Link;
use crate::live::{Live, Parts, Wakes};
use crate::memory::{Lent, Space};
use crate::metrics::Counters;
use crate::progress::{Background, BellWord};
use crate::recorder::Recorder;
use crate::registry::Registry;
use crate::supervisor::{Child, Supervisor};
use crate::sys::epoll::{Poller, Token, Watch};
use crate::sys::eventfd::Bell;
use crate::sys::group::Group;
use crate::sys::spin::SpinWindow;
use crate::sys::timer::Timer;
use crate::sys::{clock, limits};
use crate::waiting::{ParentWait, measure_wake};

/// Descriptors of the worker itself: its own pidfd, two wait sets, two bells, a timer, the cancel bell, six regions, the
/// status board, and one more set while it starts.
const OWN_DESCRIPTORS: u64 = 14;

/// Starts the whole tree, or leaves nothing of it. `above` is there for a nested worker, in its own process or thread.
pub(super) fn start(
    config: &Config,
    children: Children,
    registry: Registry,
    space: Option<Arc<Space>>,
    above: Option<Above>,
    cancel: &Cancel,
) -> Result<(Arc<Live>, Background), Error> {
    if let Some((callable, role)) = registry.unresolvable(|role| children.serve(role)) {
        children.left_below();
        return Err(CallableError::CallableKindUnsupported { callable, role }.into());
    }
    let plans = children.plans();
    let outlines: Vec<_> = plans.iter().map(Plan::outline).collect();
    let result = start_plans(config, plans, &outlines, registry, space, above, cancel);
    outlines.iter().filter_map(|outline| outline.nested.as_ref()).for_each(Worker::left_below);
    result
}

fn start_plans(
    config: &Config,
    plans: Vec<Plan>,
    outlines: &[Outline],
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
    config.cpus.check(outlines)?;
    let mut deadline = clock::now().saturating_add(config.init_timeout);
    let (mut outer, mut inherited, mut group, mut log) = (None, Vec::new(), Group::Head, None);
    if let Some(above) = above {
        deadline = deadline.min(above.deadline);
        (outer, inherited, group, log) = (Some(above.outer), above.lent, Group::Parents, above.log);
    }
    // The one place that knows the mode. From here on until the last child was forked no thread begins (P-1).
    let hosting: Box<dyn Hosting> = match config.child_mode {
        ChildMode::Process => Box::new(Processes::new(config, group)?),
        ChildMode::Thread => Box::new(Threads),
    };
    // There already if a tensor was made before.
    let space = match space {
        Some(space) => space,
        None => Arc::new(Space::map(config.sizes)?),
    };
    inherited.into_iter().for_each(|lent| space.lend(lent));
    if config.populate {
        space.populate()?;
    }
    let mut traces = Traces::of(config, log, outlines, &registry, outer.is_none())?;
    let bell = Arc::new(BellWord::new()?);
    let given = Arc::new(Given {
        snapshot: registry.snapshot(),
        shared: space.shared(),
        parent: hosting.parent(),
        window: config.spin_window(),
        long_slices: config.long_slices,
        deadline,
        staging: space.buffer_range(),
        images: Images::mapped(),
        tracing: traces.tracing.clone(),
        space: space.clone(),
    });
    let mut nursery = Nursery::new(config.level, plans.len());
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        (0..).map(EndpointIndex).zip(outlines).zip(plans).partition(|((_, outline), _)| outline.stays_here);
    for (hosting, born) in [(hosting, elsewhere), (Box::new(Threads) as Box<dyn Hosting>, here)] {
        for ((endpoint, outline), plan) in born {
            if cancel.is_asked() {
                return Err(Error::InitCancelled);
            }
            let child = bear(config, outline, plan, &*hosting, &bell, &given)?;
            traces.child_started(endpoint, child.host.place().pid());
            nursery.add(endpoint, child);
        }
        // Thread children of other workers may begin again.
        drop(hosting);
        nursery.await_all(&bell, deadline, config.init_timeout, cancel)?;
    }
    let (images, window) = (given.images.clone(), given.window);
    assemble(config, outlines, nursery, registry, space, bell, outer, images, window, traces)
}

/// Starts one child.
fn bear(
    config: &Config,
    outline: &Outline,
    plan: Plan,
    hosting: &dyn Hosting,
    bell: &Arc<BellWord>,
    given: &Arc<Given>,
) -> Result<Child, Error> {
    let link = Arc::new(Link::new(&outline.name)?);
    lane::prepare_region(&link.words());
    let (name, at_hang_up) = (outline.name.clone(), outline.at_hang_up);
    let seat = Seat { name, link: link.clone(), bell: bell.clone(), at_hang_up };
    let body = plan.body(&seat, config.cpus.of(outline.label), given);
    let host = hosting.start(&seat, body)?;
    Ok(Child { label: outline.label, kind: outline.kind, host, link, gone: false, suspect: None })
}

/// What a wake through the kernel costs here, as one child shows.
fn wake_cost(nursery: &mut Nursery) -> Duration {
    let first = nursery.grown().next();
    first.map_or(Duration::ZERO, |(child, _)| measure_wake(&child.link.words(), &child.link.wake))
}

/// Puts the parent's side together around children that are ready.
#[expect(clippy::too_many_arguments, reason = "everything that the start made, once")]
fn assemble(
    config: &Config,
    outlines: &[Outline],
    mut nursery: Nursery,
    registry: Registry,
    space: Arc<Space>,
    bell: Arc<BellWord>,
    outer: Option<Outer>,
    images: Images,
    window: SpinWindow,
    traces: Traces,
) -> Result<(Arc<Live>, Background), Error> {
    let mut admission_depth = 2;
    let (mut workers, mut endpoints) = (Vec::new(), Vec::new());
    for ((i, outline), (child, depth)) in (0..).map(EndpointIndex).zip(outlines).zip(nursery.grown()) {
        let class = match outline.label {
            Label::Worker(id) => WorkerClass::NextLevel(id),
            Label::Sub(id) => WorkerClass::Sub(id),
        };
        if outline.drives_device {
            if !(1..=2).contains(&depth) {
                return Err(child.start_error(config.level, StartCause::Depth { depth }));
            }
            admission_depth = admission_depth.min(depth as usize);
        }
        workers.push(WorkerSpec { class, endpoint: i, staging: outline.frames == Frames::Two });
        let spec = EndpointSpec {
            label: outline.label,
            pid: child.host.place().pid(),
            frames: outline.frames,
            protocol: Protocol::ChipTensors,
            marks_acceptance: outline.drives_device,
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
    for Lent { range, kind } in space.lent() {
        engine.add_range(Backing { base: range.start, bytes: range.end.saturating_sub(range.start), kind })?;
    }
    let words = endpoints.iter().map(|(_, words)| *words).collect();
    let labels = endpoints.iter().map(|(spec, _)| spec.label).collect();
    let counters = Arc::new(Counters::new(config.level, labels));
    let children: Vec<_> = endpoints.iter().map(|(spec, _)| (spec.frames, spec.pid)).collect();
    let recorder = Recorder::new(counters.clone(), &children, engine_config.task_window, traces.writer, config);
    let mut driver = Driver::observed(engine, endpoints, recorder)?;

    let (waiter_set, nudge) = (Poller::new()?, Bell::new()?);
    waiter_set.add(&nudge, Token(0), Watch::Edge)?;
    for (i, (child, _)) in (1..).zip(nursery.grown()) {
        waiter_set.add(&child.link.waiter, Token(i), Watch::Edge)?;
    }
    if let Some(outer) = &outer {
        waiter_set.add(&*outer.wake, Token(u64::MAX), Watch::Edge)?;
    }
    let (control, takeover) = (Bell::new()?, Timer::new()?);
    let wake = if window == SpinWindow::NONE { Duration::ZERO } else { wake_cost(&mut nursery) };
    let wait = ParentWait::new(config.spin, window, wake, outlines.len(), outer.is_some());
    driver.set_sub_pool(wait.sub_pool());
    let shown = nursery.grown().map(|(child, _)| child).zip(outlines.iter().map(|outline| outline.frames));
    let board = Board::new(wait.facts(config.level), outlines.len(), shown, clock::now())?;
    registry.names().for_each(|(digest, name)| {
        board.named(digest, name);
        driver.observer_mut().named(*digest, name);
    });
    let parts = Parts {
        bell,
        words,
        wakes: Wakes(nursery.grown().map(|(child, _)| child.link.wake.clone()).collect()),
        waiter_set,
        nudge,
        control,
        takeover,
        supervisor: Supervisor { children: nursery.graduate() },
        space,
        next_level: outlines.iter().filter(|o| matches!(o.label, Label::Worker(_))).map(|o| o.role).collect(),
        scopes: outlines.iter().map(|outline| outline.scope).collect(),
        images,
        outer,
        counters,
        tracer: traces.tracer,
        config: config.clone(),
        wait,
        board,
        window,
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
