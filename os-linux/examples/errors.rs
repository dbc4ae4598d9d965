//! What goes wrong, and what it looks like: the function, a panic, a refused argument, a dead child.

// ANCHOR: setup
use laneway_linux::{AddressSpace, BoxError, ChipTensor, Dtype, Error, SubArgs, TaskArgs, Worker};

/// Fails in the way that its scalar says.
fn fail(args: &SubArgs<'_>) -> Result<(), BoxError> {
    match args.scalar(0)? {
        0 => Ok(()),
        1 => Err("the answer is 41, expected 42".into()),
        2 => panic!("index out of cheese"),
        _ => std::process::abort(),
    }
}

fn main() -> Result<(), Error> {
    let worker = Worker::builder().subs(2).build()?;
    let fail = worker.register("fail", fail)?;
    worker.init()?;
    let run = |way: u64| worker.run(|orch| Ok(orch.submit_sub(&fail, TaskArgs::new().scalar(way)).map(drop)?));
    // ANCHOR_END: setup

    // ANCHOR: task
    println!("error    {}", run(1).unwrap_err());
    println!("panic    {}", run(2).unwrap_err());
    run(0)?; // the children live on
    // ANCHOR_END: task

    // ANCHOR: poison
    // What reads the result of a failed task fails with it, and never runs.
    let x = worker.tensor::<f32>(&[8])?;
    let poisoned = worker.run(|orch| {
        orch.submit_sub(&fail, TaskArgs::new().output(&x).scalar(1))?;
        orch.submit_sub(&fail, TaskArgs::new().input(&x).scalar(3))?; // would abort
        Ok(())
    });
    println!("poison   {}", poisoned.unwrap_err());
    // ANCHOR_END: poison

    // ANCHOR: refused
    // Refused where it is submitted: memory that the children have a copy of, or do not have at all.
    let mine = [0_f32; 8];
    let tensor = ChipTensor::contiguous(mine.as_ptr() as u64, 32, Dtype::F32, &[8], AddressSpace::Host)?;
    let refused = worker.run(|orch| Ok(orch.submit_sub(&fail, TaskArgs::new().output(tensor).scalar(0)).map(drop)?));
    println!("refused  {}", refused.unwrap_err());
    // ANCHOR_END: refused

    // ANCHOR: death
    // The child of this task is gone; the worker says so at once, and goes on with the other child.
    println!("death    {}", run(3).unwrap_err());
    run(0)?;
    println!("{}", worker.health());
    worker.close()
}
// ANCHOR_END: death
