//! From tags to order: who waits for whom, and who is poisoned by whom.

mod engine_support;

use engine_support::{BUFFER, BUFFER_BYTES, World, args, at, bytes, config, fresh, tile, worker};
use laneway_core::engine::{Argument, EngineError, FailureKind, RunOutcome, Target};
use laneway_core::ids::{RunId, TaskSlot};
use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};

/// A world with one run open and as many workers as the test has tasks, so that order comes from dependencies alone.
fn open() -> (World, RunId) {
    let mut world = World::new(8, 1);
    let run = world.begin();
    (world, run)
}

fn input(tensor: ChipTensor) -> impl FnOnce(&mut TaskArgs) {
    move |args| {
        args.input(tensor);
    }
}

fn output(tensor: ChipTensor) -> impl FnOnce(&mut TaskArgs) {
    move |args| {
        args.output_existing(tensor);
    }
}

fn inout(tensor: ChipTensor) -> impl FnOnce(&mut TaskArgs) {
    move |args| {
        args.inout(tensor);
    }
}

fn device(at: u64, bytes: u32) -> ChipTensor {
    ChipTensor::contiguous(at, bytes.into(), Dtype::U8, &[bytes], AddressSpace::Device).expect("valid")
}

/// T-1: writers of disjoint rows and column blocks do not wait for each other; a reader of the whole waits for both.
#[test]
fn disjoint_views_of_one_tensor_are_independent_and_a_reader_of_the_whole_waits_for_both() {
    for (left, right) in [
        (tile(16, 0, 0, 4, 16), tile(16, 4, 0, 4, 16)),
        (tile(16, 0, 0, 8, 8), tile(16, 0, 8, 8, 8)),
        (tile(16, 0, 4, 8, 4), tile(16, 1, 12, 8, 4)),
    ] {
        let (mut world, run) = open();
        let a = world.task(run, 0, output(left));
        let b = world.task(run, 1, output(right));
        let whole = world.task(run, 2, input(tile(16, 0, 0, 9, 16)));
        assert_eq!(world.pump(), [(a, 0), (b, 1)]);
        world.finish(a);
        assert_eq!(world.pump(), []);
        world.finish(b);
        assert_eq!(world.pump(), [(whole, 2)]);
    }
}

/// T-2: extents are measured in more than 64 bits; a view that leaves its buffer that way never reaches the engine.
#[test]
fn an_extent_that_wraps_is_refused_where_the_tensor_is_made() {
    let wraps = ChipTensor::strided(BUFFER, 4, Dtype::F32, &[2_147_483_649], &[2_147_483_648], 0, AddressSpace::Host);
    assert!(wraps.is_err());
    // Two views that fill the largest legal buffers of the range overlap.
    let (mut world, run) = open();
    let a = world.task(run, 0, output(bytes(0, BUFFER_BYTES as u32)));
    world.task(run, 1, input(bytes(BUFFER_BYTES - 1, 1)));
    assert_eq!(world.pump(), [(a, 0)]);
}

/// T-3, E-14: neither producers nor errors of one run reach another that uses the same bytes.
#[test]
fn runs_do_not_see_each_other() {
    let (mut world, first) = open();
    let a = world.task(first, 0, output(bytes(0, 64)));
    world.close(first);
    world.pump();
    let second = world.begin();
    let b = world.task(second, 1, input(bytes(0, 64)));
    world.close(second);
    world.fail(a, "bad");
    assert_eq!(world.engine.outcome(first), Some(RunOutcome::Failed { kind: FailureKind::Task, message: "bad" }));
    world.pump();
    world.finish(b);
    assert_eq!(world.engine.outcome(second), Some(RunOutcome::Completed));
}

