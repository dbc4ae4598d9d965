//! SUB workers: any that is idle, and none while they are held.

use laneway_core::engine::{EngineError, Target};
use laneway_core::model::TaskArgs;

use crate::engine_support::{World, config};

/// E-32: SUB work goes to any idle SUB worker, the one that finished last first; a group takes distinct ones.
#[test]
fn sub_work_goes_to_the_worker_that_finished_last() {
    let mut world = World::new(1, 3);
    let run = world.begin();
    let (a, b, c) = (world.sub(run, |_| {}), world.sub(run, |_| {}), world.sub(run, |_| {}));
    assert_eq!(world.pump(), [(a, 1), (b, 2), (c, 3)]);
    world.finish(b);
    world.finish(a);
    let d = world.sub(run, |_| {});
    assert_eq!(world.pump(), [(d, 1)]);
    world.finish(d);
    let group = world.sub_group(run, 2);
    let endpoints: Vec<_> = world.pump().into_iter().map(|(task, endpoint)| (task == group, endpoint)).collect();
    assert_eq!(endpoints, [(true, 1), (true, 2)]);
}

/// E-32: a SUB group that does not fit keeps its place at the head.
#[test]
fn a_sub_group_does_not_starve_behind_singles() {
    let mut world = World::new(1, 2);
    let run = world.begin();
    let a = world.sub(run, |_| {});
    world.pump();
    let group = world.sub_group(run, 2);
    let b = world.sub(run, |_| {});
    assert_eq!(world.pump(), [], "one SUB worker is idle and is kept for the group");
    world.finish(a);
    assert_eq!(world.pump().len(), 2);
    world.finish(group);
    assert_eq!(world.pump(), [(b, 1)].map(|(task, _)| (task, world.running[&(b, 0)].endpoint)));
    let too_large = world.try_submit(run, Target::SubGroup, None, &[&TaskArgs::new(); 3]);
    assert_eq!(too_large, Err(EngineError::SubGroupTooLarge { members: 3, pool: 2 }));
}

/// E-29, E-35: a single SUB task that is held stays in its queue, nothing else does, and it comes out when the hold is lifted.
#[test]
fn a_single_sub_task_is_held_back_for_a_child_at_work_and_comes_out_when_the_hold_is_lifted() {
    let mut world = World::with(&config(), 2, 1, 2);
    let run = world.begin();
    let first = world.sub(run, |_| {});
    assert_eq!(world.engine.spare_sub(), None, "no child is at work that could take it");
    world.pump();
    let second = world.sub(run, |_| {});
    let spare = world.engine.spare_sub().expect("the other child");
    assert_eq!(spare.busy, 1);
    world.engine.hold_subs(true);
    let other = world.task(run, 0, |_| {});
    assert_eq!(world.pump(), [(other, 0)], "only SUB tasks are held");
    world.engine.hold_subs(false);
    assert_eq!(world.pump(), [(second, spare.endpoint.0)]);
    assert_eq!(world.running(), [first, second, other]);
}
