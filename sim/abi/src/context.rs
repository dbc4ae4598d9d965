//! One device behind a handle. Everything here is safe; the pointers were judged in `exports`.

use std::collections::HashMap;
use std::sync::OnceLock;

use laneway_core::chip::{
    CallableSlot, ChipError, DeviceRuntime, Phase, Progress, RunDescriptor, RunToken, RuntimeKind,
};
use laneway_core::ids::{DispatchId, Generation, PipelineSlot, RunId};
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs, DispatchIdentity, NativeRunDescriptor, PipelineContract};
use laneway_sim::{Config, HostMemory, Profile, Simulator};

use crate::log;

/// The environment variable that says which chip is simulated.
const CONFIG_VARIABLE: &str = "LANEWAY_SIM_CONFIG";

/// The answer for every failure that has no number of its own.
pub(crate) const FAILURE: i32 = -1;

/// The configuration of this process, read once.
pub(crate) fn config() -> Option<&'static Config> {
    static CONFIG: OnceLock<Option<Config>> = OnceLock::new();
    let read = || {
        let Ok(value) = std::env::var(CONFIG_VARIABLE) else {
            return Ok(Config::new(Profile::A2a3HostBuildGraph));
        };
        let text = if value.trim_start().starts_with('{') {
            value
        } else {
            std::fs::read_to_string(&value).map_err(|error| format!("{value}: {error}"))?
        };
        serde_json::from_str(&text).map_err(|error| error.to_string())
    };
    let report = |error: String| eprintln!("laneway simulated host runtime: {CONFIG_VARIABLE}: {error}");
    CONFIG.get_or_init(|| read().map_err(report).ok()).as_ref()
}

/// The contract of the simulated chip.
pub(crate) fn contract() -> Option<&'static PipelineContract> {
    static CONTRACT: OnceLock<Option<PipelineContract>> = OnceLock::new();
    CONTRACT.get_or_init(|| config()?.profile.published_contract().ok()).as_ref()
}

/// Where a run's acceptance is to be signalled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceptanceWord {
    pub(crate) address: u64,
    pub(crate) value: i32,
}

/// A run that the host program keeps in some storage of its own.
#[derive(Clone, Copy, Debug)]
struct Bound {
    token: RunToken,
    word: Option<AcceptanceWord>,
}

/// What a handle stands for.
#[derive(Default)]
pub(crate) struct Context {
    device: Option<Simulator>,
    /// Runs by the address of their storage.
    runs: HashMap<usize, Bound>,
}

/// The number of an error; its text goes to the log.
pub(crate) fn code(error: &ChipError) -> i32 {
    log::error(format_args!("{error}"));
    error.code()
}

/// A failure that is not the device's.
fn refuse(reason: std::fmt::Arguments<'_>) -> i32 {
    log::error(reason);
    FAILURE
}

fn status(result: Result<(), ChipError>) -> i32 {
    result.map_or_else(|error| code(&error), |()| 0)
}

impl Context {
    /// Brings the device up, once.
    pub(crate) fn init(&mut self, host: HostMemory) -> i32 {
        if self.device.is_some() {
            return refuse(format_args!("this context has been initialized before"));
        }
        let Some(config) = config() else { return FAILURE };
        match Simulator::new(config.clone(), host) {
            Ok(device) => {
                self.device = Some(device);
                0
            }
            Err(error) => code(&error),
        }
    }

    pub(crate) fn device(&mut self) -> Option<&mut Simulator> {
        if self.device.is_none() {
            log::error(format_args!("simpler_init has not been called on this context"));
        }
        self.device.as_mut()
    }

    fn with(&mut self, call: impl FnOnce(&mut Simulator) -> Result<(), ChipError>) -> i32 {
        self.device().map_or(FAILURE, |device| status(call(device)))
    }

    /// Closes the device.
    pub(crate) fn finalize(&mut self) -> i32 {
        self.runs.clear();
        self.with(Simulator::shutdown)
    }

    pub(crate) fn register(&mut self, id: i32, callable: &[u8]) -> i32 {
        let Some(slot) = callable_slot(id) else { return refuse(format_args!("callable id {id}, legal are 0 to 63")) };
        self.with(|device| device.register(slot, callable))
    }

    pub(crate) fn unregister(&mut self, id: i32) -> i32 {
        let Some(slot) = callable_slot(id) else { return refuse(format_args!("callable id {id}, legal are 0 to 63")) };
        self.with(|device| device.unregister(slot))
    }

