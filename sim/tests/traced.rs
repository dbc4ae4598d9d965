//! The trace of a whole tree: a level 4 above a level 3 with chips and SUB children.

#[path = "../../os-linux/tests/harness/mod.rs"]
mod harness;
#[path = "../../os-linux/tests/observe/importer.rs"]
mod importer;

use std::collections::{HashMap, HashSet};

use laneway_linux::{Chip, TaskArgs, Worker};
use laneway_sim::{Config, HostMemory, Kernel, Profile, Simulator, callable};
use serde_json::Value;

fn main() -> std::process::ExitCode {
    harness::main(harness::cases![the_trace_of_a_tree_shows_every_process_lane_and_phase])
}

/// Chips whose endpoint has two task frames, so that runs overlap on it.
const PROFILE: Profile = Profile::A2a3HostBuildGraph;

const RUNS: usize = 4;

/// Tasks of one level-3 run on each chip, and on the SUB child.
const ADDS: usize = 3;

fn chip() -> Chip {
    Chip::new(PROFILE.platform(), PROFILE.runtime(), |shared| {
        // SAFETY: the worker keeps the ranges of its tensors mapped for the child's life, and this child makes no
        // reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(Config::new(PROFILE), host)
    })
}

/// One span of the trace, in nanoseconds.
#[derive(Clone, Debug)]
struct Span {
    name: String,
    category: String,
    pid: u64,
    track: u64,
    begin: i64,
    end: i64,
    dispatch: u64,
    outcome: String,
}

fn spans(events: &[Value]) -> Vec<Span> {
    let nanos = |event: &Value, field: &str| (event[field].as_f64().unwrap() * 1000.0).round() as i64;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let complete = events.iter().filter(|event| event["ph"] == "X");
    complete
        .map(|event| Span {
            name: text(&event["name"]),
            category: text(&event["cat"]),
            pid: event["pid"].as_u64().unwrap(),
            track: event["tid"].as_u64().unwrap(),
            begin: nanos(event, "ts"),
            end: nanos(event, "ts") + nanos(event, "dur"),
            dispatch: event["args"]["dispatch"].as_u64().unwrap_or_default(),
            outcome: text(&event["args"]["outcome"]),
        })
        .collect()
}

fn the_trace_of_a_tree_shows_every_process_lane_and_phase() {
    let path = std::env::temp_dir().join(format!("laneway-tree-{}.json", std::process::id()));
    let small = |level| Worker::builder().level(level).heap_ring_bytes(1 << 20).buffer_bytes(1 << 20);
    let (l3, l4) = (small(3).subs(1).build().unwrap(), small(4).trace_to(&path).build().unwrap());
    let chips = [l3.add_chip(chip()).unwrap(), l3.add_chip(chip()).unwrap()];
    let add = l3.register_chip(PROFILE.platform(), PROFILE.runtime(), &callable(Kernel::Add)).unwrap();
    let look = l3.register("look", |args| Ok(args.tensor::<f32>(0)?.get(0).map(drop).ok_or("nothing")?)).unwrap();
    let sum = l4
        .register_orchestration("sum", move |orch, args, _| {
            let [a, b] = args.tensors() else { return Err("two tensors are needed".into()) };
            for _ in 0..ADDS {
                for chip in chips {
                    let c = orch.alloc::<f32>(&[16])?;
                    orch.submit_next_level(&add, chip, TaskArgs::new().input(*a).input(*b).output(c))?;
                    orch.submit_sub(&look, TaskArgs::new().input(c))?;
                }
            }
            Ok(())
        })
        .unwrap();
    let below = l4.add_worker(&l3).unwrap();
    l4.init().unwrap();
    let [a, b] = [(); 2].map(|()| l4.tensor::<f32>(&[16]).unwrap());
    let args = {
        let mut args = TaskArgs::new();
        args.input(&a).input(&b);
        args
    };
    let runs: Vec<_> = (0..RUNS)
        .map(|_| l4.submit(|orch| Ok(orch.submit_next_level(&sum, below, &args).map(drop)?)).unwrap())
        .collect();
    runs.iter().for_each(|run| run.wait().unwrap());
    drop(runs);
    l4.close().unwrap();

    let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(file["otherData"]["dropped"], 0);
    importer::import(&file);
    let events = file["traceEvents"].as_array().unwrap();
    let spans = spans(events);
    processes_and_tracks(events);
    counts(&spans);
    nesting(&spans);
    phases(&spans);
    flows(events, &spans);
}

/// One process of the trace for each of the tree, and one track for each lane.
fn processes_and_tracks(events: &[Value]) {
    let names = |what: &'static str| {
        let found = events.iter().filter(move |event| event["ph"] == "M" && event["name"] == what);
        found.map(|event| (event["pid"].as_u64().unwrap(), event["args"]["name"].as_str().unwrap().to_owned()))
    };
    let processes: HashMap<_, _> = names("process_name").collect();
    assert_eq!(processes.len(), 5, "{processes:?}");
    let pid = |title: &str| {
        let found = processes.iter().find(|(pid, name)| **name == format!("{title} (process {pid})"));
        *found.unwrap_or_else(|| panic!("no {title} in {processes:?}")).0
    };
    let [root, middle] = ["level 4 worker", "nested 0, level 3 worker"].map(pid);
    let [chip, other, sub] = ["chip 0", "chip 1", "sub 0"].map(pid);
    assert_eq!(root, u64::from(std::process::id()));
    let tracks: HashSet<_> = names("thread_name").collect();
    let expected = [
        (root, "submits"),
        (root, "lane nested 0, frame 0"),
        (middle, "nested 0 frame 0"),
        (middle, "submits"),
        (middle, "lane chip 0, frame 0"),
        (middle, "lane chip 1, frame 0"),
        (middle, "lane sub 0, frame 0"),
        (chip, "chip 0 frame 0"),
        (other, "chip 1 frame 0"),
        (sub, "sub 0 frame 0"),
    ];
    for (pid, track) in expected {
        assert!(tracks.contains(&(pid, track.to_owned())), "{track} of {pid} in {tracks:?}");
    }
}

