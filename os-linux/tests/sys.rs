//! The system floor, with real processes.
fn main() {}
