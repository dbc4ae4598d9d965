//! Memory is bought once: after construction nothing allocates, whatever a program does.

mod counting;
mod engine_support;

use counting::allocations;
use engine_support::{BUFFER, BUFFER_BYTES, config, worker};
use laneway_core::engine::{
    Action, Config, Engine, Outcome, Range, RangeKind, Submission, Target, WorkerClass, WorkerSpec,
};
use laneway_core::ids::{EndpointIndex, SubId};
use laneway_core::model::TaskArgs;
use laneway_core::wire::{CallConfig, Digest};

fn list(tensors: u64, scalars: u64) -> TaskArgs {
    let mut args = TaskArgs::new();
    for index in 0..tensors {
        let tensor = engine_support::bytes(index * 64, 64);
        match index % 4 {
            0 => args.input(tensor),
            1 => args.inout(tensor),
            2 => args.output(tensor),
            _ => args.output(engine_support::fresh(64)),
        };
    }
    for scalar in 0..scalars {
        args.scalar(scalar);
    }
    args
}

fn pump(engine: &mut Engine, fail: bool) {
    while let Some(action) = engine.next_action() {
        let Action::Dispatch { ticket, prepare_only: false, .. } = action else { continue };
        assert!(engine.payload(ticket).is_some());
        engine.accepted(ticket);
        engine.completed(ticket, if fail { Outcome::TaskFailure("code 1: no") } else { Outcome::Success });
    }
    engine.take_signals();
}

/// Submit → dispatch → completion → release with 0, 4 and 64 tensors, groups, scopes, allocs, configs, SUB work,
/// failures, poison and cancels: no allocation after construction.
#[test]
fn nothing_allocates_after_construction() {
    let mut specs = Vec::new();
    for id in 0..4u16 {
        let class = WorkerClass::NextLevel(worker(id.into()));
        specs.push(WorkerSpec { class, endpoint: EndpointIndex(id), staging: true });
    }
    for id in 0..3u16 {
        specs.push(WorkerSpec {
            class: WorkerClass::Sub(SubId(id.into())),
            endpoint: EndpointIndex(4 + id),
            staging: false,
        });
    }
    let mut pools = Config { edges: 4096, map_entries: 4096, ..config() };
    for ring in &mut pools.rings {
        ring.bytes = 1 << 20;
    }
    let mut engine = Engine::new(&pools, 2, &specs).expect("valid");
    engine.add_range(Range { base: BUFFER, bytes: BUFFER_BYTES, kind: RangeKind::Buffer }).expect("free");
    let lists = [list(0, 0), list(0, 3), list(4, 1), list(64, 0)];
    let ids = [worker(0), worker(1), worker(2), worker(3)];
    let digest = Digest([3; 32]);
    let threads = CallConfig { aicpu_thread_num: 3, ..CallConfig::ZERO };
    let mut tasks = 0u32;
    let before = allocations();
    for round in 0..50u32 {
        let run = engine.begin_run().expect("a lease");
        for args in &lists {
            engine.scope_begin(run).expect("room");
            engine.alloc(run, 2000).expect("room");
            let config = round.is_multiple_of(2).then_some(&threads);
            for target in [
                Target::NextLevel(ids[round as usize % 4]),
                Target::Sub,
                Target::NextLevelGroup(&ids[..3]),
                Target::SubGroup,
            ] {
                let members = [args, args, args];
                let members =
                    if matches!(target, Target::NextLevel(_) | Target::Sub) { &members[..1] } else { &members };
                let submission = Submission { target, digest: &digest, config, members, deadline: None };
                engine.submit(run, &submission, &mut |_| {}).expect("room");
                tasks += 1;
            }
            if round % 3 != 2 {
                pump(&mut engine, round % 5 == 1);
            }
            engine.scope_end(run).expect("open");
        }
        match round % 7 {
            3 => engine.cancel(run).expect("known"),
            5 => engine.fail_submission(run, "callback failed").expect("open"),
            _ => {}
        }
        if round % 7 != 5 {
            engine.close_submission(run).expect("open");
        }
        pump(&mut engine, false);
        assert!(engine.is_terminal(run));
        engine.release(run).expect("known");
    }
    let allocations = allocations() - before;
    assert_eq!(allocations, 0, "over {tasks} tasks");
    assert_eq!(tasks, 800);
    assert!(engine.usage().is_idle());
}
