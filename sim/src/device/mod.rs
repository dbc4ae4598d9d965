//! The device.

mod run;
mod runtime;

use std::collections::HashSet;
use std::time::Duration;

use laneway_core::chip::{Call, ChipError, Contract, DeviceAddress, Phase, Reason, RunTable};
use laneway_core::ids::PipelineSlot;

use crate::arena::{ArenaBanks, RetainedTemps};
use crate::clock::{Clock, MachineClock};
use crate::code::{CodeCounters, CodeStore};
use crate::config::Config;
use crate::fault::{Action, HangSwitch, Injector};
use crate::graph::MAX_GRAPH_BYTES;
use crate::host_memory::HostMemory;
use crate::memory::DeviceMemory;
use crate::streams::{StreamCounters, Streams};
use run::Run;

/// What happened how often on a device, readable at any time, also after its shutdown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Streams.
    pub streams: StreamCounters,
    /// Code.
    pub code: CodeCounters,
    /// Kernel images registered with the device: 1 after the first launch.
    pub kernel_images_registered: u64,
    /// Kernel images released: 1 after the shutdown of a device that launched.
    pub kernel_images_released: u64,
    /// Retained temporary buffers allocated, the first time or to grow.
    pub temp_grows: u64,
    /// Runs handed to the device.
    pub launches: u64,
    /// Runs whose completion was taken and proven.
    pub completions: u64,
    /// Runs given up before their launch.
    pub abandoned: u64,
    /// Runs whose completion was unproven.
    pub unproven: u64,
    /// Allocations of the user that were live at shutdown.
    pub leaked_allocations: u64,
}

/// Whether the device can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Open,
    /// A completion was unproven: what runs may be finalized, nothing new begins.
    Lost,
    Closed,
}

/// A simulated device: the model behind [`laneway_core::chip::DeviceRuntime`].
pub struct Simulator {
    config: Config,
    contract: Contract,
    host: HostMemory,
    clock: Box<dyn Clock>,
    health: Health,
    memory: DeviceMemory,
    /// Bases of the allocations that the user made; everything else on the device is ours.
    user: HashSet<DeviceAddress>,
    /// Staging blocks of runs whose completion is unproven.
    quarantine: Vec<DeviceAddress>,
    code: CodeStore,
    runs: RunTable<Run>,
    streams: Streams,
    banks: ArenaBanks,
    temps: RetainedTemps,
    injector: Injector,
    hang: HangSwitch,
    scribble: Option<Box<dyn FnMut() + Send>>,
    counters: Counters,
}

/// What a fault plan asks of the call that it struck.
#[derive(Clone, Copy, Debug, Default)]
struct Struck {
    delay: u64,
    hang: bool,
    half_launch: bool,
    skip_acceptance: bool,
    complete_twice: bool,
}

impl Simulator {
    /// Brings up a device on the clock of the machine. `host` says which host memory it may touch, which is where the
    /// caller promised that memory to be there.
    ///
    /// # Errors
    /// A memory that cannot hold an arena bank, or what the fault plan says about `init`.
    pub fn new(config: Config, host: HostMemory) -> Result<Self, ChipError> {
        Self::with_clock(config, host, Box::new(MachineClock::new()))
    }

