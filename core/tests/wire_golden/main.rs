//! Golden vectors: bytes that a C program made from the contract alone. Each decodes to the value that it stands for and
//! that value encodes back to the same bytes.
//!
//! `LANEWAY_GOLDEN=write` makes the vectors anew and, from them, the seed corpora of the fuzz targets.

mod args;
mod callables;
mod controls;
mod frames;
#[path = "../golden/mod.rs"]
mod golden;
mod remote;
mod values;
#[path = "../wire_properties/mod.rs"]
mod wire_properties;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use golden::directory;

/// Every vector, by name, freshly made by the C program.
fn made() -> Vec<(String, Vec<u8>)> {
    let scratch = env::temp_dir().join(format!("laneway-golden-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("a scratch directory");
    let program = scratch.join("vectors");
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let built = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(directory().join("vectors.c"))
        .output();
    let built = match built {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("no C compiler named '{compiler}' on this machine: install gcc or clang, or name one in CC")
        }
        built => built.expect("the compiler starts"),
    };
    assert!(built.status.success(), "{compiler} failed:\n{}", String::from_utf8_lossy(&built.stderr));
    assert!(Command::new(&program).arg(&scratch).status().expect("the program starts").success());
    let mut vectors: Vec<_> = fs::read_dir(&scratch)
        .expect("the scratch directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_str().expect("ASCII").to_string();
            (name, fs::read(&path).expect("readable"))
        })
        .collect();
    vectors.sort();
    fs::remove_dir_all(&scratch).expect("the scratch directory is ours to remove");
    vectors
}

#[test]
fn the_committed_vectors_and_seeds_are_what_the_c_program_makes() {
    let write = env::var("LANEWAY_GOLDEN").is_ok_and(|mode| mode == "write");
    let vectors = made();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    let mut wanted = BTreeSet::new();
    for (name, bytes) in &vectors {
        let mut files = vec![(directory().join(format!("{name}.bin")), bytes.clone())];
        for (target, seed) in wire_properties::seeds(name, bytes) {
            files.push((seeds.join(target).join(name), seed));
        }
        for (path, bytes) in files {
            if write {
                fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
                fs::write(&path, &bytes).expect("writable");
            }
            let committed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(committed == bytes, "{} is stale: LANEWAY_GOLDEN=write", path.display());
            wanted.insert(path);
        }
    }
    for entry in fs::read_dir(directory()).expect("the golden directory") {
        let path = entry.expect("an entry").path();
        let is_vector = path.extension().is_some_and(|extension| extension == "bin");
        assert!(!is_vector || wanted.contains(&path), "{} is made by nobody", path.display());
    }
}