    /// Prepares a run that lives in the storage at `storage`.
    pub(crate) fn prepare(
        &mut self,
        storage: usize,
        id: i32,
        args: &ChipStorageTaskArgs,
        config: &CallConfig,
        native: &NativeRunDescriptor,
    ) -> i32 {
        let Some(callable) = callable_slot(id) else {
            return refuse(format_args!("callable id {id}, legal are 0 to 63"));
        };
        let Some(run) = descriptor(native) else {
            return refuse(format_args!("a run descriptor that names half a lease: {native:?}"));
        };
        if self.runs.contains_key(&storage) {
            return refuse(format_args!("the storage at {storage:#x} holds a run: finalize it first"));
        }
        let Some(device) = self.device() else { return FAILURE };
        let bank = device.contract().arena_bank(run.slot());
        if native.arena_bank != bank {
            return refuse(format_args!("arena bank {}, the contract says {bank}", native.arena_bank));
        }
        match device.prepare(callable, args, config, run) {
            Ok(token) => {
                let word = AcceptanceWord { address: native.accepted_state, value: native.accepted_value };
                self.runs.insert(storage, Bound { token, word: (word.address != 0).then_some(word) });
                0
            }
            Err(error) => code(&error),
        }
    }

    /// Calls the device for the run in a storage.
    fn on_run<T>(
        &mut self,
        storage: usize,
        call: impl FnOnce(&mut Simulator, RunToken) -> Result<T, ChipError>,
    ) -> Result<T, i32> {
        let Some(bound) = self.runs.get(&storage).copied() else {
            return Err(refuse(format_args!("the storage at {storage:#x} holds no run: prepare one first")));
        };
        let device = self.device().ok_or(FAILURE)?;
        call(device, bound.token).map_err(|error| code(&error))
    }

    /// Launches, and says where to signal the acceptance if there was one.
    pub(crate) fn launch(&mut self, storage: usize) -> (i32, Option<AcceptanceWord>) {
        match self.on_run(storage, |device, run| device.launch(run).map(|()| device.accepted(run))) {
            Ok(true) => (0, self.runs.get(&storage).and_then(|bound| bound.word)),
            Ok(false) => (0, None),
            Err(code) => (code, None),
        }
    }

    pub(crate) fn poll(&mut self, storage: usize) -> i32 {
        match self.on_run(storage, Simulator::poll) {
            Ok(Progress::NotReady) => 0,
            Ok(Progress::Complete) => 1,
            Err(code) => code,
        }
    }

    pub(crate) fn wait(&mut self, storage: usize) -> i32 {
        self.on_run(storage, Simulator::wait).err().unwrap_or(0)
    }

    /// Ends a run; the storage is free afterwards, also after an error of the run itself.
    pub(crate) fn finalize_run(&mut self, storage: usize) -> i32 {
        let answer = self.on_run(storage, Simulator::finalize).err().unwrap_or(0);
        let over = self
            .runs
            .get(&storage)
            .map(|bound| bound.token.slot())
            .is_some_and(|slot| self.device.as_ref().is_none_or(|device| device.phase(slot) == Phase::Empty));
        if over {
            self.runs.remove(&storage);
        }
        answer
    }

    /// How often an orchestration binary was loaded: on the host, or on the device.
    pub(crate) fn loads(&mut self, by: RuntimeKind) -> usize {
        let Some(device) = &self.device else { return 0 };
        if device.config().profile.runtime() == by { device.counters().code.uploads as usize } else { 0 }
    }
}

fn callable_slot(id: i32) -> Option<CallableSlot> {
    CallableSlot::new(usize::try_from(id).ok()?)
}

/// The run that a descriptor names: a lease with all of its numbers, or none of them.
fn descriptor(native: &NativeRunDescriptor) -> Option<RunDescriptor> {
    let slot = PipelineSlot::new(native.pipeline_slot.into())?;
    if (native.run_id, native.generation, native.dispatch_id) == (0, 0, 0) {
        return Some(RunDescriptor::Direct(slot));
    }
    let run = RunId::new(native.run_id)?;
    let generation = Generation::new(native.generation)?;
    let dispatch = DispatchId::new(native.dispatch_id)?;
    Some(RunDescriptor::Leased(DispatchIdentity { run, slot, generation, dispatch }))
}
