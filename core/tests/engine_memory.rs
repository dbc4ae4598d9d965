//! Rings, scopes, allocations, and what host memory may be named.

mod engine_support;

use engine_support::{BUFFER, RING, RING_BYTES, World, args, at, bytes, config, fresh, worker};
use laneway_core::engine::{Argument, EngineError, Memory, Range, RangeKind, Resource, Target};
use laneway_core::ids::RunId;
use laneway_core::model::TaskArgs;
use laneway_core::wire::ByteRange;

fn open() -> (World, RunId) {
    let mut world = World::new(4, 1);
    let run = world.begin();
    (world, run)
}

fn output(world: &mut World, run: RunId, id: i32, size: u32) -> (u64, u64) {
    let list = args(|args| {
        args.output(fresh(size));
    });
    let (task, outputs) = world.try_submit(run, Target::NextLevel(worker(id)), None, &[&list]).expect("room");
    assert_eq!(outputs.len(), 1);
    (task, outputs[0].address)
}

const ARGUMENT: Argument = Argument { member: 0, tensor: 0 };

/// E-25: the ring follows the depth of the scope, the outer one being 0, and the fourth serves all deeper ones.
#[test]
fn the_ring_is_chosen_by_the_depth_of_the_scope() {
    let (mut world, run) = open();
    for depth in 0..6u64 {
        let ring = RING + depth.min(3) * 0x10_0000;
        let address = world.engine.alloc(run, 100).expect("room");
        assert!((ring..ring + RING_BYTES).contains(&address), "depth {depth}: {address:#x}");
        assert!(address.is_multiple_of(1024));
        world.engine.scope_begin(run).expect("room");
    }
}

/// E-25: slabs freed out of order give their bytes back when the oldest is free.
#[test]
fn the_frontier_of_a_ring_moves_with_its_oldest_slab() {
    let (mut world, run) = open();
    world.engine.scope_begin(run).expect("room");
    let (a, first) = output(&mut world, run, 0, 32 << 10);
    let (b, second) = output(&mut world, run, 1, 32 << 10);
    assert_eq!(second, first + (32 << 10));
    world.engine.scope_end(run).expect("open");
    world.pump();
    world.finish(b);
    world.engine.scope_begin(run).expect("room");
    let blocked = world.engine.alloc(run, 1).expect_err("the older one is alive");
    let size = RING_BYTES;
    assert_eq!(blocked, EngineError::Blocked { resource: Resource::Ring(1), needed: 1024, size, may_free: true });
    let text =
        "heap ring 1 (bytes) is full: 1024 needed of 65536; enlarge heap_ring_bytes (rings[i].bytes of the engine)";
    assert_eq!(blocked.to_string(), text);
    world.engine.take_signals();
    world.finish(a);
    assert!(world.engine.take_signals().released, "a blocked submitter is woken (E-13)");
    assert_eq!(world.engine.alloc(run, 64 << 10), Ok(first), "E-26");
}

/// E-25: an outer scope that fills its ring does not starve an inner one.
#[test]
fn rings_are_independent() {
    let (mut world, run) = open();
    world.engine.alloc(run, RING_BYTES).expect("the whole ring");
    assert!(world.engine.alloc(run, 1).is_err());
    world.engine.scope_begin(run).expect("room");
    assert!(world.engine.alloc(run, RING_BYTES).is_ok());
}

/// E-25: a request larger than the ring fails at once, whether it comes from an alloc or from outputs together.
#[test]
fn a_request_larger_than_the_ring_fails_at_once() {
    let (mut world, run) = open();
    let too_large = |needed| EngineError::TooLarge { resource: Resource::Ring(0), needed, size: RING_BYTES };
    assert_eq!(world.engine.alloc(run, RING_BYTES + 1), Err(too_large(RING_BYTES + 1024)));
    assert_eq!(world.engine.alloc(run, u64::MAX), Err(too_large(u64::MAX)));
    let list = args(|args| {
        args.output(fresh(40 << 10)).output(fresh(40 << 10));
    });
    let refused = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&list]);
    assert_eq!(refused, Err(too_large(80 << 10)));
    assert_eq!(world.engine.alloc(run, 0), Err(EngineError::EmptyAllocation));
}

