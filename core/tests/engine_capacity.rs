//! Every capacity is configuration: exhaustion pushes back or says which setting to enlarge, and nothing is lost.

mod engine_support;

use engine_support::{World, args, at, bytes, config, fresh, worker};
use laneway_core::engine::{Config, Engine, EngineError, Outcome, Resource, RingSpec, RunOutcome, Target};
use laneway_core::ids::TaskSlot;
use laneway_core::model::TaskArgs;
use laneway_core::wire::CallConfig;

fn blocked(resource: Resource, needed: u64, size: u64) -> EngineError {
    EngineError::Blocked { resource, needed, size, may_free: true }
}

/// E-13: the task window pushes back, names itself, and opens when a task is consumed.
#[test]
fn a_full_window_blocks_and_opens_with_the_next_release() {
    let mut world = World::with(&Config { task_window: 3, ..config() }, 2, 1, 0);
    let run = world.begin();
    world.engine.scope_begin(run).expect("room");
    world.engine.alloc(run, 64).expect("room");
    for _ in 0..2 {
        let output = args(|args| {
            args.output(fresh(64));
        });
        world.try_submit(run, Target::NextLevel(worker(0)), None, &[&output]).expect("room");
    }
    let empty = TaskArgs::new();
    let refused = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&empty]).expect_err("full");
    assert_eq!(refused, blocked(Resource::TaskWindow, 1, 3));
    assert_eq!(refused.to_string(), "task window is full: 1 needed of 3; enlarge task_window");
    world.drain();
    let refused = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&empty]).expect_err("scope");
    let pointless = EngineError::Blocked { resource: Resource::TaskWindow, needed: 1, size: 3, may_free: false };
    assert_eq!(refused, pointless, "all own slabs and nothing runs: only the end of the scope can help");
    assert!(refused.to_string().contains("of 3, and no task is left whose end would make room: end a scope; enlarge"));
    world.engine.take_signals();
    world.engine.scope_end(run).expect("open");
    assert!(world.engine.take_signals().released);
    assert!(world.try_submit(run, Target::NextLevel(worker(0)), None, &[&empty]).is_ok());
}

/// E-13, E-23: tasks that completed and own no slab are let go of when a pool is full, though their scope is open, so one
/// scope passes any number of tasks through any pool, in the order of their data.
#[test]
fn one_scope_passes_many_tasks_through_small_pools() {
    let small = [
        Config { task_window: 8, ..config() },
        Config { map_entries: 8, ..config() },
        Config { edges: 8, ..config() },
        Config { args_bytes: 2 << 10, ..config() },
    ];
    for config in small {
        let mut world = World::with(&config, 2, 2, 0);
        let run = world.begin();
        let kept = world.engine.alloc(run, 64).expect("room");
        for index in 0..10_000_u64 {
            let list = args(|args| {
                args.inout(bytes(64 * (index % 3), 64)).input(at(kept, 64));
            });
            let target = Target::NextLevel(worker((index % 2) as i32));
            while let Err(error) = world.try_submit(run, target, None, &[&list]) {
                assert!(matches!(error, EngineError::Blocked { may_free: true, .. }), "{error}");
                world.pump();
                let first = *world.running().first().expect("something runs, or nothing could be released");
                world.finish(first);
            }
        }
        world.drain();
        assert_ne!(world.engine.alloc(run, 64).expect("room"), kept, "slabs stay until their scope ends");
        world.close(run);
        world.drain();
        assert!(world.engine.is_terminal(run) && world.engine.usage().unfinished == 0);
    }
}

/// E-12, E-13: a task that failed is never let go of early: what comes later and reads its output is poisoned.
#[test]
fn a_failed_task_is_remembered_in_a_full_window() {
    let mut world = World::with(&Config { task_window: 4, ..config() }, 2, 1, 0);
    let run = world.begin();
    let first = world.task(run, 0, |args| {
        args.inout(bytes(0, 64));
    });
    world.pump();
    world.fail(first, "broken");
    for _ in 0..100 {
        let empty = TaskArgs::new();
        while world.try_submit(run, Target::NextLevel(worker(0)), None, &[&empty]).is_err() {
            world.drain();
        }
    }
    world.drain();
    world.task(run, 0, |args| {
        args.input(bytes(0, 64));
    });
    world.pump();
    assert!(world.running().is_empty(), "poisoned, not started");
    world.close(run);
    assert!(world.engine.is_terminal(run));
}

/// E-2: whoever waits for tensors learns of a failure in a scope that has ended.
#[test]
fn a_failure_outlives_its_scope_while_the_run_is_built() {
    let mut world = World::new(1, 0);
    let run = world.begin();
    world.engine.scope_begin(run).expect("room");
    let task = world.task(run, 0, |args| {
        args.inout(bytes(0, 64));
    });
    world.pump();
    world.fail(task, "broken");
    world.engine.scope_end(run).expect("open");
    let tensors = [bytes(32, 8)];
    assert_eq!(world.engine.unfinished_naming(run, &tensors, TaskSlot(0)), None);
    assert_eq!(world.engine.failure_naming(run, &tensors), Some("broken"));
    world.close(run);
    assert!(world.engine.is_terminal(run));
}

