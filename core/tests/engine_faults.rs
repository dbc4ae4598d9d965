//! Every step that can fail, made to fail: nothing is left behind, fences resolve, and the engine goes on.

mod engine_support;

use engine_support::{World, args, at, bytes, config, fresh, worker};
use laneway_core::engine::{Config, EngineError, FailureKind, Outcome, RunOutcome, Target, Usage};
use laneway_core::ids::EndpointIndex;
use laneway_core::model::TaskArgs;
use laneway_core::wire::CallConfig;

/// Room for everything that the submission under test needs, beside what is there already.
const AMPLE: u32 = 64;

fn pools() -> Config {
    let mut config = Config {
        task_window: AMPLE,
        edges: AMPLE,
        map_entries: AMPLE,
        group_members: AMPLE,
        runs: 8,
        args_bytes: 64 << 10,
        configs: AMPLE,
        error_texts: AMPLE,
        slabs: AMPLE,
        ..config()
    };
    for ring in &mut config.rings {
        ring.bytes = 64 << 10;
    }
    config
}

/// A run with a slab, two running producers and one that has failed; then the submission under test: a group of two
/// that reads, updates, overwrites, names the slab, and has three outputs allocated.
struct Scene {
    world: World,
    run: laneway_core::ids::RunId,
    slab: u64,
    first: TaskArgs,
    second: TaskArgs,
}

impl Scene {
    fn new(config: &Config) -> Result<Self, EngineError> {
        let mut world = World::with(config, 2, 3, 1);
        let run = world.engine.begin_run()?;
        let slab = world.engine.alloc(run, 100)?;
        for (at, size) in [(0, 64), (64, 64), (128, 64)] {
            let list = args(|args| {
                args.output(bytes(at, size));
            });
            world.try_submit(run, Target::NextLevel(worker((at / 64) as i32)), None, &[&list])?;
        }
        world.pump();
        world.fail(3, "the third failed");
        let first = args(|args| {
            args.input(bytes(0, 32)).inout(bytes(64, 64)).output(fresh(3000)).input(at(slab, 10)).output(fresh(10));
        });
        let second = args(|args| {
            args.output(bytes(512, 64)).output(fresh(2000)).scalar(7);
        });
        Ok(Self { world, run, slab, first, second })
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        let threads = CallConfig { aicpu_thread_num: 5, ..CallConfig::ZERO };
        let targets = [worker(1), worker(2)];
        let members = [&self.first, &self.second];
        self.world.try_submit(self.run, Target::NextLevelGroup(&targets), Some(&threads), &members).map(|_| ())
    }

    /// Ends everything and checks that the fence opens, the result is there and nothing is left.
    fn settle(mut self, expected: FailureKind) {
        self.world.close(self.run);
        self.world.drain();
        assert!(self.world.engine.is_accepted(self.run) && self.world.engine.is_terminal(self.run));
        match self.world.engine.outcome(self.run) {
            Some(RunOutcome::Failed { kind, .. }) => assert_eq!(kind, expected),
            outcome => panic!("{outcome:?}"),
        }
        self.world.engine.release(self.run).expect("known");
        let usage = self.world.engine.usage();
        assert!(usage.is_idle(), "{usage:?}");
        let next = self.world.begin();
        let task = self.world.task(next, 0, |_| {});
        assert_eq!(self.world.pump(), [(task, 0)], "the engine goes on");
    }
}

/// How much of each pool the submission takes.
fn appetite() -> (Usage, Usage) {
    let mut scene = Scene::new(&pools()).expect("ample");
    let before = scene.world.engine.usage();
    scene.submit().expect("ample");
    (before, scene.world.engine.usage())
}

