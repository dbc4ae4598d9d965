//! The parent's half of a mailbox: one [`Lane`] per child, with an active and a staged dispatch, one control, and the
//! child's life and death. Nothing here waits; [`Lane::poll`] says what changed.

mod control;
mod endpoint_spec;
mod error;
mod event;
mod exit_cause;
mod flight;
#[expect(clippy::module_inception, reason = "the lane is what this floor is named after")]
mod lane;
mod phase;
mod poison;
mod poll;
mod start;
mod stop;

pub use endpoint_spec::{EndpointSpec, Frames, Label};
pub use error::LaneError;
pub use event::{ControlOutcome, Event, Outcome};
pub use exit_cause::{EXIT_CUT_OFF, EXIT_DEVICE, EXIT_PROTOCOL, EXIT_UNCLEAN, ExitCause};
pub use flight::Flight;
pub use lane::{Job, Lane};
pub use phase::{Act, Phase, Sight, Stage};
pub use poison::{During, HandOver, Place, Poison, RawState};
pub use start::{Start, poll_start, prepare_region};
