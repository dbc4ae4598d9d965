//! Values above the bytes: tensor views and overlap, argument lists, callable identity, slot pool and replay filter.

mod error;

pub use error::ModelError;
