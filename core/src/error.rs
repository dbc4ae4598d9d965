//! The error of this crate.

/// What can go wrong in core. Each floor has its own enum; this is their sum.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {}
