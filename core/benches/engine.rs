//! What a task costs the engine: submit, dispatch, completion, release, on endpoints that complete at once.
//!
//! `cargo bench -p laneway-core --bench engine` prints nanoseconds (best and median of several rounds of one process)
//! and, where valgrind is installed, instructions: each case is run there with two sizes, and the difference divided,
//! so that construction does not count. `-- --quick` takes one round and no valgrind.

mod load;

use std::process::Command;
use std::time::Instant;

use laneway_core::engine::{Config, Engine, RingSpec};
use laneway_core::ids::RunId;
use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, ChipTensor, Dtype};

use load::{BUFFER, arguments, end, engine_of, page, serve, submission};

/// Tasks of one run in the cases that measure a single task.
const RUN: u64 = 64;

fn engine() -> Engine {
    engine_of(1, &config())
}

fn config() -> Config {
    let ring = RingSpec { base: 1 << 40, bytes: 1 << 30 };
    Config { rings: [ring, RingSpec::default(), RingSpec::default(), RingSpec::default()], ..Config::default() }
}

fn submit(engine: &mut Engine, run: RunId, worker: usize, args: &TaskArgs) {
    engine.submit(run, &submission(worker, &[args]), &mut |_| {}).expect("room");
}

fn finish(engine: &mut Engine, run: RunId) {
    serve(engine);
    end(engine, run);
}

/// `tasks` one after the other, each ended before the next is submitted.
fn singles(engine: &mut Engine, tasks: u64, worker: usize, args: &TaskArgs) {
    for _ in 0..tasks / RUN {
        let run = engine.begin_run().expect("a lease");
        for _ in 0..RUN {
            submit(engine, run, worker, args);
            serve(engine);
        }
        finish(engine, run);
    }
}

/// Chains of 1,000 updates of one tensor, submitted whole.
fn chain(engine: &mut Engine, tasks: u64) {
    let mut args = TaskArgs::new();
    args.inout(page(0));
    for _ in 0..tasks / 1000 {
        let run = engine.begin_run().expect("a lease");
        for _ in 0..1000 {
            submit(engine, run, 0, &args);
        }
        finish(engine, run);
    }
}

/// 256 producers and one task that reads them all; counted per edge.
fn fan_in(engine: &mut Engine, edges: u64) {
    let mut reader = TaskArgs::new();
    let writers: Vec<TaskArgs> = (0..256)
        .map(|index| {
            reader.input(page(index));
            let mut args = TaskArgs::new();
            args.output_existing(page(index));
            args
        })
        .collect();
    for _ in 0..edges / 256 {
        let run = engine.begin_run().expect("a lease");
        for args in &writers {
            submit(engine, run, 0, args);
        }
        submit(engine, run, 0, &reader);
        finish(engine, run);
    }
}

/// Tasks in scopes of 16, through a window of 64 records, each with an output that the submit allocates.
fn small_window(engine: &mut Engine, tasks: u64) {
    let mut args = TaskArgs::new();
    args.output(ChipTensor::contiguous(0, 4096, Dtype::F32, &[1024], AddressSpace::Host).expect("valid"));
    let run = engine.begin_run().expect("a lease");
    for _ in 0..tasks / 16 {
        engine.scope_begin(run).expect("not too deep");
        for _ in 0..16 {
            submit(engine, run, 0, &args);
        }
        engine.scope_end(run).expect("open");
        serve(engine);
    }
    finish(engine, run);
}

fn small_window_engine() -> Engine {
    let rings = [RingSpec::default(), RingSpec { base: 1 << 40, bytes: 256 << 10 }];
    let config = Config { task_window: 64, rings: [rings[0], rings[1], rings[0], rings[0]], ..Config::default() };
    engine_of(1, &config)
}

/// 64 × 64 tiles of one matrix of 4,096 × 4,096 f32, all written, then all read.
fn tiles(engine: &mut Engine, tasks: u64, columns_only: bool) {
    let tile = |index: u64| {
        let (rows, columns, start) =
            if columns_only { (4096, 1, index) } else { (64, 64, (index / 64) * 64 * 4096 + (index % 64) * 64) };
        let shape = [rows, columns];
        ChipTensor::strided(BUFFER, 1 << 26, Dtype::F32, &shape, &[4096, 1], start, AddressSpace::Host).expect("valid")
    };
    for _ in 0..tasks / 8192 {
        let run = engine.begin_run().expect("a lease");
        for index in 0..4096 {
            let mut args = TaskArgs::new();
            args.output_existing(tile(index));
            submit(engine, run, 0, &args);
        }
        for index in 0..4096 {
            let mut args = TaskArgs::new();
            args.input(tile(index));
            submit(engine, run, 0, &args);
        }
        finish(engine, run);
    }
}

