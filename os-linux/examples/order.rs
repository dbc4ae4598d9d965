//! Order from tags alone: a diamond of four tasks, two halves of one tensor, and an overwrite after a read.

// ANCHOR: setup
use laneway_linux::{BoxError, Error, SubArgs, TaskArgs, Worker};

/// Writes `a * factor + b` into the last tensor; with one input, `b` is nothing.
fn combine(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let (inputs, factor) = (args.tensor_count() - 1, args.scalar(0)? as f32);
    let (a, out) = (args.tensor::<f32>(0)?, args.tensor::<f32>(inputs)?);
    let b = if inputs == 2 { Some(args.tensor::<f32>(1)?) } else { None };
    out.fill_with(|i| a.get(i).unwrap_or(0.0) * factor + b.and_then(|b| b.get(i)).unwrap_or(0.0));
    Ok(())
}

fn main() -> Result<(), Error> {
    let worker = Worker::builder().subs(2).strict_war(true).build()?;
    let combine = worker.register("combine", combine)?;
    worker.init()?;
    let vector = || worker.tensor::<f32>(&[4]);
    let (a, b, c, d) = (vector()?, vector()?, vector()?, vector()?);
    a.fill_with(|i| i as f32)?;
    // ANCHOR_END: setup

    // ANCHOR: diamond
    // The first two only read `a`, so they may run at the same time; the third waits for both.
    worker.run(|orch| {
        orch.submit_sub(&combine, TaskArgs::new().input(&a).output(&b).scalar(10))?;
        orch.submit_sub(&combine, TaskArgs::new().input(&a).output(&c).scalar(100))?;
        orch.submit_sub(&combine, TaskArgs::new().input(&b).input(&c).output(&d).scalar(1))?;
        Ok(())
    })?;
    println!("diamond   {:?}", d.to_vec()?);
    // ANCHOR_END: diamond

    // ANCHOR: halves
    // What counts is bytes: the two halves do not wait for each other, the reader of the whole waits for both.
    worker.run(|orch| {
        for (half, factor) in [(0, 1), (2, 1000)] {
            let from = a.as_arg().slice(0, half, half + 2, 1)?;
            let into = c.as_arg().slice(0, half, half + 2, 1)?;
            orch.submit_sub(&combine, TaskArgs::new().input(from).output(into).scalar(factor))?;
        }
        orch.submit_sub(&combine, TaskArgs::new().input(&c).output(&d).scalar(1))?;
        Ok(())
    })?;
    println!("halves    {:?}", d.to_vec()?);
    // ANCHOR_END: halves

    // ANCHOR: overwrite
    // A reader of `a`, then a pure overwrite of `a`. Only `strict_war(true)`, above, makes the second wait for the first.
    worker.run(|orch| {
        orch.submit_sub(&combine, TaskArgs::new().input(&a).output(&b).scalar(1))?;
        orch.submit_sub(&combine, TaskArgs::new().input(&d).output(&a).scalar(0))?;
        Ok(())
    })?;
    println!("overwrite {:?} was read, {:?} is there now", b.to_vec()?, a.to_vec()?);
    worker.close()
}
// ANCHOR_END: overwrite
