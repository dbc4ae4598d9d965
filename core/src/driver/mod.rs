//! Engine and lanes in one step: what endpoints report goes into the engine, what the engine wants done goes to the endpoints.

mod busy;
mod callable;
mod controls;
#[expect(clippy::module_inception, reason = "the driver is what this floor is named after")]
mod driver;
mod error;
mod observe;
mod port;
mod round;
mod send;
mod sub_pool;
mod watch;

pub use crate::lane::{EndpointSpec, ExitCause, Frames, Label};
pub use controls::ControlTicket;
pub use driver::Driver;
pub use error::{ControlError, ControlFault, DriverError};
pub use observe::{Fact, Observer, Unobserved};
pub use sub_pool::SubPool;
pub use watch::{Doorbells, Step, Wake, Watch};
