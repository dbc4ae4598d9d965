//! What a driver refuses.

use crate::ids::EndpointIndex;
use crate::lane::{Label, Poison};
use crate::mailbox::Text;
use crate::wire::control::ControlCommand;
use core::time::Duration;

/// Why a call on the driver was refused; nothing was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// No such endpoint.
    #[error("there is no endpoint {endpoint}, this worker has {endpoints}")]
    NoSuchEndpoint {
        /// Asked for.
        endpoint: EndpointIndex,
        /// How many there are.
        endpoints: usize,
    },
    /// Too many controls wait for their turn or for their result to be fetched.
    #[error("{limit} controls are under way already; wait for one of them before asking for the next")]
    TooManyControls {
        /// How many there can be.
        limit: usize,
    },
}

/// A control that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{label}: control {command:?}: {fault}")]
pub struct ControlError {
    /// Whose.
    pub label: Label,
    /// Which.
    pub command: ControlCommand,
    /// Why.
    pub fault: ControlFault,
}

/// Why a control did not succeed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlFault {
    /// The child reported an error and goes on serving (L-23).
    #[error("code {code}: {text}")]
    Failed {
        /// The error word.
        code: i32,
        /// The child's text.
        text: Text<256>,
    },
    /// The endpoint is dead; whether the control took effect is unknown.
    #[error("{0}")]
    Dead(Poison),
    /// The worker was closed; whether the control took effect is unknown.
    #[error("worker closed before the control was answered")]
    Stopped,
    /// Its time was up before it was sent: it did not take effect.
    #[error("not sent within {waited:?}, because other controls of this child took that long; it had no effect")]
    NotSent {
        /// How long it was given.
        waited: Duration,
    },
}
