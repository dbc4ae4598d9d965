//! A worker whose chip child drives a vendor's runtime library: `vendor_chip ROOT PLATFORM RUNTIME CALLABLE`.
//!
//! The callable is the blob of a vector add over three f32 tensors.

use std::error::Error;
use std::path::PathBuf;

use laneway_ascend::{HostRuntime, Installation, LogThreshold};
use laneway_linux::{Chip, Platform, RuntimeKind, TaskArgs, Worker};

// ANCHOR: chip
/// The chip child: the library is bound there, and never in the parent.
fn chip(root: PathBuf, platform: Platform, runtime: RuntimeKind) -> Chip {
    Chip::new(platform, runtime, move |_shared| {
        let files = Installation::under(&root, platform, runtime);
        // SAFETY: the user says that these files are a host runtime; the worker keeps the memory of its tensors mapped for
        // the child's life, refuses tasks and copies that name other memory, and this child holds no reference into it.
        let library = unsafe { HostRuntime::bind(&files, LogThreshold::Warn) }?;
        library.open(0, None) // device 0
    })
}
// ANCHOR_END: chip

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, platform, runtime, callable] = arguments.as_slice() else {
        return Err("usage: vendor_chip ROOT PLATFORM RUNTIME CALLABLE".into());
    };
    let (platform, runtime): (Platform, RuntimeKind) = (platform.parse()?, runtime.parse()?);

    // ANCHOR: worker
    let worker = Worker::builder().build()?;
    let id = worker.add_chip(chip(root.into(), platform, runtime))?;
    let add = worker.register_chip(platform, runtime, &std::fs::read(callable)?)?;
    worker.init()?;

    let (a, b, c) = (worker.tensor::<f32>(&[4])?, worker.tensor::<f32>(&[4])?, worker.tensor::<f32>(&[4])?);
    a.copy_from(&[1.0, 2.0, 3.0, 4.0])?;
    b.fill_with(|_| 0.5)?;
    worker.run(|orch| {
        orch.submit_next_level(&add, id, TaskArgs::new().input(&a).input(&b).output(&c))?;
        Ok(())
    })?;
    // ANCHOR_END: worker
    println!("{:?}", c.to_vec()?);
    Ok(worker.close()?)
}