    /// Brings up a device on a clock of the caller.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(config: Config, host: HostMemory, clock: Box<dyn Clock>) -> Result<Self, ChipError> {
        let fails = |reason| ChipError::Failed { call: Call::Init, code: -1, reason: Reason::new(reason) };
        if config.arena_bytes < MAX_GRAPH_BYTES {
            return Err(fails(format_args!("arena_bytes is {}, at least {MAX_GRAPH_BYTES}", config.arena_bytes)));
        }
        let memory = DeviceMemory::new(DeviceAddress(config.base), config.memory_bytes);
        let mut device = Self {
            contract: config.profile.contract(),
            injector: Injector::new(config.faults.clone()),
            config,
            host,
            clock,
            health: Health::Open,
            memory,
            user: HashSet::new(),
            quarantine: Vec::new(),
            code: CodeStore::new(),
            runs: RunTable::new(),
            streams: Streams::new(),
            banks: ArenaBanks::default(),
            temps: RetainedTemps::default(),
            hang: HangSwitch::default(),
            scribble: None,
            counters: Counters::default(),
        };
        device.strike(Call::Init)?;
        Ok(device)
    }

    /// What happened how often.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            streams: self.streams.counters(),
            code: self.code.counters(),
            temp_grows: self.temps.grows(),
            ..self.counters
        }
    }

    /// The configuration that it was built from.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The switch that ends hangs of the fault plan.
    #[must_use]
    pub fn hang_switch(&self) -> HangSwitch {
        self.hang.clone()
    }

    /// What [`Action::Scribble`] calls: the embedding program writes garbage to where it wants to see the effect.
    pub fn set_scribble(&mut self, hook: Box<dyn FnMut() + Send>) {
        self.scribble = Some(hook);
    }

    /// The base of an arena bank, once a run has committed it.
    #[must_use]
    pub fn arena_bank(&self, bank: u32) -> Option<DeviceAddress> {
        self.banks.base(bank)
    }

    /// The retained temporary buffer of a run slot, once a run needed one.
    #[must_use]
    pub fn retained_temp(&self, slot: PipelineSlot) -> Option<DeviceAddress> {
        self.temps.base(slot)
    }

    /// The phase of a run slot.
    #[must_use]
    pub fn phase(&self, slot: PipelineSlot) -> Phase {
        self.runs.phase(slot)
    }

    /// Counts a call and applies what strikes it, as far as that is the same for every call. A delay or a hang of a
    /// launched run is left to the caller: it passes in the device.
    fn strike(&mut self, call: Call) -> Result<Struck, ChipError> {
        let in_device = matches!(call, Call::Launch | Call::Poll | Call::Wait);
        let mut struck = Struck::default();
        for action in self.injector.strike(call) {
            match action {
                Action::Error(code) => {
                    return Err(ChipError::Failed { call, code, reason: Reason::from("the fault plan says so") });
                }
                Action::Incompatible => return Err(ChipError::Incompatible { call }),
                Action::Delay(nanos) if in_device => struck.delay = struck.delay.saturating_add(nanos),
                Action::Delay(nanos) => {
                    self.clock.sleep_until(self.clock.now().saturating_add(Duration::from_nanos(nanos)));
                }
                Action::Hang if in_device => struck.hang = true,
                Action::Hang => self.hang.wait(),
                Action::Abort => std::process::abort(),
                Action::Kill => kill_this_process(),
                Action::Scribble => {
                    if let Some(scribble) = &mut self.scribble {
                        scribble();
                    }
                }
                Action::HalfLaunch => struck.half_launch = true,
                Action::SkipAcceptance => struck.skip_acceptance = true,
                Action::CompleteTwice => struck.complete_twice = true,
            }
        }
        Ok(struck)
    }

    /// Refuses a call that begins something on a device that is closed or lost.
    fn check_open(&self, call: Call) -> Result<(), ChipError> {
        if self.health == Health::Open { Ok(()) } else { Err(ChipError::DeviceGone { call }) }
    }

    /// Where the bytes of a range of the user's device memory are.
    fn user_range(&self, call: Call, address: DeviceAddress, bytes: u64) -> Result<std::ops::Range<usize>, ChipError> {
        match self.memory.allocation(address) {
            Some(base) if self.user.contains(&base) => self.memory.range(call, address, bytes),
            _ => Err(ChipError::NotDeviceMemory { call, address }),
        }
    }
}

/// Dies as if someone had sent SIGKILL, because this sends it.
fn kill_this_process() {
    // If the kernel refused to let a process kill itself, dying in another way is the best that can be done.
    if rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).is_err() {
        std::process::abort();
    }
}
