//! The chips and runtimes that can be simulated.

use laneway_core::chip::{Capabilities, Contract, Platform, RuntimeKind};
use laneway_core::wire::ResourceClass::{DeviceScratch, ExecHandle, HostPerRun};
use laneway_core::wire::ResourceKind::{AicoreStream, AicpuStream, GmHeap, GmSm, RuntimeImage, TaskArgs};
use laneway_core::wire::{PipelineContract, ResourceClass, ResourceKind, WireError};
use serde::{Deserialize, Serialize};

/// A chip with a runtime on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// A2 or A3, the host builds the graph.
    A2a3HostBuildGraph,
    /// A2 or A3, the device builds the graph.
    A2a3TensormapAndRingbuffer,
    /// A5, the host builds the graph.
    A5HostBuildGraph,
    /// A5, the device builds the graph.
    A5TensormapAndRingbuffer,
}

const TMR: [(ResourceKind, ResourceClass); 6] = [
    (TaskArgs, HostPerRun),
    (GmHeap, DeviceScratch),
    (GmSm, DeviceScratch),
    (RuntimeImage, DeviceScratch),
    (AicpuStream, ExecHandle),
    (AicoreStream, ExecHandle),
];

const HBG: [(ResourceKind, ResourceClass); 4] =
    [(GmHeap, HostPerRun), (RuntimeImage, HostPerRun), (AicpuStream, ExecHandle), (AicoreStream, ExecHandle)];

impl Profile {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::A2a3HostBuildGraph,
        Self::A2a3TensormapAndRingbuffer,
        Self::A5HostBuildGraph,
        Self::A5TensormapAndRingbuffer,
    ];

    /// The platform that it stands in for.
    #[must_use]
    pub const fn platform(self) -> Platform {
        match self {
            Self::A2a3HostBuildGraph | Self::A2a3TensormapAndRingbuffer => Platform::A2A3,
            Self::A5HostBuildGraph | Self::A5TensormapAndRingbuffer => Platform::A5,
        }
    }

    /// How it builds graphs.
    #[must_use]
    pub const fn runtime(self) -> RuntimeKind {
        match self {
            Self::A2a3HostBuildGraph | Self::A5HostBuildGraph => RuntimeKind::HostBuildGraph,
            Self::A2a3TensormapAndRingbuffer | Self::A5TensormapAndRingbuffer => RuntimeKind::TensormapAndRingbuffer,
        }
    }

    /// What an endpoint for it is registered with (W-1).
    #[must_use]
    pub const fn capabilities(self) -> Capabilities {
        Capabilities::of(self.platform(), self.runtime())
    }

    /// The contract as it publishes it.
    ///
    /// # Errors
    /// Never, as a test shows; the contract is judged like any other.
    pub fn published_contract(self) -> Result<PipelineContract, WireError> {
        let resources: &[_] = match self.runtime() {
            RuntimeKind::HostBuildGraph => &HBG,
            RuntimeKind::TensormapAndRingbuffer => &TMR,
        };
        PipelineContract::new(self.capabilities().depth.unwrap_or(1) as u32, resources)
    }

    /// The contract, checked.
    #[must_use]
    pub fn contract(self) -> Contract {
        self.published_contract().and_then(|raw| Contract::check(&raw)).unwrap_or(Contract::absent())
    }
}

#[cfg(test)]
mod tests {
    use laneway_core::ids::PipelineSlot;

    use super::*;

    /// C-1, C-2: depth and arena banks of each profile.
    #[test]
    fn every_profile_publishes_the_contract_that_is_seen_in_the_field() {
        let depth_and_banks = Profile::ALL.map(|profile| {
            profile.published_contract().unwrap();
            let contract = profile.contract();
            (contract.depth(), PipelineSlot::ALL.map(|slot| contract.arena_bank(slot)))
        });
        assert_eq!(depth_and_banks, [(2, [0, 1]), (2, [0, 0]), (1, [0, 1]), (2, [0, 0])]);
    }
}
