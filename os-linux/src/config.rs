//! What a worker can be told before it starts.

use std::time::Duration;

use laneway_core::engine;

use crate::host::ChildMode;
use crate::memory::Sizes;
use crate::sys::cpu::CpuBudget;
use crate::sys::spin::{PauseCost, SpinWindow};
use crate::trace;
use crate::worker::Cpus;

/// Settings of a worker; [`WorkerBuilder`](crate::WorkerBuilder) has a method for each.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// A label in messages; nothing branches on it.
    pub(crate) level: u32,
    pub(crate) sizes: Sizes,
    pub(crate) engine: engine::Config,
    /// How long a thread spins before it sleeps in the kernel.
    pub(crate) spin: Duration,
    /// Whether children that compute for long ask for long slices.
    pub(crate) long_slices: bool,
    /// For the whole tree to become ready (P-5).
    pub(crate) init_timeout: Duration,
    /// For one `submit` or `alloc` to find room (E-13).
    pub(crate) alloc_timeout: Duration,
    /// For accepted runs to end when the worker closes (P-13).
    pub(crate) drain_budget: Duration,
    /// For all children to leave after they were asked (P-12).
    pub(crate) reap_budget: Duration,
    /// Where the children live (P-27).
    pub(crate) child_mode: ChildMode,
    /// Which child may use which CPUs (P-21).
    pub(crate) cpus: Cpus,
    /// Whether all memory of the regions is committed at init (P-33).
    pub(crate) populate: bool,
    pub(crate) allow_foreign_threads: bool,
    pub(crate) close_foreign_descriptors: bool,
    pub(crate) trace: trace::Setting,
}

const GIB: u64 = 1 << 30;

impl Default for Config {
    fn default() -> Self {
        Self {
            level: 3,
            sizes: Sizes { ring: GIB, buffers: 16 * GIB },
            engine: engine::Config::default(),
            spin: Duration::from_micros(6),
            long_slices: true,
            init_timeout: Duration::from_secs(300),
            alloc_timeout: Duration::from_secs(10),
            drain_budget: Duration::from_secs(10),
            reap_budget: Duration::from_secs(5),
            child_mode: ChildMode::default(),
            cpus: Cpus::default(),
            populate: false,
            allow_foreign_threads: false,
            close_foreign_descriptors: false,
            trace: trace::Setting::default(),
        }
    }
}

impl Config {
    /// The spin window on this machine: none where a spinner would only keep the CPU from the one that it waits for.
    pub(crate) fn spin_window(&self) -> SpinWindow {
        if CpuBudget::read().usable() < 2 {
            SpinWindow::NONE
        } else {
            SpinWindow::new(self.spin, PauseCost::measured())
        }
    }
}
