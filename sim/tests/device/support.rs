//! What the tests of the device share.

use std::sync::atomic::{AtomicU64, Ordering};

use laneway_core::chip::{CallableSlot, DeviceAddress, DeviceRuntime, HostAddress, RunDescriptor};
use laneway_core::ids::PipelineSlot;
use laneway_core::model::TaskArgs;
use laneway_core::wire::{AddressSpace, CallConfig, ChipStorageTaskArgs, ChipTensor, Dtype};
use laneway_sim::{Config, HostMemory, Kernel, Profile, Simulator, callable};

/// Memory of this process that a device may touch: atomics, so that no other reference to the bytes exists.
pub(crate) struct HostBuffer {
    words: Vec<AtomicU64>,
    bytes: usize,
}

impl HostBuffer {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            AtomicU64::new(u64::from_ne_bytes(word))
        });
        Self { words: words.collect(), bytes: bytes.len() }
    }

    pub(crate) fn of_f32(values: &[f32]) -> Self {
        Self::of(&values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>())
    }

    pub(crate) fn address(&self) -> HostAddress {
        HostAddress(self.words.as_ptr().expose_provenance() as u64)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let all = self.words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        all.take(self.bytes).collect()
    }

    pub(crate) fn f32s(&self) -> Vec<f32> {
        self.bytes().as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
    }

    /// A dense tensor over the whole buffer.
    pub(crate) fn tensor(&self, dtype: Dtype, shape: &[u32]) -> ChipTensor {
        let bytes = self.bytes as u64;
        ChipTensor::contiguous(self.address().0, bytes, dtype, shape, AddressSpace::Host).unwrap()
    }
}

pub(crate) fn host_memory() -> HostMemory {
    // SAFETY: the tests hand over tensors of live `HostBuffer`s, whose bytes are atomics, and addresses that are
    // refused before they are touched.
    unsafe { HostMemory::whole_process() }
}

pub(crate) fn device_of(config: Config) -> Simulator {
    Simulator::new(config, host_memory()).unwrap()
}

pub(crate) fn device(profile: Profile) -> Simulator {
    device_of(Config::new(profile))
}

pub(crate) fn slot(index: usize) -> CallableSlot {
    CallableSlot::new(index).unwrap()
}

pub(crate) const ZERO: RunDescriptor = RunDescriptor::Direct(PipelineSlot::Zero);
pub(crate) const ONE: RunDescriptor = RunDescriptor::Direct(PipelineSlot::One);

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

/// A config that makes a run diagnostic.
pub(crate) fn diagnostic() -> CallConfig {
    let mut config = CallConfig::ZERO;
    config.enable_pmu = 1;
    config.set_output_prefix(b"/tmp/diagnostics").unwrap();
    config
}

pub(crate) const PLAIN: CallConfig = CallConfig::ZERO;

/// Registers the kernel in its own slot and returns the slot.
pub(crate) fn register(device: &mut impl DeviceRuntime, kernel: Kernel) -> CallableSlot {
    let index = Kernel::ALL.iter().position(|&other| other == kernel).unwrap();
    device.register(slot(index), &callable(kernel)).unwrap();
    slot(index)
}

/// Device memory that holds `bytes`.
pub(crate) fn upload(device: &mut impl DeviceRuntime, bytes: &[u8]) -> DeviceAddress {
    let buffer = HostBuffer::of(bytes);
    let address = device.malloc(bytes.len() as u64).unwrap();
    device.copy_to(address, buffer.address(), bytes.len() as u64).unwrap();
    address
}

pub(crate) fn download(device: &mut impl DeviceRuntime, from: DeviceAddress, bytes: usize) -> Vec<u8> {
    let buffer = HostBuffer::of(&vec![0; bytes]);
    device.copy_from(buffer.address(), from, bytes as u64).unwrap();
    buffer.bytes()
}

/// A dense vector add over three buffers of this process: 1, 2, 3, 4 plus ten times as much.
pub(crate) struct VectorAdd {
    pub(crate) out: HostBuffer,
    _inputs: [HostBuffer; 2],
    pub(crate) args: Box<ChipStorageTaskArgs>,
}

impl VectorAdd {
    pub(crate) fn new() -> Self {
        let inputs = [[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]].map(|values| HostBuffer::of_f32(&values));
        let out = HostBuffer::of_f32(&[0.0; 4]);
        let tensors = [&inputs[0], &inputs[1], &out].map(|buffer| buffer.tensor(Dtype::F32, &[4]));
        Self { args: storage(&tensors, &[]), out, _inputs: inputs }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.out.f32s() == [11.0, 22.0, 33.0, 44.0]
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.out.f32s() == [0.0; 4]
    }
}
