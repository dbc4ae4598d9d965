//! What is shown of trees that are well, busy, dead or threads.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use laneway_linux::{BoxError, ChildActivity, ChildMode, Doing, SubArgs, TaskArgs, Worker};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::asked::{command, json, text};
use crate::harness::switches;
use crate::support::{Bench, Gate, until, wait_for};
use crate::tower::{Tower, add};

fn own() -> i32 {
    std::process::id() as i32
}

fn nanos(value: &Value) -> u128 {
    value.as_u64().unwrap_or_else(|| panic!("{value}")).into()
}

/// P-20: whatever does not change by itself is the same, word for word.
pub(crate) fn the_numbers_are_those_of_health() {
    let bench = Bench::new(2);
    let x = bench.tensor(1024);
    for _ in 0..50 {
        bench.worker.run(|orch| Ok(orch.submit_sub(&bench.add, TaskArgs::new().inout(&x).scalar(1))?)).unwrap();
    }
    let at_rest = || bench.worker.health().children.iter().all(|child| child.activity == ChildActivity::Parked);
    until("all children sleep", at_rest);
    // They say so a moment before they do.
    let is_asleep = |child: &Value| child["process"] == "sleeping";
    until("the kernel says it too", || json(own())["workers"][0]["children"].as_array().unwrap().iter().all(is_asleep));
    let before = bench.worker.health();
    let (tree, text) = (json(own()), text(own()));
    let after = bench.worker.health();
    assert_eq!((&tree["format"], &tree["pid"]), (&1.into(), &own().into()));
    let worker = &tree["workers"][0];
    assert_eq!(tree["workers"].as_array().unwrap().len(), 1);
    assert_eq!(worker["level"], after.level);
    assert_eq!(worker["pid"], after.pid);
    assert_eq!(worker["state"], after.state);
    assert_eq!(worker["ready"], after.ready);
    assert_eq!(worker["committed_bytes"], after.committed_bytes);
    assert_eq!(nanos(&worker["window_ns"]), after.window.as_nanos());
    assert_eq!(nanos(&worker["wake_ns"]), after.wake.as_nanos());
    assert_eq!(nanos(&worker["spin_ns"]), after.spinning.as_nanos());
    let is_between = |found: &Value, before: Duration, after: Duration| {
        assert!((before.as_nanos()..=after.as_nanos()).contains(&nanos(found)), "{found}, {before:?} to {after:?}");
    };
    is_between(&worker["age_ns"], before.age, after.age);
    assert_eq!(worker["children"].as_array().unwrap().len(), 2);
    assert_eq!(after.children.iter().map(|child| child.tasks).sum::<u64>(), 50);
    for ((child, before), after) in
        worker["children"].as_array().unwrap().iter().zip(&before.children).zip(&after.children)
    {
        assert_eq!(child["label"], after.label.to_string());
        assert_eq!(child["kind"], after.kind);
        assert_eq!(child["pid"], after.pid);
        assert_eq!((&child["status"], &child["activity"]), (&"idle".into(), &"parked".into()), "{child}");
        assert_eq!(child["process"], "sleeping");
        assert_eq!(child["tasks"], after.tasks);
        assert_eq!(nanos(&child["busy_ns"]), after.busy.as_nanos());
        assert_eq!(nanos(&child["spin_ns"]), after.spinning.as_nanos());
        is_between(&child["age_ns"], before.age, after.age);
        is_between(&child["activity_age_ns"], before.last_progress, after.last_progress);
        for (name, before, after) in [
            ("utilisation", before.utilisation(), after.utilisation()),
            ("spin_share", before.spin_share(), after.spin_share()),
        ] {
            let found = child[name].as_f64().unwrap();
            assert!((after..=before).contains(&found), "{name} {found}, {before} to {after}");
        }
        let line = text.lines().find(|line| line.contains(&format!("{}, {}", after.label, after.kind))).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert!(words.contains(&&*after.pid.to_string()) && words.contains(&&*after.tasks.to_string()), "{line}");
        assert!(line.contains("idle, asleep"), "{line}");
    }
    bench.worker.close().unwrap();
}