/// E-11, T-15: a submit that fails at any step — record, member table, each member's arguments, each edge, each map
/// entry, the config, the slab record, the ring — leaves nothing, and the same submit succeeds once there is room.
#[test]
fn a_submit_can_fail_at_every_step_and_leaves_nothing() {
    let (before, after) = appetite();
    type Limit = fn(&mut Config, u32);
    let steps: [(&str, u32, u32, Limit); 8] = [
        ("record", before.tasks, after.tasks, |config, limit| config.task_window = limit),
        ("member", before.group_members, after.group_members, |config, limit| config.group_members = limit),
        ("edge", before.edges, after.edges, |config, limit| config.edges = limit),
        ("map entry", before.map_entries, after.map_entries, |config, limit| config.map_entries = limit),
        ("argument granule", before.args_bytes as u32 / 64, after.args_bytes as u32 / 64, |config, limit| {
            config.args_bytes = limit as usize * 64;
        }),
        ("config", before.configs + 1, after.configs + 1, |config, limit| config.configs = limit),
        ("slab record", before.slabs, after.slabs, |config, limit| config.slabs = limit),
        ("ring KiB", 1, 7, |config, limit| config.rings[0].bytes = u64::from(limit) * 1024),
    ];
    let mut points = 0;
    for (name, least, most, limit) in steps {
        assert!(most > least, "{name}: the submission takes some");
        for room in least.max(1)..most {
            let mut config = pools();
            limit(&mut config, room);
            let mut scene = Scene::new(&config).unwrap_or_else(|error| panic!("{name} {room}: {error}"));
            let usage = scene.world.engine.usage();
            let error = scene.submit().expect_err("too little room");
            assert!(
                matches!(error, EngineError::Blocked { .. } | EngineError::TooLarge { .. }),
                "{name} {room} of {most}: {error}"
            );
            assert_eq!(scene.world.engine.usage(), usage, "{name} {room}: {error}");
            assert_eq!(scene.submit().expect_err("still"), error, "again the same");
            points += 1;
            scene.settle(FailureKind::Task);
        }
        let mut config = pools();
        limit(&mut config, most);
        let mut scene = Scene::new(&config).expect("just enough");
        scene.submit().unwrap_or_else(|error| panic!("{name} {most}: {error}"));
        scene.settle(FailureKind::Task);
    }
    println!("{points} points of failure in submit");
    assert!(points >= 20, "{points}");
}

/// E-11: what is wrong with an argument is found wherever it stands, also in the second member, after edges, entries
/// and arguments of the first are in place.
#[test]
fn a_malformed_argument_is_found_at_every_position() {
    let device = laneway_core::wire::ChipTensor::contiguous(
        64,
        8,
        laneway_core::wire::Dtype::U8,
        &[8],
        laneway_core::wire::AddressSpace::Device,
    )
    .expect("valid");
    let mut points = 0;
    for position in 0..5 {
        for kind in 0..4 {
            for second in [false, true] {
                let mut scene = Scene::new(&pools()).expect("ample");
                let good = args(|args| {
                    args.input(bytes(0, 32)).inout(bytes(64, 64)).output(fresh(64));
                });
                let bad = args(|args| {
                    for index in 0..5 {
                        let tensor = match (index == position, kind) {
                            (false, _) => bytes(1024 + index * 64, 64),
                            (true, 0) => at(0x10, 64),
                            (true, 1) => at(scene.slab + 5000, 64),
                            (true, 2) => fresh(64),
                            (true, _) => device,
                        };
                        args.inout(tensor);
                    }
                });
                let members = if second { [&good, &bad] } else { [&bad, &good] };
                let usage = scene.world.engine.usage();
                let refused =
                    scene.world.try_submit(scene.run, Target::SubGroup, None, &members[..1 + usize::from(second)]);
                let too_large = matches!(refused, Err(EngineError::SubGroupTooLarge { .. }));
                assert!(refused.is_err(), "position {position}, kind {kind}");
                if !too_large {
                    points += 1;
                }
                let targets = [worker(1), worker(2)];
                let refused = scene.world.try_submit(scene.run, Target::NextLevelGroup(&targets), None, &members);
                // Device memory is fine on a NEXT_LEVEL worker.
                assert_eq!(refused.is_err(), kind != 3, "position {position}, kind {kind}: {refused:?}");
                if kind != 3 {
                    points += 1;
                    assert_eq!(scene.world.engine.usage(), usage);
                }
                scene.settle(FailureKind::Task);
            }
        }
    }
    println!("{points} malformed submissions");
}

