//! What the architecture promises about dependencies, checked: floors inside core, crates in the workspace, no std.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The floors of core, lowest first. `ids` and `time` share the ground floor.
const FLOORS: [&[&str]; 9] =
    [&["ids", "time"], &["wire"], &["model"], &["chip"], &["mailbox"], &["lane"], &["serve"], &["engine"], &["driver"]];

fn core_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found
}

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// Modules of this crate that a source text names, as `crate::module` or inside `crate::{...}`.
fn imports(text: &str) -> Vec<String> {
    let code: String = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n");
    let word = |s: &str| s.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let (mut depth, mut start) = (0, true);
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && !c.is_whitespace() => {
                    found.push(word(&list[i..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn no_module_imports_a_floor_above_its_own() {
    let src = core_dir().join("src");
    let mut seen = 0;
    for path in rust_files(&src) {
        let module = path.strip_prefix(&src).unwrap().iter().next().unwrap().to_string_lossy().replace(".rs", "");
        let Some(own) = floor_of(&module) else {
            assert!(
                ["lib", "error", "sync"].contains(&module.as_str()),
                "{module} stands on no floor: add it to FLOORS"
            );
            continue;
        };
        for import in imports(&fs::read_to_string(&path).unwrap()) {
            let Some(floor) = floor_of(&import) else { continue };
            let same = import == module || (own == 0 && floor == 0);
            assert!(same || floor < own, "{} imports {import}, which is not below {module}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 0, "no import was found at all: the scan is broken");
}

#[test]
fn the_scan_sees_nested_and_listed_imports() {
    assert_eq!(imports("use crate::{wire::{a, b}, model};\nlet x = crate::lane::f();"), ["wire", "model", "lane"]);
    assert_eq!(imports("// crate::driver is above"), [""; 0]);
}

#[test]
fn crates_depend_only_downwards() {
    // Which of our own crates each may name in [dependencies]; dev-dependencies of examples and tests are free.
    const MAY: [(&str, &[&str]); 6] = [
        ("laneway-core", &[]),
        ("laneway-linux", &["laneway-core"]),
        ("laneway-sim", &["laneway-core"]),
        ("laneway-ascend", &["laneway-core"]),
        ("laneway-conformance", &["laneway-core", "laneway-linux", "laneway-sim", "laneway-ascend"]),
        ("laneway-top", &["laneway-linux"]),
    ];
    let mut seen = 0;
    for dir in ["core", "os-linux", "sim", "chip-ascend", "conformance", "top"] {
        let text = fs::read_to_string(core_dir().join("..").join(dir).join("Cargo.toml")).unwrap();
        let field = |line: &str| line.split('=').nth(1).map(|v| v.trim().trim_matches('"').to_owned());
        let name = text.lines().find(|line| line.starts_with("name")).and_then(field).unwrap();
        let may = MAY.iter().find(|(n, _)| *n == name).map(|(_, may)| *may).unwrap();
        let mut section = "";
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let key = line.split(['.', ' ', '=']).next().unwrap_or("");
            if key.starts_with("laneway-") && section.ends_with("dependencies]") && !section.contains("dev-") {
                assert!(may.contains(&key), "{name} must not depend on {key}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 3, "only {seen} dependencies found: the scan is broken");
}

fn build_witness(features: &str) -> Output {
    let dir = core_dir().join("tests/no_std");
    Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--features", features, "--manifest-path"])
        .arg(dir.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_std"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs")
}

#[test]
fn core_links_into_a_static_library_without_std() {
    for features in ["", "engine"] {
        let out = build_witness(features);
        assert!(out.status.success(), "features {features:?}:\n{}", String::from_utf8_lossy(&out.stderr));
    }
}

#[test]
fn the_witness_fails_to_build_once_std_is_pulled_in() {
    let out = build_witness("std");
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("panic_impl"), "expected a second panic handler, got:\n{text}");
}