/// E-26: what fits an empty ring succeeds on an empty ring, wherever the cursors are.
#[test]
fn an_empty_ring_takes_whatever_fits_it() {
    let (mut world, run) = open();
    for first in [1u64, 1024, 5000, 33 << 10, 60 << 10] {
        world.engine.scope_begin(run).expect("room");
        world.engine.alloc(run, first).expect("room");
        world.engine.scope_end(run).expect("open");
        world.engine.scope_begin(run).expect("room");
        world.engine.alloc(run, RING_BYTES).expect("the ring is empty");
        world.engine.scope_end(run).expect("open");
    }
}

/// E-25: a slab never crosses the end of the ring, and the bytes skipped there come back with it.
#[test]
fn slabs_wrap_around_whole() {
    let (mut world, run) = open();
    world.engine.scope_begin(run).expect("room");
    let (a, first) = output(&mut world, run, 0, 20 << 10);
    let (b, _) = output(&mut world, run, 1, 20 << 10);
    world.engine.scope_end(run).expect("open");
    world.pump();
    world.finish(a);
    world.engine.scope_begin(run).expect("room");
    // 24 KiB are left at the end, 20 KiB at the start.
    assert!(world.engine.alloc(run, 25 << 10).is_err());
    let end = world.engine.alloc(run, 24 << 10).expect("fits at the end");
    assert_eq!(end, first + (40 << 10));
    assert_eq!(world.engine.alloc(run, 20 << 10), Ok(first), "and at the start");
    assert!(world.engine.alloc(run, 1).is_err(), "now it is full");
    world.finish(b);
    assert!(world.engine.alloc(run, 20 << 10).is_ok(), "between the two");
}

/// E-27: alloc, pass it as an output, leave the scope while the task still runs: the slab is not handed out twice.
#[test]
fn a_slab_outlives_its_scope_while_a_task_names_it() {
    for tag in 0..5 {
        let (mut world, run) = open();
        world.engine.scope_begin(run).expect("room");
        let slab = world.engine.alloc(run, RING_BYTES).expect("room");
        let task = world.task(run, 0, |args| {
            let tensor = at(slab + 4096, 64);
            match tag {
                0 => args.output(tensor),
                1 => args.inout(tensor),
                2 => args.output_existing(tensor),
                3 => args.input(tensor),
                _ => args.no_dep(tensor),
            };
        });
        world.engine.scope_end(run).expect("open");
        world.engine.scope_begin(run).expect("room");
        assert!(world.engine.alloc(run, 1).is_err(), "tag {tag}");
        assert_eq!(world.pump(), [(task, 0)], "tag {tag}: no wait");
        assert!(world.engine.alloc(run, 1).is_err(), "tag {tag}: running");
        world.finish(task);
        assert_eq!(world.engine.alloc(run, 1), Ok(slab), "tag {tag}");
    }
}

/// E-27: an allocation that nobody names goes with its scope.
#[test]
fn an_unused_slab_goes_at_scope_end() {
    let (mut world, run) = open();
    world.engine.scope_begin(run).expect("room");
    let slab = world.engine.alloc(run, 10).expect("room");
    world.engine.scope_end(run).expect("open");
    assert_eq!(world.engine.usage().tasks, 0);
    let stale = args(|args| {
        args.input(at(slab, 10));
    });
    let refused = world.try_submit(run, Target::Sub, None, &[&stale]);
    assert_eq!(refused, Err(EngineError::DeadSlab { argument: ARGUMENT, address: slab, ring: 1, run }));
}

/// E-14, E-27: a slab belongs to its run; another run that names it would have to wait for a run behind it.
#[test]
fn a_slab_of_another_run_is_refused() {
    let (mut world, first) = open();
    let slab = world.engine.alloc(first, 10).expect("room");
    world.task(first, 0, |args| {
        args.input(at(slab, 10));
    });
    world.close(first);
    let second = world.begin();
    let foreign = args(|args| {
        args.input(at(slab, 10));
    });
    let refused = world.try_submit(second, Target::Sub, None, &[&foreign]);
    assert_eq!(refused, Err(EngineError::DeadSlab { argument: ARGUMENT, address: slab, ring: 0, run: second }));
}

