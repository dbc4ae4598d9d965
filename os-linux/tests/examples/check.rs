//! Runs the examples of a package and compares what they print with the files that the book includes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

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
    let built = build(&folder, &names);
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

/// Where the examples are: built by `cargo test` together with this test, or now, if this test was built alone since.
fn build(folder: &Path, names: &[String]) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let profile = test.parent().and_then(Path::parent).expect("target/<profile>/deps").to_owned();
    let built = profile.join("examples");
    let package = folder.parent().expect("the folder of the package");
    let near = ["core", "os-linux"].map(|name| package.with_file_name(name).join("src"));
    let sources = [package.join("src"), folder.to_owned()].into_iter().chain(near);
    let newest = sources.map(|folder| newest(&folder)).max();
    if names.iter().all(|name| modified(&built.join(name)) > newest) {
        return built;
    }
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--examples", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", profile.parent().expect("target"))
        .args(if profile.ends_with("release") { &["--release"][..] } else { &[] })
        .status();
    assert!(status.expect("cargo runs").success());
    built
}

fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|data| data.modified()).ok()
}

/// When the newest source in a folder and below it was changed.
fn newest(folder: &Path) -> SystemTime {
    let entries = fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry").path());
    let times = entries.filter_map(|path| match path.is_dir() {
        true => Some(newest(&path)),
        false => modified(&path).filter(|_| path.extension().is_some_and(|extension| extension == "rs")),
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
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
