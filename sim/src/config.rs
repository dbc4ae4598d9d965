//! What a simulated device is made of.

use serde::{Deserialize, Serialize};

use crate::DEVICE_BASE;
use crate::fault::FaultPlan;
use crate::graph::MAX_GRAPH_BYTES;
use crate::profile::Profile;

/// How long the device takes, in virtual time: a run that is not done by its deadline polls as not ready, and nothing in
/// the lane sleeps for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cost {
    /// Nanoseconds per kernel.
    pub kernel_nanos: u64,
    /// Picoseconds per element of a kernel's largest operand.
    pub element_picos: u64,
}

/// A simulated device as plain data, so that a test case can be a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The chip and its runtime.
    pub profile: Profile,
    /// Bytes of device memory; bought from the host as they are used.
    #[serde(default = "default_memory")]
    pub memory_bytes: u64,
    /// The first device address.
    #[serde(default = "default_base")]
    pub base: u64,
    /// Bytes of one arena bank; at least what the largest graph needs.
    #[serde(default = "default_arena")]
    pub arena_bytes: u64,
    /// How long kernels take.
    #[serde(default)]
    pub cost: Cost,
    /// What goes wrong.
    #[serde(default)]
    pub faults: FaultPlan,
}

fn default_memory() -> u64 {
    4 << 30
}

fn default_base() -> u64 {
    DEVICE_BASE.0
}

fn default_arena() -> u64 {
    MAX_GRAPH_BYTES.next_power_of_two()
}

impl Config {
    /// A device with 4 GiB of memory that computes in no time and works.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            memory_bytes: default_memory(),
            base: default_base(),
            arena_bytes: default_arena(),
            cost: Cost::default(),
            faults: FaultPlan::none(),
        }
    }

    /// With another fault plan.
    #[must_use]
    pub fn with_faults(mut self, faults: FaultPlan) -> Self {
        self.faults = faults;
        self
    }

    /// With another memory size in bytes.
    #[must_use]
    pub const fn with_memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// With another cost of kernels.
    #[must_use]
    pub const fn with_cost(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }
}
