//! The device.

use std::collections::HashSet;
use std::time::Duration;

use laneway_core::chip::{
    Call, CallableSlot, ChipError, Completion, Contract, DeviceAddress, DeviceRuntime, Finalizing, HostAddress, Phase,
    Progress, Reason, RunDescriptor, RunTable, RunToken, RuntimeKind,
};
use laneway_core::ids::PipelineSlot;
use laneway_core::time::Instant;
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs};

use crate::arena::{ArenaBanks, RetainedTemps};
use crate::clock::{Clock, MachineClock};
use crate::code::{CodeCounters, CodeStore, Registered};
use crate::config::Config;
use crate::fault::{Action, HangSwitch, Injector};
use crate::graph::{Graph, MAX_GRAPH_BYTES};
use crate::host_memory::HostMemory;
use crate::kernel::View;
use crate::memory::DeviceMemory;
use crate::staging::Staging;
use crate::streams::{StreamCounters, Streams};

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

/// How a run's graph comes about.
#[derive(Debug)]
enum Plan {
    /// It lies in the arena bank since prepare (HBG).
    Built,
    /// It is built at launch, from these (TMR).
    OnDevice { callable: CallableSlot, views: Vec<View>, scalars: Vec<u64> },
}

/// What a run owns from prepare to finalize.
#[derive(Debug)]
struct Run {
    staging: Staging,
    /// A staging block of this run alone (HBG); TMR uses the retained buffer of the slot.
    block: Option<DeviceAddress>,
    bank: DeviceAddress,
    plan: Plan,
    diagnostic: bool,
    accepted: bool,
    /// When the device is done, from launch on.
    due: Instant,
    hangs: bool,
    executed: bool,
    /// The completion is reported without leaving LAUNCHED, once.
    completes_twice: bool,
}

/// Whether the device can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Open,
    /// A completion was unproven: what runs may be finalized, nothing new begins.
    Lost,
    Closed,
}

/// A simulated device: the model behind [`DeviceRuntime`].
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

    /// Everything of a prepare that can fail. Leaves nothing behind then.
    fn build(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        slot: PipelineSlot,
    ) -> Result<Run, ChipError> {
        config.validate().map_err(|error| refused(&error))?;
        let program = self.code.program(callable)?;
        let tensors = args.tensors().map_err(|error| refused(&error))?;
        let scalars = args.scalars().map_err(|error| refused(&error))?;
        program.check_counts(tensors.len(), scalars.len())?;
        let mut staging = Staging::plan(tensors, program.tensor_directions(), &self.host, |address, bytes| {
            self.user_range(Call::Prepare, address, bytes).map(|_| ())
        })?;
        // The operands are judged before anything is allocated; their shapes do not depend on where they will be.
        Graph::build(program, &staging.views(), scalars)?;
        let bank = self.banks.commit(&mut self.memory, self.contract.arena_bank(slot), self.config.arena_bytes)?;
        let (block, plan) = match self.config.profile.runtime() {
            RuntimeKind::HostBuildGraph => {
                let block = match staging.bytes() {
                    0 => None,
                    bytes => Some(self.memory.allocate(bytes)?),
                };
                staging.place(block.unwrap_or(DeviceAddress(0)));
                let built = Graph::build(program, &staging.views(), scalars)
                    .and_then(|graph| graph.store(&mut self.memory, bank))
                    .and_then(|()| staging.copy_in(&mut self.memory, &self.host));
                if let (Err(error), Some(block)) = (&built, block) {
                    self.memory.free(block)?;
                    return Err(error.clone());
                }
                built?;
                (block, Plan::Built)
            }
            RuntimeKind::TensormapAndRingbuffer => {
                if staging.bytes() > 0 {
                    staging.place(self.temps.reserve(&mut self.memory, slot, staging.bytes())?);
                }
                staging.copy_in(&mut self.memory, &self.host)?;
                (None, Plan::OnDevice { callable, views: staging.views(), scalars: scalars.to_vec() })
            }
        };
        Ok(Run {
            staging,
            block,
            bank,
            plan,
            diagnostic: config.is_diagnostic(),
            accepted: false,
            due: Instant::default(),
            hangs: false,
            executed: false,
            completes_twice: false,
        })
    }

    /// Ends a launched run without a proof that the device is done with it: the device is lost.
    fn lose(&mut self, call: Call, run: RunToken, error: &ChipError) -> ChipError {
        // The caller has just found the run in a phase in which this call is legal.
        let _ = self.runs.reaped(call, run, Completion::Unproven);
        self.streams.retire(run.epoch(), false);
        self.health = Health::Lost;
        self.counters.unproven += 1;
        let reason = match error {
            ChipError::Failed { reason, .. } => reason.clone(),
            other => Reason::new(format_args!("{other}")),
        };
        ChipError::Unproven { call, epoch: run.epoch(), code: error.code(), reason }
    }

    /// Lets the device do the work of a run that is due. The completion is taken unless the plan says to report it twice.
    fn complete(&mut self, call: Call, run: RunToken) -> Result<(), ChipError> {
        let (bank, executed) = {
            let run = self.runs.get(call, run)?;
            (run.bank, run.executed)
        };
        if !executed {
            let done = Graph::load(&self.memory, bank).and_then(|graph| graph.execute(&mut self.memory));
            if let Err(error) = done {
                return Err(self.lose(call, run, &error));
            }
        }
        let state = self.runs.get_mut(call, run)?;
        state.executed = true;
        if std::mem::take(&mut state.completes_twice) {
            return Ok(());
        }
        self.runs.reaped(call, run, Completion::Proven)?;
        self.streams.retire(run.epoch(), true);
        self.counters.completions += 1;
        Ok(())
    }

    /// Applies to a launched run what struck the call that looks at it.
    fn look(&mut self, call: Call, run: RunToken) -> Result<(), ChipError> {
        self.runs.get(call, run)?;
        match self.strike(call) {
            Ok(struck) => {
                let state = self.runs.get_mut(call, run)?;
                state.due = state.due.saturating_add(Duration::from_nanos(struck.delay));
                state.hangs |= struck.hang;
                state.completes_twice |= struck.complete_twice;
                Ok(())
            }
            Err(error) => Err(self.lose(call, run, &error)),
        }
    }
}

