//! The command, as a script calls it.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What one look may take, whatever is looked at.
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laneway-top"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn output(command: &mut Command) -> Output {
    let start = Instant::now();
    let output = command.output().expect("the command runs");
    assert!(start.elapsed() < LIMIT, "{command:?} took {:?}", start.elapsed());
    output
}

/// What it printed about a process, and nothing else.
pub(crate) fn shown(args: &[&str]) -> String {
    let output = output(&mut command(args));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

pub(crate) fn text(pid: i32) -> String {
    shown(&[&pid.to_string()])
}

pub(crate) fn json(pid: i32) -> Value {
    serde_json::from_str(&shown(&["--json", &pid.to_string()])).expect("JSON")
}

/// The exit status and the sentence of a command that shows nothing.
pub(crate) fn refused(command: &mut Command) -> (i32, String) {
    let output = output(command);
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    (output.status.code().expect("it exits"), String::from_utf8(output.stderr).expect("text"))
}
