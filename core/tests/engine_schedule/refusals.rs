//! Targets, endpoints and transitions that are refused.

use laneway_core::engine::{
    Engine, EngineError, GroupEvent, GroupState, RunEvent, RunPhase, Target, TaskEvent, TaskState, WorkerClass,
    WorkerSpec,
};
use laneway_core::ids::EndpointIndex;
use laneway_core::model::TaskArgs;

use crate::engine_support::{World, config, worker};

/// E-39: ids are one space, duplicates are refused naming both, and an unknown or repeated target is an error.
#[test]
fn worker_ids_are_checked() {
    let spec = |id: i32, endpoint| WorkerSpec {
        class: WorkerClass::NextLevel(worker(id)),
        endpoint: EndpointIndex(endpoint),
        staging: false,
    };
    let twice = Engine::new(&config(), 2, &[spec(3, 0), spec(5, 1), spec(3, 2)]).err();
    assert_eq!(twice, Some(EngineError::DuplicateWorker { first: 0, second: 2 }));
    let mut world = World::new(1, 1);
    world.engine = Engine::new(&config(), 2, &[spec(7, 0), spec(100_000, 1), spec(3, 2)]).expect("valid");
    let run = world.begin();
    for (id, endpoint) in [(100_000, 1), (3, 2), (7, 0)] {
        let task = world.task(run, id, |_| {});
        assert_eq!(world.pump(), [(task, endpoint)]);
    }
    let empty = TaskArgs::new();
    let unknown = world.try_submit(run, Target::NextLevel(worker(0)), None, &[&empty]);
    assert_eq!(unknown, Err(EngineError::UnknownWorker { worker: worker(0) }));
    let ids = [worker(7), worker(3), worker(7)];
    let repeated = world.try_submit(run, Target::NextLevelGroup(&ids), None, &[&empty; 3]);
    assert_eq!(repeated, Err(EngineError::DuplicateTarget { worker: worker(7), first: 0, second: 2 }));
    let count = world.try_submit(run, Target::NextLevelGroup(&ids), None, &[&empty; 2]);
    assert_eq!(count, Err(EngineError::MemberCount { targets: 3, members: 2 }));
    let two = world.try_submit(run, Target::NextLevel(worker(7)), None, &[&empty; 2]);
    assert_eq!(two, Err(EngineError::MemberCount { targets: 1, members: 2 }));
    assert_eq!(world.try_submit(run, Target::NextLevel(worker(7)), None, &[]), Err(EngineError::NoMembers));
    let none = world.try_submit(run, Target::Sub, None, &[&empty]);
    assert_eq!(none, Err(EngineError::SubGroupTooLarge { members: 1, pool: 0 }));
}

/// Endpoints that are not the engine's are refused.
#[test]
fn an_unknown_endpoint_is_refused() {
    let mut world = World::with(&config(), 2, 1, 0);
    let endpoint = EndpointIndex(9);
    assert_eq!(world.engine.endpoint_dead(endpoint, "x"), Err(EngineError::UnknownEndpoint { endpoint }));
    assert_eq!(world.engine.stuck(endpoint, "x"), Err(EngineError::UnknownEndpoint { endpoint }));
}

/// E-20, E-21, E-22, E-24: each machine takes exactly the transitions that the book shows; every other is refused.
#[test]
fn illegal_transitions_are_refused() {
    assert_eq!(TaskState::Ready.on(TaskEvent::Claim), Some(TaskState::Running));
    assert_eq!(TaskState::Running.on(TaskEvent::Claim), None, "claimed once");
    assert_eq!(TaskState::Building.on(TaskEvent::LastProducer), None, "half-built");
    assert_eq!(TaskState::Running.on(TaskEvent::Poison), None, "not from outside");
    assert_eq!(TaskState::Failed.on(TaskEvent::Fail), None, "once");
    assert_eq!(GroupState::Launched.on(GroupEvent::GiveUp), None);
    assert_eq!(RunPhase::Completed.on(RunEvent::Fail), None);
    let legal = |count: usize, of: usize| (count, of);
    let tasks = TaskState::ALL.iter().flat_map(|s| TaskEvent::ALL.iter().filter_map(|e| s.on(*e))).count();
    let runs = RunPhase::ALL.iter().flat_map(|s| RunEvent::ALL.iter().filter_map(|e| s.on(*e))).count();
    let groups = GroupState::ALL.iter().flat_map(|s| GroupEvent::ALL.iter().filter_map(|e| s.on(*e))).count();
    assert_eq!((legal(tasks, 104), runs, groups), ((15, 104), 9, 6));
    for (number, state) in TaskState::ALL.into_iter().enumerate() {
        assert_eq!(state as usize, number, "the numbers are part of the contract");
    }
}
