//! Values above the bytes: tensor views and overlap, argument lists, callable identity, slot pool and replay filter.

mod error;
mod generation_filter;
pub mod identity;
pub mod overlap;
mod slot_pool;
#[cfg(feature = "engine")]
mod task_args;
mod view;

pub use error::ModelError;
pub use generation_filter::GenerationFilter;
pub use overlap::Footprint;
pub use slot_pool::{MAX_PIPELINE_DEPTH, SlotPool};
#[cfg(feature = "engine")]
pub use task_args::TaskArgs;