/// The outputs of one task are one block, carved into aligned slabs, told in argument and member order.
#[test]
fn the_outputs_of_a_task_are_carved_out_of_one_block() {
    let (mut world, run) = open();
    let first = args(|args| {
        args.output(fresh(100)).input(bytes(0, 8)).output(fresh(1025));
    });
    let second = args(|args| {
        args.output(fresh(1024));
    });
    let targets = [worker(0), worker(1)];
    let (task, outputs) =
        world.try_submit(run, Target::NextLevelGroup(&targets), None, &[&first, &second]).expect("room");
    let told: Vec<_> = outputs.iter().map(|o| (o.member.index(), o.tensor, o.address - RING)).collect();
    assert_eq!(told, [(0, 0, 0), (0, 2, 1024), (1, 0, 3072)]);
    assert_eq!(world.engine.usage().slabs, 1);
    world.pump();
    let ticket = world.running[&(task, 1)].ticket;
    let blob = world.engine.payload(ticket).expect("running").blob;
    assert_eq!(blob.as_ptr() as usize % 64, 56, "the tensors are aligned");
    let view = laneway_core::wire::args::decode(blob, blob.len()).expect("valid");
    assert_eq!(view.tensors()[0].addr(), RING + 3072, "the child is told the address");
}

/// An output without an address must name bytes, and only an output may be without one.
#[test]
fn only_an_output_with_bytes_can_be_allocated_by_a_submit() {
    let (mut world, run) = open();
    let input = args(|args| {
        args.input(fresh(64));
    });
    let refused = world.try_submit(run, Target::Sub, None, &[&input]);
    assert_eq!(refused, Err(EngineError::NoAddress { argument: ARGUMENT }));
    let empty = args(|args| {
        args.output(fresh(0));
    });
    let refused = world.try_submit(run, Target::Sub, None, &[&empty]);
    assert_eq!(refused, Err(EngineError::EmptyOutput { argument: ARGUMENT }));
}

/// E-28: scopes nest to 64 frames, an end without a begin is an error, and ending releases each task once.
#[test]
fn scopes_nest_to_a_limit_and_end_once() {
    let (mut world, run) = open();
    assert_eq!(world.engine.scope_end(run), Err(EngineError::ScopeUnderflow));
    let done = world.task(run, 0, |_| {});
    world.pump();
    world.finish(done);
    assert_eq!(world.engine.usage().tasks, 1, "its scope holds it");
    for _ in 1..64 {
        world.engine.scope_begin(run).expect("room");
    }
    assert_eq!(world.engine.scope_begin(run), Err(EngineError::ScopeTooDeep { limit: 64 }));
    let inner = world.task(run, 0, |_| {});
    for _ in 1..64 {
        world.engine.scope_end(run).expect("open");
    }
    assert_eq!(world.engine.scope_end(run), Err(EngineError::ScopeUnderflow));
    world.pump();
    world.finish(inner);
    assert_eq!(world.engine.usage().tasks, 1, "ended after its scope: gone at once");
    world.close(run);
    assert_eq!(world.engine.usage().tasks, 0, "the outer scope ends with the graph");
    assert_eq!(
        world.engine.scope_begin(run),
        Err(EngineError::NotBuilding { run, phase: laneway_core::engine::RunPhase::Completed })
    );
}

/// E-38: a plain heap pointer is refused with argument, address and remedy; so is a tensor that leaves its range.
#[test]
fn memory_that_children_do_not_share_is_refused() {
    let (mut world, run) = open();
    let on_the_heap = Box::new([0u8; 64]);
    let address = on_the_heap.as_ptr() as u64;
    let list = args(|args| {
        args.input(bytes(0, 8)).input(at(address, 64));
    });
    let refused = world.try_submit(run, Target::Sub, None, &[&list]).expect_err("not shared");
    let argument = Argument { member: 0, tensor: 1 };
    assert_eq!(refused, EngineError::NotShared { argument, address, bytes: 64 });
    assert!(refused.to_string().contains("share_range"), "{refused}");
    let leaves = args(|args| {
        args.input(at(BUFFER + engine_support::BUFFER_BYTES - 8, 16));
    });
    assert!(matches!(world.try_submit(run, Target::Sub, None, &[&leaves]), Err(EngineError::NotShared { .. })));
    assert!(world.engine.usage().is_idle() || world.engine.usage().tasks == 0);
}

