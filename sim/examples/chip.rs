//! A simulated chip: its child, its callable, its memory; and the same device without a child.

// ANCHOR: chip
use laneway_linux::{AddressSpace, Chip, ChipTensor, ChipWorker, DeviceAddress, Dtype, Error, TaskArgs, Worker};
use laneway_sim::{Config, HostMemory, Kernel, Profile, Simulator, callable};

const PROFILE: Profile = Profile::A2a3HostBuildGraph;

/// A chip child. The closure runs in the child: a device is opened where it is used, never in the parent.
fn chip() -> Chip {
    Chip::new(PROFILE.platform(), PROFILE.runtime(), |shared| {
        // SAFETY: these ranges hold the tensors of the tree; the worker keeps them mapped for the child's life, and nothing
        // in the child holds a reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(Config::new(PROFILE), host)
    })
}
// ANCHOR_END: chip

// ANCHOR: run
fn main() -> Result<(), Error> {
    let worker = Worker::builder().build()?;
    let chip = worker.add_chip(chip())?;
    // A chip callable is a blob of bytes, built for one platform and runtime. It may be registered at any time.
    let add = worker.register_chip(PROFILE.platform(), PROFILE.runtime(), &callable(Kernel::Add))?;
    worker.init()?;

    let (a, b) = (worker.tensor::<f32>(&[4])?, worker.tensor::<f32>(&[4])?);
    let c = worker.tensor::<f32>(&[4])?;
    a.copy_from(&[1.0, 2.0, 3.0, 4.0])?;
    b.fill_with(|_| 0.5)?;
    worker.run(|orch| {
        // The worker id says which chip: nothing is balanced between chips.
        orch.submit_next_level(&add, chip, TaskArgs::new().input(&a).input(&b).output(&c))?;
        Ok(())
    })?;
    println!("host     {:?}", c.to_vec()?);
    // ANCHOR_END: run

    // ANCHOR: device
    // Memory of the device. A DEVICE tensor is used where it is, by the worker that owns it and no other.
    let there = worker.malloc(chip, 16)?;
    worker.copy_to(chip, there, &c)?;
    let on_device = ChipTensor::contiguous(there.0, 16, Dtype::F32, &[4], AddressSpace::Device)?;
    worker.run(|orch| {
        let args = &mut TaskArgs::new();
        Ok(orch.submit_next_level(&add, chip, args.input(on_device).input(&b).output(&a)).map(drop)?)
    })?;
    println!("device   {:?}", a.to_vec()?);
    worker.free(chip, there)?;
    worker.close()?;
    // ANCHOR_END: device

    // ANCHOR: level2
    // Level 2: one chip in this very process, no children, no mailbox, the same trait.
    // SAFETY: what is copied below is memory of this function, and nobody else refers to it meanwhile.
    let host = unsafe { HostMemory::whole_process() };
    let alone = ChipWorker::new(Simulator::new(Config::new(PROFILE), host)?);
    let add = alone.register(&callable(Kernel::Add))?;
    let (x, y) = (alone.malloc(16)?, alone.malloc(16)?);
    alone.copy_to(x, &[1.0_f32, 2.0, 3.0, 4.0])?;
    let tensor = |at: DeviceAddress| ChipTensor::contiguous(at.0, 16, Dtype::F32, &[4], AddressSpace::Device);
    alone.run(&add, TaskArgs::new().input(tensor(x)?).input(tensor(x)?).output(tensor(y)?))?;
    let mut doubled = [0.0_f32; 4];
    alone.copy_from(&mut doubled, y)?;
    println!("level 2  {doubled:?}");
    alone.free(x)?;
    // What was not freed is returned: `y`.
    assert_eq!(alone.close()?, [(y, 16)]);
    Ok(())
}
// ANCHOR_END: level2
