//! The engine alone: submit, dispatch, acceptance, completion and release of a task, a 64th of its run included.
//!
//! A text that is formatted for nobody (T-50) costs more than the tolerance of these figures.

use std::hint::black_box;

use laneway_core::engine::{
    Action, Config, Engine, Outcome, Range, RangeKind, Submission, Target, WorkerClass, WorkerSpec,
};
use laneway_core::ids::{EndpointIndex, RunId, WorkerId};
use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, ChipTensor, Digest, Dtype};

use super::Case;

/// Tasks of the run that is counted.
pub(crate) const TASKS: u64 = 64;

pub(crate) const CASES: &[Case] = &[
    Case { name: "engine, no arguments", times: TASKS, run: || alone(0) },
    Case { name: "engine, four tensors", times: TASKS, run: || alone(4) },
    Case { name: "engine, four tensors, others in each of many", times: MANY, run: many },
];

/// Tasks that are in the engine at the same time.
const MANY: u64 = 1024;

const BUFFER: u64 = 1 << 30;

pub(crate) const DIGEST: Digest = Digest([7; 32]);

pub(crate) fn worker() -> WorkerId {
    WorkerId::new(0).expect("not negative")
}

/// An engine of one NEXT_LEVEL worker and one buffer.
pub(crate) fn engine() -> Engine {
    let worker = WorkerSpec { class: WorkerClass::NextLevel(worker()), endpoint: EndpointIndex(0), staging: false };
    let mut engine = Engine::new(&Config::default(), 2, &[worker]).expect("a valid config");
    engine.add_range(Range { base: BUFFER, bytes: 1 << 26, kind: RangeKind::Buffer }).expect("free");
    engine
}

/// Of each four tensors two are read, one is updated and one is overwritten.
pub(crate) fn arguments(tensors: u64) -> TaskArgs {
    arguments_from(0, tensors)
}

/// The same over the pages of the buffer from `first` on.
pub(crate) fn arguments_from(first: u64, tensors: u64) -> TaskArgs {
    let mut args = TaskArgs::new();
    for index in 0..tensors {
        let addr = BUFFER + (first + index) * 4096;
        let tensor = ChipTensor::contiguous(addr, 4096, Dtype::F32, &[1024], AddressSpace::Host).expect("valid");
        match index % 4 {
            0 | 1 => args.input(tensor),
            2 => args.inout(tensor),
            _ => args.output_existing(tensor),
        };
    }
    args
}

/// One task for the only worker.
pub(crate) fn submission<'a>(members: &'a [&'a TaskArgs]) -> Submission<'a> {
    Submission { target: Target::NextLevel(worker()), digest: &DIGEST, config: None, members, deadline: None }
}

fn alone(tensors: u64) {
    let (mut engine, args) = (engine(), arguments(tensors));
    for _ in 0..3 {
        run(&mut engine, &args);
    }
    counted_run(black_box(&mut engine), black_box(&args));
}

#[inline(never)]
fn counted_run(engine: &mut Engine, args: &TaskArgs) {
    run(engine, args);
}

#[inline]
fn run(engine: &mut Engine, args: &TaskArgs) {
    let run = engine.begin_run().expect("a lease");
    for _ in 0..TASKS {
        engine.submit(run, &submission(&[args]), &mut |_| {}).expect("room");
        serve(engine);
    }
    end(engine, run);
}

/// Every task touches bytes of its own, and all are submitted before the first is placed.
fn many() {
    let (mut engine, lists) = (engine(), (0..MANY).map(|task| arguments_from(4 * task, 4)).collect::<Vec<_>>());
    run_all(&mut engine, &lists);
    counted_run_all(black_box(&mut engine), black_box(&lists));
}

#[inline(never)]
fn counted_run_all(engine: &mut Engine, lists: &[TaskArgs]) {
    run_all(engine, lists);
}

#[inline]
fn run_all(engine: &mut Engine, lists: &[TaskArgs]) {
    let run = engine.begin_run().expect("a lease");
    for args in lists {
        engine.submit(run, &submission(&[args]), &mut |_| {}).expect("room");
    }
    serve(engine);
    end(engine, run);
}

#[inline(always)]
fn serve(engine: &mut Engine) {
    while let Some(action) = engine.next_action() {
        let Action::Dispatch { ticket, .. } = action else { continue };
        black_box(engine.payload(ticket).map(|payload| payload.blob.as_ptr()));
        engine.accepted(ticket);
        engine.completed(ticket, Outcome::Success);
    }
    black_box(engine.take_signals());
}

#[inline(always)]
fn end(engine: &mut Engine, run: RunId) {
    engine.close_submission(run).expect("open");
    assert!(engine.is_terminal(run));
    engine.release(run).expect("known");
}
