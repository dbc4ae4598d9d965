//! One task: a host function that a SUB child runs over shared memory.

// ANCHOR: all
// ANCHOR: worker
use laneway_linux::{Error, TaskArgs, Worker};

fn main() -> Result<(), Error> {
    // The parent of one level, with one SUB child. Nothing is forked yet.
    let worker = Worker::builder().subs(1).build()?;

    // What SUB children can be asked to run. The closure reaches them by the fork.
    let square = worker.register("square", |args| {
        let (x, y) = (args.tensor::<f32>(0)?, args.tensor::<f32>(1)?);
        y.fill_with(|i| x.get(i).unwrap_or(0.0).powi(2));
        Ok(())
    })?;

    // Forks the child; returns when it is ready.
    worker.init()?;
    // ANCHOR_END: worker

    // ANCHOR: run
    // Memory that parent and child see at one address.
    let x = worker.tensor::<f32>(&[1024])?;
    let y = worker.tensor::<f32>(&[1024])?;
    x.fill_with(|i| i as f32)?;

    // A run: a graph of one task. `run` returns when the graph has ended.
    worker.run(|orch| {
        orch.submit_sub(&square, TaskArgs::new().input(&x).output(&y))?;
        Ok(())
    })?;
    println!("3 squared is {}", y.to_vec()?[3]);

    // Takes the tree down: no process, descriptor or mapping is left.
    worker.close()
}
// ANCHOR_END: run
// ANCHOR_END: all