pub(crate) fn every_level_of_a_nested_tree_is_shown() {
    let tower = Tower::new(3..=4, add);
    let x = tower.top.tensor::<i32>(&[1]).unwrap();
    for _ in 0..3 {
        tower.run(TaskArgs::new().inout(&x).scalar(1)).unwrap();
    }
    until("its last task is counted", || tower.top.health().children[0].tasks == 3);
    let tree = json(own());
    let top = &tree["workers"][0];
    let nested = &top["children"][0];
    let below = &nested["workers"][0];
    let sub = &below["children"][0];
    assert_eq!((&top["level"], &top["pid"]), (&4.into(), &own().into()));
    assert_eq!((&nested["kind"], &nested["tasks"]), (&"nested worker".into(), &3.into()));
    assert_eq!((&below["level"], &below["pid"], &below["ready"]), (&3.into(), &nested["pid"], &true.into()));
    assert_eq!((&sub["kind"], &sub["tasks"]), (&"SUB child".into(), &3.into()));
    assert_eq!(sub["workers"], Value::Array(Vec::new()));
    // Each level is indented below the child that it is.
    let text = text(own());
    let indents = ["level 4", "worker 0, nested worker", "level 3", "sub 0, SUB child"].map(|row| {
        let line = text.lines().find(|line| line.trim_start().starts_with(row)).unwrap_or_else(|| panic!("{text}"));
        line.len() - line.trim_start().len()
    });
    assert_eq!(indents.map(|indent| indent - indents[0]), [0, 2, 4, 6], "{text}");
    // The nested process alone, by its own number.
    let alone = json(i32::try_from(nested["pid"].as_i64().unwrap()).unwrap());
    assert_eq!((&alone["workers"][0]["level"], &alone["workers"][0]["pid"]), (&3.into(), &nested["pid"]));
    tower.top.close().unwrap();
}

pub(crate) fn a_busy_child_shows_its_callable_and_an_age_that_grows() {
    let bench = Bench::new(1);
    let gate = Gate::new(&bench);
    let run =
        bench.worker.submit(|orch| Ok(orch.submit_sub(&bench.hold, TaskArgs::new().no_dep(gate.arg())).map(drop)?));
    let run = run.unwrap();
    let child = || json(own())["workers"][0]["children"][0].clone();
    until("the child says that it runs", || child()["task"]["running"] == true);
    let first = child();
    assert_eq!((&first["status"], &first["activity"]), (&"busy".into(), &"task".into()));
    let task = &first["task"];
    assert_eq!((&task["callable"], &task["name"]), (&bench.hold.digest().to_string().into(), &"hold".into()));
    assert_eq!(
        (&task["run"], &task["dispatch"], &task["phase"]),
        (&run.id().get().into(), &1.into(), &"published".into())
    );
    let later = child();
    assert!(nanos(&later["task"]["age_ns"]) > nanos(&task["age_ns"]), "{first} {later}");
    let Doing::Busy { age, running, name, .. } = bench.worker.health().children.remove(0).doing else {
        panic!("it is busy")
    };
    assert_eq!(name.as_deref(), Some("hold"));
    assert!(running && age.as_nanos() > nanos(&later["task"]["age_ns"]));
    let health = bench.worker.health().to_string();
    assert!(health.contains("running for ") && !health.contains("not yet taken in"), "{health}");
    let text = text(own());
    let line = text.lines().find(|line| line.contains("sub 0")).unwrap();
    assert!(line.contains("running") && line.contains("hold"), "{line}");
    gate.open();
    run.wait().unwrap();
    bench.worker.close().unwrap();
}

fn hold(args: &SubArgs<'_>, _: &[u8]) -> Result<(), BoxError> {
    wait_for(&args.tensor::<i32>(0)?);
    Ok(())
}

