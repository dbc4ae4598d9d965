//! A level-2 worker: one chip in the caller's own process (C-17).

mod open;
mod run;

use std::borrow::Borrow;
use std::fmt;
use std::hint::spin_loop;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use laneway_core::chip::{
    Call, CallableSlot, ChipError, DeviceAddress, DeviceRuntime, DirectLane, HostAddress, Submitted,
};
use laneway_core::model::TaskArgs;
use laneway_core::time::Instant;
use laneway_core::wire::CallConfig;

use crate::Error;
use crate::config::Config;
use crate::element::Element;
use crate::sys::clock;
use crate::sys::park::Backoff;
use crate::sys::spin::SpinWindow;

use open::Open;
pub use run::ChipRun;

/// One chip in this process: no children, no mailbox, the same trait and the same rules of a run lane.
///
/// Runs hold no lease. Where the runtime can prepare one run beside another, two are on their way at most; a third submit
/// waits for room, and waiting for the second drives the first (C-18). Clones are the same worker; all calls can be made
/// from any thread.
///
/// Tensors are memory of this process, or device memory from [`malloc`](Self::malloc). Whoever built the device has said
/// which host memory it may touch.
///
/// ```no_run
/// # use laneway_linux::{AddressSpace, ChipTensor, ChipWorker, DeviceRuntime, Dtype, Error, TaskArgs};
/// # fn example(device: impl DeviceRuntime + 'static, add: &[u8]) -> Result<(), Error> {
/// let chip = ChipWorker::new(device);
/// let add = chip.register(add)?;
/// let (x, y) = (chip.malloc(16)?, chip.malloc(16)?);
/// chip.copy_to(x, &[1.0_f32, 2.0, 3.0, 4.0])?;
/// let [x, y] = [x, y].map(|at| ChipTensor::contiguous(at.0, 16, Dtype::F32, &[4], AddressSpace::Device));
/// let run = chip.submit(&add, TaskArgs::new().input(x?).output(y?))?;
/// run.wait()?;
/// for (base, bytes) in chip.close()? {
///     eprintln!("{bytes} bytes at {base} were not freed");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ChipWorker {
    shared: Arc<Shared>,
}

/// A callable that is registered with one [`ChipWorker`].
#[derive(Clone, Debug)]
pub struct ChipHandle {
    slot: CallableSlot,
    /// Which registration: no other, here or in another worker, has the number.
    serial: u64,
}

struct Shared {
    state: Mutex<State>,
    window: SpinWindow,
}

struct State {
    /// Outlives the device: results can be taken after the close.
    lane: DirectLane,
    /// `None` once the worker is closed.
    open: Option<Open>,
}

impl fmt::Debug for ChipWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChipWorker").finish_non_exhaustive()
    }
}

impl ChipWorker {
    /// A worker over an open device.
    pub fn new(device: impl DeviceRuntime + 'static) -> Self {
        let state = State { lane: DirectLane::new(), open: Some(Open::new(Box::new(device))) };
        let window = Config::default().spin_window();
        Self { shared: Arc::new(Shared { state: Mutex::new(state), window }) }
    }

    /// Registers a chip callable.
    ///
    /// # Errors
    /// [`Error::Chip`]: the device refuses it, all 64 slots are taken (R-8), or a run is on its way (C-8).
    pub fn register(&self, blob: &[u8]) -> Result<ChipHandle, Error> {
        self.shared.with(Call::Register, |open| open.register(blob))
    }

    /// Removes a callable.
    ///
    /// # Errors
    /// [`Error::Chip`]: it is not registered here (any more), or a run is on its way (C-8).
    pub fn unregister(&self, callable: &ChipHandle) -> Result<(), Error> {
        self.shared.with(Call::Unregister, |open| open.unregister(callable))
    }

    /// Runs a callable and waits for its end.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`ChipRun::wait`].
    pub fn run(&self, callable: &ChipHandle, args: impl Borrow<TaskArgs>) -> Result<(), Error> {
        self.submit(callable, args)?.wait()
    }

    /// Hands a run over; waits only while there is no room for it (C-18).
    ///
    /// # Errors
    /// [`Error::Model`] for an argument list that is not legal; [`Error::Chip`] with what the device says about it.
    pub fn submit(&self, callable: &ChipHandle, args: impl Borrow<TaskArgs>) -> Result<ChipRun, Error> {
        self.submit_with(callable, args, &CallConfig::ZERO)
    }

    /// As [`submit`](Self::submit), with a config.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); a config that is not legal.
    pub fn submit_with(
        &self,
        callable: &ChipHandle,
        args: impl Borrow<TaskArgs>,
        config: &CallConfig,
    ) -> Result<ChipRun, Error> {
        let args = args.borrow();
        args.check()?;
        config.validate()?;
        let submitted =
            self.shared.until(Call::Prepare, None, |lane, open| match open.submit(lane, callable, args, config) {
                Ok(Submitted::Accepted(ticket)) => Some(Ok(ticket)),
                Ok(Submitted::Full) => None,
                Err(error) => Some(Err(error)),
            })?;
        match submitted {
            Some(ticket) => Ok(ChipRun::new(Arc::clone(&self.shared), ticket?)),
            None => Err(ChipError::DeviceGone { call: Call::Prepare }.into()),
        }
    }

