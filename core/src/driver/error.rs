//! What a driver refuses.

use crate::ids::EndpointIndex;
use crate::lane::{Label, Poison};
use crate::mailbox::Text;
use crate::wire::Protocol;
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
    /// A child that serves another version of the argument blob than the engine encodes.
    #[error("{label} serves protocol {}, and this worker encodes arguments for protocol {} alone", .protocol.version(), Protocol::ChipTensors.version())]
    Protocol {
        /// Whose child.
        label: Label,
        /// What it serves.
        protocol: Protocol,
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
    #[error("{reason}; {remedy}", reason = .0, remedy = .0.remedy())]
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

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::ids::SubId;

    /// One of each, with the facts that its text must carry. The match has no default, so a new variant comes here.
    fn facts(fault: &ControlFault) -> &'static [&'static str] {
        match fault {
            ControlFault::Failed { .. } => &["code 12", "out of device memory"],
            ControlFault::Dead(_) => &["died", "process 7", "status 3", "build a new one"],
            ControlFault::Stopped => &["worker closed"],
            ControlFault::NotSent { .. } => &["5ms", "no effect", "other controls"],
        }
    }

    /// L-22, L-23, L-37
    #[test]
    fn every_failed_control_names_the_child_the_command_and_the_cause() {
        let mut text = Text::new();
        text.push_str("out of device memory");
        let cause = crate::lane::ExitCause::Exited { pid: 7, status: 3 };
        let faults = [
            ControlFault::Failed { code: 12, text },
            ControlFault::Dead(Poison::Dead { cause }),
            ControlFault::Stopped,
            ControlFault::NotSent { waited: Duration::from_millis(5) },
        ];
        for fault in faults {
            let expected = facts(&fault);
            let error =
                ControlError { label: Label::Sub(SubId(4)), command: ControlCommand::Malloc, fault }.to_string();
            for fact in ["sub 4", "Malloc"].iter().chain(expected) {
                assert!(error.contains(fact), "{error:?} does not say {fact:?}");
            }
        }
    }

    /// What is refused says both numbers.
    #[test]
    fn every_refusal_carries_its_numbers() {
        let refusals = [
            (DriverError::NoSuchEndpoint { endpoint: EndpointIndex(9), endpoints: 3 }, ["endpoint 9", "has 3"]),
            (DriverError::TooManyControls { limit: 64 }, ["64 controls", "wait"]),
            (
                DriverError::Protocol { label: Label::Sub(SubId(4)), protocol: Protocol::Tensors },
                ["sub 4 serves protocol 3", "protocol 2 alone"],
            ),
        ];
        for (refusal, facts) in refusals {
            match refusal {
                DriverError::NoSuchEndpoint { .. }
                | DriverError::TooManyControls { .. }
                | DriverError::Protocol { .. } => {}
            }
            for fact in facts {
                assert!(refusal.to_string().contains(fact), "{refusal} does not say {fact:?}");
            }
        }
    }
}
