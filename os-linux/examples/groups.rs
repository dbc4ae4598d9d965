//! A group: three members that start together, so they may wait for each other.

// ANCHOR: member
use laneway_linux::{BoxError, Error, SubArgs, TaskArgs, Worker};

/// Member `rank` of `cells.len()`: adds up its share, publishes the sum in its own cell, waits until every cell is set,
/// and writes the total into its output.
fn all_reduce(args: &SubArgs<'_>) -> Result<(), BoxError> {
    let (share, cells, total) = (args.tensor::<i64>(0)?, args.tensor::<i64>(1)?, args.tensor::<i64>(2)?);
    cells.set(args.scalar(0)? as usize, share.iter().sum())?;
    // One word is both the flag and the value, so no order between two words is needed.
    while cells.iter().any(|sum| sum == 0) {
        std::hint::spin_loop();
    }
    total.set(0, cells.iter().sum())?;
    Ok(())
}
// ANCHOR_END: member

// ANCHOR: group
fn main() -> Result<(), Error> {
    let worker = Worker::builder().subs(3).build()?;
    let all_reduce = worker.register("all reduce", all_reduce)?;
    worker.init()?;
    let numbers = worker.tensor::<i64>(&[300])?;
    let (cells, totals) = (worker.tensor::<i64>(&[3])?, worker.tensor::<i64>(&[3])?);
    numbers.fill_with(|i| i as i64 + 1)?;

    worker.run(|orch| {
        let mut members = Vec::new();
        for rank in 0..3 {
            let share = numbers.as_arg().slice(0, 100 * rank, 100 * rank + 100, 1)?;
            let total = totals.as_arg().slice(0, rank, rank + 1, 1)?;
            let mut args = TaskArgs::new();
            // Nobody orders what the members do to `cells`: they do it themselves.
            args.input(share).no_dep(&cells).output(total).scalar(rank.into());
            members.push(args);
        }
        orch.submit_sub_group(&all_reduce, &members.iter().collect::<Vec<_>>())?;
        Ok(())
    })?;
    println!("each member found {:?}", totals.to_vec()?);
    worker.close()
}
// ANCHOR_END: group