    /// Allocates device memory.
    ///
    /// # Errors
    /// [`Error::Chip`], out of memory for one.
    pub fn malloc(&self, bytes: u64) -> Result<DeviceAddress, Error> {
        self.shared.with(Call::Malloc, |open| open.malloc(bytes))
    }

    /// Frees the allocation with exactly this base; at once, or when no run names it any more (C-16).
    ///
    /// # Errors
    /// [`Error::Chip`]: it is no live allocation of this device, or not its base; or the device refuses, and it is live as
    /// before. After a [`ChipError::FreeUnproven`] it is reported by [`close`](Self::close), and not freed again.
    pub fn free(&self, base: DeviceAddress) -> Result<(), Error> {
        self.shared.with(Call::Free, |open| open.free(base))
    }

    /// Copies host memory to the device.
    ///
    /// # Errors
    /// [`Error::InUse`] if a run on its way names the device range; [`Error::Chip`] if it does not lie in one live
    /// allocation, or the device may not touch `from`.
    pub fn copy_to<T: Element>(&self, to: DeviceAddress, from: &[T]) -> Result<(), Error> {
        let host = HostAddress(from.as_ptr().expose_provenance() as u64);
        self.shared.with(Call::CopyTo, |open| open.copy_to(to, host, size_of_val(from) as u64))
    }

    /// Copies from the device to host memory.
    ///
    /// # Errors
    /// As [`copy_to`](Self::copy_to).
    pub fn copy_from<T: Element>(&self, to: &mut [T], from: DeviceAddress) -> Result<(), Error> {
        let bytes = size_of_val(to) as u64;
        let host = HostAddress(to.as_mut_ptr().expose_provenance() as u64);
        self.shared.with(Call::CopyFrom, |open| open.copy_from(host, from, bytes))
    }

    /// Bytes of device memory in use for anything.
    ///
    /// # Errors
    /// [`Error::Chip`] once the worker is closed.
    pub fn committed_memory(&self) -> Result<u64, Error> {
        self.shared.with(Call::Malloc, |open| Ok(open.committed_memory()))
    }

    /// Waits for the runs on their way, releases what is live, and closes the device. Returns the allocations that were
    /// live: base and bytes (C-16). Closing twice is fine.
    ///
    /// # Errors
    /// [`Error::Chip`] with the first thing that could not be cleaned up; the worker is closed all the same.
    pub fn close(&self) -> Result<Vec<(DeviceAddress, u64)>, Error> {
        // Whoever sees the lane empty takes the device away under the same lock, so nothing is submitted in between.
        let device = self.shared.until_state(None, |state| match &state.open {
            Some(_) if state.lane.in_flight() > 0 => None,
            _ => Some(state.open.take()),
        });
        device.flatten().map_or(Ok(Vec::new()), Open::close)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls on an open worker whose runs were looked at just now.
    fn with<R>(&self, call: Call, body: impl FnOnce(&mut Open) -> Result<R, Error>) -> Result<R, Error> {
        let state = &mut *self.lock();
        let open = state.open.as_mut().ok_or(ChipError::DeviceGone { call })?;
        open.step(&mut state.lane);
        body(open)
    }

    /// Drives the runs until `ready` has an answer, or the time is over (`None`).
    fn until<R>(
        &self,
        call: Call,
        deadline: Option<Instant>,
        mut ready: impl FnMut(&mut DirectLane, &mut Open) -> Option<R>,
    ) -> Result<Option<R>, Error> {
        let answer = self.until_state(deadline, |State { lane, open }| match open {
            Some(open) => ready(lane, open).map(Ok),
            None => Some(Err(ChipError::DeviceGone { call }.into())),
        });
        answer.transpose()
    }

    /// Looks, and drives the runs between two looks. Sleeps after a while, and never under the lock.
    fn until_state<R>(&self, deadline: Option<Instant>, mut ready: impl FnMut(&mut State) -> Option<R>) -> Option<R> {
        let (mut looks, mut backoff) = (0, Backoff::new());
        loop {
            {
                let state = &mut *self.lock();
                if let Some(open) = &mut state.open {
                    open.step(&mut state.lane);
                }
                if let Some(answer) = ready(state) {
                    return Some(answer);
                }
            }
            if deadline.is_some_and(|deadline| clock::now() >= deadline) {
                return None;
            }
            // No word tells when a device is done.
            if looks < self.window.turns() {
                looks += 1;
                spin_loop();
            } else {
                thread::sleep(backoff.next_nap());
            }
        }
    }
}