fn tiles_engine() -> Engine {
    engine_of(1, &Config { task_window: 8192, ..config() })
}

struct Case {
    name: &'static str,
    /// Tasks (or edges) of a round.
    tasks: u64,
    build: fn() -> Engine,
    run: fn(&mut Engine, u64),
}

const CASES: &[Case] = &[
    Case { name: "no arguments", tasks: 256_000, build: engine, run: |e, n| singles(e, n, 0, &arguments(0)) },
    Case { name: "1 tensor", tasks: 128_000, build: engine, run: |e, n| singles(e, n, 0, &arguments(1)) },
    Case { name: "4 tensors", tasks: 128_000, build: engine, run: |e, n| singles(e, n, 0, &arguments(4)) },
    Case { name: "16 tensors", tasks: 32_000, build: engine, run: |e, n| singles(e, n, 0, &arguments(16)) },
    Case { name: "chain of 1,000", tasks: 128_000, build: engine, run: chain },
    Case { name: "fan-in of 256, per edge", tasks: 128_000, build: engine, run: fan_in },
    Case { name: "10^6 through a window of 64", tasks: 1_000_000, build: small_window_engine, run: small_window },
    Case { name: "4,096 tiles written and read", tasks: 8192, build: tiles_engine, run: |e, n| tiles(e, n, false) },
    Case { name: "4,096 columns written and read", tasks: 8192, build: tiles_engine, run: |e, n| tiles(e, n, true) },
    Case {
        name: "1 worker, 1 busy",
        tasks: 128_000,
        build: || engine_of(1, &config()),
        run: |e, n| singles(e, n, 0, &arguments(0)),
    },
    Case {
        name: "16 workers, 1 busy",
        tasks: 128_000,
        build: || engine_of(16, &config()),
        run: |e, n| singles(e, n, 11, &arguments(0)),
    },
    Case {
        name: "256 workers, 1 busy",
        tasks: 128_000,
        build: || engine_of(256, &config()),
        run: |e, n| singles(e, n, 200, &arguments(0)),
    },
    Case {
        name: "4 tensors, after 10^6 tasks",
        tasks: 128_000,
        build: || {
            let mut engine = engine();
            singles(&mut engine, 1_000_000, 0, &arguments(4));
            engine
        },
        run: |e, n| singles(e, n, 0, &arguments(4)),
    },
];

/// Instructions per task, from two runs under valgrind that differ only in the number of tasks.
fn instructions(case: &Case) -> Option<f64> {
    let unit = if case.tasks < 10_000 { case.tasks } else { 16_000 };
    let count = |tasks: u64| {
        let program = std::env::current_exe().ok()?;
        let output = Command::new("valgrind")
            .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
            .arg(program)
            .args(["--count", case.name, &tasks.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| line.contains("I refs:") || line.contains("I   refs:"))?;
        line.rsplit(':').next()?.trim().replace(',', "").parse::<f64>().ok()
    };
    Some((count(2 * unit)? - count(unit)?) / unit as f64)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(position) = arguments.iter().position(|argument| argument == "--count") {
        let case = CASES.iter().find(|case| case.name == arguments[position + 1]).expect("a case");
        let tasks = arguments[position + 2].parse().expect("a number");
        let mut engine = (case.build)();
        (case.run)(&mut engine, tasks);
        return;
    }
    let quick = arguments.iter().any(|argument| argument == "--quick" || argument == "--test");
    let rounds = if quick { 1 } else { 11 };
    println!("{:32} {:>12} {:>10} {:>10} {:>14}", "", "instructions", "best ns", "median ns", "tasks/s (best)");
    for case in CASES {
        let mut nanos: Vec<f64> = (0..rounds)
            .map(|_| {
                let mut engine = (case.build)();
                let tasks = if quick { case.tasks.min(8192) } else { case.tasks };
                let start = Instant::now();
                (case.run)(&mut engine, tasks);
                start.elapsed().as_nanos() as f64 / tasks as f64
            })
            .collect();
        nanos.sort_by(f64::total_cmp);
        let counted = if quick { None } else { instructions(case) };
        let counted = counted.map_or_else(|| "-".to_owned(), |count| format!("{count:.0}"));
        let (best, median) = (nanos[0], nanos[nanos.len() / 2]);
        println!("{:32} {counted:>12} {best:>10.1} {median:>10.1} {:>14.0}", case.name, 1e9 / best);
    }
}
