//! A device runtime: the "device" is the CPU of the child that owns it, and what it can do is add vectors of f32.

// ANCHOR: uses
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

use laneway_core::chip::{
    Call, CallableSlot, ChipError, Completion, DeviceAddress, DeviceLedger, DeviceRuntime, HostAddress, Phase,
    Progress, Reason, RunDescriptor, RunTable, RunToken,
};
use laneway_core::wire::{AddressSpace, CallConfig, ChipCallable, ChipStorageTaskArgs, ChipTensor, Dtype};
// ANCHOR_END: uses

// ANCHOR: state
/// The device. What a run owns lies in its slot of the run table: here `a`, `b` and `c` of `c = a + b`.
pub(crate) struct Adder {
    callables: [bool; CallableSlot::COUNT],
    runs: RunTable<[ChipTensor; 3]>,
    memory: BTreeMap<DeviceAddress, Box<[AtomicU8]>>,
    ledger: DeviceLedger,
    open: bool,
}

impl Adder {
    /// An open device.
    ///
    /// # Safety
    /// Whenever a run or a copy names host memory, those bytes are mapped for reading and writing, and no Rust reference to
    /// them exists except to atomics.
    pub(crate) unsafe fn new() -> Self {
        let (memory, ledger) = (BTreeMap::new(), DeviceLedger::new());
        Self { callables: [false; CallableSlot::COUNT], runs: RunTable::new(), memory, ledger, open: true }
    }

    fn check_open(&self, call: Call) -> Result<(), ChipError> {
        if self.open { Ok(()) } else { Err(ChipError::DeviceGone { call }) }
    }
    // ANCHOR_END: state

    // ANCHOR: plan
    /// The operands of a run, judged.
    fn operands(&self, callable: CallableSlot, args: &ChipStorageTaskArgs) -> Result<[ChipTensor; 3], ChipError> {
        let refused = |index, reason: &str| ChipError::ArgumentRefused { index, reason: reason.into() };
        if !self.callables[callable.index()] {
            return Err(ChipError::CallableUnknown { slot: callable });
        }
        let tensors = args.tensors().map_err(|fault| refused(0, &fault.to_string()))?;
        let operands: [ChipTensor; 3] =
            tensors.try_into().map_err(|_| refused(tensors.len(), "three tensors are needed"))?;
        if args.counts().is_ok_and(|counts| counts.scalars() != 0) {
            return Err(refused(3, "no scalars are taken"));
        }
        for (index, tensor) in operands.iter().enumerate() {
            if tensor.dtype() != Dtype::F32 || tensor.shape() != operands[0].shape() {
                return Err(refused(index, "all three are f32 of one shape"));
            }
            if tensor.address_space() == AddressSpace::Device {
                self.ledger.check(Call::Prepare, DeviceAddress(tensor.addr()), tensor.buffer_bytes())?;
            }
        }
        Ok(operands)
    }

    /// A device of its own works by itself between launch and poll; this one does its sums when it is asked for them.
    fn complete(&mut self, call: Call, run: RunToken) -> Result<(), ChipError> {
        let [a, b, c] = self.runs.get(call, run)?;
        for ((a, b), c) in addresses(a).zip(addresses(b)).zip(addresses(c)) {
            let [a, b] =
                [a, b].map(|at| f32::from_ne_bytes([0, 1, 2, 3].map(|i| byte(at + i).load(Ordering::Relaxed))));
            for (i, value) in (a + b).to_ne_bytes().into_iter().enumerate() {
                byte(c + i as u64).store(value, Ordering::Relaxed);
            }
        }
        self.runs.reaped(call, run, Completion::Proven)
    }
}
// ANCHOR_END: plan

// ANCHOR: trait
impl DeviceRuntime for Adder {
    fn register(&mut self, slot: CallableSlot, callable: &[u8]) -> Result<(), ChipError> {
        self.check_open(Call::Register)?;
        self.runs.check_idle(Call::Register)?;
        let refused = |reason| ChipError::CallableRefused { reason };
        let parsed = ChipCallable::parse(callable).map_err(|e| refused(Reason::new(format_args!("{e}"))))?;
        if parsed.func_name() != "add" {
            return Err(refused(Reason::new(format_args!("{:?} is not `add`", parsed.func_name()))));
        }
        match std::mem::replace(&mut self.callables[slot.index()], true) {
            true => Err(ChipError::CallableTaken { slot }),
            false => Ok(()),
        }
    }

    fn unregister(&mut self, slot: CallableSlot) -> Result<(), ChipError> {
        self.check_open(Call::Unregister)?;
        self.runs.check_idle(Call::Unregister)?;
        match std::mem::replace(&mut self.callables[slot.index()], false) {
            true => Ok(()),
            false => Err(ChipError::CallableUnknown { slot }),
        }
    }

