//! Builds a program in a workspace of its own and runs it: what a user can add to a worker from outside (P-28).

use std::path::Path;
use std::process::{Command, Output};

fn outside(command: &str) -> Output {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outside");
    Command::new(env!("CARGO"))
        .args([command, "--quiet", "--locked", "--manifest-path"])
        .arg(dir.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("outside"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs")
}

/// P-28
#[test]
fn a_crate_outside_the_workspace_adds_a_kind_of_child_and_an_endpoint_and_runs_a_graph_through_both() {
    let out = outside("run");
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && text.contains("outside: 4 passed"), "{text}\n{errors}");
}