/// T-4, E-18: 256 inputs from 256 producers take 256 edges, also when each is named twice.
#[test]
fn a_fan_in_takes_one_edge_per_producer() {
    let mut config = config();
    config.task_window = 512;
    config.edges = 256;
    config.args_bytes = 1 << 20;
    let mut world = World::with(&config, 2, 2, 0);
    let run = world.begin();
    for index in 0..128 {
        world.task(run, 0, output(bytes(index * 64, 64)));
    }
    let reader = world.task(run, 1, |args| {
        for index in 0..256 {
            args.input(bytes(index * 32, 32));
        }
    });
    assert_eq!(world.engine.usage().edges, 128, "one per producer, though each is named twice");
    for task in 1..=128 {
        assert_eq!(world.pump(), [(task, 0)]);
        world.finish(task);
    }
    assert_eq!(world.pump(), [(reader, 1)]);
}

/// T-5: an argument list that reads and writes the same bytes is refused, in either order, and names both.
#[test]
fn a_task_may_not_name_overlapping_bytes_when_either_is_written() {
    let (mut world, run) = open();
    for list in [
        args(|args| {
            args.output(bytes(0, 64)).input(bytes(32, 64));
        }),
        args(|args| {
            args.input(bytes(32, 64)).output(bytes(0, 64));
        }),
        args(|args| {
            args.inout(bytes(0, 64)).no_dep(bytes(0, 64));
        }),
    ] {
        let refused = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&list]);
        let first = Argument { member: 0, tensor: 0 };
        assert_eq!(refused, Err(EngineError::Aliased { first, second: 1 }));
    }
    // Many arguments take another path to the same answer.
    let many = args(|args| {
        for index in 0..200 {
            args.output(bytes(8192 - index * 32, 32));
        }
        args.input(bytes(8192 - 77 * 32 + 8, 8));
    });
    let refused = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&many]);
    let first = Argument { member: 0, tensor: 77 };
    assert_eq!(refused, Err(EngineError::Aliased { first, second: 200 }));
    // Reading twice, or disjoint views of one buffer, is fine.
    world.task(run, 0, |args| {
        args.input(bytes(0, 64)).input(bytes(32, 64));
    });
    world.task(run, 1, |args| {
        args.output(tile(16, 0, 0, 8, 8)).input(tile(16, 0, 8, 8, 8));
    });
}

/// E-15: bytes count, not the pointer that names them.
#[test]
fn a_view_through_another_base_address_is_the_same_bytes() {
    let (mut world, run) = open();
    let a = world.task(run, 0, output(bytes(0, 256)));
    let other = ChipTensor::strided(BUFFER + 128, 4096, Dtype::F32, &[4], &[1], 2, AddressSpace::Host).expect("valid");
    let b = world.task(run, 1, input(other));
    assert_eq!(world.pump(), [(a, 0)]);
    world.finish(a);
    assert_eq!(world.pump(), [(b, 1)]);
}

/// E-15: equal numbers on two devices, or on a device and the host, are different places.
#[test]
fn device_memory_is_keyed_with_its_worker() {
    let (mut world, run) = open();
    let a = world.task(run, 0, output(device(BUFFER, 64)));
    let b = world.task(run, 1, input(device(BUFFER, 64)));
    let c = world.task(run, 2, input(bytes(0, 64)));
    let d = world.task(run, 0, input(device(BUFFER + 32, 64)));
    assert_eq!(world.pump(), [(a, 0), (b, 1), (c, 2)]);
    world.finish(a);
    assert_eq!(world.pump(), [(d, 0)]);
    let refused = world.try_submit(run, Target::Sub, None, &[&args(input(device(64, 64)))]);
    assert_eq!(refused, Err(EngineError::DeviceOnSub { argument: Argument { member: 0, tensor: 0 } }));
}

/// E-16: views whose shapes cannot be compared are compared by their ranges: an edge too many, never one too few.
#[test]
fn views_of_different_layout_are_compared_by_range() {
    let (mut world, run) = open();
    let a = world.task(run, 0, output(tile(16, 0, 0, 4, 4)));
    // Column 8 as 16-bit elements: no byte in common, but nothing says so.
    let other =
        ChipTensor::strided(BUFFER, 4096, Dtype::F16, &[3], &[34], 40, AddressSpace::Host).expect("inside the buffer");
    world.task(run, 1, input(other));
    assert_eq!(world.pump(), [(a, 0)]);
}

