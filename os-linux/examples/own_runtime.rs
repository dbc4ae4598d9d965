//! A worker whose chip child drives a device runtime of one's own.

// ANCHOR: uses
use laneway_core::wire::{ArgDirection, ChipCallableSource, Dtype};
use laneway_linux::{
    BlockingDevice, BoxError, Chip, ChipCallable, DeviceMemory, Error, Platform, ProcessMemory, RunArgs, RunError,
    RuntimeKind, TaskArgs, Worker,
};
// ANCHOR_END: uses

// ANCHOR: device
/// What the one function takes.
const ADD: [ArgDirection; 3] = [ArgDirection::In, ArgDirection::In, ArgDirection::Out];

/// The device: the CPU of the child that owns it. What it can do is add vectors of f32.
pub(crate) struct Adder {
    memory: ProcessMemory,
}

impl Adder {
    /// A device with 1 GiB.
    pub(crate) fn open() -> Result<Self, Error> {
        Ok(Self { memory: ProcessMemory::new(1 << 30) })
    }
}

impl BlockingDevice for Adder {
    /// There is one callable, so there is nothing to keep of it.
    type Callable = ();

    fn load(&self, callable: &ChipCallable<'_>) -> Result<(), BoxError> {
        let adds = callable.func_name() == "add" && callable.signature().eq(ADD);
        if adds { Ok(()) } else { Err("this device can only `add` two inputs into an output".into()) }
    }

    fn check(&self, _: &(), args: &RunArgs<'_>) -> Result<(), BoxError> {
        let shape = args.tensors()[0].shape();
        let fits = args.tensors().iter().all(|tensor| tensor.dtype() == Dtype::F32 && tensor.shape() == shape);
        if fits { Ok(()) } else { Err("all three are f32 of one shape".into()) }
    }

    fn run(&self, _: &(), args: &RunArgs<'_>) -> Result<(), RunError> {
        let (a, b, sum) = (args.tensor::<f32>(0)?, args.tensor::<f32>(1)?, args.tensor::<f32>(2)?);
        for (i, (a, b)) in a.iter().zip(b.iter()).enumerate() {
            sum.set(i, a + b)?;
        }
        Ok(())
    }

    fn memory(&self) -> Option<&dyn DeviceMemory> {
        Some(&self.memory)
    }
}
// ANCHOR_END: device

// ANCHOR: callable
/// The bytes that the callable is registered with. A real one carries binaries for the device.
pub(crate) fn add() -> Result<Vec<u8>, Error> {
    let source = ChipCallableSource { func_name: "add", signature: &ADD, ..Default::default() };
    let mut blob = vec![0; source.encoded_len()?];
    source.encode(&mut blob)?;
    Ok(blob)
}
// ANCHOR_END: callable

// ANCHOR: main
fn main() -> Result<(), Error> {
    // A device that is none of the vendor's names a simulation platform: one task frame, the depth of its contract.
    let (platform, kind) = (Platform::A5Sim, RuntimeKind::HostBuildGraph);
    let worker = Worker::builder().build()?;
    let chip = worker.add_chip(Chip::blocking(platform, kind, Adder::open))?;
    let add = worker.register_chip(platform, kind, &add()?)?;
    worker.init()?;

    let [a, b, c] = [(); 3].map(|()| worker.tensor::<f32>(&[4]));
    let (a, b, c) = (a?, b?, c?);
    a.copy_from(&[1.0, 2.0, 3.0, 4.0])?;
    b.copy_from(&[10.0, 20.0, 30.0, 40.0])?;
    worker.run(|orch| {
        orch.submit_next_level(&add, chip, TaskArgs::new().input(&a).input(&b).output(&c))?;
        Ok(())
    })?;
    println!("{:?}", c.to_vec()?);

    // Memory of the device itself, by worker id.
    let there = worker.malloc(chip, 16)?;
    worker.copy_to(chip, there, &a)?;
    worker.copy_from(chip, &b, there)?;
    println!("{:?}", b.to_vec()?);
    worker.free(chip, there)?;
    worker.close()
}
// ANCHOR_END: main
