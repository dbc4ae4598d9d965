//! Places that writers left behind: they order nothing, count for nothing and are bounded.

use alloc::vec::Vec;

use crate::engine::backing::range_tree;
use crate::engine::{
    Action, Config, Engine, EngineError, Outcome, Range, RangeKind, Submission, Target, Ticket, WorkerClass, WorkerSpec,
};
use crate::ids::{EndpointIndex, PipelineSlot, RunId, WorkerId};
use crate::model::TaskArgs;
use crate::wire::{AddressSpace, ChipTensor, Digest, Dtype, TensorTag};

const BUFFER: u64 = 0x10_0000;
const BYTES: u64 = 1 << 24;

fn worker(id: u16) -> WorkerId {
    WorkerId::new(id.into()).expect("not negative")
}

/// An engine of two workers and one buffer.
fn engine(map_entries: u32) -> Engine {
    let spec =
        |id: u16| WorkerSpec { class: WorkerClass::NextLevel(worker(id)), endpoint: EndpointIndex(id), staging: false };
    let small = Config { map_entries, task_window: 1024, edges: 4096, slabs: 1, ..Config::default() };
    let mut engine = Engine::new(&small, 1, &[spec(0), spec(1)]).expect("valid");
    engine.add_range(Range { base: BUFFER, bytes: BYTES, kind: RangeKind::Buffer }).expect("free");
    engine
}

/// Bytes `at..at + bytes` of the buffer.
fn bytes(at: u64, bytes: u32) -> ChipTensor {
    ChipTensor::contiguous(BUFFER + at, bytes.into(), Dtype::U8, &[bytes], AddressSpace::Host).expect("inside")
}

fn submit(engine: &mut Engine, run: RunId, id: u16, list: &[(ChipTensor, TensorTag)]) -> Result<Ticket, EngineError> {
    let mut args = TaskArgs::new();
    for (tensor, tag) in list {
        args.push(*tensor, *tag);
    }
    let submission = Submission {
        target: Target::NextLevel(worker(id)),
        digest: &Digest([1; 32]),
        config: None,
        members: &[&args],
        deadline: None,
    };
    engine.submit(run, &submission, &mut |_| {})?;
    Ok(engine.newest().expect("just submitted"))
}

/// Starts whatever can start, and ends what runs on worker 1.
fn work(engine: &mut Engine) {
    let mut started = Vec::new();
    while let Some(action) = engine.next_action() {
        if let Action::Dispatch { ticket, endpoint: EndpointIndex(1), .. } = action {
            started.push(ticket);
        }
        if let Some(ticket) = started.pop() {
            engine.completed(ticket, Outcome::Success);
        }
    }
}

/// A task of worker 1 that writes these bytes comes and goes.
fn write_once(engine: &mut Engine, run: RunId, tensor: ChipTensor) {
    engine.scope_begin(run).expect("not deep");
    submit(engine, run, 1, &[(tensor, TensorTag::OutputExisting)]).expect("room");
    work(engine);
    engine.scope_end(run).expect("open");
}

/// A run, and a task of worker 0 that never ends and writes the first bytes of the buffer.
fn begin(engine: &mut Engine) -> RunId {
    let run = engine.begin_run().expect("a lease");
    submit(engine, run, 0, &[(bytes(0, 16), TensorTag::OutputExisting)]).expect("room");
    work(engine);
    run
}

fn vacant(engine: &Engine) -> u32 {
    engine.map.check(&engine.backings.roots(range_tree(0, PipelineSlot::Zero)));
    engine.map.vacant(PipelineSlot::Zero)
}

/// E-17, E-23: what a consumed task wrote is nobody's; a place says where it was and nothing else.
#[test]
fn a_vacant_place_orders_nothing_and_counts_for_nothing() {
    let mut engine = engine(64);
    let run = begin(&mut engine);
    write_once(&mut engine, run, bytes(64, 64));
    assert_eq!((vacant(&engine), engine.usage().map_entries), (1, 1));
    for tag in [TensorTag::Input, TensorTag::InOut] {
        let reader = submit(&mut engine, run, 1, &[(bytes(64, 64), tag)]).expect("room");
        assert_eq!(engine.producers(reader).next(), None, "{tag:?}");
    }
    // The update has moved in, and orders as any other writer.
    assert_eq!((vacant(&engine), engine.usage().map_entries), (0, 2));
    let update = engine.newest().expect("submitted");
    let reader = submit(&mut engine, run, 1, &[(bytes(100, 4), TensorTag::Input)]).expect("room");
    let producers: Vec<_> = engine.producers(reader).map(|(producer, _)| producer).collect();
    assert_eq!(producers, [update]);
}

/// E-16: bytes that only meet a vacant place are another place, and the vacant one goes.
#[test]
fn a_writer_of_other_bytes_takes_vacant_places_out() {
    let mut engine = engine(64);
    let run = begin(&mut engine);
    for at in [64, 128, 192, 256] {
        write_once(&mut engine, run, bytes(at, 64));
    }
    assert_eq!(vacant(&engine), 4);
    submit(&mut engine, run, 1, &[(bytes(96, 64), TensorTag::OutputExisting)]).expect("room");
    assert_eq!(vacant(&engine), 2);
    // A reader leaves one, where a writer of just these bytes may come, and takes out more.
    submit(&mut engine, run, 1, &[(bytes(192, 32), TensorTag::Input)]).expect("room");
    assert_eq!(vacant(&engine), 2);
    submit(&mut engine, run, 1, &[(bytes(192, 128), TensorTag::Input)]).expect("room");
    assert_eq!(vacant(&engine), 0);
}

