//! The phases of one native run and the calls that move it (C-6).

use core::fmt;

/// Where a run slot of a device stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// No run.
    Empty,
    /// A prepare is under way.
    Preparing,
    /// Ready to launch; the device has not been told.
    Prepared,
    /// The device has it.
    Launched,
    /// Its completion was taken, good or bad.
    Reaped,
    /// Its results are being copied back and its resources given up.
    Finalizing,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Self; 6] =
        [Self::Empty, Self::Preparing, Self::Prepared, Self::Launched, Self::Reaped, Self::Finalizing];

    /// The name in capitals, as the contract writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "EMPTY",
            Self::Preparing => "PREPARING",
            Self::Prepared => "PREPARED",
            Self::Launched => "LAUNCHED",
            Self::Reaped => "REAPED",
            Self::Finalizing => "FINALIZING",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A call on a device runtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    /// Bring the device up.
    Init,
    /// Upload a callable.
    Register,
    /// Remove a callable.
    Unregister,
    /// Make a run ready.
    Prepare,
    /// Hand it to the device.
    Launch,
    /// Ask whether it is complete.
    Poll,
    /// Wait until it is complete.
    Wait,
    /// Copy results back and give its resources up.
    Finalize,
    /// Allocate device memory.
    Malloc,
    /// Free device memory.
    Free,
    /// Copy host memory to the device.
    CopyTo,
    /// Copy device memory to the host.
    CopyFrom,
    /// Close the device.
    Shutdown,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Init,
        Self::Register,
        Self::Unregister,
        Self::Prepare,
        Self::Launch,
        Self::Poll,
        Self::Wait,
        Self::Finalize,
        Self::Malloc,
        Self::Free,
        Self::CopyTo,
        Self::CopyFrom,
        Self::Shutdown,
    ];

    /// The name in small letters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Register => "register",
            Self::Unregister => "unregister",
            Self::Prepare => "prepare",
            Self::Launch => "launch",
            Self::Poll => "poll",
            Self::Wait => "wait",
            Self::Finalize => "finalize",
            Self::Malloc => "malloc",
            Self::Free => "free",
            Self::CopyTo => "copy_to",
            Self::CopyFrom => "copy_from",
            Self::Shutdown => "shutdown",
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One legal move of a run slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The phase it starts from.
    pub from: Phase,
    /// The call that makes it.
    pub call: Call,
    /// How the call ended, as the diagram labels the edge.
    pub outcome: &'static str,
    /// The phase it leads to.
    pub to: Phase,
}

const fn edge(from: Phase, call: Call, outcome: &'static str, to: Phase) -> Transition {
    Transition { from, call, outcome, to }
}

/// Every legal move. What is not here is refused (C-6).
pub const TRANSITIONS: [Transition; 15] = [
    edge(Phase::Empty, Call::Prepare, "begins", Phase::Preparing),
    edge(Phase::Preparing, Call::Prepare, "succeeds", Phase::Prepared),
    edge(Phase::Preparing, Call::Prepare, "fails", Phase::Empty),
    edge(Phase::Prepared, Call::Launch, "succeeds", Phase::Launched),
    edge(Phase::Prepared, Call::Launch, "fails cleanly", Phase::Prepared),
    edge(Phase::Prepared, Call::Launch, "fails half-way", Phase::Reaped),
    edge(Phase::Launched, Call::Poll, "not ready", Phase::Launched),
    edge(Phase::Launched, Call::Poll, "complete", Phase::Reaped),
    edge(Phase::Launched, Call::Poll, "error", Phase::Reaped),
    edge(Phase::Launched, Call::Wait, "complete", Phase::Reaped),
    edge(Phase::Launched, Call::Wait, "error", Phase::Reaped),
    edge(Phase::Prepared, Call::Finalize, "abandons", Phase::Finalizing),
    edge(Phase::Launched, Call::Finalize, "waits first", Phase::Reaped),
    edge(Phase::Reaped, Call::Finalize, "begins", Phase::Finalizing),
    edge(Phase::Finalizing, Call::Finalize, "ends", Phase::Empty),
];

impl Phase {
    /// Whether `call` may be made on a run slot in this phase by its user. `Preparing` and `Finalizing` last for one
    /// call of the backend and take no other.
    #[must_use]
    pub fn allows(self, call: Call) -> bool {
        !matches!(self, Self::Preparing | Self::Finalizing)
            && TRANSITIONS.iter().any(|edge| edge.from == self && edge.call == call)
    }
}

/// The phases in which `call` is legal, as text: "PREPARED, LAUNCHED or REAPED".
pub(crate) struct LegalPhases(pub(crate) Call);

impl fmt::Display for LegalPhases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = Phase::ALL.iter().filter(|phase| phase.allows(self.0)).count();
        for (index, phase) in Phase::ALL.iter().filter(|phase| phase.allows(self.0)).enumerate() {
            match index {
                0 => {}
                _ if index + 1 == count => f.write_str(" or ")?,
                _ => f.write_str(", ")?,
            }
            f.write_str(phase.name())?;
        }
        Ok(())
    }
}
