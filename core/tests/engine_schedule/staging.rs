//! Staging: one task of the next run, beside the current one.

use laneway_core::engine::{Engine, Outcome, Target, WorkerClass, WorkerSpec};
use laneway_core::ids::EndpointIndex;
use laneway_core::model::TaskArgs;
use laneway_core::wire::CallConfig;

use crate::engine_support::{World, config, worker};

fn diagnostic() -> CallConfig {
    let mut config = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
    config.set_output_prefix(b"/tmp/pmu").expect("short");
    config
}

/// Begins the current run: its one task runs on worker 0.
fn occupy(world: &mut World) -> u64 {
    let run = world.begin();
    let task = world.task(run, 0, |_| {});
    world.close(run);
    world.pump();
    task
}

/// E-33, E-34: of the prepared run one single is staged, the first that is not diagnostic, on a worker that can; on
/// promotion it is activated before anything else is handed out.
#[test]
fn the_first_eligible_single_of_the_prepared_run_is_staged() {
    let mut world = World::new(2, 1);
    let a = occupy(&mut world);
    let second = world.begin();
    let empty = TaskArgs::new();
    let target = Target::NextLevel(worker(0));
    let (skipped, _) = world.try_submit(second, target, Some(&diagnostic()), &[&empty]).expect("room");
    let b = world.task(second, 0, |_| {});
    let c = world.task(second, 1, |_| {});
    world.sub(second, |_| {});
    assert_eq!(world.pump(), [], "not before its graph is closed");
    world.close(second);
    assert_eq!(world.pump(), [(b, 0)], "one, although worker 1 is idle");
    assert_eq!(world.log.last().map(String::as_str), Some("stage 3.0 on 0"));
    world.finish(a);
    let started = world.pump();
    assert_eq!(world.log[world.log.len() - 3], "activate 3 on 0", "E-34: before anything else");
    assert!(started.contains(&(c, 1)));
    assert!(!started.contains(&(skipped, 0)), "the lane is taken by the activated task");
    world.finish(b);
    assert_eq!(world.pump(), [(skipped, 0)]);
}

/// E-33: nothing is staged past a ready group, on a worker that cannot, or of a run that is not the second.
#[test]
fn nothing_is_staged_past_a_ready_group() {
    let mut world = World::new(2, 0);
    occupy(&mut world);
    let second = world.begin();
    world.task(second, 1, |_| {});
    world.group(second, &[0, 1]);
    world.close(second);
    assert_eq!(world.pump(), []);

    let spec = |id: i32, staging| WorkerSpec {
        class: WorkerClass::NextLevel(worker(id)),
        endpoint: EndpointIndex(id as u16),
        staging,
    };
    let mut plain = World::new(1, 0);
    plain.engine = Engine::new(&config(), 2, &[spec(0, false), spec(1, false)]).expect("valid");
    occupy(&mut plain);
    let second = plain.begin();
    plain.task(second, 1, |_| {});
    plain.close(second);
    assert_eq!(plain.pump(), []);
}

/// E-33: a staged task that fails before its activation makes room for the next.
#[test]
fn a_staged_task_that_fails_makes_room_for_the_next() {
    let mut world = World::new(2, 0);
    occupy(&mut world);
    let second = world.begin();
    let (b, c) = (world.task(second, 0, |_| {}), world.task(second, 1, |_| {}));
    world.close(second);
    assert_eq!(world.pump(), [(b, 0)]);
    world.fail(b, "callable unknown");
    assert_eq!(world.pump(), [(c, 1)]);
    assert_eq!(world.log.last().map(String::as_str), Some("stage 3.0 on 1"));
}

/// L-38: a run that is cancelled between its promotion and the word to the endpoint is withdrawn, not activated.
#[test]
fn a_cancel_right_after_promotion_withdraws() {
    let mut world = World::new(1, 0);
    let a = occupy(&mut world);
    let second = world.begin();
    let b = world.task(second, 0, |_| {});
    world.close(second);
    world.pump();
    world.finish(a);
    world.engine.cancel(second).expect("known");
    world.pump();
    assert_eq!(world.log.last().map(String::as_str), Some("withdraw 2 on 0"));
    // Until it is back it holds the staged lane: nothing of the next run goes there (E-33).
    let third = world.begin();
    let c = world.task(third, 0, |_| {});
    world.close(third);
    assert_eq!(world.pump(), []);
    world.end_member(b, 0, Outcome::Skipped);
    assert!(world.engine.is_terminal(second));
    assert_eq!(world.pump(), [(c, 0)]);
    assert_eq!(world.log.last().map(String::as_str), Some("start 3.0 on 0"));
}