    fn prepare(
        &mut self,
        callable: CallableSlot,
        args: &ChipStorageTaskArgs,
        _: &CallConfig,
        run: RunDescriptor,
    ) -> Result<RunToken, ChipError> {
        self.check_open(Call::Prepare)?;
        if !self.contract().has_slot(run.slot()) {
            return Err(ChipError::Unsupported { call: Call::Prepare, reason: "there is one run slot".into() });
        }
        let token = self.runs.begin_prepare(run.slot())?;
        match self.operands(callable, args) {
            Ok(operands) => self.runs.prepared(token, operands).map(|()| token),
            Err(error) => self.runs.prepare_failed(token).and(Err(error)),
        }
    }

    fn launch(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.runs.launched(run)
    }

    fn accepted(&self, run: RunToken) -> bool {
        self.runs.find(run).is_some() && matches!(self.runs.phase(run.slot()), Phase::Launched | Phase::Reaped)
    }

    fn poll(&mut self, run: RunToken) -> Result<Progress, ChipError> {
        self.complete(Call::Poll, run).map(|()| Progress::Complete)
    }

    fn wait(&mut self, run: RunToken) -> Result<(), ChipError> {
        self.complete(Call::Wait, run)
    }

    fn finalize(&mut self, run: RunToken) -> Result<(), ChipError> {
        let launched = self.runs.find(run).is_some() && self.runs.phase(run.slot()) == Phase::Launched;
        let waited = if launched { self.wait(run) } else { Ok(()) };
        self.runs.begin_finalize(run)?;
        self.runs.finalized(run).and(waited)
    }

    fn malloc(&mut self, bytes: u64) -> Result<DeviceAddress, ChipError> {
        self.check_open(Call::Malloc)?;
        if bytes == 0 {
            return Err(ChipError::Failed { call: Call::Malloc, code: -1, reason: "0 bytes have no address".into() });
        }
        let block: Box<[AtomicU8]> = (0..bytes).map(|_| AtomicU8::new(0)).collect();
        let base = DeviceAddress(block.as_ptr().expose_provenance() as u64);
        self.ledger.enter(base, bytes)?;
        self.memory.insert(base, block);
        Ok(base)
    }

    fn free(&mut self, base: DeviceAddress) -> Result<(), ChipError> {
        self.check_open(Call::Free)?;
        self.ledger.begin_free(base)?;
        self.memory.remove(&base);
        self.ledger.freed(base);
        Ok(())
    }

    fn copy_to(&mut self, to: DeviceAddress, from: HostAddress, bytes: u64) -> Result<(), ChipError> {
        self.check_open(Call::CopyTo)?;
        self.ledger.check(Call::CopyTo, to, bytes)?;
        copy(to.0, from.0, bytes);
        Ok(())
    }

    fn copy_from(&mut self, to: HostAddress, from: DeviceAddress, bytes: u64) -> Result<(), ChipError> {
        self.check_open(Call::CopyFrom)?;
        self.ledger.check(Call::CopyFrom, from, bytes)?;
        copy(to.0, from.0, bytes);
        Ok(())
    }

    fn committed_memory(&self) -> u64 {
        self.memory.values().map(|block| block.len() as u64).sum()
    }

    fn shutdown(&mut self) -> Result<(), ChipError> {
        let runs: Vec<_> = self.runs.runs().map(|(token, _)| token).collect();
        let ended = runs.into_iter().try_for_each(|run| self.finalize(run));
        (self.memory, self.ledger, self.open) = (BTreeMap::new(), DeviceLedger::new(), false);
        ended
    }
}
// ANCHOR_END: trait

// ANCHOR: bytes
/// The address of each element, in row-major order of the view's shape.
fn addresses(tensor: &ChipTensor) -> impl Iterator<Item = u64> + '_ {
    let count: u64 = tensor.shape().iter().map(|&extent| u64::from(extent)).product();
    (0..count).map(|mut rest| {
        let mut element = tensor.start_offset();
        for (&extent, &stride) in tensor.shape().iter().zip(tensor.strides()).rev() {
            element += rest % u64::from(extent) * u64::from(stride);
            rest /= u64::from(extent);
        }
        tensor.addr() + 4 * element
    })
}

fn copy(to: u64, from: u64, bytes: u64) {
    for i in 0..bytes {
        byte(to + i).store(byte(from + i).load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// A byte of host memory that a run or a copy names, or of a live block of this device.
fn byte<'a>(address: u64) -> &'a AtomicU8 {
    // SAFETY: mapped, and referred to by atomics alone: promised by whoever called `Adder::new`, or true of `memory`.
    unsafe { AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize)) }
}
// ANCHOR_END: bytes