/// E-13: a map that is full of vacant places is empty.
#[test]
fn vacant_places_never_stand_in_the_way_of_a_submit() {
    let mut engine = engine(4);
    let run = begin(&mut engine);
    for at in [64, 128, 192] {
        write_once(&mut engine, run, bytes(at, 64));
    }
    assert_eq!(vacant(&engine), 3);
    let three = [1024, 2048, 4096].map(|at| (bytes(at, 64), TensorTag::InOut));
    submit(&mut engine, run, 1, &three).expect("three entries are free");
    assert_eq!((vacant(&engine), engine.usage().map_entries), (0, 4));
    let full = submit(&mut engine, run, 1, &[(bytes(8192, 64), TensorTag::InOut)]);
    assert!(matches!(full, Err(EngineError::Blocked { .. })), "{full:?}");
}

/// E-11: a submit that fails after it moved in leaves the place as it was.
#[test]
fn a_submit_that_fails_moves_out_again() {
    let mut engine = engine(64);
    let run = begin(&mut engine);
    write_once(&mut engine, run, bytes(64, 64));
    let before = engine.usage();
    let nowhere = ChipTensor::contiguous(16, 16, Dtype::U8, &[16], AddressSpace::Host).expect("valid");
    let list = [(bytes(64, 64), TensorTag::InOut), (nowhere, TensorTag::Input)];
    let refused = submit(&mut engine, run, 1, &list);
    assert!(matches!(refused, Err(EngineError::NotShared { .. })), "{refused:?}");
    assert_eq!((vacant(&engine), engine.usage()), (1, before));
    let reader = submit(&mut engine, run, 1, &[(bytes(64, 64), TensorTag::Input)]).expect("room");
    assert_eq!(engine.producers(reader).next(), None);
}

/// E-14: whatever the last act of a run was, the next one on its lease starts with nothing.
#[test]
fn a_run_ends_without_places() {
    let mut engine = engine(64);
    for round in 0..3 {
        let run = engine.begin_run().expect("a lease");
        for at in [64, 128, 192] {
            submit(&mut engine, run, 1, &[(bytes(at, 64), TensorTag::InOut)]).expect("room");
        }
        work(&mut engine);
        if round == 1 {
            engine.fail_submission(run, "changed its mind").expect("open");
        } else {
            engine.close_submission(run).expect("open");
        }
        assert!(engine.is_terminal(run));
        engine.release(run).expect("known");
        assert_eq!(vacant(&engine), 0);
        assert_eq!(engine.backings.roots(range_tree(0, PipelineSlot::Zero)).writers, u32::MAX, "the tree is empty");
    }
    assert!(engine.usage().is_idle());
}

/// E-38: a range can be forgotten while places in it are vacant, and its number used for another.
#[test]
fn a_range_with_vacant_places_can_be_forgotten() {
    let mut engine = engine(64);
    let run = begin(&mut engine);
    let other = Range { base: 0x1000, bytes: 0x1000, kind: RangeKind::Buffer };
    let there = ChipTensor::contiguous(0x1000, 64, Dtype::U8, &[64], AddressSpace::Host).expect("valid");
    for _ in 0..3 {
        engine.add_range(other).expect("free");
        write_once(&mut engine, run, there);
        assert_eq!(vacant(&engine), 1);
        engine.remove_range(other.base).expect("nobody uses it");
        assert_eq!(vacant(&engine), 0);
    }
}

/// E-42: there are never more vacant places than twice as many as there were others at once, and a few; so a run that goes on for ever over new
/// bytes looks at as many places per task as at first.
#[test]
fn vacant_places_are_bounded() {
    let mut engine = engine(2048);
    let run = begin(&mut engine);
    let mut rounds = |first: u64, most: u32| {
        let before = engine.map.visited();
        for round in first..first + 2000 {
            write_once(&mut engine, run, bytes(64 + round * 64 % (BYTES - 64), 64));
            assert!(engine.map.vacant(PipelineSlot::Zero) <= most, "round {round}");
        }
        engine.map.visited() - before
    };
    let young = rounds(0, 257);
    for later in 1..5 {
        assert!(rounds(later * 2000, 257) <= young + young / 10, "{young} at first");
    }
    // 900 at once, all gone together: as many may stay, until others come.
    engine.scope_begin(run).expect("not deep");
    for at in 0..900 {
        submit(&mut engine, run, 1, &[(bytes(0x40_0000 + at * 64, 64), TensorTag::InOut)]).expect("room");
    }
    work(&mut engine);
    engine.scope_end(run).expect("open");
    assert!(vacant(&engine) > 900, "{}", vacant(&engine));
    for round in 0..1000 {
        write_once(&mut engine, run, bytes(0x80_0000 + round * 64, 64));
    }
    assert!(vacant(&engine) <= 903, "{}", vacant(&engine));
    // And again, over new bytes each time, while one writer stays: its scope is not over.
    submit(&mut engine, run, 1, &[(bytes(64, 64), TensorTag::InOut)]).expect("room");
    for batch in 1..6 {
        engine.scope_begin(run).expect("not deep");
        for at in 0..900 {
            submit(&mut engine, run, 1, &[(bytes(0x80_0000 + (batch * 900 + at) * 64, 64), TensorTag::InOut)])
                .expect("room");
        }
        work(&mut engine);
        engine.scope_end(run).expect("open");
        assert!(vacant(&engine) <= 2 * 903, "{batch}: {}", vacant(&engine));
    }
}
