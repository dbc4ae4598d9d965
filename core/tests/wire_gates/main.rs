//! Every gate by itself: one field of legal bytes is changed, and the error names that field, its value and the limit.

mod builder;
mod callables;
mod config;
mod controls;
mod frames;
mod lists;
mod remote;
mod tensors;

use laneway_core::wire::args::ArgsSnapshot;
use zerocopy::IntoBytes;

/// A list with these counts and `bytes` behind them.
fn snapshot(counts: u64, bytes: &[u8]) -> ArgsSnapshot {
    let mut snapshot = ArgsSnapshot::new();
    snapshot.words_mut()[0] = counts;
    snapshot.words_mut().as_mut_bytes()[8..][..bytes.len()].copy_from_slice(bytes);
    snapshot
}