/// E-38: a snapshot may be read and is never written; memory of an outer worker may be both.
#[test]
fn a_snapshot_is_input_only() {
    let (mut world, run) = open();
    world.engine.add_range(Range { base: 0x5000_0000, bytes: 4096, kind: RangeKind::Snapshot }).expect("free");
    world.engine.add_range(Range { base: 0x6000_0000, bytes: 4096, kind: RangeKind::Outer }).expect("free");
    world.sub(run, |args| {
        args.input(at(0x5000_0000, 64));
    });
    for fill in [TaskArgs::output as fn(&mut TaskArgs, _) -> &mut TaskArgs, TaskArgs::inout, TaskArgs::no_dep] {
        let list = args(|args| {
            fill(args, at(0x5000_0000, 64));
        });
        let refused = world.try_submit(run, Target::Sub, None, &[&list]);
        assert_eq!(refused, Err(EngineError::SnapshotWrite { argument: ARGUMENT, address: 0x5000_0000 }));
    }
    world.sub(run, |args| {
        args.inout(at(0x6000_0000, 64));
    });
}

/// E-42: ranges may not overlap each other or a ring, and are found whatever the order of their registration.
#[test]
fn registered_ranges_do_not_overlap() {
    let mut config = config();
    config.ranges = 6;
    let mut world = World::with(&config, 2, 1, 1);
    let mut add = |base, bytes| world.engine.add_range(Range { base, bytes, kind: RangeKind::Shared });
    assert!(add(0x7000_2000, 4096).is_ok());
    assert!(add(0x7000_0000, 4096).is_ok());
    assert!(add(0x7000_1000, 4096).is_ok());
    for (base, bytes) in [
        (0x7000_0fff, 2),
        (0x7000_2fff, 1),
        (RING, 16),
        (RING - 8, 16),
        (0x8000_0000, 0),
        (u64::MAX - 4, 8),
        (BUFFER - 1, 2),
    ] {
        assert!(matches!(add(base, bytes), Err(EngineError::Range { .. })), "{base:#x} {bytes}");
    }
    assert!(add(0x9000_0000, 8).is_ok() && add(0xa000_0000, 8).is_ok());
    assert!(add(0xb000_0000, 8).is_err(), "no record is left");
    let run = world.begin();
    for address in [0x7000_0000, 0x7000_1fff, 0x7000_2800] {
        world.sub(run, |args| {
            args.input(at(address, 1));
        });
    }
    assert!(world.engine.remove_range(0x7000_1000).is_err(), "named by an unfinished task (T-47)");
    world.drain();
    assert_eq!(world.engine.remove_range(0x7000_1000), Ok(()));
    let gone = args(|args| {
        args.input(at(0x7000_1800, 8));
    });
    assert!(matches!(world.try_submit(run, Target::Sub, None, &[&gone]), Err(EngineError::NotShared { .. })));
}

/// T-47: a range whose writer has ended can go although the writer is not consumed; its bytes start afresh.
#[test]
fn a_range_can_be_forgotten_once_nothing_unfinished_names_it() {
    let (mut world, run) = open();
    let a = world.task(run, 0, |args| {
        args.output(bytes(0, 64)).output(bytes(64, 64)).output(bytes(256, 64));
    });
    assert_eq!(
        world.engine.remove_range(BUFFER),
        Err(EngineError::RangeInUse { base: BUFFER, bytes: engine_support::BUFFER_BYTES })
    );
    world.pump();
    assert!(world.engine.unfinished_names(Memory::Host, ByteRange { start: BUFFER + 300, end: BUFFER + 301 }));
    world.finish(a);
    assert!(!world.engine.unfinished_names(Memory::Host, ByteRange { start: BUFFER + 300, end: BUFFER + 301 }));
    world.engine.remove_range(BUFFER).expect("finished");
    world.engine.add_range(Range { base: BUFFER, bytes: 4096, kind: RangeKind::Buffer }).expect("free");
    world.task(run, 1, |args| {
        args.input(bytes(0, 64));
    });
    assert_eq!(world.engine.usage().edges, 0);
    world.close(run);
    world.drain();
    world.engine.release(run).expect("known");
    assert!(world.engine.usage().is_idle());
}
