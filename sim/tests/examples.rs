//! The programs of the book do what the book says.

#[path = "../../os-linux/tests/examples/check.rs"]
mod check;

/// `vector_add` prints times, and `tree.rs` tests it; `callables` writes files.
#[test]
fn every_example_prints_what_the_book_shows() {
    check::examples(env!("CARGO_MANIFEST_DIR"), &["callables", "vector_add"]);
}