/// E-17: a covering update stands for earlier writers; a reader waits for it alone, and it waits for them.
#[test]
fn a_covering_update_takes_the_place_of_earlier_writers() {
    let (mut world, run) = open();
    let a = world.task(run, 0, output(bytes(0, 64)));
    let b = world.task(run, 1, inout(bytes(0, 128)));
    let edges = world.engine.usage().edges;
    let c = world.task(run, 2, input(bytes(0, 64)));
    assert_eq!(world.engine.usage().edges - edges, 1, "on the update alone");
    assert_eq!(world.pump(), [(a, 0)]);
    world.finish(a);
    assert_eq!(world.pump(), [(b, 1)]);
    world.finish(b);
    assert_eq!(world.pump(), [(c, 2)]);
}

/// E-17, E-19: a pure overwrite does not wait, and while an earlier writer is alive a reader waits for both.
#[test]
fn a_reader_waits_for_every_live_writer_behind_a_pure_overwrite() {
    let (mut world, run) = open();
    let a = world.task(run, 0, output(bytes(0, 64)));
    let b = world.task(run, 1, output(bytes(0, 64)));
    let c = world.task(run, 2, input(bytes(0, 64)));
    assert_eq!(world.pump(), [(a, 0), (b, 1)], "E-19: no order between writers");
    world.finish(b);
    assert_eq!(world.pump(), []);
    world.finish(a);
    assert_eq!(world.pump(), [(c, 2)]);
}

/// E-17: a pure overwrite takes the place of writers that have ended, failed ones included.
#[test]
fn an_overwrite_after_a_failure_heals_the_bytes() {
    let (mut world, run) = open();
    let a = world.task(run, 0, output(bytes(0, 64)));
    world.pump();
    world.fail(a, "bad");
    let poisoned = world.task(run, 1, input(bytes(0, 32)));
    let b = world.task(run, 1, output(bytes(0, 64)));
    let c = world.task(run, 2, input(bytes(0, 32)));
    assert_eq!(world.pump(), [(b, 1)], "{poisoned} never runs");
    world.finish(b);
    assert_eq!(world.pump(), [(c, 2)]);
}

/// E-17: a partial overwrite heals only its part.
#[test]
fn a_partial_overwrite_leaves_earlier_entries() {
    let (mut world, run) = open();
    let a = world.task(run, 0, output(bytes(0, 64)));
    world.pump();
    world.fail(a, "bad");
    world.task(run, 1, output(bytes(0, 32)));
    world.task(run, 2, input(bytes(0, 16)));
    world.pump();
    world.finish(2);
    assert_eq!(world.pump(), [], "the reader is poisoned by what is left of the first writer's entry");
}

/// E-17, E-22: an update that is poisoned while an earlier writer still runs must go on standing for that writer: a
/// reader behind a later overwrite waits for the writer, and is not poisoned.
#[test]
fn a_task_that_failed_early_still_orders_what_it_waited_for() {
    let (mut world, run) = open();
    let slow = world.task(run, 0, output(bytes(0, 64)));
    let bad = world.task(run, 1, output(bytes(64, 64)));
    // Reads both: takes the place of `slow` for bytes 0..64, and is then poisoned by `bad`.
    world.task(run, 2, |args| {
        args.inout(bytes(0, 64)).input(bytes(64, 64));
    });
    world.pump();
    world.fail(bad, "bad");
    let overwrite = world.task(run, 3, output(bytes(0, 64)));
    let reader = world.task(run, 4, input(bytes(0, 64)));
    assert_eq!(world.pump(), [(overwrite, 3)]);
    world.finish(overwrite);
    assert_eq!(world.pump(), [], "`slow` may still write the bytes");
    world.finish(slow);
    assert_eq!(world.pump(), [(reader, 4)]);
    world.finish(reader);
    world.close(run);
    assert_eq!(world.engine.outcome(run), Some(RunOutcome::Failed { kind: FailureKind::Task, message: "bad" }));
    world.engine.release(run).expect("known");
    assert!(world.engine.usage().is_idle());
}

