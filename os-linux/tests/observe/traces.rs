//! Trace files.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use laneway_linux::{CallConfig, ChildMode, Error, Orchestrator, TaskArgs, TaskArgsView, Worker};
use serde_json::Value;

use crate::{Bench, importer};

/// A file of its own for a case.
fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("laneway-{name}-{}.json", std::process::id()))
}

/// The events of a trace file, which is removed, and how many records were lost.
fn read(path: &PathBuf) -> (Vec<Value>, u64) {
    let file = read_unjudged(path);
    importer::import(&file);
    (file["traceEvents"].as_array().unwrap().clone(), file["otherData"]["dropped"].as_u64().unwrap())
}

/// A trace file, which is removed.
fn read_unjudged(path: &PathBuf) -> Value {
    let file = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

fn spans<'a>(events: &'a [Value], category: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == "X" && event["cat"] == category).collect()
}

/// Begin and end, in nanoseconds.
fn times(span: &Value) -> (i64, i64) {
    let nanos = |field: &str| (span[field].as_f64().unwrap() * 1000.0).round() as i64;
    (nanos("ts"), nanos("ts") + nanos("dur"))
}

pub(crate) fn a_trace_pairs_every_task_with_its_dispatch() {
    let path = path("pairs");
    let bench = Bench::new(2, |builder| builder.trace_to(&path));
    bench.pass(20);
    bench.worker.close().unwrap();
    let (events, lost) = read(&path);
    assert_eq!(lost, 0);
    let (submits, dispatches, tasks) = (spans(&events, "submit"), spans(&events, "dispatch"), spans(&events, "task"));
    assert_eq!((submits.len(), dispatches.len(), tasks.len()), (20, 20, 20));
    assert!(
        dispatches.iter().chain(&tasks).all(|span| span["name"] == "pass" && span["args"]["outcome"] == "completed")
    );
    let own = std::process::id();
    assert!(dispatches.iter().all(|span| span["pid"] == own) && tasks.iter().all(|span| span["pid"] != own));
    // Each flow begins in a submit, meets the dispatch and the task, and ends in the dispatch.
    let mut flows: HashMap<u64, Vec<(&str, f64)>> = HashMap::new();
    for event in events.iter().filter(|event| event["cat"] == "flow") {
        let point = (event["ph"].as_str().unwrap(), event["ts"].as_f64().unwrap());
        flows.entry(event["id"].as_u64().unwrap()).or_default().push(point);
    }
    assert_eq!(flows.len(), 20);
    for points in flows.values_mut() {
        points.sort_by(|a, b| a.1.total_cmp(&b.1));
        assert_eq!(points.iter().map(|point| point.0).collect::<Vec<_>>(), ["s", "t", "t", "f"]);
    }
    let tracks = events.iter().filter(|event| event["name"] == "thread_name");
    let tracks: HashSet<_> = tracks.map(|event| event["args"]["name"].as_str().unwrap()).collect();
    for track in ["submits", "lane sub 0, frame 0", "lane sub 1, frame 0", "sub 0 frame 0", "sub 1 frame 0"] {
        assert!(tracks.contains(track), "{tracks:?}");
    }
    let runs: Vec<_> = events.iter().filter(|event| event["cat"] == "run" && event["name"] == "run 1").collect();
    assert_eq!(runs.iter().map(|event| event["ph"].as_str().unwrap()).collect::<Vec<_>>(), ["b", "e"]);
}

