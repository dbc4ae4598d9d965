//! The machines of the book are those of the engine.

use std::fmt::Write as _;
use std::path::PathBuf;

use laneway_core::engine::{GroupEvent, GroupState, RunEvent, RunPhase, TaskEvent, TaskState};

fn diagram<S: Copy + core::fmt::Debug, E: Copy + core::fmt::Debug>(
    states: &[S],
    events: &[E],
    on: impl Fn(S, E) -> Option<S>,
) -> String {
    let mut lines = String::from("```text\n");
    for state in states {
        for event in events {
            if let Some(next) = on(*state, *event) {
                let state = format!("{state:?}");
                let _ = writeln!(lines, "{state:<10} --{event:?}--> {next:?}");
            }
        }
    }
    lines + "```\n"
}

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/src/protocol/engine.md")
}

/// Replaces what stands between the two comments that name `section`.
fn with_section(page: &str, section: &str, text: &str) -> String {
    let (open, close) = (format!("<!-- {section} -->\n"), format!("<!-- /{section} -->"));
    let (head, rest) = page.split_once(&open).unwrap_or_else(|| panic!("{open} is missing"));
    let (_, tail) = rest.split_once(&close).unwrap_or_else(|| panic!("{close} is missing"));
    format!("{head}{open}{text}{close}{tail}")
}

/// Each machine is declared once; the book cannot go stale. `LANEWAY_BLESS=1` writes the diagrams anew.
#[test]
fn the_diagrams_of_the_book_are_those_of_the_machines() {
    let before = std::fs::read_to_string(page()).expect("the page");
    let runs = diagram(&RunPhase::ALL, &RunEvent::ALL, RunPhase::on);
    let tasks = diagram(&TaskState::ALL, &TaskEvent::ALL, TaskState::on);
    let groups = diagram(&GroupState::ALL, &GroupEvent::ALL, GroupState::on);
    let after = with_section(&before, "run", &runs);
    let after = with_section(&after, "task", &tasks);
    let after = with_section(&after, "group", &groups);
    if std::env::var_os("LANEWAY_BLESS").is_some() {
        std::fs::write(page(), &after).expect("the page can be written");
    }
    assert_eq!(before, after, "run this test with LANEWAY_BLESS=1 and look at the difference");
}
