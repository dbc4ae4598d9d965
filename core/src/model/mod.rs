//! Values above the bytes: tensor views and overlap, argument lists, callable identity, slot pool and replay filter.

mod error;
mod generation_filter;
mod slot_pool;

pub use error::ModelError;
pub use generation_filter::GenerationFilter;
pub use slot_pool::{MAX_PIPELINE_DEPTH, SlotPool};
