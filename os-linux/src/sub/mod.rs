//! SUB children: they run host functions.

mod args;
mod leaf;

pub use args::SubArgs;
pub(crate) use leaf::SubLeaf;
