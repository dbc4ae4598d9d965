//! The book holds together: every page is in its table of contents, every link and every included file is there, and every
//! rule that the tests cite is explained.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The rules of the protocol: a letter, and how many there are. Frames between hosts (N) are described as far as they exist.
const RULES: [(char, u32); 6] = [('W', 9), ('L', 38), ('E', 43), ('C', 18), ('P', 34), ('R', 13)];

fn root() -> PathBuf {
    normal(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
}

fn pages() -> Vec<PathBuf> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                into.push(path);
            }
        }
    }
    let mut pages = Vec::new();
    walk(&root().join("docs/src"), &mut pages);
    pages.sort();
    pages
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A page as mdBook sees it: with what it includes.
fn expanded(path: &Path, faults: &mut Vec<String>) -> String {
    let mut out = String::new();
    for line in read(path).lines() {
        match line.trim().strip_prefix("{{#include ").and_then(|rest| rest.strip_suffix("}}")) {
            None => out.push_str(line),
            Some(target) => {
                let (file, anchor) = target.trim().split_once(':').unwrap_or((target.trim(), ""));
                let file = normal(&path.with_file_name(file));
                match fs::read_to_string(&file) {
                    Err(error) => faults.push(format!("{}: includes {}: {error}", path.display(), file.display())),
                    Ok(text) if anchor.is_empty() => out.push_str(&text),
                    Ok(text) => match (
                        text.find(&format!("ANCHOR: {anchor}\n")),
                        text.contains(&format!("ANCHOR_END: {anchor}\n")),
                    ) {
                        (Some(at), true) => out.push_str(&text[at..]),
                        _ => faults.push(format!("{}: {} has no anchor {anchor}", path.display(), file.display())),
                    },
                }
            }
        }
        out.push('\n');
    }
    out
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of the links of a page, as they are written.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        // Every other part lies outside of backticks.
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let targets = plain.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(targets.map(|(target, _)| target.to_owned()));
    }
    found
}

/// What the headings of a page are called in links, as mdBook names them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim();
            let id: String = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() })
                .collect();
            let count = seen.entry(id.clone()).or_insert(0);
            *count += 1;
            if *count == 1 { id } else { format!("{id}-{}", *count - 1) }
        })
        .collect()
}

fn report(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = root().join("docs/src/SUMMARY.md");
    let listed: BTreeSet<_> = links(&read(&summary)).iter().map(|link| normal(&summary.with_file_name(link))).collect();
    let there: BTreeSet<_> = pages().into_iter().filter(|page| *page != summary).collect();
    let missing = there.difference(&listed).map(|page| format!("not in SUMMARY.md: {}", page.display()));
    let dead = listed.difference(&there).map(|page| format!("in SUMMARY.md and not there: {}", page.display()));
    report(&missing.chain(dead).collect::<Vec<_>>());
}

#[test]
fn no_link_and_no_included_file_is_dead() {
    let mut faults = Vec::new();
    let front = ["README", "ARCHITECTURE", "SECURITY", "TESTING", "CONTRIBUTING"];
    let front = front.iter().map(|name| root().join(name).with_extension("md"));
    for page in pages().into_iter().chain(front) {
        let text = expanded(&page, &mut faults);
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { normal(&page.with_file_name(file)) };
            if !target.exists() {
                faults.push(format!("{}: link to {link}: there is no {}", page.display(), target.display()));
            } else if !anchor.is_empty() && !anchors(&expanded(&target, &mut faults)).contains(anchor) {
                faults.push(format!("{}: link to {link}: no such heading", page.display()));
            }
        }
    }
    report(&faults);
}

#[test]
fn every_program_is_included_from_one_that_is_built() {
    let mut faults = Vec::new();
    for page in pages() {
        let text = read(&page);
        let blocks = text.split("\n```rust").skip(1).filter_map(|rest| rest.split_once('\n'));
        let typed = blocks.filter(|(_, code)| !code.starts_with("{{#include "));
        faults.extend(typed.map(|(_, code)| format!("{}: {}", page.display(), code.lines().next().unwrap_or(""))));
    }
    report(&faults);
}

/// A line of the README that links to a measurement says nothing else than that page does.
#[test]
fn numbers_of_the_readme_are_those_of_the_measurements() {
    let mut faults = Vec::new();
    for line in read(&root().join("README.md")).lines() {
        for page in links(line).iter().filter(|link| link.starts_with("docs/src/performance/")) {
            let measured = read(&root().join(page));
            let numbers = line.split(|c: char| !c.is_ascii_digit() && c != ',').filter(|word| word.len() >= 3);
            let wrong = numbers.map(|word| word.trim_matches(',')).filter(|number| !measured.contains(number));
            faults.extend(wrong.map(|number| format!("{number} is not in {page}")));
        }
    }
    report(&faults);
}

/// Rule ids stand in the tests; a reader finds what they mean in the reference of the protocol.
#[test]
fn every_rule_is_explained() {
    let reference = root().join("docs/src/protocol");
    let text: String = pages().iter().filter(|page| page.starts_with(&reference)).map(|page| read(page)).collect();
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    let ids = RULES.iter().flat_map(|&(letter, count)| (1..=count).map(move |number| format!("{letter}-{number}")));
    report(
        &ids.filter(|id| !words.contains(id.as_str())).map(|id| format!("{id} is not explained")).collect::<Vec<_>>(),
    );
}

#[test]
fn every_setting_of_a_worker_is_explained() {
    let builder = read(&root().join("os-linux/src/worker/builder.rs"));
    let settings = builder.lines().filter_map(|line| line.trim().strip_prefix("pub fn ")?.split_once("(mut self"));
    let page = read(&root().join("docs/src/settings.md"));
    let missing = settings.map(|(name, _)| format!("`{name}`")).filter(|name| !page.contains(name));
    report(&missing.map(|name| format!("docs/src/settings.md does not name {name}")).collect::<Vec<_>>());
}
