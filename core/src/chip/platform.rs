//! What each platform and runtime can do; the parent needs it before the child has said anything (W-1).

use core::fmt;
use core::str::FromStr;

use super::{ChipError, Reason};

/// Where a runtime runs: on a chip, or in the vendor's own simulation of one (C-10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Platform {
    /// Ascend A2 or A3, on board.
    A2A3,
    /// Ascend A5, on board.
    A5,
    /// The vendor's thread simulation of A2 and A3.
    A2A3Sim,
    /// The vendor's thread simulation of A5.
    A5Sim,
}

impl Platform {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::A2A3, Self::A5, Self::A2A3Sim, Self::A5Sim];

    /// The name that descriptors and command lines use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A2A3 => "a2a3",
            Self::A5 => "a5",
            Self::A2A3Sim => "a2a3sim",
            Self::A5Sim => "a5sim",
        }
    }

    /// The architecture behind the platform, `a2a3` or `a5`.
    #[must_use]
    pub const fn architecture(self) -> &'static str {
        match self {
            Self::A2A3 | Self::A2A3Sim => "a2a3",
            Self::A5 | Self::A5Sim => "a5",
        }
    }

    /// Whether this is the vendor's simulation.
    #[must_use]
    pub const fn is_simulation(self) -> bool {
        matches!(self, Self::A2A3Sim | Self::A5Sim)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Platform {
    type Err = ChipError;

    fn from_str(name: &str) -> Result<Self, ChipError> {
        Self::ALL
            .into_iter()
            .find(|platform| platform.name() == name)
            .ok_or_else(|| ChipError::UnknownPlatform { name: Reason::from(name) })
    }
}

/// How a runtime builds the graph of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RuntimeKind {
    /// HBG: the host builds the graph in prepare.
    HostBuildGraph,
    /// TMR: the device builds it at launch, from a tensor map and a ring buffer.
    TensormapAndRingbuffer,
}

impl RuntimeKind {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::HostBuildGraph, Self::TensormapAndRingbuffer];

    /// The name that descriptors and command lines use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostBuildGraph => "host_build_graph",
            Self::TensormapAndRingbuffer => "tensormap_and_ringbuffer",
        }
    }
}

impl fmt::Display for RuntimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RuntimeKind {
    type Err = ChipError;

    fn from_str(name: &str) -> Result<Self, ChipError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| ChipError::UnknownRuntime { name: Reason::from(name) })
    }
}

/// What an endpoint of a platform and runtime is registered with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Capabilities {
    /// The depth that its contract publishes; `None` if it is as the contract says.
    pub depth: Option<usize>,
    /// Task frames that its mailbox uses, 1 or 2 (W-1).
    pub task_frames: usize,
    /// Whether a second run may be prepared natively while one executes (L-12).
    pub concurrent_prepare: bool,
}

impl Capabilities {
    /// The row of a platform and runtime.
    #[must_use]
    pub const fn of(platform: Platform, runtime: RuntimeKind) -> Self {
        match (platform, runtime) {
            (Platform::A2A3, RuntimeKind::HostBuildGraph) => {
                Self { depth: Some(2), task_frames: 2, concurrent_prepare: true }
            }
            (Platform::A2A3, RuntimeKind::TensormapAndRingbuffer) => {
                Self { depth: Some(2), task_frames: 2, concurrent_prepare: false }
            }
            (Platform::A5, RuntimeKind::TensormapAndRingbuffer) => {
                Self { depth: Some(2), task_frames: 1, concurrent_prepare: false }
            }
            (Platform::A5, RuntimeKind::HostBuildGraph) => {
                Self { depth: Some(1), task_frames: 1, concurrent_prepare: false }
            }
            (Platform::A2A3Sim | Platform::A5Sim, _) => Self { depth: None, task_frames: 1, concurrent_prepare: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L-12: only host_build_graph on A2/A3 prepares beside a running run, and only there are two frames of use to it.
    #[test]
    fn concurrent_prepare_needs_two_frames_and_host_build_graph() {
        for platform in Platform::ALL {
            for runtime in RuntimeKind::ALL {
                let row = Capabilities::of(platform, runtime);
                let expected = platform == Platform::A2A3 && runtime == RuntimeKind::HostBuildGraph;
                assert_eq!(row.concurrent_prepare, expected, "{platform} {runtime}");
                assert!(!row.concurrent_prepare || row.task_frames == 2);
            }
        }
    }

    /// C-10
    #[test]
    fn names_are_read_back_and_others_are_refused() {
        for platform in Platform::ALL {
            assert_eq!(platform.name().parse(), Ok(platform));
            assert_eq!(
                platform.name(),
                [platform.architecture(), if platform.is_simulation() { "sim" } else { "" }].concat()
            );
        }
        for runtime in RuntimeKind::ALL {
            assert_eq!(runtime.name().parse(), Ok(runtime));
        }
        assert!(matches!("a2a3 ".parse::<Platform>(), Err(ChipError::UnknownPlatform { .. })));
        assert!(matches!("hbg".parse::<RuntimeKind>(), Err(ChipError::UnknownRuntime { .. })));
    }
}
