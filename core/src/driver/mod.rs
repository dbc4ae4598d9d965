//! Engine and lanes in one step.

mod watch;

pub use crate::lane::{EndpointSpec, ExitCause, Frames, Label};
pub use watch::{Doorbells, Step, Watch};
