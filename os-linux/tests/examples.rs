//! The programs of the book do what the book says.

#[path = "examples/check.rs"]
mod check;

#[test]
fn every_example_prints_what_the_book_shows() {
    check::examples(env!("CARGO_MANIFEST_DIR"), &[]);
}