/// E-18: a task that names one producer in several arguments, and a group whose members name each other's bytes, has
/// no edge on itself.
#[test]
fn the_members_of_a_group_do_not_wait_for_each_other() {
    let (mut world, run) = open();
    let write = args(output(bytes(0, 64)));
    let read = args(input(bytes(0, 64)));
    let targets = [worker(0), worker(1)];
    world.try_submit(run, Target::NextLevelGroup(&targets), None, &[&write, &read]).expect("not compared");
    assert_eq!(world.engine.usage().edges, 0);
    assert_eq!(world.pump(), [(1, 0), (1, 1)]);
    world.task(run, 2, input(bytes(0, 64)));
    assert_eq!(world.engine.usage().edges, 1);
}

/// E-18, E-23: a producer that has ended is held and not waited for, and goes once, with the last that holds it; one that is consumed gives nothing.
#[test]
fn an_ended_producer_is_held_and_not_waited_for() {
    let (mut world, run) = open();
    world.engine.scope_begin(run).expect("room");
    let a = world.task(run, 0, output(bytes(0, 64)));
    world.pump();
    world.finish(a);
    let b = world.task(run, 1, input(bytes(0, 64)));
    assert_eq!(world.engine.usage().edges, 1);
    assert_eq!(world.pump(), [(b, 1)]);
    world.engine.scope_end(run).expect("open");
    assert_eq!(world.engine.usage().tasks, 2, "the consumer holds it");
    world.finish(b);
    assert_eq!(world.engine.usage().tasks, 0);
    world.task(run, 1, input(bytes(0, 64)));
    assert_eq!(world.engine.usage().edges, 0);
}

/// E-19: by default neither a write after a read nor a write after a write is ordered; `strict_war` orders both.
#[test]
fn strict_war_orders_overwrites_after_readers_and_writers() {
    for strict in [false, true] {
        let mut config = config();
        config.strict_war = strict;
        let mut world = World::with(&config, 2, 8, 0);
        let run = world.begin();
        let a = world.task(run, 0, output(bytes(0, 64)));
        let b = world.task(run, 1, input(bytes(0, 64)));
        let c = world.task(run, 2, output(bytes(0, 64)));
        if !strict {
            assert_eq!(world.pump(), [(a, 0), (c, 2)]);
            continue;
        }
        assert_eq!(world.pump(), [(a, 0)]);
        world.finish(a);
        assert_eq!(world.pump(), [(b, 1)]);
        let d = world.task(run, 3, output(bytes(32, 64)));
        world.finish(b);
        assert_eq!(world.pump(), [(c, 2)]);
        world.fail(c, "bad");
        assert_eq!(world.pump(), [(d, 3)], "order only: an overwrite is not poisoned");
    }
}

/// E-12, E-22: poison walks downstream with the first message; what it reaches never runs, and nothing recurses.
#[test]
fn poison_reaches_everything_downstream_with_the_root_message() {
    let mut config = config();
    config.task_window = 40_000;
    config.edges = 80_000;
    config.map_entries = 40_000;
    config.args_bytes = 16 << 20;
    let mut world = World::with(&config, 2, 2, 0);
    let run = world.begin();
    let root = world.task(run, 0, output(bytes(0, 64)));
    for _ in 0..30_000 {
        world.task(run, 1, inout(bytes(0, 64)));
    }
    world.pump();
    world.fail(root, "worker 0: code 1: the root");
    assert_eq!(world.pump(), []);
    let slots = world.engine.failure_naming(run, &[bytes(0, 8)]).map(str::to_owned);
    assert_eq!(slots.as_deref(), Some("worker 0: code 1: the root"));
    assert_eq!(world.engine.usage().unfinished, 0);
    // Submitted now, a reader is poisoned at once and the submit says nothing of it.
    world.task(run, 1, input(bytes(0, 64)));
    assert_eq!(world.pump(), []);
    world.close(run);
    world.engine.release(run).expect("known");
    assert!(world.engine.usage().is_idle());
}

