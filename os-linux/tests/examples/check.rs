//! Runs the examples of a package and compares what they print with the files that the book includes.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether the files are to be written anew.
const BLESS: &str = "LANEWAY_BLESS";

/// Runs every example of the package in `folder` but `others`, each a process of its own, and compares.
pub(crate) fn examples(folder: &str, others: &[&str]) {
    let folder = Path::new(folder).join("examples");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("the folder of examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists())
        .map(|path| path.file_stem().expect("a name").to_str().expect("UTF-8").to_owned())
        .filter(|name| !others.contains(&name.as_str()))
        .collect();
    names.sort();
    let built = build(&folder);
    for name in names {
        // The limit is for one that hangs.
        let out = Command::new("timeout").arg("60").arg(built.join(&name)).output().expect("it was built");
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{name}: {}\n{errors}", out.status);
        let printed = lasting(&String::from_utf8(out.stdout).expect("text"));
        let file = folder.join("expected").join(&name).with_extension("txt");
        if std::env::var_os(BLESS).is_some() {
            fs::write(&file, &printed).expect("the file is written");
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(printed, expected, "{name}: {BLESS}=1 writes {} anew", file.display());
    }
}

/// Where the examples are. They are built already unless this test was built alone.
fn build(folder: &Path) -> std::path::PathBuf {
    let test = std::env::current_exe().expect("a path");
    let profile = test.parent().and_then(Path::parent).expect("target/<profile>/deps").to_owned();
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--examples", "--manifest-path"])
        .arg(folder.with_file_name("Cargo.toml"))
        .env("CARGO_TARGET_DIR", profile.parent().expect("target"))
        .args(if profile.ends_with("release") { &["--release"][..] } else { &[] })
        .status();
    assert!(built.expect("cargo runs").success());
    profile.join("examples")
}

/// A text without what differs from run to run: process ids become P, times T, addresses A.
fn lasting(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == 'µ';
        let word = &from[..from.find(|c| !is_part(c)).unwrap_or(from.len())];
        let word = word.trim_end_matches('.');
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let after_letter = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        out.push_str(match unit {
            "" if out.ends_with("pid ") || out.ends_with("process ") => "P",
            "ns" | "µs" | "ms" | "s" if !after_letter => "T",
            hex if hex.starts_with('x') && word.starts_with("0x") => "A",
            _ => word,
        });
        rest = &from[word.len()..];
    }
    out + rest
}