/// As many spans as tasks ran, each once in its parent and once in its child.
fn counts(spans: &[Span]) {
    let count = |category: &str, name: &str| {
        let found = spans.iter().filter(|span| span.category == category && span.name == name);
        found.inspect(|span| assert!(category == "submit" || span.outcome == "completed", "{span:?}")).count()
    };
    let add = chip_name();
    for (name, tasks) in [("sum", RUNS), (add.as_str(), 2 * ADDS * RUNS), ("look", 2 * ADDS * RUNS)] {
        let found =
            [("dispatch", name), ("task", name), ("submit", &format!("submit {name}"))].map(|(c, n)| count(c, n));
        assert_eq!(found, [tasks; 3], "{name}");
    }
}

/// What the blob of the kernel calls itself.
fn chip_name() -> String {
    let blob = callable(Kernel::Add);
    laneway_core::wire::ChipCallable::parse(&blob).unwrap().func_name().to_owned()
}

/// Spans of one track lie beside or inside each other, and a task lies inside its dispatch.
fn nesting(spans: &[Span]) {
    let mut tracks: HashMap<(u64, u64), Vec<&Span>> = HashMap::new();
    for span in spans {
        assert!(span.begin >= 0 && span.end > span.begin, "{span:?}");
        tracks.entry((span.pid, span.track)).or_default().push(span);
    }
    for track in tracks.values_mut() {
        track.sort_by_key(|span| (span.begin, -span.end));
        let mut open: Vec<&Span> = Vec::new();
        for span in track {
            open.retain(|outer| outer.end > span.begin);
            assert!(open.iter().all(|outer| span.end <= outer.end), "{span:?} leaves {open:?}");
            open.push(span);
        }
    }
}

/// A chip task is prepared, launched, executed and finalised, in this order and inside its span.
fn phases(spans: &[Span]) {
    let tasks = spans.iter().filter(|span| span.category == "task" && span.name == chip_name());
    for task in tasks {
        let inside =
            spans.iter().filter(|span| span.category == "phase" && span.pid == task.pid && span.track == task.track);
        let mut inside: Vec<_> = inside.filter(|span| task.begin <= span.begin && span.end <= task.end).collect();
        inside.sort_by_key(|span| span.begin);
        let names: Vec<_> = inside.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["prepare", "launch", "execute", "finalise"], "{task:?}");
        assert!(inside.is_sorted_by(|a, b| a.end <= b.begin), "{inside:?}");
    }
}

/// Each flow begins in a submit, leads through a dispatch and the task in another process, and ends in that dispatch.
fn flows(events: &[Value], spans: &[Span]) {
    let mut flows: HashMap<u64, Vec<&Value>> = HashMap::new();
    for event in events.iter().filter(|event| event["cat"] == "flow") {
        flows.entry(event["id"].as_u64().unwrap()).or_default().push(event);
    }
    assert_eq!(flows.len(), RUNS + 4 * ADDS * RUNS);
    let mut met = HashSet::new();
    for points in flows.values_mut() {
        points.sort_by(|a, b| a["ts"].as_f64().unwrap().total_cmp(&b["ts"].as_f64().unwrap()));
        let kinds: Vec<_> = points.iter().map(|point| point["ph"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["s", "t", "t", "f"]);
        let around: Vec<_> = points
            .iter()
            .map(|point| {
                let at = (point["ts"].as_f64().unwrap() * 1000.0).round() as i64;
                let here = |span: &&Span| {
                    (point["pid"] == span.pid && point["tid"] == span.track)
                        && span.category != "phase"
                        && (span.begin..span.end).contains(&at)
                };
                spans.iter().find(here).unwrap_or_else(|| panic!("{point} is in no span"))
            })
            .collect();
        let categories: Vec<_> = around.iter().map(|span| span.category.as_str()).collect();
        assert_eq!(categories, ["submit", "dispatch", "task", "dispatch"]);
        let [submit, dispatch, task, end] = around[..] else { unreachable!() };
        assert_eq!((dispatch.begin, dispatch.dispatch), (end.begin, end.dispatch));
        assert_eq!((&dispatch.name, dispatch.dispatch), (&task.name, task.dispatch));
        assert_eq!(submit.name, format!("submit {}", task.name));
        assert!(dispatch.pid == submit.pid && task.pid != dispatch.pid);
        assert!(dispatch.begin <= task.begin && task.end <= dispatch.end, "{task:?} leaves {dispatch:?}");
        assert!(met.insert((task.pid, task.dispatch)), "each task has one flow");
    }
}
