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

/// Which cases are left does not depend on what was measured: a slice in which the mode changed is in no table.
#[test]
fn filters_leave_the_floors_and_what_they_name() {
    for (filters, wanted) in [
        (["chain", "chain"], &["chain"][..]),
        (["chai", "chai"], &["chain", "chain_4t"]),
        (["chain", "robin"], &["bare_round_robin", "chain", "round_robin"]),
    ] {
        let (success, out, err) = bench(&["--quick", "--json", "--filter", filters[0], "--filter", filters[1]]);
        assert!(success, "{err}");
        let report: Report = serde_json::from_str(&out).expect("JSON and nothing else");
        let ids: BTreeSet<_> = report.cases.iter().map(|case| case.id.as_str()).collect();
        let floors = ["floor_a", "floor_b", "floor_c"];
        assert_eq!(ids, floors.iter().chain(wanted).copied().collect(), "{filters:?}");
        assert!(report.loads.is_empty(), "{filters:?}");
    }
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