/// L-27: a child that is killed in a task leaves everything that it wrote.
pub(crate) fn the_trace_of_a_killed_child_ends_with_it() {
    let path = path("killed");
    let bench = Bench::new(1, |builder| builder.trace_to(&path));
    bench.pass(5);
    let died = bench.worker.run(|orch| Ok(orch.submit_sub(&bench.die, TaskArgs::new()).map(drop)?));
    assert!(matches!(died, Err(Error::RunFailed { .. })), "{died:?}");
    // The child was gone before.
    bench.worker.close().unwrap();
    let (events, _) = read(&path);
    let (dispatches, tasks) = (spans(&events, "dispatch"), spans(&events, "task"));
    assert_eq!((dispatches.len(), tasks.len()), (6, 6));
    let find = |spans: &[&Value], outcome: &str| {
        let found = spans.iter().find(|span| span["args"]["outcome"] == outcome && span["name"] == "die");
        times(found.unwrap_or_else(|| panic!("no {outcome} in {spans:#?}")))
    };
    let (outer, inner) = (find(&dispatches, "endpoint failed"), find(&tasks, "unfinished"));
    assert!(outer.0 <= inner.0 && inner.1 <= outer.1, "{inner:?} in {outer:?}");
    assert!(events.iter().any(|event| event["name"] == "child ended" && event["args"]["value"] == 9));
}

pub(crate) fn a_trace_is_written_whenever_it_is_asked_for() {
    let path = path("asked");
    let bench = Bench::new(1, |builder| builder.trace_to(&path));
    for tasks in [3, 6] {
        bench.pass(3);
        bench.worker.write_trace().unwrap();
        assert_eq!(spans(&read(&path).0, "task").len(), tasks);
    }
    bench.worker.close().unwrap();
    assert_eq!(spans(&read(&path).0, "task").len(), 6);
    let plain = Bench::new(1, |builder| builder.tracing(true));
    assert!(matches!(plain.worker.write_trace(), Err(Error::NotRecorded { setting: "trace_to", .. })));
    plain.worker.close().unwrap();
}

/// What does not fit is counted, and the first events are kept.
pub(crate) fn a_full_log_counts_what_it_lost() {
    let path = path("full");
    // Four chunks of 63 records for two writers.
    let bench = Bench::new(1, |builder| builder.trace_to(&path).trace_bytes(4 * 4096));
    bench.pass(500);
    bench.worker.close().unwrap();
    let (events, lost) = read(&path);
    // Five records for each task, a few for the callables, the child and the run.
    assert!(lost > 5 * 500 - 4 * 63 && lost < 5 * 500 + 50 - 2 * 63, "{lost}");
    assert!(!spans(&events, "dispatch").is_empty());
}

/// A process of the tree can write what it likes into the log; the parent reads nonsense and stays whole.
pub(crate) fn a_scribbled_log_still_makes_a_trace() {
    for seed in 1..=8_u64 {
        let path = path("scribbled");
        let bench = Bench::new(1, |builder| builder.trace_to(&path).trace_bytes(16 * 4096));
        bench.pass(50);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.contains("laneway trace")).expect("the log is mapped");
        let (start, end) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).unwrap());
        let mut state = seed;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for address in (start..end).step_by(8).filter(|address| address % 64 == 0 || seed % 2 == 0) {
            let noise = random();
            let value = match noise % 4 {
                0 => noise,
                1 => noise % 40,
                2 => u64::MAX,
                _ => continue,
            };
            // SAFETY: the log is mapped for as long as the worker lives, and everybody accesses it by atomics.
            unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(value, Ordering::Relaxed);
        }
        bench.pass(50);
        bench.worker.close().unwrap();
        let file = read_unjudged(&path);
        let events = file["traceEvents"].as_array().unwrap();
        assert!(events.iter().all(|event| event["dur"].is_null() || event["dur"].as_f64().unwrap() > 0.0), "{seed}");
    }
}

pub(crate) fn a_trace_that_cannot_be_written_is_an_error_of_close() {
    let bench = Bench::new(1, |builder| builder.trace_to("/nowhere/to/be/found.json"));
    bench.pass(1);
    let error = bench.worker.close().unwrap_err().to_string();
    assert!(error.starts_with("writing the trace /nowhere/to/be/found.json: write failed: No such file"), "{error}");
    // It is closed all the same.
    assert_eq!(bench.worker.health().state, "CLOSED");
}

