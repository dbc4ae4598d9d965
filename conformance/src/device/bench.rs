//! What the device cases work with.

use std::ops::{Deref, DerefMut};

use laneway_core::chip::{CallableSlot, ChipError, DeviceAddress, DeviceRuntime, RunToken};
use laneway_core::model::TaskArgs;
use laneway_core::wire::{CallConfig, ChipStorageTaskArgs, ChipTensor, Dtype};
use laneway_sim::{Kernel, Program};

use super::{PLAIN, ZERO};
use crate::backend::{Backend, Callables, Facts};
use crate::expect::{Must, Verdict, Violation, equal};
use crate::numbers::HostBuffer;

/// A fresh device with the callables that it can run.
pub(crate) struct Bench<'a> {
    device: &'a mut (dyn DeviceRuntime + 'a),
    callables: &'a dyn Callables,
    pub(crate) dtypes: &'static [Dtype],
    /// Users can ask for memory of the device.
    pub(crate) memory: bool,
    pub(crate) seed: u64,
}

impl<'a> Deref for Bench<'a> {
    type Target = dyn DeviceRuntime + 'a;

    fn deref(&self) -> &Self::Target {
        self.device
    }
}

impl DerefMut for Bench<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.device
    }
}

impl<'a> Bench<'a> {
    pub(crate) fn new(device: &'a mut (dyn DeviceRuntime + 'a), backend: &'a dyn Backend, seed: u64) -> Self {
        let Facts { dtypes, memory, .. } = backend.facts();
        Self { device, callables: backend.callables(), dtypes, memory, seed }
    }

    /// The device itself, for who drives it in another way.
    pub(crate) fn device(&mut self) -> &mut (dyn DeviceRuntime + 'a) {
        self.device
    }

    /// The callable of a kernel that the case said it needs.
    pub(crate) fn callable(&self, kernel: Kernel) -> Result<Vec<u8>, Violation> {
        self.callables.kernel(kernel).must(format_args!("the callable for {kernel}"))
    }

    /// As [`callable`](Self::callable), of several kernels.
    pub(crate) fn program(&self, program: &Program) -> Result<Vec<u8>, Violation> {
        self.callables.program(program).must("the callable of several kernels")
    }

    /// Registers a kernel in a slot.
    pub(crate) fn install(&mut self, index: usize, kernel: Kernel) -> Result<CallableSlot, Violation> {
        let (blob, slot) = (self.callable(kernel)?, slot(index)?);
        self.register(slot, &blob).must(format_args!("register of {kernel} in slot {index}"))?;
        Ok(slot)
    }

    /// Prepares a vector add in run slot 0.
    pub(crate) fn prepared(&mut self, add: CallableSlot, work: &VectorAdd) -> Result<RunToken, Violation> {
        self.prepare(add, &work.args, &PLAIN, ZERO).must("prepare")
    }

    /// Prepares and launches a vector add in run slot 0.
    pub(crate) fn launched(&mut self, add: CallableSlot, work: &VectorAdd) -> Result<RunToken, Violation> {
        let run = self.prepared(add, work)?;
        self.launch(run).must("launch")?;
        Ok(run)
    }

    /// A blocking vector add whose result is right.
    pub(crate) fn adds(&mut self, add: CallableSlot) -> Verdict {
        let work = VectorAdd::new();
        self.run(add, &work.args, &PLAIN, ZERO).must("a run")?;
        work.is_done()
    }

    /// Device memory with these bytes.
    pub(crate) fn upload(&mut self, bytes: &[u8]) -> Result<DeviceAddress, Violation> {
        let buffer = HostBuffer::of(bytes);
        let address = self.malloc(bytes.len() as u64).must("malloc")?;
        self.copy_to(address, buffer.address(), bytes.len() as u64).must("a copy to the device")?;
        Ok(address)
    }

    /// Bytes of device memory.
    pub(crate) fn download(&mut self, from: DeviceAddress, bytes: usize) -> Result<Vec<u8>, Violation> {
        let buffer = HostBuffer::of(&vec![0; bytes]);
        self.copy_from(buffer.address(), from, bytes as u64).must("a copy from the device")?;
        Ok(buffer.bytes())
    }

    /// Bytes in use on the device, compared with what they were.
    pub(crate) fn still_commits(&self, what: &str, bytes: u64) -> Verdict {
        equal(format_args!("bytes committed {what}"), self.committed_memory(), bytes)
    }
}

pub(crate) fn slot(index: usize) -> Result<CallableSlot, Violation> {
    CallableSlot::new(index).must("a callable slot below 64")
}

/// A config that makes a run diagnostic.
pub(crate) fn diagnostic() -> Result<CallConfig, Violation> {
    let mut config = CallConfig { enable_pmu: 1, ..CallConfig::ZERO };
    config.set_output_prefix(b"/tmp/laneway").must("a short path")?;
    Ok(config)
}

/// Arguments as the device reads them.
pub(crate) fn storage(tensors: &[ChipTensor], scalars: &[u64]) -> Box<ChipStorageTaskArgs> {
    let mut args = TaskArgs::new();
    for tensor in tensors {
        args.no_dep(*tensor);
    }
    for scalar in scalars {
        args.scalar(*scalar);
    }
    let mut storage = Box::new(ChipStorageTaskArgs::new());
    storage.load(args.view());
    storage
}

/// A vector add of four elements in buffers of this process.
pub(crate) struct VectorAdd {
    pub(crate) out: HostBuffer,
    pub(crate) inputs: [HostBuffer; 2],
    pub(crate) tensors: [ChipTensor; 3],
    pub(crate) args: Box<ChipStorageTaskArgs>,
}

impl VectorAdd {
    pub(crate) fn new() -> Self {
        let inputs = [[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]].map(|values| HostBuffer::of_f32(&values));
        let out = HostBuffer::of_f32(&[0.0; 4]);
        let tensors = [&inputs[0], &inputs[1], &out].map(|buffer| buffer.dense_f32(&[4]));
        Self { args: storage(&tensors, &[]), out, inputs, tensors }
    }

    /// The sum is there.
    pub(crate) fn is_done(&self) -> Verdict {
        equal("the sum in host memory", self.out.f32s(), [11.0, 22.0, 33.0, 44.0])
    }

    /// Nothing was copied back.
    pub(crate) fn is_untouched(&self) -> Verdict {
        equal("the result in host memory, which nothing may have touched", self.out.f32s(), [0.0; 4])
    }
}

/// What `call` must answer for a wrong phase, a stale token or a lost device is one exact error.
pub(crate) fn fails_with<T: PartialEq + std::fmt::Debug>(
    what: impl std::fmt::Display,
    result: Result<T, ChipError>,
    error: ChipError,
) -> Verdict {
    equal(what, result, Err(error))
}
