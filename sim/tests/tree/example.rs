//! The example as a user runs it.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// Builds the example, which is there already unless this test was built alone, and runs it.
fn example(args: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--example", "vector_add", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .env("CARGO_TARGET_DIR", profile.parent().unwrap())
        .args(if profile.ends_with("release") { &["--release"][..] } else { &[] })
        .status();
    assert!(built.expect("cargo runs").success());
    Command::new(profile.join("examples/vector_add")).args(args).process_group(0).output().expect("it was built")
}

pub(crate) fn the_example_computes_and_exits_with_success() {
    for args in [&["--elements", "10007", "--chips", "3", "--subs", "2"][..], &["--elements", "1", "--chips", "1"]] {
        let out = example(args);
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(out.status.success() && text.contains("check      passed"), "{args:?}: {text}");
    }
}

pub(crate) fn the_example_names_the_element_that_is_wrong() {
    let out = example(&["--elements", "5000", "--corrupt", "4321"]);
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(!out.status.success() && text.contains("element 4321 is"), "{text}");
}

pub(crate) fn the_example_refuses_nonsense_with_a_sentence() {
    for args in [
        &["--chips", "0"][..],
        &["--subs", "0"],
        &["--elements", "0"],
        &["--elements", "-4"],
        &["--elements", "99999999999"],
        &["--elements", "many"],
        &["--elements", "1"],
        &["--elements"],
        &["--speed", "11"],
        &["--corrupt", "1000000"],
    ] {
        let out = example(args);
        let text = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.starts_with("vector_add: ") && text.contains("usage:"), "{args:?}: {text}");
    }
}
