//! The benchmark from its command line to its report, in the shortest form that it has.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use laneway_conformance::bench::Report;

fn bench(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_laneway-conformance")).arg("bench").args(arguments).output();
    let output = output.expect("the command was built for this test");
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_quick_run_measures_every_case_and_judges_every_target() {
    let start = Instant::now();
    let (success, out, err) = bench(&["--quick", "--json"]);
    assert!(success, "{err}");
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
    let report: Report = serde_json::from_str(&out).expect("JSON and nothing else");

    assert!(report.rounds > 0 && report.thresholds.very_fast < report.thresholds.fast);
    let ids: BTreeSet<_> = report.cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids.len(), report.cases.len(), "a name for each case");
    for id in
        ["floor_a", "floor_b", "floor_c", "kernel_wake", "run_1", "chain_4t", "chip_2_run", "nested", "busy_pool_8"]
    {
        assert!(ids.contains(id), "{id} is not in {ids:?}");
    }
    // A slice during which the mode changed is left out, so a case may be empty; but not many are.
    let measured: Vec<_> = report.cases.iter().filter(|case| !case.modes.is_empty()).collect();
    assert!(measured.len() * 2 > ids.len(), "{} of {}", measured.len(), ids.len());
    for summary in measured.iter().flat_map(|case| case.modes.values()) {
        assert!(0.0 < summary.p50 && summary.p50 <= summary.p90 && summary.p90 <= summary.p99, "{summary:?}");
    }

    let loads: Vec<_> = report.loads.iter().map(|load| load.id.as_str()).collect();
    assert_eq!(loads, ["idle", "long_task", "long_task_unwatched", "steady", "paced"]);
    // The only child of the tree computes all the time, if it is given a CPU at all.
    assert!(report.loads[1].processes[1].cpu > 0.05, "{:?}", report.loads[1]);
    for mode in report.modes_seen() {
        assert!(report.targets.iter().filter(|target| target.mode == Some(mode)).count() > 10);
    }
    assert!(report.targets.iter().any(|target| target.mode.is_none() && target.value.is_some()));
}

#[test]
fn a_filter_leaves_the_floors_and_what_it_names() {
    for (filter, more) in [("chain", false), ("chai", true)] {
        let (success, out, err) = bench(&["--quick", "--filter", filter]);
        assert!(success, "{err}");
        assert!(out.contains("A: one cache line") && out.contains("chain of 1,000, each"), "{out}");
        assert_eq!(out.contains("chain of 1,000, 4 more tensors"), more, "only one case has the whole name: {out}");
        assert!(!out.contains("fan-out") && !out.contains("CPU time"), "{out}");
    }
    let (success, out, err) = bench(&["--quick", "--filter", "chain", "--filter", "round_robin"]);
    assert!(success, "{err}");
    let wanted = ["chain of 1,000, each", "run of 1 task, 8 children in turn"];
    assert!(wanted.iter().all(|case| out.contains(case)), "{out}");
    assert!(!out.contains("chain of 1,000, 4 more tensors") && !out.contains("fan-out"), "{out}");
}

#[test]
fn the_tables_of_the_book_are_what_the_command_makes_of_its_data() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/performance/data");
    let (success, out, err) = bench(&["--from", &format!("{folder}/processes.json")]);
    assert!(success, "{err}");
    let shown = std::fs::read_to_string(format!("{folder}/processes.txt")).expect("the tables");
    assert_eq!(out.trim_end(), shown.trim_end(), "bench --from processes.json > processes.txt makes them anew");
}

#[test]
fn a_slice_longer_than_a_mode_lasts_is_refused_with_the_usage() {
    let (success, _, err) = bench(&["--slice-ms", "1000"]);
    assert!(!success && err.contains("1 to 100 milliseconds") && err.contains("Usage"), "{err}");
}
