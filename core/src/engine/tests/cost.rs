//! Cost that must not grow with what merely exists.

use alloc::vec::Vec;

use crate::engine::{Action, Config, Engine, Outcome, Submission, Target, WorkerClass, WorkerSpec};
use crate::engine::{Range, RangeKind};
use crate::ids::{EndpointIndex, WorkerId};
use crate::model::TaskArgs;
use crate::wire::{AddressSpace, ChipTensor, Digest, Dtype};

fn engine(workers: u16) -> Engine {
    let spec = |id: u16| WorkerSpec {
        class: WorkerClass::NextLevel(WorkerId::new(id.into()).expect("not negative")),
        endpoint: EndpointIndex(id),
        staging: true,
    };
    let specs: Vec<_> = (0..workers).map(spec).collect();
    let small = Config { task_window: 64, args_bytes: 4096, error_texts: 1, slabs: 1, ..Config::default() };
    Engine::new(&small, 2, &specs).expect("valid")
}

/// Runs tasks on worker `id`, each behind another that is still running; returns how often a worker was looked at.
fn looks(engine: &mut Engine, id: i32, tasks: u64) -> u64 {
    let before = engine.looked_at;
    let args = TaskArgs::new();
    let digest = Digest([1; 32]);
    let worker = WorkerId::new(id).expect("not negative");
    let submission = Submission {
        target: Target::NextLevel(worker),
        digest: &digest,
        config: None,
        members: &[&args],
        deadline: None,
    };
    for _ in 0..tasks / 32 {
        let run = engine.begin_run().expect("a lease");
        for _ in 0..32 {
            engine.submit(run, &submission, &mut |_| {}).expect("room");
            if let Some(Action::Dispatch { ticket, .. }) = engine.next_action() {
                engine.submit(run, &submission, &mut |_| {}).expect("room");
                assert_eq!(engine.next_action(), None, "the worker is busy");
                engine.completed(ticket, Outcome::Success);
            }
            while let Some(Action::Dispatch { ticket, .. }) = engine.next_action() {
                engine.completed(ticket, Outcome::Success);
            }
        }
        engine.close_submission(run).expect("open");
        assert_eq!(engine.next_action(), None);
        engine.release(run).expect("known");
    }
    engine.looked_at - before
}

/// E-37: 256 workers of which one is busy cost what one worker costs.
#[test]
fn a_step_looks_at_the_workers_that_changed_and_no_others() {
    let one = looks(&mut engine(1), 0, 3200);
    let many = looks(&mut engine(256), 200, 3200);
    assert_eq!(one, many);
    assert!(one <= 3 * 3200, "{one} looks for 6,400 tasks");
}

/// T-49: a task costs after many thousands of others what it costs at first.
#[test]
fn work_per_task_does_not_grow_with_age() {
    let mut engine = engine(4);
    let young = looks(&mut engine, 2, 3200);
    looks(&mut engine, 1, 64_000);
    assert_eq!(looks(&mut engine, 2, 3200), young);
    assert!(engine.usage().is_idle());
}

/// Four tensors of `round`'s own part of a buffer, in no order: read, read, updated and overwritten.
fn four_tensors(round: u64) -> TaskArgs {
    let tensor = |index: u64| {
        let addr = 0x10_0000 + (round * 37 % 64 * 4 + index) * 256;
        ChipTensor::contiguous(addr, 256, Dtype::U8, &[256], AddressSpace::Host).expect("inside")
    };
    let mut args = TaskArgs::new();
    args.input(tensor(0)).input(tensor(1)).inout(tensor(2)).output_existing(tensor(3));
    args
}

/// How many entries of trees are looked at for `rounds` tasks, each of which writes where others of its run do not.
fn visits(engine: &mut Engine, rounds: u64) -> u64 {
    let before = engine.map.visited();
    let digest = Digest([1; 32]);
    let worker = WorkerId::new(0).expect("not negative");
    for first in (0..rounds).step_by(32) {
        let run = engine.begin_run().expect("a lease");
        for round in first..first + 32 {
            let args = four_tensors(round);
            let submission = Submission {
                target: Target::NextLevel(worker),
                digest: &digest,
                config: None,
                members: &[&args],
                deadline: None,
            };
            engine.submit(run, &submission, &mut |_| {}).expect("room");
            while let Some(Action::Dispatch { ticket, .. }) = engine.next_action() {
                engine.completed(ticket, Outcome::Success);
            }
        }
        engine.close_submission(run).expect("open");
        engine.release(run).expect("known");
    }
    engine.map.visited() - before
}

/// T-49, E-42: the trees of dependencies cost after 100,000 tasks what they cost at first.
#[test]
fn a_look_up_costs_after_100_000_tasks_what_it_costs_at_first() {
    let mut engine = engine(1);
    engine.add_range(Range { base: 0x10_0000, bytes: 1 << 20, kind: RangeKind::Buffer }).expect("free");
    let young = visits(&mut engine, 3200);
    visits(&mut engine, 102_400);
    assert_eq!(visits(&mut engine, 3200), young);
    assert!(young > 3200 && young <= 3200 * 4 * 8, "{young} entries for 12,800 look-ups");
    assert!(engine.usage().is_idle());
}