/// E-11 for the other calls: alloc, begin_run, fail_submission and release, each refused for each of its reasons.
#[test]
fn the_other_calls_can_fail_at_every_step() {
    let mut points = 0;
    let mut check = |holds: bool, what: &str| {
        points += 1;
        assert!(holds, "{what}");
    };
    // alloc: record, slab record, bytes, run.
    for limit in [
        (|config| config.task_window = 1) as fn(&mut Config),
        |config| config.slabs = 1,
        |config| config.rings[0].bytes = 1024,
    ] {
        let mut config = pools();
        limit(&mut config);
        let mut world = World::with(&config, 2, 1, 0);
        let run = world.begin();
        world.engine.alloc(run, 1024).expect("the first fits");
        let usage = world.engine.usage();
        check(world.engine.alloc(run, 1024).is_err_and(|error| error.is_blocked()), "alloc");
        assert_eq!(world.engine.usage(), usage);
        world.close(run);
        check(world.engine.is_terminal(run) && world.engine.alloc(run, 1).is_err(), "alloc after close");
        world.engine.release(run).expect("known");
        assert!(world.engine.usage().is_idle());
    }
    // begin_run: another is built, no lease, no record, stuck, stopped. No id is lost or used twice.
    let mut world = World::with(&Config { runs: 2, ..pools() }, 1, 1, 0);
    let run = world.begin();
    check(world.engine.begin_run().is_err(), "another is built");
    world.task(run, 0, |_| {});
    world.close(run);
    check(world.engine.begin_run().is_err_and(|error| error.is_blocked()), "no lease");
    world.drain();
    let second = world.begin();
    world.close(second);
    check(matches!(world.engine.begin_run(), Err(EngineError::RunRecords { limit: 2 })), "no record");
    world.engine.release(run).expect("known");
    let third = world.begin();
    assert_eq!(third.get(), 3);
    // fail_submission with every message slot taken, and of a run that is not being built.
    let mut tiny = World::with(&Config { error_texts: 1, ..pools() }, 2, 1, 0);
    tiny.engine.endpoint_dead(EndpointIndex(0), "holds the only message").expect("known");
    let run = tiny.begin();
    tiny.engine.fail_submission(run, "has no room").expect("open");
    check(matches!(tiny.engine.outcome(run), Some(RunOutcome::Failed { kind: FailureKind::Submission, .. })), "fail");
    check(tiny.engine.fail_submission(run, "twice").is_err(), "fail twice");
    tiny.engine.release(run).expect("known");
    check(tiny.engine.release(run).is_err(), "release twice");
    check(tiny.engine.fail_submission(run, "gone").is_err(), "fail after release");
    check(tiny.engine.cancel(run).is_err(), "cancel after release");
    check(tiny.engine.close_submission(run).is_err(), "close after release");
    // Stuck and stopped.
    world.task(third, 0, |_| {});
    world.pump();
    world.engine.stuck(EndpointIndex(0), "pid 9").expect("known");
    check(world.engine.begin_run() == Err(EngineError::Stuck), "stuck");
    world.engine.stop();
    check(world.engine.begin_run() == Err(EngineError::Stopped), "stopped");
    println!("{points} points of failure in the other calls");
}

/// E-22, E-24: whatever the order in which the members of a group and its producer end or fail, the books balance.
#[test]
fn the_books_balance_in_every_order_of_ends() {
    for order in 0..24u32 {
        for failures in 0..16u32 {
            let mut world = World::new(4, 0);
            let run = world.begin();
            let write = args(|args| {
                args.inout(bytes(0, 64));
            });
            let ids = [worker(0), worker(1), worker(2)];
            let (group, _) =
                world.try_submit(run, Target::NextLevelGroup(&ids), None, &[&write, &write, &write]).expect("room");
            let single = world.task(run, 3, |args| {
                args.output(bytes(128, 64));
            });
            world.task(run, 3, |args| {
                args.input(bytes(0, 64)).input(bytes(128, 64));
            });
            world.pump();
            world.close(run);
            let mut left = vec![(group, 0), (group, 1), (group, 2), (single, 0)];
            let mut pick = order;
            for step in 0..4u32 {
                let (task, member) = left.remove(pick as usize % left.len());
                pick /= 4 - step;
                let failed = failures >> step & 1 == 1;
                world.end_member(task, member, if failed { Outcome::TaskFailure("bad") } else { Outcome::Success });
            }
            world.drain();
            assert!(world.engine.is_terminal(run));
            let failed = matches!(world.engine.outcome(run), Some(RunOutcome::Failed { .. }));
            assert_eq!(failed, failures != 0);
            world.engine.release(run).expect("known");
            assert!(world.engine.usage().is_idle());
        }
    }
}