/// Edges push back while they are in use, and are too few at once when one task needs more than there are.
#[test]
fn edges_push_back_and_are_never_lost() {
    let mut world = World::with(&Config { edges: 2, ..config() }, 2, 1, 0);
    let run = world.begin();
    world.engine.scope_begin(run).expect("room");
    for index in 0..3 {
        world.task(run, 0, |args| {
            args.output(bytes(index * 64, 64));
        });
    }
    let reads = |count: u64| {
        args(|args| {
            for index in 0..count {
                args.input(bytes(index * 64, 64));
            }
        })
    };
    let before = world.engine.usage();
    let too_many = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&reads(3)]);
    assert_eq!(too_many, Err(EngineError::TooLarge { resource: Resource::Edges, needed: 3, size: 2 }));
    assert_eq!(world.engine.usage(), before);
    world.try_submit(run, Target::NextLevel(worker(0)), None, &[&reads(2)]).expect("just fits");
    let refused = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&reads(1)]);
    assert_eq!(refused, Err(blocked(Resource::Edges, 1, 2)));
    world.drain();
    let (last, _) = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&reads(2)]).expect("free again");
    assert_eq!(world.pump(), [(last, 0)]);
}

/// Map entries push back; a task that writes more than there are is told so.
#[test]
fn map_entries_push_back() {
    let mut world = World::with(&Config { map_entries: 2, ..config() }, 2, 1, 0);
    let run = world.begin();
    let writes = |count: u64| {
        args(|args| {
            for index in 0..count {
                args.output(bytes(index * 64, 64));
            }
        })
    };
    let target = Target::NextLevel(worker(0));
    let refused = world.try_submit(run, target, None, &[&writes(3)]);
    assert_eq!(refused, Err(EngineError::TooLarge { resource: Resource::MapEntries, needed: 3, size: 2 }));
    world.engine.scope_begin(run).expect("room");
    world.try_submit(run, target, None, &[&writes(2)]).expect("fits");
    assert_eq!(world.try_submit(run, target, None, &[&writes(1)]), Err(blocked(Resource::MapEntries, 1, 2)));
    world.engine.scope_end(run).expect("open");
    world.drain();
    assert!(world.try_submit(run, target, None, &[&writes(2)]).is_ok());
}

/// The argument arena pushes back, and everything that fits an empty arena fits when it is empty again.
#[test]
fn the_argument_arena_pushes_back() {
    let mut world = World::with(&Config { args_bytes: 1024, ..config() }, 2, 1, 0);
    let run = world.begin();
    let target = Target::NextLevel(worker(0));
    let with = |tensors: u64| {
        args(|args| {
            for index in 0..tensors {
                args.input(bytes(index * 64, 64));
            }
        })
    };
    let too_large = EngineError::TooLarge { resource: Resource::Arguments, needed: 1088, size: 1024 };
    assert_eq!(world.try_submit(run, target, None, &[&with(8)]), Err(too_large));
    for round in 0..3 {
        world.engine.scope_begin(run).expect("room");
        for tensors in [1, 2, 3] {
            world.try_submit(run, target, None, &[&with(tensors)]).expect("room");
        }
        assert_eq!(world.try_submit(run, target, None, &[&with(2)]), Err(blocked(Resource::Arguments, 320, 1024)));
        world.engine.scope_end(run).expect("open");
        world.drain();
        world.engine.scope_begin(run).expect("room");
        world.try_submit(run, target, None, &[&with(7)]).unwrap_or_else(|error| panic!("round {round}: {error}"));
        world.engine.scope_end(run).expect("open");
        world.drain();
    }
}

/// Group members and configs push back.
#[test]
fn group_members_and_configs_push_back() {
    let mut world = World::with(&Config { group_members: 3, configs: 2, ..config() }, 2, 4, 0);
    let run = world.begin();
    let empty = TaskArgs::new();
    let ids = [worker(0), worker(1), worker(2), worker(3)];
    let refused = world.try_submit(run, Target::NextLevelGroup(&ids), None, &[&empty; 4]);
    assert_eq!(refused, Err(EngineError::TooLarge { resource: Resource::GroupMembers, needed: 4, size: 3 }));
    world.try_submit(run, Target::NextLevelGroup(&ids[..2]), None, &[&empty; 2]).expect("room");
    let refused = world.try_submit(run, Target::NextLevelGroup(&ids[2..]), None, &[&empty; 2]);
    assert_eq!(refused, Err(blocked(Resource::GroupMembers, 2, 3)));
    let threads = |count| CallConfig { aicpu_thread_num: count, ..CallConfig::ZERO };
    world.try_submit(run, Target::NextLevel(worker(0)), Some(&threads(2)), &[&empty]).expect("room");
    world.try_submit(run, Target::NextLevel(worker(0)), Some(&threads(2)), &[&empty]).expect("the same");
    let refused = world.try_submit(run, Target::NextLevel(worker(0)), Some(&threads(3)), &[&empty]);
    assert_eq!(refused, Err(blocked(Resource::Configs, 1, 2)));
    let invalid = world.try_submit(run, Target::NextLevel(worker(0)), Some(&threads(1)), &[&empty]);
    assert!(matches!(invalid, Err(EngineError::Invalid { what: "call config", .. })));
}

