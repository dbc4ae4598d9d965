//! Three levels: a level-4 worker sends tasks to a level-3 worker, whose SUB child does the work.

// ANCHOR: tree
use laneway_linux::{BoxError, Error, SubArgs, TaskArgs, Worker};

/// Runs in a SUB child of level 3.
fn negate(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let x = args.tensor::<i32>(0)?;
    if x.get(0) == Some(i32::MIN) {
        return Err("the first element has no negative".into());
    }
    x.fill_with(|i| -x.get(i).unwrap_or(0));
    Ok(())
}

fn main() -> Result<(), Error> {
    let l3 = Worker::builder().level(3).subs(1).build()?;
    let negate = l3.register("negate", negate)?;

    let l4 = Worker::builder().level(4).build()?;
    let by_rows = l4.register_orchestration("by rows", move |orch, args, _config| {
        // In the process of l3, on l3: its own orchestrator builds a run of its own.
        let x = args.tensors()[0];
        for row in 0..x.shape()[0] {
            let row = x.slice(0, row, row + 1, 1)?;
            orch.submit_sub(&negate, TaskArgs::new().inout(row))?;
        }
        Ok(())
    })?;
    let below = l4.add_worker(&l3)?;
    l4.init()?; // forks l3, which forks its SUB child; all are ready when this returns
    // ANCHOR_END: tree

    // ANCHOR: run
    let x = l4.tensor::<i32>(&[3, 2])?; // one address in every process of the tree
    x.copy_from(&[1, 2, 3, 4, 5, 6])?;
    let run = || l4.run(|orch| Ok(orch.submit_next_level(&by_rows, below, TaskArgs::new().inout(&x)).map(drop)?));
    run()?;
    println!("{:?}", x.to_vec()?);

    // An error keeps its path: each level that it came through, then the text of the function.
    x.view()?.set(0, i32::MIN)?;
    println!("{}", run().unwrap_err());
    l4.close()
}
// ANCHOR_END: run