///
pub(crate) fn a_callable_that_came_late_is_called_by_its_name() {
    let bench = Bench::new(1);
    let late = bench.worker.register_fn("came late", 1, hold, &[]).unwrap();
    let gate = Gate::new(&bench);
    let run = bench.worker.submit(|orch| Ok(orch.submit_sub(&late, TaskArgs::new().no_dep(gate.arg())).map(drop)?));
    let task = json(own())["workers"][0]["children"][0]["task"].clone();
    assert_eq!((&task["name"], &task["callable"]), (&"came late".into(), &late.digest().to_string().into()));
    gate.open();
    run.unwrap().wait().unwrap();
    bench.worker.close().unwrap();
}

/// P-20, P-22
pub(crate) fn a_dead_child_is_shown_with_its_cause() {
    let bench = Bench::new(2);
    let victim = bench.worker.health().children[1].pid;
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    until("the death is seen", || !bench.worker.health().ready);
    let tree = json(own());
    let worker = &tree["workers"][0];
    assert_eq!((&worker["state"], &worker["ready"]), (&"READY".into(), &false.into()));
    let dead = &worker["children"][1];
    assert_eq!((&dead["status"], &dead["pid"]), (&"dead".into(), &victim.into()));
    assert!(dead["reason"].as_str().unwrap().contains("SIGKILL"), "{dead}");
    let text = text(own());
    assert!(text.contains("READY, 1 of 2 children lost") && text.contains("SIGKILL"), "{text}");
    let health = bench.worker.health().to_string();
    assert!(health.starts_with("level 3: READY, 1 of 2 children dead or unusable, "), "{health}");
    bench.worker.close().unwrap();
}

/// P-27
pub(crate) fn children_that_are_threads_are_shown_once() {
    let inner = Worker::builder().level(3).subs(1).child_mode(ChildMode::Thread).build().unwrap();
    let outer = Worker::builder().level(4).child_mode(ChildMode::Thread).build().unwrap();
    outer.add_worker(&inner).unwrap();
    outer.init().unwrap();
    let tree = json(own());
    let levels: Vec<_> = tree["workers"].as_array().unwrap().iter().map(|worker| &worker["level"]).collect();
    assert_eq!(levels, [&Value::from(4), &Value::from(3)], "{tree}");
    assert_eq!(tree["workers"][0]["children"][0]["pid"], own());
    assert_eq!(tree["workers"][0]["children"][0]["workers"], Value::Array(Vec::new()));
    outer.close().unwrap();
}

/// Nothing when idle: also under the eyes of somebody who looks twenty times a second.
pub(crate) fn an_idle_tree_stays_idle_while_it_is_watched() {
    const LOOKS: usize = 20;
    let tower = Tower::new(3..=4, add);
    let x = tower.top.tensor::<i32>(&[1]).unwrap();
    tower.run(TaskArgs::new().inout(&x).scalar(1)).unwrap();
    let tree = json(own());
    let nested = &tree["workers"][0]["children"][0];
    let pids = [&nested["pid"], &nested["workers"][0]["children"][0]["pid"], &own().into()];
    let pids = pids.map(|pid| i32::try_from(pid.as_i64().unwrap()).unwrap());
    let watch = &mut command(&["--json", "--watch", "0.05", &own().to_string()]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut look = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    // What the run left to be done is done when nothing has moved for some looks.
    let mut before = switches(&pids);
    until("the tree is at rest", || {
        look();
        look();
        let now = switches(&pids);
        std::mem::replace(&mut before, now.clone()) == now
    });
    for _ in 0..LOOKS {
        assert_eq!(look()["workers"][0]["children"][0]["workers"][0]["children"][0]["tasks"], 1);
    }
    assert_eq!(switches(&pids), before, "context switches by process and thread, {LOOKS} looks apart");
    watch.kill().unwrap();
    watch.wait().unwrap();
    tower.top.close().unwrap();
}