/// E-22: what runs cannot be failed from outside.
#[test]
fn a_running_consumer_is_not_poisoned_by_an_overtaken_writer() {
    let (mut world, run) = open();
    let a = world.task(run, 0, output(bytes(0, 64)));
    let b = world.task(run, 1, output(bytes(0, 64)));
    world.pump();
    world.fail(a, "bad");
    assert_eq!(world.running(), [b]);
    world.finish(b);
}

/// E-2: a wait for tensors looks at every task that names them, whatever the tag, and at what failed.
#[test]
fn a_wait_for_tensors_sees_every_unfinished_task_that_names_them() {
    let (mut world, run) = open();
    let a = world.task(run, 0, input(bytes(0, 64)));
    let b = world.task(run, 1, |args| {
        args.no_dep(bytes(32, 64));
    });
    world.task(run, 2, input(tile(16, 0, 8, 4, 8)));
    world.pump();
    let wanted = [bytes(0, 64)];
    let first = world.engine.unfinished_naming(run, &wanted, TaskSlot(0)).expect("the reader");
    world.finish(a);
    let second = world.engine.unfinished_naming(run, &wanted, first).expect("the one without order");
    assert_ne!(first, second);
    assert!(world.engine.take_signals().task_ended, "whoever waits looks again");
    world.fail(b, "bad");
    let third = world.engine.unfinished_naming(run, &wanted, second).expect("the tile");
    assert_eq!(world.engine.unfinished_naming(run, &[tile(16, 0, 0, 4, 8)], TaskSlot(0)), None, "exact for tiles");
    assert_eq!(world.engine.failure_naming(run, &wanted), Some("bad"));
    assert_eq!(world.engine.failure_naming(run, &[bytes(512, 8)]), None);
    world.finish(3);
    assert_eq!(world.engine.unfinished_naming(run, &wanted, third), None);
}

/// E-27 seen from the dependencies: an argument of any tag keeps the slab and by that alone waits for nothing.
#[test]
fn naming_a_slab_is_no_dependency() {
    let (mut world, run) = open();
    let (a, outputs) = world
        .try_submit(
            run,
            Target::NextLevel(worker(0)),
            None,
            &[&args(|args| {
                args.output(fresh(2048));
            })],
        )
        .expect("room");
    let b = world.task(run, 1, |args| {
        args.no_dep(at(outputs[0].address, 64));
    });
    let c = world.task(run, 2, input(at(outputs[0].address + 64, 64)));
    assert_eq!(world.pump(), [(a, 0), (b, 1)]);
    world.finish(a);
    assert_eq!(world.pump(), [(c, 2)]);
}

/// E-17, E-24: two members of a group that update the same bytes take one writer's place; what stands beside it in the
/// map is untouched when they go.
#[test]
fn members_that_update_the_same_bytes_leave_other_entries_alone() {
    for position in 0..3u64 {
        let (mut world, run) = open();
        let others: Vec<_> = (0..3)
            .filter(|index| *index != position)
            .map(|index| (index, world.task(run, index as i32, output(bytes(index * 64, 64)))))
            .collect();
        let writer = world.task(run, 3, output(bytes(position * 64, 64)));
        world.engine.scope_begin(run).expect("room");
        let update = args(inout(bytes(position * 64, 64)));
        let targets = [worker(4), worker(5)];
        let (group, _) =
            world.try_submit(run, Target::NextLevelGroup(&targets), None, &[&update, &update]).expect("room");
        world.engine.scope_end(run).expect("open");
        world.pump();
        world.finish(writer);
        assert_eq!(world.pump(), [(group, 4), (group, 5)]);
        world.finish(group);
        for (index, other) in others {
            let edges = world.engine.usage().edges;
            let reader = world.task(run, 6, input(bytes(index * 64, 64)));
            assert_eq!(world.engine.usage().edges, edges + 1, "position {position}: {reader} waits for {other}");
        }
        world.close(run);
        world.drain();
        world.engine.release(run).expect("known");
        assert!(world.engine.usage().is_idle());
    }
}
