//! The parent's half of a mailbox.

mod endpoint_spec;
mod exit_cause;

pub use endpoint_spec::{EndpointSpec, Frames, Label};
pub use exit_cause::ExitCause;
