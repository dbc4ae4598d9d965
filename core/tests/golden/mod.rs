//! Where the golden vectors lie.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the vectors and of the C programs that make them.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The bytes of a vector.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    let path = directory().join(format!("{name}.bin"));
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