/// SUB tasks carry the all-zero config whatever was asked for.
#[test]
fn sub_tasks_carry_the_all_zero_config() {
    let mut world = World::new(1, 1);
    let run = world.begin();
    let empty = TaskArgs::new();
    let config = CallConfig { aicpu_thread_num: 4, ..CallConfig::ZERO };
    let (sub, _) = world.try_submit(run, Target::Sub, Some(&config), &[&empty]).expect("room");
    let (next, _) = world.try_submit(run, Target::NextLevel(worker(0)), Some(&config), &[&empty]).expect("room");
    world.pump();
    assert_eq!(world.engine.payload(world.ticket(sub)).expect("running").config, &CallConfig::ZERO);
    assert_eq!(world.engine.payload(world.ticket(next)).expect("running").config, &config);
}

/// A pool of messages that is full drops messages, and says so; failures stay failures.
#[test]
fn a_full_message_pool_drops_messages_and_nothing_else() {
    let mut world = World::with(&Config { error_texts: 1, ..config() }, 2, 2, 0);
    let run = world.begin();
    let (a, b) = (world.task(run, 0, |_| {}), world.task(run, 1, |_| {}));
    world.close(run);
    let other = world.begin();
    world.task(other, 0, |_| {});
    world.pump();
    world.fail(a, "kept");
    world.end_member(b, 0, Outcome::EndpointFailure("dropped"));
    assert!(matches!(world.engine.outcome(run), Some(RunOutcome::Failed { message: "kept", .. })));
    world.pump();
    world.fail(3, "no room");
    world.close(other);
    match world.engine.outcome(other) {
        Some(RunOutcome::Failed { message, .. }) => assert!(message.contains("error_texts"), "{message}"),
        outcome => panic!("{outcome:?}"),
    }
}

/// A message longer than the pool keeps is cut on a character boundary, and one sees it.
#[test]
fn a_long_message_is_cut_on_a_character_boundary_with_an_ellipsis() {
    let mut world = World::new(1, 0);
    let run = world.begin();
    world.task(run, 0, |_| {});
    world.close(run);
    world.pump();
    let kept = laneway_core::engine::TEXT_BYTES - 4;
    let long = "x".repeat(kept) + "ééé";
    world.fail(1, &long);
    match world.engine.outcome(run) {
        Some(RunOutcome::Failed { message, .. }) => assert_eq!(message, "x".repeat(kept) + "…"),
        outcome => panic!("{outcome:?}"),
    }
}

/// Settings that cannot work are refused by name.
#[test]
fn impossible_settings_are_refused_by_name() {
    let refuse = |config: Config| Engine::new(&config, 2, &[]).err().map(|error| error.to_string());
    let zero = refuse(Config { task_window: 0, ..config() }).expect("refused");
    assert_eq!(zero, "engine setting task_window = 0 is outside 1..=16777216");
    let mut rings = config().rings;
    rings[1] = RingSpec { base: rings[0].base + 1024, bytes: 4096 };
    assert!(refuse(Config { rings, ..config() }).expect("refused").starts_with("heap ring 1 at "));
    rings[1] = RingSpec { base: 8, bytes: 8 };
    assert!(refuse(Config { rings, ..config() }).is_some());
    assert_eq!(Engine::new(&config(), 3, &[]).err(), Some(EngineError::AdmissionDepth { depth: 3 }));
    assert_eq!(refuse(Config::default()), None);
}

/// 10^4 tasks through pools of a handful each: every legal program goes on, and nothing is left.
#[test]
fn a_long_program_goes_through_tiny_pools() {
    let tiny = Config { task_window: 4, edges: 3, map_entries: 4, args_bytes: 1024, slabs: 2, ..config() };
    let mut world = World::with(&tiny, 1, 2, 0);
    let run = world.begin();
    let mut blocks = 0;
    for index in 0..10_000u64 {
        world.engine.scope_begin(run).expect("room");
        let list = args(|args| {
            args.inout(bytes((index % 3) * 64, 64)).input(bytes(1024, 64));
        });
        let target = Target::NextLevel(worker((index % 2) as i32));
        while let Err(error) = world.try_submit(run, target, None, &[&list]) {
            assert!(matches!(error, EngineError::Blocked { may_free: true, .. }), "{error}");
            blocks += 1;
            world.pump();
            let first = *world.running().first().expect("something runs, or nothing could be released");
            world.finish(first);
        }
        world.engine.scope_end(run).expect("open");
    }
    assert!(blocks > 5_000, "{blocks}");
    world.close(run);
    world.drain();
    assert_eq!(world.engine.outcome(run), Some(RunOutcome::Completed));
    world.engine.release(run).expect("known");
    assert!(world.engine.usage().is_idle());
}
