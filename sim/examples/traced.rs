//! A worker that can be seen into: the graph of a run, numbers, and a trace for the Perfetto UI.
//!
//! `traced [FILE]`; without a name the trace goes to the folder for temporary files.

// ANCHOR: all
use std::path::PathBuf;

use laneway_linux::{BoxError, Chip, TaskArgs, Worker};
use laneway_sim::{Config, HostMemory, Kernel, Profile, Simulator, callable, scale_factor};

const PROFILE: Profile = Profile::A2a3HostBuildGraph;

fn chip() -> Chip {
    Chip::new(PROFILE.platform(), PROFILE.runtime(), |shared| {
        // SAFETY: these ranges hold the tensors of the tree; the worker keeps them mapped for the child's life, and nothing
        // in the child holds a reference into them.
        let host = unsafe { HostMemory::ranges(shared.iter().cloned()) };
        Simulator::new(Config::new(PROFILE), host)
    })
}

fn main() -> Result<(), BoxError> {
    let path =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("laneway-trace.json"), PathBuf::from);
    // ANCHOR: build
    let worker = Worker::builder().subs(2).trace_to(&path).record_graphs(true).build()?;
    // ANCHOR_END: build
    let chips = [worker.add_chip(chip())?, worker.add_chip(chip())?];
    let add = worker.register_chip(PROFILE.platform(), PROFILE.runtime(), &callable(Kernel::Add))?;
    let scale = worker.register_chip(PROFILE.platform(), PROFILE.runtime(), &callable(Kernel::Scale))?;
    let check = worker.register("check", |args| {
        let sum: f32 = args.tensor::<f32>(0)?.iter().sum();
        if sum.is_finite() { Ok(()) } else { Err(format!("the sum is {sum}").into()) }
    })?;
    worker.init()?;
    let (a, b) = (worker.tensor::<f32>(&[1 << 16])?, worker.tensor::<f32>(&[1 << 16])?);
    a.fill_with(|i| i as f32)?;
    b.fill_with(|_| 0.5)?;

    // ANCHOR: graph
    let run = worker.submit(|orch| {
        let (c, d) = (orch.alloc::<f32>(&[1 << 16])?, orch.alloc::<f32>(&[1 << 16])?);
        orch.submit_next_level(&add, chips[0], TaskArgs::new().input(&a).input(&b).output(c))?;
        let double = scale_factor(2.0);
        orch.submit_next_level(&scale, chips[1], TaskArgs::new().input(c).output(d).scalar(double))?;
        orch.submit_sub(&check, TaskArgs::new().input(c))?;
        orch.submit_sub(&check, TaskArgs::new().input(d))?;
        Ok(())
    })?;
    run.wait()?;
    print!("{}", run.dot()?);
    // ANCHOR_END: graph

    // ANCHOR: metrics
    let metrics = worker.metrics();
    println!("runs {}, tasks {}", metrics.runs.completed, metrics.tasks.completed);
    assert!(metrics.dispatch_to_completion.quantile(0.99) > metrics.dispatch_to_completion.quantile(0.0));
    // ANCHOR_END: metrics
    worker.close()?;
    println!("open {} in https://ui.perfetto.dev", path.file_name().unwrap_or_default().display());
    Ok(())
}
// ANCHOR_END: all
