//! Where memory comes from: buffers, scratch memory of a run, outputs that a submit allocates; and when it may be touched.

// ANCHOR: setup
use laneway_linux::{BoxError, Error, Orchestrator, SubArgs, TaskArgs, Tensor, Worker, unallocated};

/// Adds its scalar to each element of the first tensor and writes the second. Waits while the third, if any, is 0.
fn add(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let (x, y, by) = (args.tensor::<i32>(0)?, args.tensor::<i32>(1)?, args.scalar(0)? as i32);
    if args.tensor_count() == 3 {
        let gate = args.tensor::<i32>(2)?;
        while gate.get(0) == Some(0) {
            std::hint::spin_loop();
        }
    }
    y.fill_with(|i| x.get(i).unwrap_or(0) + by);
    Ok(())
}

fn main() -> Result<(), Error> {
    let worker = Worker::builder().subs(2).build()?;
    let add = worker.register("add", add)?;
    worker.init()?;
    // ANCHOR_END: setup

    // ANCHOR: buffers
    // Buffers: owned by the handles that name them, the same address in every process of the tree.
    let x: Tensor<i32> = worker.tensor(&[2, 3])?;
    let y = worker.tensor::<i32>(&[2, 3])?;
    x.copy_from(&[1, 2, 3, 4, 5, 6])?;
    // ANCHOR_END: buffers

    // ANCHOR: scratch
    worker.run(|orch: &mut Orchestrator<'_>| {
        orch.scope(|orch| {
            // Scratch memory of the run: gone when the scope has ended and its last task has.
            let step = orch.alloc::<i32>(&[2, 3])?;
            orch.submit_sub(&add, TaskArgs::new().input(&x).output(step).scalar(1))?;
            // An output without an address is allocated by the submit, which returns it.
            let made =
                orch.submit_sub(&add, TaskArgs::new().input(step).output(unallocated::<i32>(&[2, 3])?).scalar(1))?;
            orch.submit_sub(&add, TaskArgs::new().input(made[0]).output(&y).scalar(1))?;
            Ok::<_, BoxError>(())
        })?;
        // A callback may wait for a part of its own graph, look, and go on from there.
        orch.wait(&[y.as_arg()])?;
        println!("first    {:?}", y.to_vec()?);
        orch.submit_sub(
            &add,
            TaskArgs::new().input(y.as_arg().transpose(0, 1)?).output(x.as_arg().reshape(&[3, 2])?).scalar(0),
        )?;
        Ok(())
    })?;
    println!("second   {:?}", x.to_vec()?);
    // ANCHOR_END: scratch

    // ANCHOR: in_use
    // While an unfinished task names bytes of a tensor, the parent may not look at it.
    let gate = worker.tensor::<i32>(&[1])?;
    let open = gate.view()?; // judged here, once
    let run = worker.submit(|orch| {
        Ok(orch.submit_sub(&add, TaskArgs::new().input(&x).output(&y).no_dep(&gate).scalar(0)).map(drop)?)
    })?;
    println!("refused  {}", matches!(y.to_vec(), Err(Error::InUse { .. })));
    open.set(0, 1)?;
    run.wait()?;
    println!("allowed  {:?}", y.to_vec()?);
    worker.close()
}
// ANCHOR_END: in_use