/// P-13: a pipe that nobody reads cannot be opened for writing without waiting.
pub(crate) fn a_trace_into_a_pipe_that_nobody_reads_is_an_error_of_close() {
    let path = path("pipe");
    let status = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(status.success());
    let bench = Bench::new(1, |builder| builder.trace_to(&path));
    bench.pass(1);
    let result = bench.worker.close();
    std::fs::remove_file(&path).unwrap();
    assert!(result.unwrap_err().to_string().contains("write failed: No such device"));
}

/// P-27: children that are threads write into the same log and have tracks of their own in the one process.
pub(crate) fn children_that_are_threads_have_tracks_of_their_own() {
    let path = path("threads");
    let bench = Bench::new(2, |builder| builder.child_mode(ChildMode::Thread).trace_to(&path));
    bench.pass(20);
    bench.worker.close().unwrap();
    let (events, _) = read(&path);
    let (dispatches, tasks) = (spans(&events, "dispatch"), spans(&events, "task"));
    assert_eq!((dispatches.len(), tasks.len()), (20, 20));
    assert!(dispatches.iter().chain(&tasks).all(|span| span["pid"] == std::process::id()));
    let lanes = |spans: &[&Value]| spans.iter().map(|span| span["tid"].as_u64().unwrap()).collect::<HashSet<_>>();
    assert!(lanes(&dispatches).is_disjoint(&lanes(&tasks)));
    for (dispatch, task) in dispatches.iter().map(|dispatch| {
        let same = |task: &&&Value| task["args"]["dispatch"] == dispatch["args"]["dispatch"];
        (dispatch, tasks.iter().filter(same).map(|task| times(task)).collect::<Vec<_>>())
    }) {
        let (begin, end) = times(dispatch);
        assert!(task.iter().any(|task| begin <= task.0 && task.1 <= end), "{dispatch} holds none of {task:?}");
    }
}

/// P-27: workers that share a process have tracks, flows and runs of their own.
pub(crate) fn workers_in_one_process_have_tracks_of_their_own() {
    two_below_one(&path("nested-threads"), ChildMode::Thread);
}

/// P-27: so have a child process and its own children that are threads, although each is the first of its worker.
pub(crate) fn a_child_process_and_its_threads_have_tracks_of_their_own() {
    two_below_one(&path("mixed"), ChildMode::Process);
}

/// Traces a worker above two whose children are threads; its own ones are of `mode`.
fn two_below_one(path: &PathBuf, mode: ChildMode) {
    let small = |level| Worker::builder().level(level).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20);
    let top = small(4).child_mode(mode).trace_to(path).build().unwrap();
    let below: Vec<_> = (0..2)
        .map(|_| {
            let worker = small(3).child_mode(ChildMode::Thread).subs(2).build().unwrap();
            let pass = worker.register("pass", |_| Ok(())).unwrap();
            (worker, pass)
        })
        .collect();
    let ids: Vec<_> = below.iter().map(|(worker, _)| top.add_worker(worker).unwrap()).collect();
    let fans: Vec<_> = below
        .into_iter()
        .enumerate()
        .map(|(index, (_, pass))| {
            let fan = move |orch: &mut Orchestrator<'_>, _: TaskArgsView<'_>, _: &CallConfig| {
                for _ in 0..50 {
                    orch.submit_sub(&pass, TaskArgs::new())?;
                }
                Ok(())
            };
            top.register_orchestration(&format!("fan {index}"), fan).unwrap()
        })
        .collect();
    top.init().unwrap();
    for _ in 0..3 {
        top.run(|orch| {
            for (fan, id) in fans.iter().zip(&ids) {
                orch.submit_next_level(fan, *id, TaskArgs::new())?;
            }
            Ok(())
        })
        .unwrap();
    }
    top.close().unwrap();
    let (events, lost) = read(path);
    assert_eq!(lost, 0);
    let count = |category| spans(&events, category).iter().filter(|span| span["name"] == "pass").count();
    assert_eq!([count("dispatch"), count("task")], [300, 300]);
    let flows: HashSet<_> =
        events.iter().filter(|event| event["ph"] == "f").map(|event| event["id"].as_u64()).collect();
    assert_eq!(flows.len(), 306);
}
