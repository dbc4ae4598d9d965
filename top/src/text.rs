//! A tree as a table for a person.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use crate::tree::{Child, Task, Tree, Worker};

const HEADER: [&str; 8] = ["", "PID", "STATE", "FOR", "TASKS", "BUSY", "SPIN", "CALLABLE"];

/// Columns of numbers.
const NUMBERS: [usize; 5] = [1, 3, 4, 5, 6];

/// Characters of a digest that are shown: `sha256:` and 12 digits.
const DIGEST: usize = 19;

/// The table, and below it what does not fit into a line.
pub(crate) fn table(tree: &Tree) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(HEADER);
    for column in NUMBERS {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut notes = Vec::new();
    tree.workers.iter().for_each(|worker| add_worker(&mut table, &mut notes, worker, 0));
    let mut out = format!("process {} ({}), {}\n{}\n", tree.pid, plain(&tree.program), tree.process, table.trim_fmt());
    for note in notes {
        out.push_str(&note);
        out.push('\n');
    }
    out
}

fn add_worker(table: &mut Table, notes: &mut Vec<String>, worker: &Worker, indent: usize) {
    let all = worker.children.len();
    let out = worker.children.iter().filter(|child| matches!(child.status, "dead" | "unusable")).count();
    let state = match out {
        0 => worker.state.to_owned(),
        _ => format!("{}, {out} of {all} children lost", worker.state),
    };
    let mut row = vec![format!("{:indent$}level {}", "", worker.level), worker.pid.to_string(), state];
    row.extend([time(worker.age_ns), String::new(), String::new()]);
    row.push(percent(worker.spin_ns as f64 / worker.age_ns.max(1) as f64));
    table.add_row(row);
    worker.children.iter().for_each(|child| add_child(table, notes, child, indent + 2));
}

fn add_child(table: &mut Table, notes: &mut Vec<String>, child: &Child, indent: usize) {
    let (label, kind) = (&child.label, plain(&child.kind));
    let mut row = vec![format!("{:indent$}{label}, {kind}", ""), child.pid.to_string(), state(child)];
    row.push(time(child.task.as_ref().map_or(child.activity_age_ns, |task| task.age_ns)));
    row.extend([child.tasks.to_string(), percent(child.utilisation), percent(child.spin_share)]);
    row.push(child.task.as_ref().map_or_else(String::new, callable));
    table.add_row(row);
    let notable = child.reason.iter().chain(&child.unseen);
    notes.extend(notable.map(|text| format!("{label} (pid {}): {}", child.pid, plain(text))));
    child.workers.iter().for_each(|worker| add_worker(table, notes, worker, indent + 2));
}

/// What a child is at, and what its process is if that is the trouble.
fn state(child: &Child) -> String {
    let mut text = match (child.status, &child.task, child.activity) {
        (_, Some(task), _) => phase(task),
        ("idle", _, "parked") => "idle, asleep",
        ("idle", _, "waiting") => "idle, awake",
        ("idle", _, "control") => "at a control",
        (status, ..) => status,
    }
    .to_owned();
    if let Some(process @ ("stopped" | "traced" | "uninterruptible" | "ended")) = child.process {
        text.push_str(", process ");
        text.push_str(process);
    }
    text
}

fn phase(task: &Task) -> &'static str {
    match (task.running, task.phase) {
        (true, "published") => "running",
        (_, "published") => "sent",
        (_, phase) => phase,
    }
}

/// The name of its callable, or the beginning of the digest.
fn callable(task: &Task) -> String {
    match (&task.name, &task.callable) {
        (Some(name), _) => plain(name),
        (None, Some(digest)) => digest.chars().take(DIGEST).collect(),
        (None, None) => String::new(),
    }
}

/// A time that fits into a column.
fn time(nanos: u64) -> String {
    let seconds = nanos as f64 / 1e9;
    match seconds {
        _ if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 100.0 => format!("{seconds:.1} s"),
        _ if seconds < 6_000.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 360_000.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share.min(1.0) * 100.0)
}

/// What another process wrote, without what a terminal would take for a command.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_three_digits_or_so() {
        let shown = [0, 999_400, 12_000_000, 12_340_000_000, 5_400_000_000_000, 90_000_000_000_000, u64::MAX].map(time);
        assert_eq!(shown, ["0 µs", "999 µs", "12 ms", "12.3 s", "90 min", "25 h", "213504 d"]);
    }

    #[test]
    fn a_foreign_text_commands_no_terminal() {
        assert_eq!(plain("a\x1b[2Jb\u{9b}1mc\r\n"), "a?[2Jb?1mc??");
    }
}