/// An argument list or a config that came through a foreign interface and is not legal.
fn refused(error: &laneway_core::wire::WireError) -> ChipError {
    use laneway_core::wire::WireError;
    let index = match error {
        WireError::Argument { index, .. } => *index,
        _ => 0,
    };
    ChipError::ArgumentRefused { index, reason: Reason::new(format_args!("{error}")) }
}

/// Dies as if someone had sent SIGKILL, because this sends it.
fn kill_this_process() {
    // If the kernel refused to let a process kill itself, dying in another way is the best that can be done.
    if rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).is_err() {
        std::process::abort();
    }
}

impl DeviceRuntime for Simulator {
    fn contract(&self) -> Contract {
        self.contract
    }

    fn supports_concurrent_prepare(&self) -> bool {
        self.config.profile.capabilities().concurrent_prepare
    }

    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError> {
        self.check_open(Call::Register)?;
        self.runs.check_idle(Call::Register)?;
        self.strike(Call::Register)?;
        if self.code.register(&mut self.memory, slot, callable)? == Registered::Uploaded {
            self.streams.publish_code();
        }
        Ok(())
    }

    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError> {
        self.check_open(Call::Unregister)?;
        self.runs.check_idle(Call::Unregister)?;
        self.strike(Call::Unregister)?;
        self.code.unregister(&mut self.memory, slot)
    }

    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        self.check_open(Call::Prepare)?;
        let slot = run.slot();
        if !self.contract.has_slot(slot) {
            let (index, depth) = (slot.index(), self.contract.depth());
            let reason = Reason::new(format_args!("run slot {index} of a runtime of depth {depth}"));
            return Err(ChipError::Unsupported { call: Call::Prepare, reason });
        }
        let beside = self.runs.runs().map(|(token, _)| token).find(|token| token.slot() != slot);
        let token = self.runs.begin_prepare(slot)?;
        let built = self.strike(Call::Prepare).and_then(|_| {
            if let Some(other) = beside {
                let other_diagnostic = self.runs.find(other).is_some_and(|run| run.diagnostic);
                if !self.supports_concurrent_prepare() || other_diagnostic || config.is_diagnostic() {
                    return Err(ChipError::Incompatible { call: Call::Prepare });
                }
            }
            self.build(callable, args, config, slot)
        });
        match built {
            Ok(run) => {
                self.runs.prepared(token, run)?;
                Ok(token)
            }
            Err(error) => {
                self.runs.prepare_failed(token)?;
                Err(error)
            }
        }
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.runs.check_launch(run)?;
        self.check_open(Call::Launch)?;
        let struck = self.strike(Call::Launch)?;
        let state = self.runs.get(Call::Launch, run)?;
        let bank = state.bank;
        if let Plan::OnDevice { callable, views, scalars } = &state.plan {
            let graph = Graph::build(self.code.program(*callable)?, views, scalars)?;
            graph.store(&mut self.memory, bank)?;
        }
        let duration =
            Graph::load(&self.memory, bank)?.duration(self.config.cost.kernel_nanos, self.config.cost.element_picos);
        if self.counters.kernel_images_registered == 0 {
            self.counters.kernel_images_registered = 1;
        }
        if !self.streams.submit(run.epoch()) {
            let reason = Reason::from("another run is on the streams");
            return Err(ChipError::Failed { call: Call::Launch, code: -1, reason });
        }
        if struck.half_launch {
            let reason = Reason::from("the AICore kernel was not enqueued after the AICPU kernel was");
            return Err(self.lose(Call::Launch, run, &ChipError::Failed { call: Call::Launch, code: -1, reason }));
        }
        let now = self.clock.now();
        let state = self.runs.get_mut(Call::Launch, run)?;
        state.due = now.saturating_add(Duration::from_nanos(duration.saturating_add(struck.delay)));
        state.hangs = struck.hang;
        state.accepted = !struck.skip_acceptance;
        self.counters.launches += 1;
        self.runs.launched(run)
    }

    fn accepted(&self, run: RunToken) -> bool {
        self.runs.find(run).is_some_and(|run| run.accepted)
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        self.look(Call::Poll, run)?;
        let state = self.runs.get(Call::Poll, run)?;
        if (state.hangs && !self.hang.is_released()) || self.clock.now() < state.due {
            return Ok(Progress::NotReady);
        }
        self.complete(Call::Poll, run)?;
        Ok(Progress::Complete)
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.look(Call::Wait, run)?;
        let state = self.runs.get(Call::Wait, run)?;
        if state.hangs {
            self.hang.wait();
        }
        self.clock.sleep_until(state.due);
        self.complete(Call::Wait, run)
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        let waited = match self.runs.find(run) {
            Some(_) if self.runs.phase(run.slot()) == Phase::Launched => self.wait(run),
            _ => Ok(()),
        };
        let finalizing = self.runs.begin_finalize(run)?;
        let struck = self.strike(Call::Finalize).map(|_| ());
        let ended = match finalizing {
            Finalizing::Abandoned(state) => {
                self.counters.abandoned += 1;
                state.block.map_or(Ok(()), |block| self.memory.free(block))
            }
            Finalizing::Completed(state) => {
                let copied = struck.clone().and_then(|()| state.staging.copy_back(&self.memory, &self.host));
                copied.and(state.block.map_or(Ok(()), |block| self.memory.free(block)))
            }
            // The device may still write there: the block stays taken until the device is closed.
            Finalizing::Unproven(state) => {
                self.quarantine.extend(state.block);
                Ok(())
            }
        };
        self.runs.finalized(run)?;
        waited.and(struck).and(ended)
    }

    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        self.check_open(Call::Malloc)?;
        self.strike(Call::Malloc)?;
        if bytes == 0 {
            let reason = Reason::from("an allocation of 0 bytes has no address");
            return Err(ChipError::Failed { call: Call::Malloc, code: -1, reason });
        }
        let base = self.memory.allocate(bytes)?;
        self.user.insert(base);
        Ok(base)
    }

    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError> {
        self.check_open(Call::Free)?;
        self.strike(Call::Free)?;
        self.user_range(Call::Free, base, 0)?;
        self.memory.free(base)?;
        self.user.remove(&base);
        Ok(())
    }

    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError> {
        self.check_open(Call::CopyTo)?;
        self.strike(Call::CopyTo)?;
        self.host.check(Call::CopyTo, from, bytes)?;
        let range = self.user_range(Call::CopyTo, to, bytes)?;
        self.host.read(Call::CopyTo, from, self.memory.bytes_mut(range))
    }

    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        self.check_open(Call::CopyFrom)?;
        self.strike(Call::CopyFrom)?;
        let range = self.user_range(Call::CopyFrom, from, bytes)?;
        self.host.write(Call::CopyFrom, to, self.memory.bytes(range))
    }

    fn committed_memory(&self) -> u64 {
        self.memory.committed()
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        if self.health == Health::Closed {
            return Ok(());
        }
        let mut answer = self.strike(Call::Shutdown).map(|_| ());
        let runs: Vec<RunToken> = self.runs.runs().map(|(run, _)| run).collect();
        for run in runs {
            answer = answer.and(self.finalize(run));
        }
        answer = answer.and(self.code.clear(&mut self.memory));
        answer = answer.and(self.temps.release(&mut self.memory));
        answer = answer.and(self.banks.release(&mut self.memory));
        self.streams.close();
        self.counters.kernel_images_released = self.counters.kernel_images_registered;
        self.counters.leaked_allocations = self.user.len() as u64;
        for base in self.user.drain().chain(self.quarantine.drain(..)) {
            answer = answer.and(self.memory.free(base));
        }
        self.health = Health::Closed;
        answer
    }
}
