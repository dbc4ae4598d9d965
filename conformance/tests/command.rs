//! The command on a terminal and elsewhere: what it draws, and what it prints.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A few quick cases of two areas.
const QUICK: [&str; 4] = ["device/prepare/", "device/lost/", "--profile", "a2a3_host_build_graph"];

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laneway-conformance"));
    command.args(arguments).stdin(Stdio::null()).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    command
}

/// Both sides of a terminal of 160 columns.
fn terminal() -> (File, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo-terminal");
    grantpt(&ours).and_then(|()| unlockpt(&ours)).expect("its other side");
    let name = ptsname(&ours, Vec::new()).expect("its name");
    let its =
        open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).expect("a terminal");
    tcsetwinsize(&its, Winsize { ws_row: 50, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 }).expect("its size");
    (ours.into(), its)
}

/// What the command writes to a terminal that is its standard output and error, and its exit status.
fn on_a_terminal(arguments: &[&str]) -> (String, Option<i32>) {
    let (mut ours, its) = terminal();
    let mut command = command(arguments);
    let other = its.try_clone().expect("a second descriptor");
    let mut child = command.stdout(its).stderr(other).spawn().expect("the command starts");
    // Else this process holds the other side open, and there is no end.
    drop(command);
    let (mut text, mut chunk) = (Vec::new(), [0; 4096]);
    // The end of a terminal is EIO.
    while let Ok(read @ 1..) = ours.read(&mut chunk) {
        text.extend_from_slice(&chunk[..read]);
    }
    let status = child.wait().expect("its end");
    (String::from_utf8(text).expect("text"), status.code())
}

/// What is left on the screen: the lines, without what a carriage return or an erasure took away again, and without colours.
fn screen(text: &str) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![Vec::<char>::new()], 0_usize, 0_usize);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                assert_eq!(rest.next(), Some('['), "no other sequence is used");
                let mut number = String::new();
                let end = loop {
                    match rest.next() {
                        Some(digit @ ('0'..='9' | ';' | '?')) => number.push(digit),
                        end => break end.expect("the end of a sequence"),
                    }
                };
                let count = number.parse().unwrap_or(1_usize);
                match end {
                    'A' => row -= count.min(row),
                    'B' => row += count,
                    'C' => column += count,
                    'D' => column -= count.min(column),
                    'K' if number == "2" => lines[row].clear(),
                    'K' => lines[row].truncate(column),
                    'm' | 'h' | 'l' => {}
                    other => panic!("an unexpected sequence: {number}{other}"),
                }
            }
            c => {
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    let text = |line: Vec<char>| line.into_iter().collect::<String>().trim_end().to_owned();
    lines.into_iter().map(text).filter(|line| !line.is_empty()).collect()
}

/// A case that fails: a run that is said to fail and does not.
fn wrong_case() -> PathBuf {
    let path = std::env::temp_dir().join(format!("a-run-fails-by-itself-{}.json", std::process::id()));
    let text = r#"{ "about": "A run without a fault fails.", "rules": ["C-9"], "faults": [], "steps": [{ "run": { "failed": -1 } }] }"#;
    std::fs::write(&path, text).expect("a file for the case");
    path
}

#[test]
fn on_a_terminal_a_table_grows_under_a_progress_bar_that_is_gone_in_the_end() {
    let (text, status) = on_a_terminal(&QUICK);
    assert_eq!(status, Some(0), "{text}");
    // The bar was drawn, with counts and the case that runs.
    let screen = screen(&text);
    let cases = screen.iter().filter(|line| line.trim_start().starts_with("ok ")).count();
    assert!(cases >= 8, "{screen:#?}");
    assert!(text.contains(&format!("/{cases} ")), "the bar counts to {cases}: {text:?}");
    // What is left: a heading, a row a case, a row an area, the sum.
    assert_eq!(screen.len(), 1 + cases + 2 + 1, "{screen:#?}");
    assert_eq!(screen[0], format!("simulator a2a3 host_build_graph: {cases} cases"));
    let (rows, areas) = (&screen[1..=cases], &screen[1 + cases..]);
    let columns = |row: &String| [row.find("device/"), row.find("[C-").or(row.find("C-"))];
    for row in rows {
        assert!(row.ends_with(" ms"), "{row}");
        assert_eq!(columns(row)[0], columns(&rows[0])[0], "the names stand below each other: {row}");
    }
    assert!(areas[0].starts_with("  device/lost ") && areas[0].contains(" passed    0 failed"), "{areas:#?}");
    assert!(areas[1].starts_with("  device/prepare ") && areas[1].ends_with(" not applicable"), "{areas:#?}");
    assert!(areas[2].ends_with("0 not applicable (seed 1)"), "{areas:#?}");
    assert!(text.contains("\x1b[32m"), "what passed is green");
    assert!(!screen.iter().any(|line| line.starts_with("case ")), "no plain lines: {screen:#?}");
}

#[test]
fn on_a_terminal_a_failure_is_red_and_says_what_was_expected_and_seen() {
    let file = wrong_case();
    let path = file.to_str().expect("a path in UTF-8");
    let (text, status) = on_a_terminal(&["file/a-run-fails-by-itself", "--case-file", path, QUICK[2], QUICK[3]]);
    std::fs::remove_file(&file).expect("the file goes");
    assert_eq!(status, Some(1), "{text}");
    let (red, screen) = (text.find("\x1b[31m"), screen(&text));
    assert!(red.is_some_and(|at| text[at..].contains("FAILED")), "{text:?}");
    for part in ["rule:     A run without a fault fails.", "expected: ", "seen:     "] {
        assert!(screen.iter().any(|line| line.trim_start().starts_with(part)), "{part:?} is missing: {screen:#?}");
    }
    assert!(screen.last().is_some_and(|line| line.contains("0 passed, 1 failed")), "{screen:#?}");
}

#[test]
fn elsewhere_a_line_is_printed_for_each_case_and_nothing_is_drawn() {
    let output = command(&QUICK).output().expect("the command runs");
    assert!(output.status.success());
    let (out, err) = (String::from_utf8(output.stdout).expect("text"), String::from_utf8(output.stderr).expect("text"));
    assert!(!out.contains('\x1b') && !out.contains('\r'), "{out:?}");
    assert_eq!(err, "");
    let lines: Vec<_> = out.lines().collect();
    let [heading, cases @ .., sum] = &lines[..] else { panic!("{out}") };
    assert_eq!(*heading, format!("simulator a2a3 host_build_graph: {} cases", cases.len()));
    assert!(cases.iter().all(|line| line.starts_with("case device/") && line.contains(" ... ok [")), "{out}");
    assert_eq!(
        *sum,
        format!("simulator a2a3 host_build_graph: {} passed, 0 failed, 0 not applicable (seed 1)", cases.len())
    );
}

#[test]
fn json_is_printed_alone_on_a_terminal_too() {
    let (text, status) = on_a_terminal(&[QUICK[1], QUICK[2], QUICK[3], "--json"]);
    assert_eq!(status, Some(0), "{text}");
    let reports: serde_json::Value = serde_json::from_str(&text).expect("JSON and nothing else");
    assert!(reports[0]["entries"].as_array().is_some_and(|entries| entries.len() >= 2), "{text}");
}
