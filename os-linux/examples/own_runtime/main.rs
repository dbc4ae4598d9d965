//! A worker whose chip child drives a device runtime of one's own.

// ANCHOR: all
mod runtime;

use laneway_core::wire::{ArgDirection, ChipCallableSource};
use laneway_linux::{Chip, Error, Platform, RuntimeKind, TaskArgs, Worker};

use runtime::Adder;

/// The bytes that a chip callable is registered with. A real one carries binaries for the device.
fn add() -> Result<Vec<u8>, Error> {
    let signature = &[ArgDirection::In, ArgDirection::In, ArgDirection::Out];
    let source = ChipCallableSource { func_name: "add", signature, ..Default::default() };
    let mut blob = vec![0; source.encoded_len()?];
    source.encode(&mut blob)?;
    Ok(blob)
}

fn main() -> Result<(), Error> {
    // A device that is none of the vendor's names a simulation platform: one task frame, the depth of its contract.
    let (platform, kind) = (Platform::A5Sim, RuntimeKind::HostBuildGraph);
    let worker = Worker::builder().build()?;
    let chip = worker.add_chip(Chip::new(platform, kind, |_shared| {
        // SAFETY: the worker keeps the memory of its tensors mapped for the child's life, and refuses tasks and copies that
        // name other memory; nothing in the child holds a reference into it.
        Ok::<_, Error>(unsafe { Adder::new() })
    }))?;
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
// ANCHOR_END: all
