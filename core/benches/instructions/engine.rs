//! The engine alone: submit, dispatch, acceptance, completion and release of a task, a 64th of its run included.
//!
//! A text that is formatted for nobody (T-50) costs more than the tolerance of these figures.

use std::hint::black_box;

use laneway_core::engine::{Config, Engine};
use laneway_core::model::TaskArgs;

use super::Case;
use super::load::{arguments, arguments_from, end, engine_of, serve, submission};

/// Tasks of the run that is counted.
pub(crate) const TASKS: u64 = 64;

pub(crate) const CASES: &[Case] = &[
    Case { name: "engine, no arguments", times: TASKS, run: || alone(0) },
    Case { name: "engine, four tensors", times: TASKS, run: || alone(4) },
    Case { name: "engine, four tensors, others in each of many", times: MANY, run: many },
];

/// Tasks that are in the engine at the same time.
const MANY: u64 = 1024;

/// An engine of one NEXT_LEVEL worker.
pub(crate) fn engine() -> Engine {
    engine_of(1, &Config::default())
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
        engine.submit(run, &submission(0, &[args]), &mut |_| {}).expect("room");
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
        engine.submit(run, &submission(0, &[args]), &mut |_| {}).expect("room");
    }
    serve(engine);
    end(engine, run);
}
